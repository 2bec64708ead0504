// SPDX-License-Identifier: GPL-2.0

//! The clock of the CPU: CLOCK_MONOTONIC in nanoseconds.

use crate::logic::timeout::Deadline;
use kernel::{
    bindings,
    time::{
        ClockSource,
        RealTime, //
    }, //
};

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    // SAFETY: May be called in any context.
    let now = unsafe { bindings::ktime_get() };

    // The clock starts at boot and counts up, so it is never negative.
    u64::try_from(now).unwrap_or(0)
}

/// A deadline `wait_ns` from now, if that is before `deadline`.
pub(crate) fn before(deadline: Deadline, wait_ns: u64) -> Option<Deadline> {
    // Before 1970 no date is reached.
    let wall_ns = || u64::try_from(RealTime::ktime_get()).unwrap_or(0);

    deadline.sooner(wait_ns, now_ns, wall_ns)
}
