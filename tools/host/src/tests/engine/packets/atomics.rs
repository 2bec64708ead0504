// SPDX-License-Identifier: MIT OR Apache-2.0

//! ATOMIC_MEM.

use crate::engine::command_processor::{Outcome, SLICE};
use crate::tests::engine::machine::{Event, Machine, DATA};
use crate::tests::engine::program::Program;

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
    for look in 0..3 {
        assert_eq!(
            machine.step(SLICE),
            Outcome::Blocked {
                poll_after_ns: 100_000,
                again: look != 0
            }
        );
        assert_eq!(machine.queue.blocked_on().map(|on| on.va), Some(DATA));
    }
    assert_eq!(machine.word(DATA), 3);
    machine.set_word(DATA, 5);
    assert!(matches!(machine.step(SLICE), Outcome::Done(_)));
    assert_eq!(machine.word(DATA), 9);
}

/// The clock of the wait begins with the first look that finds nothing, whatever the step had
/// left for it.
#[test]
fn gpu_41_a_step_that_ends_at_a_waiting_atomic_has_looked_once() {
    const LOOP: u32 = 1 << 8;

    for budget in 1..20 {
        let mut machine = Machine::new();

        machine.set_word(DATA, 3);
        machine.submit(&Program::new().atomic(0x28 | LOOP, DATA, 9, 5).0);
        assert_eq!(
            machine.step(budget),
            Outcome::Blocked {
                poll_after_ns: 100_000,
                again: false
            },
            "with a budget of {budget}"
        );
    }
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
