// SPDX-License-Identifier: MIT OR Apache-2.0

//! Packets that move data: WRITE_DATA, DMA_DATA, COPY_DATA.

use super::run;
use crate::engine::command_processor::Outcome;
use crate::engine::memory::PAGE_SIZE;
use crate::tests::engine::machine::{Event, Machine, DATA};
use crate::tests::engine::program;
use crate::tests::engine::program::{Program, EQUAL};

#[test]
fn write_data_stores_its_dwords() {
    let data: Vec<u32> = (1..=2000).collect();
    // Across a page border.
    let to = DATA + PAGE_SIZE - 20;
    let machine = run(Program::new().write(to, &data));

    assert_eq!(
        machine.bytes(to, 8000),
        data.iter()
            .flat_map(|dword| dword.to_le_bytes())
            .collect::<Vec<u8>>()
    );
    assert_eq!(machine.bytes(to - 4, 4), [0; 4]);
    assert_eq!(machine.bytes(to + 8000, 4), [0; 4]);
}

#[test]
fn write_data_to_one_address_leaves_the_last_dword() {
    let machine = run(Program::new().write_fixed(DATA, &[1, 2, 3]));

    assert_eq!(machine.word(DATA), 3);
    assert_eq!(machine.word(DATA + 8), 0);

    let machine = run(Program::new().write_fixed(DATA, &[1, 2]));

    assert_eq!(machine.word(DATA), 2);
}

/// The accesses that a program makes to the data pages.
fn data_accesses(program: Program) -> Vec<Event> {
    let mut machine = Machine::new();

    machine.submit(&program.0);
    machine.ram.take_trace();
    assert!(matches!(machine.run(), Outcome::Done(_)));

    let data = machine.find(DATA).unwrap();
    let is_data =
        |at: &crate::engine::memory::Physical| at.address & !(PAGE_SIZE - 1) == data.address;
    let offset = |mut event: Event| {
        match &mut event {
            Event::Load32(at)
            | Event::Load64(at)
            | Event::Store32(at, _)
            | Event::Store64(at, _)
            | Event::Exchange(at, ..)
            | Event::Fill(at, ..) => {
                at.address -= data.address;
            }
            Event::Copy(from, to, _) => {
                from.address -= data.address;
                to.address -= data.address;
            }
        }
        event
    };

    machine
        .ram
        .take_trace()
        .into_iter()
        .filter(|event| match event {
            Event::Load32(at)
            | Event::Load64(at)
            | Event::Store32(at, _)
            | Event::Store64(at, _)
            | Event::Exchange(at, ..)
            | Event::Fill(at, ..)
            | Event::Copy(_, at, _) => is_data(at),
        })
        .map(offset)
        .collect()
}

/// The place that many bytes into the data pages, in a trace of [`data_accesses`].
fn at(offset: u64) -> crate::engine::memory::Physical {
    crate::engine::memory::Physical::new(crate::engine::memory::Place::System, offset)
}

#[test]
fn gpu_39_64_bit_data_steps_are_single_accesses() {
    const VALUE: u64 = 0x1122_3344_5566_7788;
    let store = |offset| vec![Event::Store64(at(offset), VALUE)];

    assert_eq!(
        data_accesses(Program::new().write64(DATA + 8, VALUE)),
        store(8)
    );
    assert_eq!(
        data_accesses(Program::new().store_word(VALUE, DATA + 8, true)),
        store(8)
    );
    assert_eq!(
        data_accesses(Program::new().move_word(DATA, DATA + 8, true)),
        [Event::Load64(at(0)), Event::Store64(at(8), 0)]
    );
    assert_eq!(
        data_accesses(Program::new().release(program::DATA_QWORD, 0, DATA + 8, VALUE)),
        store(8)
    );
    assert_eq!(
        data_accesses(Program::new().release(program::DATA_CLOCK, 0, DATA, 0)),
        [Event::Store64(at(0), 0)]
    );
    assert_eq!(
        data_accesses(Program::new().wait64(DATA, EQUAL, 0, !0, 0)),
        [Event::Load64(at(0))]
    );
    // Not two dwords at an address for 64 bits, so not one store.
    assert_eq!(
        data_accesses(Program::new().write64(DATA + 4, VALUE)),
        [
            Event::Store32(at(4), 0x5566_7788),
            Event::Store32(at(8), 0x1122_3344)
        ]
    );
    assert_eq!(
        data_accesses(Program::new().copy(DATA, DATA + 0x100, 24)),
        [Event::Copy(at(0), at(0x100), 24)]
    );
    assert_eq!(
        data_accesses(Program::new().fill(DATA + 8, 3, 16)),
        [Event::Fill(at(8), 3, 16)]
    );
}

