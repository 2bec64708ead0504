// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rings: pointers, the way round the end, and processes that write what they like.

use proptest::prelude::*;

use super::machine::{Event, Machine, BUFFER, DATA};
use super::program::{packet, Program, CHAIN};
use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::fault::{Cause, FaultKind, Illegal, PageFault};
use crate::engine::memory::PAGE_SIZE;
use crate::engine::page_table::Entry;
use crate::engine::queue::{Submission, SubmitError};
use crate::engine::ring::Ring;

/// Dwords of the ring.
const DWORDS: u64 = 1024;
/// The control page.
const CONTROL: u64 = DATA + 15 * PAGE_SIZE;

/// A machine whose queue has an empty ring at [`BUFFER`].
fn machine() -> Machine {
    let mut machine = Machine::new();

    machine
        .queue
        .set_ring(Ring::new(BUFFER, DWORDS * 4, CONTROL));
    machine
}

/// A process that writes to the ring.
struct Writer(u64);

impl Writer {
    /// Writes dwords behind what it has written, and then the write pointer.
    fn write(&mut self, machine: &Machine, dwords: &[u32]) {
        for dword in dwords {
            machine.load(BUFFER + self.0 % DWORDS * 4, &[*dword]);
            self.0 += 1;
        }
        machine.set_word(CONTROL, self.0);
    }
}

/// How far the engine says that it is.
fn read_pointer(machine: &Machine) -> u64 {
    machine.word(CONTROL + 64)
}

/// One packet after the other of each kind that has parts of its own behind its fields.
fn all_kinds() -> Vec<u32> {
    Program::new()
        .write(DATA, &[1, 2, 3, 4, 5])
        .write64(DATA + 32, 0x1234_5678_9abc_def0)
        .copy(DATA, DATA + 64, 20)
        .store_word(!0, DATA + 96, true)
        .release(2, 2, DATA + 104, 7)
        .indirect(DATA + PAGE_SIZE, 5, 0)
        .dwords(&[0x8000_0000])
        .fill(DATA + 128, 0xabab_abab, 32)
        .0
}

/// What [`all_kinds`] calls.
fn called() -> Vec<u32> {
    Program::new().write(DATA + 120, &[77]).0
}

#[test]
fn gpu_14_rings_have_a_power_of_two_from_4_kib_to_16_mib() {
    for bytes in [4096, 8192, 1 << 20, 16 << 20] {
        assert!(Ring::new(BUFFER, bytes, CONTROL).is_some(), "{bytes}");
    }
    for bytes in [0, 4, 2048, 4097, 12288, 32 << 20, 1 << 40, u64::MAX] {
        assert!(Ring::new(BUFFER, bytes, CONTROL).is_none(), "{bytes}");
    }
    assert!(Ring::new(BUFFER + 4, 4096, CONTROL).is_none());
    assert!(Ring::new(BUFFER, 4096, CONTROL + 8).is_none());
}

#[test]
fn gpu_14_packets_go_round_the_end_of_the_ring_wherever_that_is() {
    let program = all_kinds();
    let mut plain = Machine::new();

    plain.load(DATA + PAGE_SIZE, &called());
    plain.submit(&program);
    assert!(matches!(plain.run(), Outcome::Done(_)));

    for before in 0..program.len() as u64 + 2 {
        let mut machine = machine();
        let mut writer = Writer(0);

        machine.load(DATA + PAGE_SIZE, &called());
        // So that `before` dwords of the program are before the end of the ring.
        let fill = vec![0x8000_0000; (DWORDS - before) as usize];

        writer.write(&machine, &fill);
        assert_eq!(machine.run(), Outcome::Idle);
        assert_eq!(read_pointer(&machine), DWORDS - before);
        writer.write(&machine, &program);
        assert_eq!(machine.run(), Outcome::Idle, "{before}");
        assert_eq!(read_pointer(&machine), writer.0);
        assert_eq!(machine.bytes(DATA, 256), plain.bytes(DATA, 256), "{before}");
        assert_eq!(machine.records.0, plain.records.0);
    }
}

