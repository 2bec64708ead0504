// SPDX-License-Identifier: MIT OR Apache-2.0

//! What every packet does.

use super::machine::{Event, Machine, BUFFER, DATA, PROCESS, PROGRESS};
use super::program::{self, packet, Program, CHAIN, EQUAL, GREATER_OR_EQUAL};
use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::memory::PAGE_SIZE;
use crate::engine::page_table::Entry;
use crate::engine::queue::{Privilege, Submission, SubmitError};
use crate::engine::shell::Record;
use crate::engine::translation::Scope;

/// Runs a program on a new machine to its end.
fn run(program: Program) -> Machine {
    let mut machine = Machine::new();

    machine.done(&program.0);
    machine
}

#[test]
fn gpu_33_examples_of_headers() {
    assert_eq!(program::header(0x50, 6), 0xc005_5000);

    let mut machine = Machine::new();

    // COUNT 0x3fff of a NOP: the header only.
    machine.done(&[0xffff_1000, 0xffff_1000]);
    // Bit 1, the shader type, is ignored.
    machine.done(&[program::header(0x10, 1) | 2, 0]);
}

#[test]
fn gpu_34_type_2_is_a_filler() {
    run(Program::new().dwords(&[0x8000_0000; 5]));
}

#[test]
fn gpu_35_nop_skips_its_dwords() {
    for dwords in [1, 2, 7, 100, 0x3fff] {
        // What it skips would be illegal.
        let machine = run(Program::new()
            .dwords(&packet(0x10, &vec![0; dwords]))
            .write(DATA, &[5]));

        assert_eq!(machine.word(DATA), 5, "{dwords} dwords");
    }
}

#[test]
fn gpu_7_an_empty_buffer_is_done_at_once() {
    let mut machine = Machine::new();

    machine.done(&[]);
    assert_eq!(machine.step(SLICE), Outcome::Idle);
}

#[test]
fn gpu_8_the_progress_value_is_one_64_bit_store_after_all_others() {
    let mut machine = Machine::new();

    machine.submit(&Program::new().write(DATA, &[1]).0);
    machine.ram.take_trace();
    machine.run();

    let trace = machine.ram.take_trace();
    let at = machine.find(PROGRESS).unwrap();

    assert_eq!(trace.last(), Some(&Event::Store64(at, 1)));
}

#[test]
fn a_queue_takes_one_submission_at_a_time() {
    let mut machine = Machine::new();
    let submission = |va, length| Submission {
        va,
        length,
        progress: None,
    };

    for (va, length) in [(BUFFER + 1, 4), (BUFFER + 2, 4), (BUFFER, 3), (BUFFER, 6)] {
        assert_eq!(
            machine.queue.submit(submission(va, length)),
            Err(SubmitError::Alignment)
        );
    }
    machine.submit(&[0x8000_0000]);
    assert_eq!(
        machine.queue.submit(submission(BUFFER, 4)),
        Err(SubmitError::Busy)
    );
    assert_eq!(machine.queue.reset().map(|old| old.va), Some(BUFFER));
    assert_eq!(machine.step(SLICE), Outcome::Idle);
    machine.done(&[]);
}

#[test]
fn gpu_10_a_buffer_is_read_when_it_is_executed() {
    let mut machine = Machine::new();
    let wait = Program::new().wait(DATA, EQUAL, 1, !0, 0);
    let place = BUFFER + wait.0.len() as u64 * 4;

    machine.submit(&wait.write(DATA + 8, &[5]).0);
    assert!(matches!(machine.run(), Outcome::Blocked { .. }));
    // Changed between the wait and its signal.
    machine.load(place, &Program::new().write(DATA + 8, &[6]).0);
    machine.set_word(DATA, 1);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(machine.word(DATA + 8), 6);
}

#[test]
fn indirect_buffer_comes_back() {
    let mut machine = Machine::new();
    let inner = DATA + PAGE_SIZE;
    let program = Program::new().write(DATA + 16, &[1, 2, 3]).0;

    machine.load(inner, &program);
    machine.done(
        &Program::new()
            .indirect(inner, program.len() as u32, 0)
            .write(DATA + 32, &[4])
            .0,
    );
    assert_eq!(machine.word(DATA + 16), 0x2_0000_0001);
    assert_eq!(machine.word(DATA + 24), 3);
    assert_eq!(machine.word(DATA + 32), 4);
}

