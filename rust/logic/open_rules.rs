// SPDX-License-Identifier: GPL-2.0

//! What the calls that open shared objects refuse (RES-48, RES-52, RES-53).

use super::{
    invalid_if,
    sync_flags::bits,
    Invalid, //
};

/// Checks the flags of an open of a synchronisation object, which restrict what the handle may do
/// (FEN-3, FEN-25). They come first. Then the device and the NT handle are looked up, each of which
/// may fail with a status of its own. The object is last, see [`SyncOpen::check`].
pub fn check_sync_flags(flags: u32) -> Result<(), Invalid> {
    invalid_if(
        flags & (!bits::KNOWN | bits::SIGNAL_BY_KMD) != 0
            || flags & bits::NO_SIGNAL != 0 && flags & bits::NO_WAIT != 0,
    )
}

/// The object of an NT handle that is to be opened as a synchronisation object.
#[derive(Clone, Copy)]
pub struct SyncOpen {
    /// Whether it is a synchronisation object.
    pub is_sync: bool,
    /// Whether it may be used with the device; true for a call without a device.
    pub is_for_device: bool,
    /// Whether it is a fence: others ignore the engines.
    pub is_fence: bool,
    /// Whether the adapter of the device has the engines of the call.
    pub has_engines: bool,
}

/// Why a synchronisation object is not opened.
#[derive(Debug, PartialEq, Eq)]
pub enum SyncRefusal {
    /// INVALID_PARAMETER.
    Invalid,
    /// OBJECT_TYPE_MISMATCH.
    Mismatch,
}

impl SyncOpen {
    /// Its type (RES-52), its adapter (RES-53), the engines (FEN-5).
    pub fn check(&self) -> Result<(), SyncRefusal> {
        if !self.is_sync {
            return Err(SyncRefusal::Mismatch);
        }
        if !self.is_for_device || self.is_fence && !self.has_engines {
            return Err(SyncRefusal::Invalid);
        }
        Ok(())
    }
}

/// How much a resource has.
#[derive(Clone, Copy)]
pub struct ResourceSizes {
    /// Allocations.
    pub count: u32,
    /// Bytes of private runtime data.
    pub runtime_data: u32,
    /// Bytes of private driver data of the resource.
    pub driver_data: u32,
    /// Bytes of private driver data of all allocations.
    pub total_driver_data: u32,
}

impl ResourceSizes {
    /// Whether this room is enough for what a resource has.
    pub fn has_room_for(&self, own: &Self) -> bool {
        self.count >= own.count
            && self.runtime_data >= own.runtime_data
            && self.driver_data >= own.driver_data
            && self.total_driver_data >= own.total_driver_data
    }
}

/// What a call that opens a resource gives room for.
#[derive(Clone, Copy)]
pub struct ResourceOpen {
    /// Whether the resource is opened by NT handle, which cannot leave data out.
    pub by_nt: bool,
    /// Whether the array of allocations is not NULL.
    pub has_infos: bool,
    /// Whether `pPrivateRuntimeData` is not NULL.
    pub has_runtime_data: bool,
    /// Whether `pTotalPrivateDriverDataBuffer` is not NULL.
    pub has_total_driver_data: bool,
    /// The numbers and sizes.
    pub sizes: ResourceSizes,
}

/// Why a resource is not opened.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// INVALID_PARAMETER.
    Invalid,
    /// The room for the driver data of the allocations is too small, which is NO_MEMORY.
    TooSmall,
}

impl ResourceOpen {
    /// Compares with what the resource has (RES-48).
    pub fn check(&self, own: &ResourceSizes) -> Result<(), Refusal> {
        let given = &self.sizes;
        let leaves_runtime_data_out = !self.by_nt && given.runtime_data == 0;

        if given.count != own.count
            || given.count != 0 && !self.has_infos
            || given.runtime_data != own.runtime_data && !leaves_runtime_data_out
            || self.by_nt && !self.has_runtime_data
            || given.driver_data != own.driver_data
            || self.by_nt && !self.has_total_driver_data
        {
            return Err(Refusal::Invalid);
        }
        if given.total_driver_data < own.total_driver_data {
            return Err(Refusal::TooSmall);
        }
        Ok(())
    }
}
