// SPDX-License-Identifier: MIT OR Apache-2.0

//! Page faults of packets (GPU-65, GPU-67).

use super::machine::{Machine, BUFFER, DATA, PROGRESS};
use super::program::{self, Program, EQUAL};
use crate::engine::command_processor::Outcome;
use crate::engine::fault::{Cause, FaultKind, FaultRecord, PageFault};
use crate::engine::memory::{Physical, Place, PAGE_SIZE};
use crate::engine::page_table::Entry;
use crate::engine::queue::Privilege;

/// An address in the same table as the data, at which nothing is.
const HOLE: u64 = DATA + 32 * PAGE_SIZE;

/// The page fault that a program ends with, and the packet.
fn fault_of(machine: &mut Machine, program: &Program) -> (PageFault, u64) {
    machine.submit(&program.0);
    match machine.run() {
        Outcome::Faulted(FaultRecord {
            kind: FaultKind::Page(fault),
            packet,
            ..
        }) => (fault, packet),
        outcome => panic!("{outcome:x?}"),
    }
}

fn missing(va: u64, write: bool) -> PageFault {
    PageFault {
        va,
        write,
        level: 0,
        cause: Cause::Invalid,
    }
}

#[test]
fn gpu_65_a_copy_writes_what_is_before_the_missing_page() {
    let end = DATA + 16 * PAGE_SIZE;

    for from in [DATA, DATA + 3] {
        for before in [1, 8, 100, 4096, 5000] {
            let mut machine = Machine::new();
            let to = end - before;
            let source = vec![0x5a; 8000];

            machine.set_bytes(from, &source);

            let program = Program::new().dwords(&[0x8000_0000]).copy(from, to, 8000);

            assert_eq!(
                fault_of(&mut machine, &program),
                (missing(end, true), BUFFER + 4)
            );
            assert_eq!(machine.bytes(to, before), source[..before as usize]);
            assert_eq!(machine.word(PROGRESS), 0);
        }
    }
}

#[test]
fn gpu_65_a_copy_writes_what_was_before_the_missing_page_of_its_source() {
    let end = DATA + 16 * PAGE_SIZE;
    let mut machine = Machine::new();

    machine.set_bytes(end - 100, &[0x5a; 100]);
    assert_eq!(
        fault_of(&mut machine, &Program::new().copy(end - 100, DATA, 200)),
        (missing(end, false), BUFFER)
    );
    assert_eq!(machine.bytes(DATA, 100), [0x5a; 100]);
    assert_eq!(machine.bytes(DATA + 100, 100), [0; 100]);
}

#[test]
fn gpu_65_a_fill_writes_what_is_before_the_missing_page() {
    let end = DATA + 16 * PAGE_SIZE;
    let mut machine = Machine::new();

    assert_eq!(
        fault_of(&mut machine, &Program::new().fill(end - 8, 3, 16)),
        (missing(end, true), BUFFER)
    );
    assert_eq!(machine.word(end - 8), 0x3_0000_0003);
}

#[test]
fn gpu_65_write_data_stores_what_is_before_the_missing_page() {
    let end = DATA + 16 * PAGE_SIZE;
    let mut machine = Machine::new();

    assert_eq!(
        fault_of(&mut machine, &Program::new().write(end - 8, &[1, 2, 3])),
        (missing(end, true), BUFFER)
    );
    assert_eq!(machine.word(end - 8), 0x2_0000_0001);
}

