// SPDX-License-Identifier: GPL-2.0

//! Time-outs as NT writes them (RES-96), and deadlines as Linux does.
//!
//! An NT time-out counts in units of 100 ns. Negative: relative, CLOCK_MONOTONIC. Positive: a date
//! since 1601 in UTC, CLOCK_REALTIME. Conversions never shorten a wait; out of range means no
//! time-out.

/// Nanoseconds in one unit.
const UNIT_NS: u64 = 100;
/// Units from the beginning of 1601 to that of 1970.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

/// When a wait gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// At once: it only tests.
    Now,
    Never,
    /// At this many nanoseconds of CLOCK_MONOTONIC.
    Monotonic(i64),
    /// At this many nanoseconds of CLOCK_REALTIME.
    Realtime(i64),
}

/// The deadline of a wait that starts now; without a time-out it has none. `now_ns` reads
/// CLOCK_MONOTONIC, which is only done for a relative one.
pub fn deadline(timeout: Option<i64>, now_ns: impl FnOnce() -> u64) -> Deadline {
    match timeout {
        None => Deadline::Never,
        Some(0) => Deadline::Now,
        Some(relative @ ..0) => {
            let at = relative
                .unsigned_abs()
                .checked_mul(UNIT_NS)
                .and_then(|wait| wait.checked_add(now_ns()))
                .and_then(|at| i64::try_from(at).ok());

            at.map_or(Deadline::Never, Deadline::Monotonic)
        }
        Some(date) => match u64::try_from(date - UNIX_EPOCH) {
            // A date before 1970 has passed.
            Err(_) | Ok(0) => Deadline::Now,
            Ok(since) => since
                .checked_mul(UNIT_NS)
                .and_then(|at| i64::try_from(at).ok())
                .map_or(Deadline::Never, Deadline::Realtime),
        },
    }
}

/// The deadline at so many nanoseconds of CLOCK_REALTIME or CLOCK_MONOTONIC.
pub fn at_ns(ns: u64, is_realtime: bool) -> Deadline {
    match (i64::try_from(ns), is_realtime) {
        (Err(_), _) => Deadline::Never,
        (Ok(0), _) => Deadline::Now,
        (Ok(at), true) => Deadline::Realtime(at),
        (Ok(at), false) => Deadline::Monotonic(at),
    }
}
