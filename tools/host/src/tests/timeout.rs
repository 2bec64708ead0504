// SPDX-License-Identifier: MIT OR Apache-2.0

//! Time-outs and deadlines (RES-96, FEN-19).

use proptest::prelude::*;

use crate::logic::timeout::{at_ns, deadline, Deadline::*};

const NOW: u64 = 5_000_000_000;
/// 1970-01-01 in units of 100 ns since 1601-01-01: 369 years with 89 leap days.
const EPOCH: i64 = (369 * 365 + 89) * 86_400 * 10_000_000;

#[test]
fn res_96_table() {
    for (timeout, expected) in [
        (None, Never),
        (Some(0), Now),
        (Some(-1), Monotonic(5_000_000_100)),
        (Some(-100_000), Monotonic(5_010_000_000)),
        (Some(1), Now),
        (Some(EPOCH - 1), Now),
        (Some(EPOCH), Now),
        (Some(EPOCH + 1), Realtime(100)),
        // 2026-01-01T00:00:00Z.
        (
            Some(134_116_992_000_000_000),
            Realtime(1_767_225_600_000_000_000),
        ),
        (Some(i64::MIN), Never),
        (Some(i64::MAX), Never),
        (Some(-(i64::MAX / 100)), Never),
        (
            Some(-((i64::MAX - NOW as i64) / 100)),
            Monotonic(9_223_372_036_854_775_800),
        ),
        (
            Some(EPOCH + i64::MAX / 100),
            Realtime(9_223_372_036_854_775_800),
        ),
        (Some(EPOCH + i64::MAX / 100 + 1), Never),
    ] {
        assert_eq!(deadline(timeout, || NOW), expected, "{timeout:?}");
    }
}

#[test]
fn fen_19_nanoseconds_of_a_clock() {
    for (ns, is_realtime, expected) in [
        (0, false, Now),
        (0, true, Now),
        (1, false, Monotonic(1)),
        (1, true, Realtime(1)),
        (i64::MAX as u64, false, Monotonic(i64::MAX)),
        (1 << 63, true, Never),
        (u64::MAX, false, Never),
    ] {
        assert_eq!(at_ns(ns, is_realtime), expected, "{ns}");
    }
}

proptest! {
    /// Never early, and exact as long as the clock can say it.
    #[test]
    fn res_96_never_early(timeout: i64, now in 0..=i64::MAX as u64) {
        let wanted = match timeout {
            ..0 => i128::from(now) + i128::from(timeout).abs() * 100,
            _ => i128::from(timeout - EPOCH) * 100,
        };

        match deadline(Some(timeout), || now) {
            Monotonic(at) => prop_assert!(timeout < 0 && i128::from(at) == wanted),
            Realtime(at) => prop_assert!(timeout > 0 && i128::from(at) == wanted),
            Now => prop_assert!(timeout >= 0 && wanted <= 0),
            Never => prop_assert!(wanted > i128::from(i64::MAX)),
        }
    }
}