#[test]
fn gpu_67_every_access_of_every_packet_may_fault() {
    let read = |program: Program| (program, false);
    let write = |program: Program| (program, true);

    for (program, is_write) in [
        read(Program::new().indirect(HOLE, 4, 0)),
        read(Program::new().indirect(HOLE, 4, program::CHAIN)),
        write(Program::new().write(HOLE, &[1])),
        write(Program::new().write64(HOLE, 1)),
        write(Program::new().write_fixed(HOLE, &[1, 2])),
        write(Program::new().fill(HOLE, 1, 4)),
        write(Program::new().fill_with(HOLE, 1, 4, program::TARGET_FIXED)),
        read(Program::new().copy(HOLE, DATA, 4)),
        write(Program::new().copy(DATA, HOLE, 4)),
        read(Program::new().copy_with(HOLE, DATA, 4, program::SOURCE_FIXED)),
        write(Program::new().copy_with(DATA, HOLE, 4, program::SOURCE_FIXED)),
        read(Program::new().move_word(HOLE, DATA, true)),
        read(Program::new().move_word(HOLE, DATA, false)),
        write(Program::new().move_word(DATA, HOLE, true)),
        write(Program::new().move_word(DATA, HOLE, false)),
        write(Program::new().store_word(1, HOLE, true)),
        write(Program::new().store_clock(HOLE, true)),
        read(Program::new().wait(HOLE, EQUAL, 0, !0, 0)),
        read(Program::new().wait64(HOLE, EQUAL, 0, !0, 0)),
        // Even if it would always hold.
        read(Program::new().wait(HOLE, 0, 0, !0, 0)),
        write(Program::new().release(program::DATA_LOW, 2, HOLE, 1)),
        write(Program::new().release(program::DATA_QWORD, 2, HOLE, 1)),
        write(Program::new().release(program::DATA_CLOCK, 2, HOLE, 1)),
        write(Program::new().atomic(0x27, HOLE, 1, 1)),
        read(Program::new().cond_exec(HOLE, 0)),
        write(Program::new().table_write(HOLE, 1, 1, 0)),
    ] {
        let mut machine = Machine::with(Privilege::Paging);
        let (fault, packet) = fault_of(&mut machine, &program);
        let is_fetch = (program.0[0] >> 8) & 0xff == 0x3f;

        assert_eq!(fault, missing(HOLE, is_write), "{program:x?}");
        // In a buffer that is not there, its first packet is the one that faults.
        assert_eq!(packet, if is_fetch { HOLE } else { BUFFER }, "{program:x?}");
        assert_eq!(machine.records.0, [], "{program:x?}");
    }
}

#[test]
fn gpu_67_a_packet_that_goes_on_in_a_missing_page() {
    let end = BUFFER + 17 * PAGE_SIZE;

    for first in [4, 8, 12, 16] {
        let mut machine = Machine::new();
        let program = Program::new().write(DATA, &[1]).0;
        let place = end - first;

        machine.load(place, &program[..first as usize / 4]);
        machine.submit_at(place, 20);
        assert_eq!(
            machine.run(),
            Outcome::Faulted(FaultRecord {
                kind: FaultKind::Page(missing(end, false)),
                packet: place,
                header: program[0],
            })
        );
        assert_eq!(machine.word(DATA), 0);
    }
}

#[test]
fn gpu_67_a_header_that_cannot_be_read_is_0_in_the_record() {
    let mut machine = Machine::new();

    machine.submit_at(HOLE, 4);
    assert_eq!(
        machine.run(),
        Outcome::Faulted(FaultRecord {
            kind: FaultKind::Page(missing(HOLE, false)),
            packet: HOLE,
            header: 0,
        })
    );
}

#[test]
fn a_progress_value_that_cannot_be_stored_is_a_fault_at_the_end() {
    let mut machine = Machine::new();

    machine.map(PROGRESS, Entry::INVALID);
    machine.submit(&[0x8000_0000; 3]);
    assert_eq!(
        machine.run(),
        Outcome::Faulted(FaultRecord {
            kind: FaultKind::Page(missing(PROGRESS, true)),
            packet: BUFFER + 12,
            header: 0,
        })
    );
}

