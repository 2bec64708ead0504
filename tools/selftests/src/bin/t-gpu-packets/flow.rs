// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that decide what is executed, and when: INDIRECT_BUFFER, COND_EXEC, WAIT_REG_MEM.

use opendxg::pm4::{opcode, Atomic, Compare, Pm4};
use opendxg::ExecutionState;
use selftests::gpu::{one, Commands, Gpu, NODES, PAGE};
use selftests::time::a_while;
use selftests::{ensure_eq, Suite, TestResult};

use super::place::{everywhere, Place};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-37 INDIRECT_BUFFER comes back", || everywhere(indirect))
        .test("GPU-40 INDIRECT_BUFFER that chains does not", || {
            everywhere(chain)
        })
        .test("GPU-40 buffers are nested up to four times", nested)
        .test("GPU-40 a loop of chained buffers", || everywhere(looped))
        .test("GPU-37 COND_EXEC", || everywhere(cond_exec))
        .test("GPU-37 WAIT_REG_MEM with every function", || {
            everywhere(compared)
        })
        .test("GPU-43 an unmet wait lets other queues run", unmet)
        .test("GPU-10 what is changed before a wait ends is seen", late)
}

/// Where commands are, and their bytes.
fn place_of(commands: &Commands) -> (u64, u64) {
    (commands.address(), commands.length().into())
}

fn indirect(place: &Place) -> TestResult {
    let target = &place.target;
    let inner = place.gpu.commands(&Pm4::new().set32(target.at(4), 2))?;
    let (address, bytes) = place_of(&inner);
    place.run(
        &Pm4::new()
            .set32(target.at(0), 1)
            .indirect(address, bytes)
            // Of no words.
            .indirect(address, 0)
            .indirect(0, 0)
            .move32(target.at(8), target.at(4)),
    )?;
    ensure_eq!(target.read(0, 4), [1, 2, 2, 0]);
    // VMID means nothing.
    let [low, high] = [address as u32, (address >> 32) as u32];
    let last = (1 << 23) | (0xf << 24) | (bytes as u32 / 4);
    target.set32(4, 0);
    place.run(&Pm4::new().packet(opcode::INDIRECT_BUFFER, &[low, high, last]))?;
    ensure_eq!(target.get32(4), 2);
    Ok(())
}

fn chain(place: &Place) -> TestResult {
    let target = &place.target;
    let last = place.gpu.commands(&Pm4::new().set32(target.at(8), 3))?;
    let (address, bytes) = place_of(&last);
    let middle = Pm4::new()
        .set32(target.at(4), 2)
        .chain(address, bytes)
        .set32(target.at(12), 9);
    let middle = place.gpu.commands(&middle)?;
    let (address, bytes) = place_of(&middle);
    // What chains inside of an indirect buffer goes back to where that came from.
    place.run(
        &Pm4::new()
            .indirect(address, bytes)
            .set32(target.at(16), 5)
            .chain(address, bytes)
            .set32(target.at(20), 9),
    )?;
    ensure_eq!(target.read(0, 6), [0, 2, 3, 0, 5, 0]);
    Ok(())
}

fn nested() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let counter = gpu.buffer(PAGE)?;
        let mut inner = gpu.commands(&Pm4::new().atomic(Atomic::Add, counter.at(0), 1, 0))?;
        // Kept until they have run.
        let mut all = Vec::new();
        for depth in 1..=4 {
            let (address, bytes) = place_of(&inner);
            let outer = Pm4::new().indirect(address, bytes);
            gpu.run(&outer)?;
            ensure_eq!(counter.get64(0), depth, "node {node}");
            let outer = gpu.commands(&outer)?;
            all.push(core::mem::replace(&mut inner, outer));
        }
        let (address, bytes) = place_of(&inner);
        gpu.fails(
            &Pm4::new().indirect(address, bytes),
            ExecutionState::DmaFault,
        )?;
        ensure_eq!(counter.get64(0), 4);
    }
    Ok(())
}

fn looped(place: &Place) -> TestResult {
    const TURNS: u64 = 500;
    let (target, gpu) = (&place.target, &place.gpu);
    target.set64(0, TURNS);
    let body = Pm4::new()
        .atomic(Atomic::Add, target.at(64), 1, 0)
        .atomic(Atomic::Sub, target.at(0), 1, 0)
        // Skips the chain when nothing is left.
        .skip_if_zero(target.at(0), 4);
    let commands = gpu.buffer(PAGE)?;
    let bytes = (body.len() as u64 + 4) * 4;
    let body = body.chain(commands.address(), bytes);
    commands.write(0, body.words());
    gpu.context().submit(commands.address(), bytes as u32)?;
    gpu.finish()?;
    ensure_eq!((target.get64(0), target.get64(64)), (0, TURNS));
    Ok(())
}