#[test]
fn a_chained_buffer_does_not_come_back() {
    let mut machine = Machine::new();
    let inner = DATA + PAGE_SIZE;
    let program = Program::new().write(DATA + 16, &[1]).0;

    machine.load(inner, &program);
    // What follows the packet would be illegal.
    machine.done(
        &Program::new()
            .indirect(inner, program.len() as u32, CHAIN)
            .dwords(&[0, 0])
            .0,
    );
    assert_eq!(machine.word(DATA + 16), 1);
}

#[test]
fn a_buffer_chained_from_an_indirect_one_ends_at_its_caller() {
    let mut machine = Machine::new();
    let (inner, last) = (DATA + PAGE_SIZE, DATA + 2 * PAGE_SIZE);
    let chained = Program::new().write(DATA, &[1]).0;

    machine.load(last, &chained);
    machine.load(
        inner,
        &Program::new().indirect(last, chained.len() as u32, CHAIN).0,
    );
    machine.done(&Program::new().indirect(inner, 4, 0).write(DATA + 8, &[2]).0);
    assert_eq!((machine.word(DATA), machine.word(DATA + 8)), (1, 2));
}

#[test]
fn gpu_40_a_buffer_of_size_0_is_legal_wherever_it_is() {
    run(Program::new()
        .indirect(0xffff_ffff_ffff_fffc, 0, 0)
        .write(DATA, &[1]));
    run(Program::new().indirect(0, 0, CHAIN));
}

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