#[test]
fn gpu_14_the_read_pointer_rises_with_each_packet_that_is_done() {
    let mut machine = machine();
    let mut writer = Writer(0);
    let program = Program::new()
        .write(DATA, &[1])
        .wait(DATA + 8, 3, 1, !0, 0)
        .write(DATA + 16, &[1])
        .0;

    writer.write(&machine, &program);
    assert!(matches!(machine.run(), Outcome::Blocked { .. }));
    // What waits is not done.
    assert_eq!(read_pointer(&machine), 5);
    machine.set_word(DATA + 8, 1);
    assert_eq!(machine.run(), Outcome::Idle);
    assert_eq!(read_pointer(&machine), program.len() as u64);
}

#[test]
fn gpu_15_a_pointer_that_goes_down_or_too_far_stops_the_queue() {
    let cases = [
        (DWORDS + 1, 0, "too far"),
        (u64::MAX, 0, "too far"),
        (1 << 32, 0, "too far"),
        (9, 10, "down"),
        (0, 10, "down"),
        (10 + DWORDS + 1, 10, "too far, later"),
    ];

    for (pointer, done, what) in cases {
        let mut machine = machine();
        let mut writer = Writer(0);

        writer.write(&machine, &vec![0x8000_0000; done as usize]);
        assert_eq!(machine.run(), Outcome::Idle);
        machine.set_word(CONTROL, pointer);

        let Outcome::Faulted(record) = machine.run() else {
            panic!("{what}: {pointer}");
        };

        assert_eq!(
            record.kind,
            FaultKind::Packet(Illegal::WritePointer),
            "{what}"
        );
        assert_eq!(record.packet, BUFFER + done * 4);
        assert_eq!(read_pointer(&machine), done);
    }
}

#[test]
fn gpu_15_all_of_a_ring_may_be_written_at_once() {
    let mut machine = machine();
    let mut writer = Writer(0);

    for _ in 0..3 {
        writer.write(&machine, &vec![0x8000_0000; DWORDS as usize]);
        assert_eq!(machine.run(), Outcome::Idle);
        assert_eq!(read_pointer(&machine), writer.0);
    }
}

#[test]
fn gpu_16_each_dword_of_a_ring_is_read_once() {
    let mut machine = machine();
    let mut writer = Writer(0);

    machine.load(DATA + PAGE_SIZE, &called());
    writer.write(&machine, &all_kinds());

    let first = machine.find(BUFFER).unwrap();

    machine.ram.take_trace();
    assert_eq!(machine.run(), Outcome::Idle);

    let trace = machine.ram.take_trace();

    for dword in 0..writer.0 {
        let at = first.plus(dword * 4);
        let loads = trace.iter().filter(|event| **event == Event::Load32(at));

        assert_eq!(loads.count(), 1, "dword {dword}");
    }
}

#[test]
fn gpu_17_what_a_doorbell_says_is_not_asked_for_only_the_pointer_is() {
    let mut machine = machine();

    // The ring has a program, but the process has not said so.
    machine.load(BUFFER, &Program::new().write(DATA, &[1]).0);
    assert_eq!(machine.run(), Outcome::Idle);
    assert_eq!(machine.word(DATA), 0);
    machine.set_word(CONTROL, 5);
    assert_eq!(machine.run(), Outcome::Idle);
    assert_eq!(machine.word(DATA), 1);
}

#[test]
fn gpu_7_a_packet_that_is_not_all_written_is_illegal() {
    for written in 1..5 {
        let mut machine = machine();

        machine.load(BUFFER, &Program::new().write(DATA, &[1]).0);
        machine.set_word(CONTROL, written);

        let Outcome::Faulted(record) = machine.run() else {
            panic!("{written}");
        };

        assert_eq!(record.kind, FaultKind::Packet(Illegal::Extent));
        assert_eq!(machine.word(DATA), 0);
    }
}

#[test]
fn gpu_40_a_ring_does_not_chain_but_what_it_calls_does() {
    let mut machine = machine();
    let mut writer = Writer(0);

    machine.load(
        DATA + PAGE_SIZE,
        &Program::new().indirect(DATA + 2 * PAGE_SIZE, 5, CHAIN).0,
    );
    machine.load(DATA + 2 * PAGE_SIZE, &called());
    writer.write(
        &machine,
        &Program::new()
            .indirect(DATA + PAGE_SIZE, 4, 0)
            .write(DATA, &[1])
            .0,
    );
    assert_eq!(machine.run(), Outcome::Idle);
    assert_eq!((machine.word(DATA), machine.word(DATA + 120)), (1, 77));

    writer.write(
        &machine,
        &Program::new().indirect(DATA + PAGE_SIZE, 4, CHAIN).0,
    );

    let Outcome::Faulted(record) = machine.run() else {
        panic!("a ring chained");
    };

    assert_eq!(record.kind, FaultKind::Packet(Illegal::Nesting));
}

