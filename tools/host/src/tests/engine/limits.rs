// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a step may do at most, and nesting.

use super::machine::{Event, Machine, BUFFER, DATA};
use super::program::{Program, CHAIN};
use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::fault::{FaultKind, FaultRecord, Illegal};
use crate::engine::memory::PAGE_SIZE;
use crate::engine::queue::MAX_NESTING;

/// A machine with buffers that call each other, this deeply.
fn nested(depth: u64) -> Machine {
    let mut machine = Machine::new();
    let place = |level: u64| match level {
        0 => BUFFER,
        level => DATA + level * PAGE_SIZE,
    };
    let size = Program::new().indirect(0, 0, 0).write(0, &[0]).0.len() as u32;

    for level in 0..=depth {
        let mark = Program::new().write(DATA + level * 4, &[1]);
        let program = if level == depth {
            mark.dwords(&[0x8000_0000; 4])
        } else {
            Program::new()
                .indirect(place(level + 1), size, 0)
                .dwords(&mark.0)
        };

        assert_eq!(program.0.len() as u32, size);
        machine.load(place(level), &program.0);
    }
    machine.submit_at(BUFFER, size * 4);
    machine
}

#[test]
fn gpu_40_four_indirect_buffers_may_be_open() {
    for depth in 1..=MAX_NESTING as u64 {
        let mut machine = nested(depth);

        assert!(matches!(machine.run(), Outcome::Done(_)));
        // Each came back to its caller.
        assert_eq!(
            machine.bytes(DATA, (depth + 1) * 4),
            [1, 0, 0, 0].repeat(depth as usize + 1)
        );
    }

    let mut machine = nested(5);

    assert_eq!(
        machine.run(),
        Outcome::Faulted(FaultRecord {
            kind: FaultKind::Packet(Illegal::Nesting),
            packet: DATA + 4 * PAGE_SIZE,
            header: 0xc002_3f00,
        })
    );
    assert_eq!(machine.bytes(DATA, 24), [0; 24]);
}

#[test]
fn gpu_40_chains_do_not_count_as_nesting() {
    let mut machine = Machine::new();
    let place = |link: u64| BUFFER + link * 64;

    for link in 0..100 {
        let program = match link {
            99 => Program::new().write(DATA, &[1]).0,
            _ => Program::new().indirect(place(link + 1), 5, CHAIN).0,
        };

        machine.load(place(link), &program);
    }
    machine.submit_at(BUFFER, 16);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(machine.word(DATA), 1);
}

#[test]
fn gpu_40_a_buffer_that_chains_itself_runs_for_ever_in_bounded_steps() {
    let mut machine = Machine::new();

    machine.submit(&Program::new().indirect(BUFFER, 4, CHAIN).0);
    for _ in 0..100 {
        machine.ram.take_trace();
        assert_eq!(machine.step(SLICE), Outcome::Ran);

        // One load for each dword, and at first those of the walks, which read entries of
        // neighbours too.
        let accesses = machine.ram.take_trace().len();

        assert!((4096..4120).contains(&accesses), "{accesses} accesses");
    }
    machine.queue.reset();
    machine.done(&[]);
}

#[test]
fn gpu_40_a_buffer_that_calls_itself_is_stopped_by_the_nesting() {
    let mut machine = Machine::new();

    machine.submit(&Program::new().indirect(BUFFER, 4, 0).0);
    assert_eq!(
        machine.run(),
        Outcome::Faulted(FaultRecord {
            kind: FaultKind::Packet(Illegal::Nesting),
            packet: BUFFER,
            header: 0xc002_3f00,
        })
    );
}

#[test]
fn gpu_41_a_step_reads_4096_dwords() {
    let mut machine = Machine::new();

    machine.submit(&[0x8000_0000; 10_000]);
    for (step, expected) in [4096, 4096, 1808].into_iter().enumerate() {
        machine.ram.take_trace();

        let outcome = machine.step(SLICE);
        let loads = machine
            .ram
            .take_trace()
            .iter()
            .filter(|event| matches!(event, Event::Load32(_)))
            .count();

        assert_eq!(loads, expected, "step {step}: {outcome:x?}");
    }
    assert_eq!(machine.step(SLICE), Outcome::Idle);
}

