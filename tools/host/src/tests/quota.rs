// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counters with a limit.

use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    thread,
};

use proptest::prelude::*;

use crate::logic::quota::{Machine, Usage};

#[test]
fn res_105_the_limit_is_reached_and_not_passed() {
    let usage = Usage::new();

    assert!(usage.take(3, 4));
    assert!(!usage.take(2, 4));
    assert!(usage.take(1, 4));
    assert!(usage.take(0, 4));
    assert!(!usage.take(1, 4));
    assert!(!usage.take(u32::MAX, u32::MAX), "the sum does not wrap");
    assert_eq!(usage.get(), 4, "a refusal takes nothing");
    usage.give_back(2);
    assert!(usage.take(2, 4));
}

/// A limit of n serves n takers at once, and refusals of others do not get in their way.
#[test]
fn res_105_takers_at_once() {
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    let usage = Usage::new();
    let inside = AtomicU32::new(0);

    thread::scope(|scope| {
        for amount in [1, 1, 2] {
            let (usage, inside) = (&usage, &inside);

            scope.spawn(move || {
                for _ in 0..rounds {
                    // All three fit.
                    assert!(usage.take(amount, 4));
                    assert!(inside.fetch_add(amount, SeqCst) + amount <= 4);
                    inside.fetch_sub(amount, SeqCst);
                    usage.give_back(amount);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..rounds {
                assert!(!usage.take(5, 4));
            }
        });
    });
    assert_eq!(usage.get(), 0);
}

const GIB: u64 = 1 << 30;

fn machine(bytes: u64, files: u64) -> Machine {
    Machine {
        pages: bytes / 4096,
        page_size: 4096,
        files,
    }
}

#[test]
fn limits_of_memory_follow_the_machine() {
    for gib in [1, 16, 2048] {
        let machine = machine(gib * GIB, 1 << 20);
        let pages = gib * (GIB / 4096);

        assert_eq!(u64::from(machine.claimed(0)), 4 * pages);
        assert_eq!(u64::from(machine.resident(0)), pages / 2);
    }
    // More than can be counted is no limit.
    let large = machine(1 << 50, 1 << 20);
    assert_eq!((large.claimed(0), large.resident(0)), (u32::MAX, u32::MAX));
}

#[test]
fn a_parameter_is_the_limit_in_mebibytes() {
    let small = machine(GIB, 1 << 20);

    assert_eq!((small.claimed(1), small.resident(1)), (256, 256));
    assert_eq!(small.resident(3000), 768_000);
    assert_eq!(small.claimed(u32::MAX), u32::MAX);
    let large_pages = Machine {
        pages: 1 << 16,
        page_size: 65536,
        files: 0,
    };
    assert_eq!(large_pages.claimed(8), 128);
}

#[test]
fn half_of_the_files_is_for_others() {
    // What the administrator set; what the kernel would, where the administrator set no limit.
    assert_eq!(machine(16 * GIB, 40_000).held_files(0), 20_000);
    let unlimited = machine(16 * GIB, u64::MAX);
    assert_eq!(unlimited.held_files(0), (16 * GIB / 10240 / 2) as u32);
    assert_eq!(unlimited.held_files(7), 7);
    assert_eq!(machine(16 * GIB, 0).held_files(0), 0);
}

proptest! {
    #[test]
    fn res_105_usage_is_the_sum_of_what_was_taken(
        amounts in prop::collection::vec((any::<bool>(), 0u32..100), 0..100),
        limit in 0u32..500,
    ) {
        let usage = Usage::new();
        let mut held = Vec::new();

        for (give_back, amount) in amounts {
            if give_back {
                if let Some(amount) = held.pop() {
                    usage.give_back(amount);
                }
            } else {
                let fits = held.iter().sum::<u32>() + amount <= limit;

                prop_assert_eq!(usage.take(amount, limit), fits);
                if fits {
                    held.push(amount);
                }
            }
            prop_assert_eq!(usage.get(), held.iter().sum::<u32>());
        }
    }
}
