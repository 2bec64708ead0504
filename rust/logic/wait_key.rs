// SPDX-License-Identifier: GPL-2.0

//! The order of those who wait for one object.

/// Identifies one queued waiter of one fence: ordered by value, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey {
    /// The fence value that is waited for.
    pub value: u64,
    /// Arrival number; makes keys of one fence unique.
    pub seq: u64,
}
