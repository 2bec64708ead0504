// SPDX-License-Identifier: GPL-2.0

//! GPU addresses that a KMD reserves in a new process (MEM-64).

use super::types::{
    KmdError,
    KmdResult, //
};

/// What a KMD wants (`DXGKARGCB_RESERVE_GPU_VIRTUAL_ADDRESS_RANGE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveRange {
    /// Bytes: a multiple of what a table of level 0 has addresses for.
    pub size: u64,
    /// `Alignment`: a multiple of the same.
    pub alignment: u64,
    /// `AllowUserModeMapping`: clients may map allocations there.
    pub allow_user_mode_mapping: bool,
}

/// Gives GPU addresses of a process to a KMD while CreateProcess runs: a KMD has it at no other
/// time. DxgkCbReserveGpuVirtualAddressRange.
///
/// The OS part has the tables of what it gave, and writes invalid entries to them when they are
/// new.
/// Other entries are for the KMD to write: it is told of each new table (`initial_update`). What
/// clients map there, if they may, is invalid again when they take it away.
pub trait ReserveAddresses {
    /// Returns the first address. InvalidParameter if the wish makes no sense, NoMemory if there is
    /// no room.
    fn reserve(&mut self, range: &ReserveRange) -> KmdResult<u64>;
}

/// Who has no GPU addresses to give.
pub struct NoAddresses;

impl ReserveAddresses for NoAddresses {
    fn reserve(&mut self, _: &ReserveRange) -> KmdResult<u64> {
        Err(KmdError::NotSupported)
    }
}