#[test]
fn waits_compare_what_the_mask_leaves_without_sign() {
    type Case = (u32, &'static str, fn(u64, u64) -> bool);

    let cases: [Case; 7] = [
        (0, "always", |_, _| true),
        (1, "<", |a, b| a < b),
        (2, "<=", |a, b| a <= b),
        (3, "==", |a, b| a == b),
        (4, "!=", |a, b| a != b),
        (5, ">=", |a, b| a >= b),
        (6, ">", |a, b| a > b),
    ];
    let mut machine = Machine::new();

    for (function, name, holds) in cases {
        for (value, reference) in [
            (0, 0),
            (1, 2),
            (2, 1),
            (7, 7),
            (u64::MAX, 0),
            (0, u64::MAX),
            (1 << 63, 1),
            (0x1_0000_0005, 5),
        ] {
            for (mask, is_qword) in [
                (u64::MAX, true),
                (0xf, true),
                (0xffff_ffff, false),
                (0xf, false),
            ] {
                let program = Program::new();

                machine.set_word(DATA, value);
                machine.submit(
                    &if is_qword {
                        program.wait64(DATA, function, reference, mask, 0)
                    } else {
                        program.wait(DATA, function, reference as u32, mask as u32, 0)
                    }
                    .0,
                );

                let reference = if is_qword {
                    reference
                } else {
                    reference & 0xffff_ffff
                };
                let passes = matches!(machine.run(), Outcome::Done(_));

                assert_eq!(
                    passes,
                    holds(value & mask, reference),
                    "{value:#x} & {mask:#x} {name} {reference:#x}"
                );
                machine.queue.reset();
            }
        }
    }
}

#[test]
fn gpu_43_an_unmet_wait_blocks_and_is_looked_at_once_in_a_step() {
    let mut machine = Machine::new();

    machine.submit(
        &Program::new()
            .wait64(DATA, GREATER_OR_EQUAL, 5, !0, 0)
            .write(DATA + 8, &[1])
            .0,
    );
    machine.ram.take_trace();
    for value in 0..5 {
        machine.set_word(DATA, value);

        let outcome = machine.step(SLICE);

        assert!(matches!(outcome, Outcome::Blocked { .. }));
        assert_eq!(machine.queue.blocked_on().map(|on| on.va), Some(DATA));

        let at = machine.find(DATA).unwrap();
        let trace = machine.ram.take_trace();
        let looks = trace.iter().filter(|event| **event == Event::Load64(at));

        assert_eq!(looks.count(), 1);
        // The packet is not read again.
        assert!(value == 0 || trace.len() == 1);
    }
    assert_eq!(machine.word(DATA + 8), 0);
    machine.set_word(DATA, 5);
    assert!(matches!(machine.step(SLICE), Outcome::Done(_)));
    assert_eq!(machine.queue.blocked_on(), None);
    assert_eq!(machine.word(DATA + 8), 1);
}

#[test]
fn gpu_43_the_time_between_two_looks() {
    // An interval is 16 ticks. Bits above 15 are ignored.
    for (interval, expected) in [
        (0, 100_000),
        (1, 100_000),
        (6250, 100_000),
        (6251, 100_016),
        (0xffff, 1_048_560),
        (0xffff_0000, 100_000),
    ] {
        for program in [
            Program::new().wait(DATA, EQUAL, 1, !0, interval),
            Program::new().wait64(DATA, EQUAL, 1, !0, interval),
        ] {
            let mut machine = Machine::new();

            machine.submit(&program.0);
            assert_eq!(
                machine.run(),
                Outcome::Blocked {
                    poll_after_ns: expected
                },
                "interval {interval:#x}"
            );
            assert_eq!(
                machine.queue.blocked_on().map(|on| on.poll_after_ns),
                Some(expected)
            );
        }
    }
}

#[test]
fn release_mem_stores_and_reports() {
    const VALUE: u64 = 0x1122_3344_5566_7788;
    const TICKS: u64 = 0x12_3456_789a;

    for (data_sel, stored) in [(0, 0), (1, 0x5566_7788), (2, VALUE), (3, TICKS)] {
        for (int_sel, interrupts) in [(0, 0), (1, 1), (2, 1), (3, 0), (4, 1)] {
            let mut machine = Machine::new();

            machine.clock.0.set(TICKS);
            machine.done(&Program::new().release(data_sel, int_sel, DATA, VALUE).0);
            assert_eq!(machine.word(DATA), stored, "DATA_SEL {data_sel}");
            assert_eq!(
                machine.records.0,
                vec![Record::MonitoredFenceSignaled; interrupts],
                "INT_SEL {int_sel}"
            );
        }
    }
    // Without data the address is not looked at.
    run(Program::new().release(program::DATA_NONE, 1, 3, VALUE));
    // 32 bits may be at any dword.
    run(Program::new().release(program::DATA_LOW, 0, DATA + 4, VALUE));
}

#[test]
fn acquire_mem_has_two_sizes() {
    run(Program::new().acquire().dwords(&packet(0x58, &[!0; 7])));
}

#[test]
fn atomic_mem_changes_a_word() {
    let cases: [(u32, u64, u64, u64, u64); 12] = [
        (0x27, 5, 9, 0, 9),
        (0x28, 5, 9, 5, 9),
        (0x28, 5, 9, 6, 5),
        (0x2f, 5, 9, 0, 14),
        (0x2f, u64::MAX, 2, 0, 1),
        (0x30, 5, 9, 0, 4_u64.wrapping_neg()),
        (0x34, 5, 9, 0, 9),
        (0x34, u64::MAX, 9, 0, u64::MAX),
        (0x35, 5, 12, 0, 4),
        (0x36, 5, 12, 0, 13),
        (0x36, 0, 0, 0, 0),
        (0x35, 7, 0, 0, 0),
    ];

    for (op, before, source, compare, after) in cases {
        // With and without a result.
        for op in [op, op | 0x40] {
            let mut machine = Machine::new();

            machine.set_word(DATA + 8, before);
            machine.done(&Program::new().atomic(op, DATA + 8, source, compare).0);
            assert_eq!(machine.word(DATA + 8), after, "op {op:#x} of {before:#x}");
        }
    }
}

#[test]
fn atomic_mem_waits_until_the_comparison_holds() {
    const LOOP: u32 = 1 << 8;
    let mut machine = Machine::new();

    machine.set_word(DATA, 3);
    machine.submit(&Program::new().atomic(0x28 | LOOP, DATA, 9, 5).0);
    for _ in 0..3 {
        assert_eq!(
            machine.step(SLICE),
            Outcome::Blocked {
                poll_after_ns: 100_000
            }
        );
        assert_eq!(machine.queue.blocked_on().map(|on| on.va), Some(DATA));
    }
    assert_eq!(machine.word(DATA), 3);
    machine.set_word(DATA, 5);
    assert!(matches!(machine.step(SLICE), Outcome::Done(_)));
    assert_eq!(machine.word(DATA), 9);
}

/// Others add 100 to the data after each exchange that failed, so many times.
fn disturb(machine: &Machine, mut times: u32) {
    let at = machine.find(DATA).unwrap();

    machine.ram.with_others(move |ram, event| {
        if matches!(event, Event::Exchange(to, ..) if to == at) && times != 0 {
            let word = ram.word(at).unwrap();

            times -= 1;
            ram.write(at, &(word + 100).to_le_bytes()).unwrap();
        }
    });
}

#[test]
fn an_atomic_operation_loses_no_change_of_others() {
    let mut machine = Machine::new();

    // The first exchange fails, because the word is not 0.
    machine.set_word(DATA, 7);
    disturb(&machine, 3);
    machine.done(&Program::new().atomic(0x2f, DATA, 1, 0).0);
    assert_eq!(machine.word(DATA), 308);
}

#[test]
fn an_atomic_operation_that_others_always_disturb_uses_up_its_budget() {
    let mut machine = Machine::new();

    machine.set_word(DATA, 7);
    disturb(&machine, u32::MAX);
    machine.submit(&Program::new().atomic(0x2f, DATA, 1, 0).0);
    assert_eq!(machine.step(109), Outcome::Ran);
    assert_eq!(machine.word(DATA), 10_007);
    disturb(&machine, 0);
    // It goes on with what it found, so that even the smallest steps get on.
    assert_eq!(machine.step(1), Outcome::Ran);
    assert!(matches!(machine.step(1), Outcome::Done(_)));
    assert_eq!(machine.word(DATA), 10_008);
}

#[test]
fn cond_exec_skips_if_the_word_is_0() {
    for (word, expected) in [(0, 0), (1, 5), (0x1_0000_0000, 0)] {
        let mut machine = Machine::new();
        let skipped = Program::new().write(DATA + 8, &[5]).0;

        machine.set_word(DATA, word);
        machine.done(
            &Program::new()
                .cond_exec(DATA, skipped.len() as u32)
                .dwords(&skipped)
                .write(DATA + 16, &[6])
                .0,
        );
        assert_eq!(machine.word(DATA + 8), expected, "word {word:#x}");
        assert_eq!(machine.word(DATA + 16), 6);
    }
}

#[test]
fn a_trap_is_reported() {
    let machine = run(Program::new().trap(0xabc, 0x1122_3344_5566_7788));

    assert_eq!(
        machine.records.0,
        [Record::Trap {
            class: 0xabc,
            argument: 0x1122_3344_5566_7788
        }]
    );
}

#[test]
fn a_delay_uses_up_that_many_steps() {
    for steps in [0, 1, 2, 17] {
        let mut machine = Machine::new();

        machine.submit(&Program::new().delay(steps).0);
        for step in 0..steps {
            assert_eq!(machine.step(1000), Outcome::Ran, "step {step} of {steps}");
        }
        assert!(matches!(machine.step(1000), Outcome::Done(_)));
    }
}

#[test]
fn gpu_46_the_paging_queue_writes_tables_and_invalidates() {
    let mut machine = Machine::with(Privilege::Paging);
    let table = machine.entry_at(DATA);
    let window = 0x9_0000_0000;
    let pages: Vec<_> = (0..3).map(|_| machine.new_page()).collect();

    assert_eq!(pages[2].address - pages[1].address, 2 * PAGE_SIZE);

    // The table of the data is mapped, as the system page table of the paging process does it.
    let table_page =
        crate::engine::memory::Physical::new(table.place, table.address & !(PAGE_SIZE - 1));

    machine.map(window, Entry::to(table_page).writable().system_only());
    for (page, value) in pages.iter().zip(1..) {
        machine.ram.write(*page, &u64::to_le_bytes(value)).unwrap();
    }
    machine.done(&Program::new().copy(DATA, DATA + PAGE_SIZE, 8).0);

    let program = Program::new()
        .table_write(
            window + table.address % PAGE_SIZE,
            3,
            Entry::to(pages[0]).writable().bits(),
            2 * PAGE_SIZE,
        )
        // The cache knows nothing of that.
        .copy(DATA, BUFFER + PAGE_SIZE, 8)
        .invalidate(PROCESS)
        .copy(DATA, BUFFER + PAGE_SIZE + 8, 8)
        .copy(DATA + 2 * PAGE_SIZE, BUFFER + PAGE_SIZE + 16, 8);

    machine.submit(&program.0);
    machine.ram.take_trace();
    assert_eq!(machine.run(), Outcome::Invalidate(Scope::Process(PROCESS)));

    let stores: Vec<Event> = machine
        .ram
        .take_trace()
        .into_iter()
        .filter(|event| matches!(event, Event::Store64(..)))
        .collect();
    let expected: Vec<Event> = pages
        .iter()
        .zip(0..)
        .map(|(page, i)| Event::Store64(table.plus(i * 8), Entry::to(*page).writable().bits()))
        .collect();

    assert_eq!(stores, expected);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(machine.word(BUFFER + PAGE_SIZE), 0, "the old page");
    assert_eq!(machine.word(BUFFER + PAGE_SIZE + 8), 1, "the new one");
    assert_eq!(machine.word(BUFFER + PAGE_SIZE + 16), 3);
}

#[test]
fn invalidate_tlbs_names_a_process_or_all() {
    for (process, scope) in [
        (0_u32, Scope::Process(0)),
        (0xfffe, Scope::Process(0xfffe)),
        (0xffff, Scope::All),
    ] {
        let mut machine = Machine::with(Privilege::Paging);

        // What is around PASID is ignored.
        machine.submit(&packet(0x98, &[(process << 5) | 0xffe0_001f]));
        assert_eq!(machine.run(), Outcome::Invalidate(scope));
        assert!(matches!(machine.run(), Outcome::Done(_)));
    }
}

#[test]
fn gpu_16_every_dword_of_a_packet_is_read_once() {
    let mut machine = Machine::new();
    let program = Program::new()
        .write(DATA, &[1; 40])
        .write64(DATA, 5)
        .copy(DATA, DATA + 0x100, 0x40)
        .fill(DATA + 0x200, 1, 0x40)
        .move_word(DATA, DATA + 8, true)
        .wait(DATA + 0x10, GREATER_OR_EQUAL, 0, !0, 0)
        .wait64(DATA + 0x10, GREATER_OR_EQUAL, 0, !0, 0)
        .release(program::DATA_QWORD, 2, DATA, 7)
        .acquire()
        .atomic(0x2f, DATA, 1, 0)
        .cond_exec(DATA, 0)
        .trap(0, 0)
        .delay(1);

    machine.submit(&program.0);
    machine.ram.take_trace();

    // As soon as a dword has been read, others put something illegal there. Small steps, so that
    // most packets are resumed.
    let at = machine.find(BUFFER).unwrap();

    machine.ram.with_others(move |ram, event| {
        if let Event::Load32(from) = event {
            if from.address & !(PAGE_SIZE - 1) == at.address {
                ram.write(from, &[0; 4]).unwrap();
            }
        }
    });

    let mut outcome = Outcome::Ran;

    for _ in 0..1000 {
        outcome = machine.step(3);
        if outcome != Outcome::Ran {
            break;
        }
    }
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:x?}");

    let mut reads = vec![0; program.0.len()];

    for event in machine.ram.take_trace() {
        if let Event::Load32(from) = event {
            if from.address & !(PAGE_SIZE - 1) == at.address {
                reads[(from.address - at.address) as usize / 4] += 1;
            }
        }
    }
    assert_eq!(reads, vec![1; program.0.len()]);
    assert_eq!(machine.word(DATA), 8);
}
