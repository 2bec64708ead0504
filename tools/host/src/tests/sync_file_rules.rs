// SPDX-License-Identifier: MIT OR Apache-2.0

//! When a value of a monitored fence may become a fence of the kernel.

use crate::logic::sync_file_rules::{
    End::{Bounded, HoldsNow, Unbounded, WithFences},
    Item::{self, Commands, Signal, Wait},
    Verdict::{Blocked, Found, GoOn, Latch, Refused},
    Way,
};

const OTHER: Item = Signal { reaches: false };
const WANTED: Item = Signal { reaches: true };

/// Shows the items of a queue to an export: whether it succeeds, and which waits are over then.
fn export(has_timeout: bool, in_flight: u64, items: &[Item]) -> Option<Vec<usize>> {
    let way = Way::new(has_timeout, in_flight)?;
    let mut latched = Vec::new();

    for (place, item) in items.iter().enumerate() {
        match way.see(*item) {
            GoOn => {}
            Latch => latched.push(place),
            Found => return Some(latched),
            Blocked | Refused => return None,
        }
    }
    None
}

#[test]
fn fen_161_commands_signals_and_bounded_waits_may_come_before() {
    for items in [
        &[WANTED][..],
        &[Commands, WANTED],
        &[Commands, OTHER, Commands, Wait(Bounded), WANTED],
        &[Wait(Bounded), Wait(Bounded), OTHER, WANTED],
    ] {
        for in_flight in [0, 1, 100] {
            assert_eq!(export(true, in_flight, items), Some(vec![]), "{items:?}");
        }
    }
}

#[test]
fn fen_161_what_users_decide_may_not() {
    for items in [
        &[][..],
        &[Commands],
        &[OTHER],
        &[Wait(Unbounded), WANTED],
        &[Commands, Wait(Unbounded), WANTED],
        &[OTHER, Wait(Bounded), Wait(Unbounded), WANTED],
    ] {
        assert_eq!(export(true, 0, items), None, "{items:?}");
    }
}

/// What comes later does not matter.
#[test]
fn fen_161_what_is_behind_the_signal_does_not_count() {
    assert_eq!(export(true, 0, &[WANTED, Wait(Unbounded)]), Some(vec![]));
    assert_eq!(export(false, 0, &[WANTED, Commands]), Some(vec![]));
}

/// A wait whose condition holds could be made to block again.
#[test]
fn fen_161_a_wait_that_holds_is_over_from_then_on() {
    let items = [
        Wait(HoldsNow),
        Commands,
        Wait(HoldsNow),
        WANTED,
        Wait(HoldsNow),
    ];

    assert_eq!(export(true, 0, &items), Some(vec![0, 2]));
}

#[test]
fn gpu_93_commands_without_a_timeout_are_unbounded() {
    assert_eq!(export(false, 1, &[WANTED]), None);
    assert_eq!(export(false, 0, &[Commands, WANTED]), None);
    assert_eq!(
        export(false, 0, &[OTHER, Wait(Bounded), WANTED]),
        Some(vec![])
    );
}

/// What it waits for may be bounded, or not: that is looked at next.
#[test]
fn fen_161_a_wait_for_fences_is_looked_at() {
    let way = Way::new(true, 1).expect("commands have a timeout");

    assert_eq!(way.see(Wait(WithFences)), Blocked);
    assert_eq!(export(true, 0, &[Wait(WithFences), WANTED]), None);
    assert_eq!(export(true, 0, &[WANTED, Wait(WithFences)]), Some(vec![]));
}
