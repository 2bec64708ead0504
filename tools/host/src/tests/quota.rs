// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counters with a limit.

use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    thread,
};

use proptest::prelude::*;

use crate::logic::quota::Usage;

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
