// SPDX-License-Identifier: MIT OR Apache-2.0

//! Values of a fence: the edges in a table, the rest as properties.

use proptest::prelude::*;

use crate::logic::fence_value::{may_signal, monitored, satisfies, NOBODY_WAITS};

const MAX: u64 = u64::MAX;
const HALF: u64 = 1 << 63;

/// FEN-14, FEN-22: unsigned, over the full range, no largest distance.
#[test]
fn fen_14_a_value_is_reached_from_above() {
    for (current, wanted, expected) in [
        (0, 0, true),
        (MAX, 0, true),
        (1, 2, false),
        (2, 2, true),
        (0, MAX, false),
        (MAX - 1, MAX, false),
        (MAX, MAX, true),
        (HALF - 1, HALF, false),
        (HALF, HALF - 1, true),
        (0, 0x7fff_ffff_ffff_ffff, false),
    ] {
        assert_eq!(satisfies(current, wanted), expected, "{current} {wanted}");
    }
}

/// FEN-32: down only with leave, equal always.
#[test]
fn fen_32_rewinding_needs_leave() {
    for (current, value, plain) in [
        (0, 0, true),
        (0, MAX, true),
        (MAX, 0, false),
        (MAX, MAX - 1, false),
        (HALF, HALF - 1, false),
        (HALF - 1, HALF, true),
        (5, 5, true),
    ] {
        assert_eq!(
            may_signal(current, value, false),
            plain,
            "{current} {value}"
        );
        assert!(may_signal(current, value, true), "{current} {value}");
    }
}

/// FEN-55, FEN-56: one below the lowest; no wait reads as the sentinel, and no wait else does.
#[test]
fn fen_55_monitored_is_one_below_the_lowest_wait() {
    assert_eq!(monitored(None), NOBODY_WAITS);
    assert_eq!(monitored(Some(42)), 41);
    assert_eq!(monitored(Some(1)), 0);
    assert_eq!(monitored(Some(MAX)), MAX - 1);
    assert_eq!(monitored(Some(0)), 0);
}

proptest! {
    /// FEN-67: a store interrupts by MonitoredValue exactly when it satisfies the lowest wait.
    #[test]
    fn fen_67_the_threshold_is_the_lowest_wait(lowest in 1u64.., value in any::<u64>()) {
        prop_assert_eq!(value > monitored(Some(lowest)), satisfies(value, lowest));
    }

    /// FEN-23: what satisfies a wait satisfies every lower one.
    #[test]
    fn fen_23_higher_values_satisfy_lower_waits(mut values: [u64; 3]) {
        values.sort();

        let [lower, wanted, current] = values;

        prop_assert!(satisfies(current, wanted) && satisfies(current, lower));
        prop_assert_eq!(satisfies(lower, current), lower == current);
    }
}
