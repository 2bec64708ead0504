// SPDX-License-Identifier: GPL-2.0

//! Which address space uses a segment, where several want more than it has (MEM-18).
//!
//! They take turns. One that has come back stays for a *slice*, which is long against the time that
//! it took to bring it back: so most of the time engines work, however many want room.

/// The shortest slice, in nanoseconds.
pub const SHORTEST: u64 = 20_000_000;
/// The longest slice. Nobody waits longer for each of those before it.
pub const LONGEST: u64 = 1_000_000_000;
/// How many times as long as the last change a slice is.
const TIMES: u64 = 4;

/// How long a space stays, in nanoseconds, if the last change took so many.
pub fn slice(change: u64) -> u64 {
    change.saturating_mul(TIMES).clamp(SHORTEST, LONGEST)
}

/// How many nanoseconds a space may stay that has been there since `since`; 0 if it may not.
pub fn time_left(since: u64, now: u64, slice: u64) -> u64 {
    since.saturating_add(slice).saturating_sub(now)
}

/// A space, as far as it matters whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// It does not run.
    pub is_suspended: bool,
    /// When that began, or when it came back; 0 if it was never suspended.
    pub since: u64,
}

/// The place of the one that comes back next, of these: the one that was suspended first.
pub fn next_back(turns: impl Iterator<Item = Turn>) -> Option<usize> {
    turns
        .enumerate()
        .filter(|(_, turn)| turn.is_suspended)
        .min_by_key(|(_, turn)| turn.since)
        .map(|(place, _)| place)
}
