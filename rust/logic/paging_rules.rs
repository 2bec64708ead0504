// SPDX-License-Identifier: GPL-2.0

//! Arguments of calls on paging queues and residency (MEM-10, MEM-19, MEM-23), and which queue is
//! served next (MEM-14).

use super::{
    invalid_if,
    Invalid, //
};

/// How urgent the operations of a paging queue are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Below the others.
    BelowNormal,
    /// As most.
    Normal,
    /// Above the others.
    AboveNormal,
}

impl Priority {
    /// What `D3DDDI_PAGINGQUEUE_PRIORITY` says.
    pub fn new(value: i32) -> Result<Self, Invalid> {
        match value {
            -1 => Ok(Self::BelowNormal),
            0 => Ok(Self::Normal),
            1 => Ok(Self::AboveNormal),
            _ => Err(Invalid),
        }
    }
}

/// Bits of `D3DDDI_MAKERESIDENT_FLAGS`.
pub mod make_resident {
    /// The client has nothing more that it could evict.
    pub const CANT_TRIM_FURTHER: u32 = 1 << 0;
    /// The client cannot go on without it.
    pub const MUST_SUCCEED: u32 = 1 << 1;
}

/// Bits of `D3DDDI_EVICT_FLAGS`.
pub mod evict {
    /// The memory may stay where it is until it is short.
    pub const ONLY_IF_NECESSARY: u32 = 1 << 0;
    /// The contents have not changed since they were last evicted.
    pub const NOT_WRITTEN_TO: u32 = 1 << 1;
}

/// Most allocations of one call (MEM-19).
pub const MAX_LISTED: u32 = 16384;

fn check_list(count: u32, list: u64) -> Result<usize, Invalid> {
    invalid_if(count == 0 || count > MAX_LISTED || list == 0)?;
    // CAST: 32 bits fit a usize.
    Ok(count as usize)
}

/// How many allocations a MakeResident names.
pub fn check_make_resident(count: u32, list: u64, flags: u32) -> Result<usize, Invalid> {
    use make_resident::*;

    invalid_if(flags & !(CANT_TRIM_FURTHER | MUST_SUCCEED) != 0)?;
    invalid_if(flags & MUST_SUCCEED != 0 && flags & CANT_TRIM_FURTHER == 0)?;
    check_list(count, list)
}

/// How many allocations an Evict names.
pub fn check_evict(count: u32, list: u64, flags: u32) -> Result<usize, Invalid> {
    invalid_if(flags & !(evict::ONLY_IF_NECESSARY | evict::NOT_WRITTEN_TO) != 0)?;
    check_list(count, list)
}

/// After this long a queue is served next, whatever its priority (MEM-14): 100 ms, in nanoseconds.
pub const PATIENCE: u64 = 100_000_000;

/// A queue of a device that has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How urgent it is.
    pub priority: Priority,
    /// When it was last served, or when its first operation came if that was later; nanoseconds.
    pub since: u64,
}

/// The queue of a device that is served next, by its place: one that waited too long, otherwise the
/// most urgent. Among those the one that waited longest.
pub fn next_queue(queues: impl Iterator<Item = Candidate>, now: u64) -> Option<usize> {
    queues
        .enumerate()
        .max_by_key(|(place, queue)| {
            let waited = now.saturating_sub(queue.since);
            let is_due = waited >= PATIENCE;
            let priority = (!is_due).then_some(queue.priority);

            (is_due, priority, waited, core::cmp::Reverse(*place))
        })
        .map(|(place, _)| place)
}

/// Pages of one call that are made usable before the call returns; more are left to the worker.
/// They take well under a millisecond.
pub const AT_ONCE_PAGES: u64 = 1024;

/// Most operations that wait in one queue.
pub const MAX_QUEUED: u32 = 1 << 17;

/// Groups of segments that have budgets: local memory, and the rest.
pub const GROUPS: usize = 2;

/// The budget of a process in a segment group of so many bytes, of which other processes have
/// reserved some, while nobody is short (MEM-36).
pub fn budget(group: u64, reserved_by_others: u64) -> u64 {
    (group - group / 16).saturating_sub(reserved_by_others)
}

/// How much of its budget a process may reserve (MEM-35).
pub fn reservable(budget: u64) -> u64 {
    budget / 2
}

/// Checks what a process with this budget wants to reserve (MEM-37).
pub fn check_reservation(wanted: u64, budget: u64) -> Result<(), Invalid> {
    invalid_if(wanted > reservable(budget))
}

/// How many bytes a process must evict before it may use `more` in addition to `used` (MEM-20,
/// MEM-21).
///
/// Without anything left to trim, the process may use all of a segment group of `group` bytes
/// instead of its budget.
pub fn over_budget(used: u64, more: u64, budget: u64, group: u64, cant_trim_further: bool) -> u64 {
    let most = match cant_trim_further {
        true => group,
        false => budget,
    };

    used.saturating_add(more).saturating_sub(most)
}

/// Checks of QueryVideoMemoryInfo and ChangeVideoMemoryReservation that come before the process is
/// looked up (MEM-34).
pub fn check_video_memory_query(
    adapter: u32,
    group: u32,
    physical_adapter: u32,
) -> Result<usize, Invalid> {
    invalid_if(adapter == 0 || group > 1 || physical_adapter > 0)?;
    // CAST: 0 or 1.
    Ok(group as usize)
}
