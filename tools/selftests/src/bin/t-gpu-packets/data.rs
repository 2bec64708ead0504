// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that move data: WRITE_DATA, DMA_DATA, COPY_DATA, ATOMIC_MEM.

use opendxg::pm4::{opcode, Atomic, Pm4};
use selftests::gpu::PAGE;
use selftests::{ensure_eq, Suite, TestResult};

use super::place::{everywhere, pattern, Place, BYTES};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-37 GPU-39 WRITE_DATA", || everywhere(write_data))
        .test("GPU-37 WRITE_DATA selectors and long packets", || {
            everywhere(write_data_forms)
        })
        .test("GPU-37 DMA_DATA copies any bytes", || everywhere(copies))
        .test("GPU-37 DMA_DATA fills, and addresses that stay", || {
            everywhere(fills)
        })
        .test("GPU-42 a copy that overlaps keeps to its range", || {
            everywhere(overlap)
        })
        .test("GPU-37 GPU-39 COPY_DATA", || everywhere(copy_data))
        .test("GPU-37 GPU-39 ATOMIC_MEM", || everywhere(atomics))
        .test(
            "GPU-33 GPU-34 GPU-35 fillers and NOPs of any length",
            || everywhere(nothing),
        )
        .test("GPU-38 packets of a queue take effect in order", || {
            everywhere(in_order)
        })
}

/// The byte at an offset of the source.
fn byte(offset: u64) -> u8 {
    pattern(offset & !3).to_le_bytes()[(offset % 4) as usize]
}