fn cond_exec(place: &Place) -> TestResult {
    let target = &place.target;
    target.set32(4, 0x8000_0000);
    let set = Pm4::new().set32(target.at(64), 1);
    let words = set.len() as u32;
    let commands = |at, words| {
        Pm4::new()
            .skip_if_zero(target.at(at), words)
            .append(&set)
            .set32(target.at(68), 2)
    };
    place.run(&commands(0, words))?;
    ensure_eq!(target.read(64, 2), [0, 2]);
    place.run(&commands(4, words))?;
    ensure_eq!(target.read(64, 2), [1, 2]);
    target.fill(0);
    place.run(&commands(0, 0))?;
    ensure_eq!(target.read(64, 2), [1, 2]);
    // All that is left.
    target.fill(0);
    place.run(&commands(0, 2 * words))?;
    ensure_eq!(target.read(64, 2), [0, 0]);
    Ok(())
}

fn compared(place: &Place) -> TestResult {
    let target = &place.target;
    // Every function that holds goes on at once, under a mask, unsigned.
    let mut commands = Pm4::new();
    for (memory, reference) in [(5, 5), (4, 5), (6, 5), (0x8000_0000, 5), (0, 0xffff_ffff)] {
        for compare in Compare::ALL {
            if compare.holds(memory, reference) {
                let low = reference as u32;
                commands = commands
                    .set64(target.at(0), (0xab << 56) | memory)
                    .wait32(target.at(0), compare, low, u32::MAX)
                    .wait64(target.at(0), compare, reference, u64::MAX >> 8);
            }
        }
    }
    place.run(&commands.set32(target.at(64), 1))?;
    ensure_eq!(target.get32(64), 1);

    // One that does not hold goes on when memory has changed.
    for (round, is_wide) in [(2, false), (3, true)] {
        target.set64(0, 0x70);
        let wait = match is_wide {
            false => Pm4::new().wait32(target.at(0), Compare::Equal, 0x20, 0xf0),
            true => Pm4::new().wait64(target.at(0), Compare::Equal, 0x20 << 40, 0xf0 << 40),
        };
        let commands = place.gpu.commands(&wait.set32(target.at(64), round))?;
        place.gpu.submit(&commands)?;
        let mark = place.gpu.mark()?;
        a_while();
        ensure_eq!(target.get32(64), round - 1, "it did not wait");
        target.set64(0, (0xf2f << 40) | 0x2f);
        place.gpu.until(mark)?;
        ensure_eq!(target.get32(64), round);
    }
    Ok(())
}

/// More queues of one node than it has places wait; one more works.
fn unmet() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let word = gpu.buffer(PAGE)?;
        let wait = Pm4::new().wait32(word.at(0), Compare::Equal, 1, u32::MAX);
        let wait = gpu.commands(&wait.atomic(Atomic::Add, word.at(8), 1, 0))?;
        let waiting: TestResult<Vec<Gpu>> = (0..10).map(|_| Gpu::on(gpu.device(), node)).collect();
        let waiting = waiting?;
        for other in &waiting {
            other.submit(&wait)?;
        }
        for round in 1..=5 {
            gpu.run(&Pm4::new().set32(word.at(16), round))?;
            ensure_eq!((word.get64(8), word.get32(16)), (0, round));
        }
        gpu.run(&Pm4::new().set32(word.at(0), 1))?;
        for other in &waiting {
            other.finish()?;
        }
        ensure_eq!(word.get64(8), 10);
    }
    Ok(())
}

fn late() -> TestResult {
    let gpu = Gpu::new()?;
    let (word, gate) = (gpu.buffer(PAGE)?, gpu.device().create_fence(0)?);
    let inner = gpu.commands(&Pm4::new().set32(word.at(4), 1))?;
    let (address, bytes) = place_of(&inner);
    let outer = Pm4::new()
        .wait32(word.at(0), Compare::Equal, 1, u32::MAX)
        .indirect(address, bytes);
    let outer = gpu.commands(&outer)?;
    // Both while the queue waits and while a packet of the same buffer does.
    gpu.context().wait(&one(&gate, 1))?;
    gpu.submit(&outer)?;
    let mark = gpu.mark()?;
    inner
        .buffer()
        .write(0, Pm4::new().set32(word.at(4), 2).words());
    gate.signal(1)?;
    a_while();
    inner
        .buffer()
        .write(0, Pm4::new().set32(word.at(4), 3).words());
    word.set32(0, 1);
    gpu.until(mark)?;
    ensure_eq!(word.get32(4), 3);
    Ok(())
}