#[test]
fn gpu_41_a_transfer_is_resumed_at_64_kib() {
    const BYTES: u64 = 1 << 20;
    let mut machine = Machine::new();
    let (from, to) = (0x80_0000, 0xa0_0000);
    let source: Vec<u8> = (0..BYTES).map(|i| ((i * 31) >> 4) as u8).collect();

    machine.map_new(from, BYTES / PAGE_SIZE);
    machine.map_new(to, BYTES / PAGE_SIZE);
    machine.set_bytes(from, &source);
    machine.submit(&Program::new().copy(from, to, BYTES as u32).0);
    // The packet itself.
    assert_eq!(machine.step(1), Outcome::Ran);
    for slice in 0..16 {
        machine.ram.take_trace();

        let outcome = machine.step(SLICE);
        let moved: u32 = machine
            .ram
            .take_trace()
            .iter()
            .map(|event| match event {
                Event::Copy(_, _, bytes) => *bytes,
                _ => 0,
            })
            .sum();

        assert_eq!(moved, 0x1_0000, "slice {slice}");
        assert_eq!(slice == 15, matches!(outcome, Outcome::Done(_)));
    }
    assert_eq!(machine.bytes(to, BYTES), source);
}

#[test]
fn gpu_41_other_queues_run_between_the_parts_of_a_transfer() {
    let mut machine = Machine::new();
    let other = DATA + PAGE_SIZE;

    machine.submit(&Program::new().fill(DATA + 4 * PAGE_SIZE, 7, 0x8000).0);

    let mut long = machine.queue.clone();
    let mut steps = 0;

    machine.queue.reset();
    machine.load(other, &Program::new().write(DATA, &[1]).0);
    loop {
        core::mem::swap(&mut machine.queue, &mut long);

        let outcome = machine.step(256);

        core::mem::swap(&mut machine.queue, &mut long);
        steps += 1;
        if let Outcome::Done(_) = outcome {
            break;
        }
        assert_eq!(outcome, Outcome::Ran);
        machine.set_word(DATA, 0);
        machine.submit_at(other, 20);
        assert!(matches!(machine.run(), Outcome::Done(_)));
        assert_eq!(machine.word(DATA), 1);
    }
    assert!((8..12).contains(&steps), "{steps} steps");
    assert_eq!(
        machine.bytes(DATA + 4 * PAGE_SIZE, 0x8000),
        [7, 0, 0, 0].repeat(0x2000)
    );
}

#[test]
fn without_a_budget_nothing_is_done() {
    let mut machine = Machine::new();

    machine.submit(&Program::new().write(DATA, &[1, 2, 3]).0);
    for _ in 0..10 {
        assert_eq!(machine.step(0), Outcome::Ran);
    }
    assert_eq!(machine.word(DATA), 0);
}

#[test]
fn gpu_42_an_overlapping_copy_touches_only_its_ranges() {
    for (from, to, bytes) in [
        (0x100, 0x140, 0x80),
        (0x140, 0x100, 0x80),
        (0x101, 0x100, 0x7f),
        (0x800, 0x1800, 0x2000),
        (0x1800, 0x800, 0x2000),
        (0xff0, 0x1008, 0x20),
        (0x500, 0x500, 0x100),
    ] {
        let mut machine = Machine::new();

        machine.set_bytes(DATA, &[0xee; 0x8000]);
        machine.set_bytes(DATA + from, &vec![0x11; bytes as usize]);
        machine.done(&Program::new().copy(DATA + from, DATA + to, bytes as u32).0);

        let after = machine.bytes(DATA, 0x8000);

        for (offset, byte) in (0..).zip(after) {
            let is_source = (from..from + bytes).contains(&offset);
            let is_target = (to..to + bytes).contains(&offset);

            match (is_source, is_target) {
                (false, false) => assert_eq!(byte, 0xee, "at {offset:#x}"),
                (true, false) => assert_eq!(byte, 0x11, "at {offset:#x}"),
                // All that was copied is the same.
                (false, true) => assert_eq!(byte, 0x11, "at {offset:#x}"),
                (true, true) => {}
            }
        }
    }
}
