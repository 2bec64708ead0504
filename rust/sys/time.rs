// SPDX-License-Identifier: GPL-2.0

//! The clock of the CPU: CLOCK_MONOTONIC in nanoseconds.

use kernel::bindings;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    // SAFETY: May be called in any context.
    let now = unsafe { bindings::ktime_get() };

    // The clock starts at boot and counts up, so it is never negative.
    u64::try_from(now).unwrap_or(0)
}