#[test]
fn gpu_65_the_control_page_is_reached_by_the_page_tables_of_the_process() {
    for (entry, write) in [(None, false), (Some(()), true)] {
        let mut machine = machine();
        let page = machine.find(CONTROL).unwrap();

        Writer(0).write(&machine, &[0x8000_0000]);
        machine.map(
            CONTROL,
            match entry {
                None => Entry::INVALID,
                // It can be read, and not written.
                Some(()) => Entry::to(page),
            },
        );

        let Outcome::Faulted(record) = machine.run() else {
            panic!("write: {write}");
        };

        assert_eq!(
            record.kind,
            FaultKind::Page(PageFault {
                va: CONTROL + if write { 64 } else { 0 },
                write,
                level: 0,
                cause: if write {
                    Cause::WriteProtected
                } else {
                    Cause::Invalid
                },
            })
        );
    }
}

#[test]
fn gpu_31_a_queue_with_a_ring_takes_no_submission() {
    let mut machine = machine();
    let submission = Submission {
        va: BUFFER,
        length: 4,
        progress: None,
    };

    assert_eq!(machine.queue.submit(submission), Err(SubmitError::Busy));
    machine.queue.set_ring(None);
    assert_eq!(machine.queue.submit(submission), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn gpu_15_any_ring_that_somebody_rewrites_all_the_time_is_bounded(
        contents in prop::collection::vec(any::<u32>(), 0..400),
        writes in prop::collection::vec((0_u64..1100, any::<u16>(), any::<u32>()), 1..200),
    ) {
        let mut machine = machine();
        let (ring, control) = (
            machine.find(BUFFER).unwrap(),
            machine.find(CONTROL).unwrap(),
        );
        let mut turn = 0;

        machine.load(BUFFER, &contents);
        machine.set_word(CONTROL, contents.len() as u64);
        // Another thread of the process, after each access.
        machine.ram.with_others(move |ram, _| {
            let (pointer, dword, value) = writes[turn % writes.len()];

            turn += 1;
            match turn % 7 {
                0 => ram.write(control, &(pointer + turn as u64 / 100).to_le_bytes()),
                1 => ram.write(ring.plus(u64::from(dword) % DWORDS * 4), &value.to_le_bytes()),
                2 => ram.write(control.plus(64), &u64::from(value).to_le_bytes()),
                _ => Some(()),
            };
        });
        for _ in 0..20 {
            machine.ram.take_trace();

            let outcome = machine.step(SLICE);

            prop_assert!(machine.ram.take_trace().len() < 3 * SLICE as usize);
            if matches!(outcome, Outcome::Faulted(_)) {
                prop_assert_eq!(machine.step(SLICE), outcome);
                break;
            }
        }
    }

    #[test]
    fn gpu_14_it_does_not_matter_when_parts_of_a_program_are_written(
        parts in prop::collection::vec((1_u32..40, 1_u32..60, any::<bool>()), 1..60),
    ) {
        let mut machine = machine();
        let mut writer = Writer(0);
        let mut sum = 0;

        for (count, budget, waits) in parts {
            let mut program = Program::new();

            for _ in 0..count {
                sum += u64::from(count);
                program = program.dwords(&packet(0x1e, &[
                    0x2f, DATA as u32, 0, count, 0, 0, 0, 0,
                ]));
            }
            writer.write(&machine, &program.0);
            let budget = if waits { budget } else { SLICE };
            let ended = (0..10_000)
                .map(|_| machine.step(budget))
                .find(|outcome| *outcome != Outcome::Ran);

            prop_assert_eq!(ended, Some(Outcome::Idle));
            prop_assert_eq!(machine.word(DATA), sum);
            prop_assert_eq!(read_pointer(&machine), writer.0);
        }
    }
}
