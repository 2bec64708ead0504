// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who is told of a signal of a cross-adapter fence (FEN-138, FEN-157, FEN-158, FEN-159, M21).

use crate::logic::fence_value::{EVERYBODY_IS_TOLD, NOBODY_WAITS};
use crate::logic::propagation::{
    monitored,
    Place::{self, Monitored, Native, Rung},
    Signaller::{self, Adapter, Rings, Unaware},
};

/// Three adapters, and what the fence is there.
const ADAPTERS: [(u64, Place); 3] = [(7, Native), (8, Native), (9, Monitored)];

/// The same where two of them ring each other.
const RUNG: [(u64, Place); 4] = [(7, Rung), (8, Rung), (9, Monitored), (10, Native)];

fn told_of(adapters: &[(u64, Place)], from: Signaller) -> Vec<u64> {
    let others = adapters.iter();
    let others = others.filter(|(id, place)| !from.is_known_on(*id, *place));

    others.map(|(id, _)| *id).collect()
}

fn told(from: Signaller) -> Vec<u64> {
    told_of(&ADAPTERS, from)
}

#[test]
fn fen_158_a_signal_is_told_to_the_two_others() {
    assert_eq!(told(Adapter(7)), [8, 9]);
    assert_eq!(told(Adapter(8)), [7, 9]);
    assert_eq!(told(Adapter(9)), [7, 8]);
    // It has the fence open no longer.
    assert_eq!(told(Adapter(6)), [7, 8, 9]);
}

/// The native fence of the same adapter does not know either.
#[test]
fn fen_157_a_store_that_no_native_fence_has_seen_is_told_to_all_of_them() {
    assert_eq!(told(Unaware(9)), [7, 8]);
    assert_eq!(told(Unaware(7)), [7, 8, 9]);
    assert_eq!(
        [Adapter(7), Rings(8), Unaware(9)].map(Signaller::adapter),
        [7, 8, 9]
    );
}

/// Those whose doorbell an engine has rung know of its signal, and of no other.
#[test]
fn fen_159_who_was_rung_is_not_told() {
    assert_eq!(told_of(&RUNG, Rings(7)), [9, 10]);
    assert_eq!(told_of(&RUNG, Rings(8)), [9, 10]);
    assert_eq!(told_of(&RUNG, Adapter(7)), [8, 9, 10]);
    assert_eq!(told_of(&RUNG, Adapter(10)), [7, 8, 9]);
    assert_eq!(told_of(&RUNG, Unaware(7)), [7, 8, 9, 10]);
    assert!(told_of(&RUNG[..2], Rings(7)).is_empty());
}

/// FEN-137: one who has to be told is enough.
#[test]
fn fen_159_monitored_value_follows_the_waiters_if_all_are_rung() {
    for wanted in [41, NOBODY_WAITS] {
        assert_eq!(monitored(wanted, [Rung, Rung].into_iter()), wanted);
        for other in [Native, Monitored] {
            let places = [Rung, other, Rung].into_iter();

            assert_eq!(monitored(wanted, places), EVERYBODY_IS_TOLD);
        }
    }
}
