// SPDX-License-Identifier: MIT OR Apache-2.0

//! WAIT_REG_MEM and WAIT_REG_MEM64 (GPU-43).

use crate::engine::command_processor::{Outcome, SLICE};
use crate::tests::engine::machine::{Event, Machine, DATA};
use crate::tests::engine::program::{Program, EQUAL, GREATER_OR_EQUAL};

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

        assert_eq!(
            outcome,
            Outcome::Blocked {
                poll_after_ns: 100_000,
                again: value != 0
            }
        );
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

/// Who gets what he waits for, and waits for the next value of the same word, has not waited yet.
#[test]
fn gpu_43_a_wait_behind_another_is_a_new_one() {
    let mut machine = Machine::new();
    let wait = |value| Program::new().wait(DATA, EQUAL, value, !0, 0);

    machine.submit(&wait(1).dwords(&wait(2).0).0);
    for (value, expected) in [(0, false), (0, true), (1, false), (1, true)] {
        machine.set_word(DATA, value);

        let outcome = machine.step(SLICE);

        assert!(
            matches!(outcome, Outcome::Blocked { again, .. } if again == expected),
            "{outcome:?}"
        );
    }
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
                    poll_after_ns: expected,
                    again: false
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