/// The bytes of the target.
fn bytes(place: &Place) -> Vec<u8> {
    let words = place.target.read(0, BYTES / 4);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn write_data(place: &Place) -> TestResult {
    let target = &place.target;
    place.run(
        &Pm4::new()
            .write(target.at(4), &[1])
            .write64(target.at(8), 0x3_0000_0002)
            // Two words that are not aligned to both.
            .write(target.at(20), &[4, 5])
            // Over the border of a page.
            .write(target.at(PAGE - 8), &[6, 7, 8, 9])
            .write_same(target.at(64), &[1, 2, 3, 4]),
    )?;
    ensure_eq!(target.read(0, 8), [0, 1, 2, 3, 0, 4, 5, 0]);
    ensure_eq!(target.read(PAGE - 12, 6), [0, 6, 7, 8, 9, 0]);
    ensure_eq!(target.read(60, 4), [0, 4, 0, 0]);
    Ok(())
}

fn write_data_forms(place: &Place) -> TestResult {
    let target = &place.target;
    let address = |offset| {
        let at = target.at(offset);
        [at as u32, (at >> 32) as u32]
    };
    let long: Vec<u32> = (0..3000).collect();
    let mut commands = Pm4::new().write(target.at(PAGE), &long);
    // Both selectors of memory, and bits that mean nothing here.
    for (offset, control) in [(0, 2 << 8), (4, 5 << 8), (8, (5 << 8) | 0xf0e0_00ff)] {
        let [low, high] = address(offset);
        commands = commands.packet(opcode::WRITE_DATA, &[control, low, high, 7]);
    }
    place.run(&commands)?;
    ensure_eq!(target.read(0, 4), [7, 7, 7, 0]);
    ensure_eq!(target.read(PAGE, 3000), long);
    Ok(())
}

fn copies(place: &Place) -> TestResult {
    let (source, target) = (&place.source, &place.target);
    let cases = [
        (0, 0, 1),
        (3, 8, 5),
        (8, 17, 8),
        (1, 33, 4095),
        (PAGE - 1, 2 * PAGE - 2, 3),
        (PAGE, PAGE, 2 * PAGE),
        (7, 7, BYTES - 7),
        (0, 0, BYTES),
        (5, 6, 0),
    ];
    for (from, to, count) in cases {
        target.fill(0);
        place.run(&Pm4::new().copy(target.at(to), source.at(from), count))?;
        let found = bytes(place);
        let expected: Vec<u8> = (0..BYTES)
            .map(|at| match at.checked_sub(to) {
                Some(offset) if offset < count => byte(from + offset),
                _ => 0,
            })
            .collect();
        ensure_eq!(found == expected, true, "{count} bytes of {from} to {to}");
    }
    // Both selectors of memory on both sides.
    for (number, selectors) in (0..).zip([0, 3 << 20, 3 << 29, (3 << 29) | (3 << 20)]) {
        let to = target.at(number * 16);
        place.run(&Pm4::new().dma((1 << 31) | selectors, source.at(PAGE), to, 16))?;
        ensure_eq!(target.read(number * 16, 4), source.read(PAGE, 4));
    }
    Ok(())
}

fn fills(place: &Place) -> TestResult {
    let (source, target) = (&place.source, &place.target);
    place.run(
        &Pm4::new()
            .fill(target.at(4), 0xabcd_ef01, 2 * PAGE + 8)
            .fill(target.at(3 * PAGE), 5, 0),
    )?;
    ensure_eq!(target.get32(0), 0);
    target.holds(4..2 * PAGE + 12, 0xabcd_ef01)?;
    target.holds(2 * PAGE + 12..BYTES, 0)?;

    // The source stays where it is: a fill with a word of memory.
    let sync = 1 << 31;
    target.fill(0);
    place.run(&Pm4::new().dma(sync, source.at(8), target.at(16), (1 << 28) | 64))?;
    target.holds(0..16, 0)?;
    target.holds(16..80, pattern(8))?;
    target.holds(80..PAGE, 0)?;

    // The destination stays: the last word is left.
    target.fill(0);
    place.run(&Pm4::new().dma(sync, source.at(0), target.at(16), (1 << 29) | 64))?;
    ensure_eq!(target.read(12, 3), [0, pattern(60), 0]);
    Ok(())
}

fn overlap(place: &Place) -> TestResult {
    let target = &place.target;
    for (from, to) in [(0, 100), (100, 0), (4, 5)] {
        target.fill(0x5555_5555);
        let base = PAGE;
        place.run(&Pm4::new().copy(target.at(base + to), target.at(base + from), 3000))?;
        // All bytes are the same, so those of the overlap are known too.
        target.holds(0..BYTES, 0x5555_5555)?;
        target.fill(0);
        target.set32(base + from, 1);
        place.run(&Pm4::new().copy(target.at(base + to), target.at(base + from), 3000))?;
        target.holds(0..base, 0)?;
        target.holds((base + 3200)..BYTES, 0)?;
    }
    Ok(())
}

fn copy_data(place: &Place) -> TestResult {
    let (source, target) = (&place.source, &place.target);
    place.run(
        &Pm4::new()
            .move32(target.at(4), source.at(12))
            .move64(target.at(8), source.at(PAGE))
            .set32(target.at(20), 7)
            .set64(target.at(24), 0x9_0000_0008),
    )?;
    let expected = [
        0,
        pattern(12),
        pattern(PAGE),
        pattern(PAGE + 4),
        0,
        7,
        8,
        9,
        0,
    ];
    ensure_eq!(target.read(0, 9), expected);
    // The other selectors of memory.
    let halves = |at: u64| [at as u32, (at >> 32) as u32];
    let ([from, from_high], [to, to_high]) = (halves(source.at(4)), halves(target.at(64)));
    let words = [2 | (2 << 8), from, from_high, to, to_high];
    place.run(&Pm4::new().packet(opcode::COPY_DATA, &words))?;
    ensure_eq!(target.read(64, 2), [pattern(4), 0]);
    Ok(())
}

fn atomics(place: &Place) -> TestResult {
    let target = &place.target;
    let (before, source): (u64, u64) = (0x1_0000_00f0, 0x2_0000_000f);
    let cases = [
        (Atomic::Swap, 0, source),
        (Atomic::CompareSwap, before, source),
        (Atomic::CompareSwap, before + 1, before),
        (Atomic::Add, 0, before + source),
        (Atomic::Sub, 0, before.wrapping_sub(source)),
        (Atomic::Max, 0, source),
        (Atomic::And, 0, before & source),
        (Atomic::Or, 0, before | source),
    ];
    for (operation, compare, expected) in cases {
        let commands = Pm4::new().atomic(operation, target.at(8), source, compare);
        // The forms that return nothing have another bit.
        let mut words = commands.words().to_vec();
        words[1] |= 0x40;
        let no_return = words.iter().fold(Pm4::new(), |all, &word| all.word(word));
        for commands in [commands, no_return] {
            target.set64(8, before);
            place.run(&commands)?;
            ensure_eq!(target.get64(8), expected, "{operation:?}");
            ensure_eq!((target.get64(0), target.get64(16)), (0, 0));
        }
    }
    // Again and again until it is equal.
    target.set64(8, 1);
    let commands = Pm4::new()
        .compare_swap_loop(target.at(8), 10, 3)
        .set32(target.at(64), 1);
    let commands = place.gpu.commands(&commands)?;
    place.gpu.submit(&commands)?;
    let mark = place.gpu.mark()?;
    selftests::time::a_while();
    ensure_eq!((target.get64(8), target.get32(64)), (1, 0));
    target.set64(8, 3);
    place.gpu.until(mark)?;
    ensure_eq!((target.get64(8), target.get32(64)), (10, 1));
    Ok(())
}

fn nothing(place: &Place) -> TestResult {
    let target = &place.target;
    let mut commands = Pm4::new();
    for (number, words) in (0..).zip([0, 1, 2, 3, 100, 2000, 0x3ffe]) {
        commands = commands
            .filler()
            .nop(words)
            .set32(target.at(4 * number), 1)
            .filler();
    }
    // The payload may be anything: also what looks like a packet.
    let illegal = [0, 0x4000_0000, 0xffff_ffff];
    commands = commands
        .packet(opcode::NOP, &illegal)
        .trap(1, 2)
        .delay(3)
        .set32(target.at(28), 1)
        // A header with the type of the shader.
        .word(opendxg::pm4::header(opcode::NOP, 1) | 2)
        .word(0);
    place.run(&commands)?;
    ensure_eq!(target.read(0, 9), [1, 1, 1, 1, 1, 1, 1, 1, 0]);
    Ok(())
}

fn in_order(place: &Place) -> TestResult {
    let target = &place.target;
    // Each packet reads what the one before has written, by another kind of packet each time.
    let mut commands = Pm4::new().set64(target.at(0), 1);
    for _ in 0..100 {
        commands = commands
            .copy(target.at(PAGE), target.at(0), 8)
            .move64(target.at(2 * PAGE), target.at(PAGE))
            .atomic(Atomic::Add, target.at(2 * PAGE), 1, 0)
            .acquire()
            .copy(target.at(0), target.at(2 * PAGE), 8);
    }
    place.run(&commands)?;
    ensure_eq!(target.get64(0), 101);
    Ok(())
}