#[test]
fn dma_data_copies_bytes_at_any_place() {
    for (from, to, bytes) in [
        (0, 0x100, 8),
        (1, 0x103, 1),
        (3, 0x2002, 4095),
        (0xfff, 0x3001, 2),
        (0x123, 0x4567, 0x4321),
        (0, 0x8000, 0x8000),
        (0, 0x100, 0),
    ] {
        let mut machine = Machine::new();
        let source: Vec<u8> = (0..bytes).map(|i| (i * 7 + 1) as u8).collect();

        machine.set_bytes(DATA + from, &source);

        machine.done(&Program::new().copy(DATA + from, DATA + to, bytes as u32).0);
        assert_eq!(
            machine.bytes(DATA + to, bytes),
            source,
            "{from} {to} {bytes}"
        );
        // What is behind it is as it was, if there is anything.
        if to + bytes < 16 * PAGE_SIZE && bytes != 0 {
            assert_eq!(machine.bytes(DATA + to + bytes, 1), [0]);
        }
    }
}

#[test]
fn dma_data_fills_dwords() {
    let machine = run(Program::new().fill(DATA + PAGE_SIZE - 4, 0x0403_0201, 12));

    assert_eq!(
        machine.bytes(DATA + PAGE_SIZE - 8, 20),
        [0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 0, 0]
    );
}

#[test]
fn dma_data_with_a_fixed_address_moves_dwords() {
    let mut machine = Machine::new();

    machine.load(DATA, &[1, 2, 3, 4]);
    machine.done(
        &Program::new()
            .copy_with(DATA + 4, DATA + 0x100, 12, program::SOURCE_FIXED)
            .copy_with(DATA, DATA + 0x200, 12, program::TARGET_FIXED)
            .copy_with(
                DATA + 4,
                DATA + 0x300,
                12,
                program::SOURCE_FIXED | program::TARGET_FIXED,
            )
            .fill_with(DATA + 0x400, 9, 12, program::TARGET_FIXED)
            .0,
    );
    for (offset, expected) in [
        (0x100, [2, 2, 2, 0]),
        (0x200, [3, 0, 0, 0]),
        (0x300, [2, 0, 0, 0]),
        (0x400, [9, 0, 0, 0]),
    ] {
        let bytes: Vec<u8> = expected
            .iter()
            .flat_map(|dword: &u32| dword.to_le_bytes())
            .collect();

        assert_eq!(machine.bytes(DATA + offset, 16), bytes, "{offset:#x}");
    }
}

#[test]
fn copy_data_moves_words() {
    const VALUE: u64 = 0x1122_3344_5566_7788;
    let mut machine = Machine::new();

    machine.clock.0.set(0x9_8765_4321);
    machine.set_word(DATA, VALUE);
    machine.done(
        &Program::new()
            .move_word(DATA, DATA + 16, true)
            .move_word(DATA + 4, DATA + 32, false)
            .store_word(VALUE, DATA + 48, true)
            .store_word(VALUE, DATA + 64, false)
            .store_clock(DATA + 80, true)
            .store_clock(DATA + 96, false)
            .0,
    );
    for (offset, expected) in [
        (16, VALUE),
        (32, 0x1122_3344),
        (48, VALUE),
        (64, 0x5566_7788),
        (80, 0x9_8765_4321),
        (96, 0x8765_4321),
    ] {
        assert_eq!(machine.word(DATA + offset), expected, "at {offset}");
    }
}
