// SPDX-License-Identifier: GPL-2.0

//! Which sizes the calls that open shared resources accept (RES-48).

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
