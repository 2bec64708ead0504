// SPDX-License-Identifier: GPL-2.0

//! Which value a CPU signal may store, and when a value satisfies a wait.
//!
//! All comparisons are unsigned over the full 64-bit range (FEN-14, FEN-31, FEN-32).

use crate::platform::{
    full_fence,
    store_release,
    Word64, //
};

/// MonitoredValue while there is no waiter (FEN-55).
pub const NOBODY_WAITS: u64 = u64::MAX;

/// MonitoredValue of a cross-adapter fence: each signal interrupts, so that the other adapters are
/// told of it. One to 0 does not, and nobody waits for 0 (FEN-137).
pub const EVERYBODY_IS_TOLD: u64 = 0;

/// Whether a fence that shows `current` satisfies a wait for `wanted` (FEN-14).
pub fn satisfies(current: u64, wanted: u64) -> bool {
    current >= wanted
}

/// Whether a CPU signal may replace `current` by `value` (FEN-32).
///
/// Lowering the value needs permission; storing the same value again is always allowed.
pub fn may_signal(current: u64, value: u64, allow_rewind: bool) -> bool {
    value >= current || allow_rewind
}

/// MonitoredValue for the lowest value that is waited for, if any (FEN-55, FEN-56).
///
/// A registered wait is never for 0, which is satisfied at once; the subtraction saturates all the
/// same, so that the rule is total.
pub fn monitored(lowest_wanted: Option<u64>) -> u64 {
    match lowest_wanted {
        Some(value) => value.saturating_sub(1),
        None => NOBODY_WAITS,
    }
}

/// Stores MonitoredValue, where the engines look at memory for it (FEN-73).
pub fn store_monitored(word: &Word64, value: u64) {
    store_release(word, value);
    // ORDERING: between steps A3 and A4 of fences.md section 3.4. Pairs with the barrier of an
    // engine between a store to CurrentValue and its look at MonitoredValue.
    full_fence();
}