#[test]
fn write_protected_pages_are_only_read() {
    let mut machine = Machine::new();
    let page = machine.new_page();

    machine.map(HOLE, Entry::to(page));
    machine.done(&Program::new().copy(HOLE, DATA, 64).0);
    for program in [
        Program::new().write(HOLE, &[1]),
        Program::new().copy(DATA, HOLE, 1),
        Program::new().fill(HOLE, 0, 4),
        Program::new().atomic(0x2f, HOLE, 0, 0),
    ] {
        let expected = PageFault {
            va: HOLE,
            write: true,
            level: 0,
            cause: Cause::WriteProtected,
        };

        assert_eq!(fault_of(&mut machine, &program).0, expected);
        machine.queue.reset();
    }
}

#[test]
fn pages_for_the_system_only() {
    for privilege in [Privilege::Normal, Privilege::Paging] {
        let mut machine = Machine::with(privilege);
        let page = machine.new_page();

        machine.map(HOLE, Entry::to(page).writable().system_only());

        let write = Program::new().write(HOLE, &[1]);
        let read = Program::new().copy(HOLE, DATA, 1);

        if privilege == Privilege::Paging {
            machine.done(&write.0);
            machine.done(&read.0);
            continue;
        }
        for (program, write) in [(write, true), (read, false)] {
            let expected = PageFault {
                va: HOLE,
                write,
                level: 0,
                cause: Cause::SystemUseOnly,
            };

            assert_eq!(fault_of(&mut machine, &program).0, expected);
            machine.queue.reset();
        }
        // The progress value of any queue may be in such a page.
        let page = machine.new_page();

        machine.map(PROGRESS, Entry::to(page).writable().system_only());
        machine.done(&[]);
    }
}

#[test]
fn zero_pages_read_as_0_and_drop_what_is_stored() {
    let mut machine = Machine::new();
    let zero = HOLE;

    machine.map(zero, Entry::ZERO);
    machine.map(zero + PAGE_SIZE, Entry::ZERO);
    machine.set_bytes(DATA, &[0xff; 0x2000]);
    machine.done(
        &Program::new()
            .write(zero, &[1, 2, 3])
            .fill(zero, 5, 0x2000)
            .copy(DATA, zero + 3, 0x1000)
            .atomic(0x2f, zero, 1, 0)
            .store_word(5, zero, true)
            .wait(zero, EQUAL, 0, !0, 0)
            .wait64(zero + 8, EQUAL, 0, !0, 0)
            .copy(zero + 1, DATA + 7, 0x1001)
            .move_word(zero, DATA + 0x1800, true)
            .copy(zero, zero + 0x800, 0x800)
            .0,
    );
    assert_eq!(machine.bytes(DATA, 7), [0xff; 7]);
    assert_eq!(machine.bytes(DATA + 7, 0x1001), [0; 0x1001]);
    assert_eq!(machine.bytes(DATA + 0x1008, 8), [0xff; 8]);
    assert_eq!(machine.word(DATA + 0x1800), 0);
}

#[test]
fn an_entry_that_leads_nowhere_is_a_fault_of_the_page() {
    for place in [Place::System, Place::Local, Place::Aperture, Place::Peer] {
        let nowhere = Entry::to(Physical::new(place, 0x7_7777_0000)).writable();

        for (program, write) in [
            (Program::new().write(HOLE, &[1]), true),
            (Program::new().copy(HOLE, DATA, 8), false),
            (Program::new().copy(DATA, HOLE, 8), true),
            (Program::new().fill(HOLE, 1, 8), true),
            (Program::new().wait(HOLE, EQUAL, 0, !0, 0), false),
            (Program::new().atomic(0x27, HOLE, 1, 1), true),
        ] {
            let mut machine = Machine::new();

            machine.map(HOLE, nowhere);

            let expected = PageFault {
                va: HOLE,
                write,
                level: 0,
                cause: Cause::NoMemory,
            };

            assert_eq!(fault_of(&mut machine, &program).0, expected, "{program:x?}");
        }
    }
}
