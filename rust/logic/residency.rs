// SPDX-License-Identifier: GPL-2.0

//! What D3DKMTQueryAllocationResidency says (MEM-9).

use crate::ddi::segments::SYSTEM_MEMORY;

// Values of `D3DKMT_ALLOCATIONRESIDENCYSTATUS`.

/// In a segment of the GPU itself.
pub const IN_GPU_MEMORY: u32 = 1;
/// In memory of the system.
pub const IN_SHARED_MEMORY: u32 = 2;
/// Where the GPU cannot use it.
pub const NOT_RESIDENT: u32 = 3;

/// The status of an allocation that GPUs can use in the segment with this number; `None`: they
/// cannot use it now.
pub fn of_allocation(segment: Option<u32>) -> u32 {
    match segment {
        None => NOT_RESIDENT,
        Some(SYSTEM_MEMORY) => IN_SHARED_MEMORY,
        Some(_) => IN_GPU_MEMORY,
    }
}

/// The one status of a resource, made of those of its allocations: that of the first, unless one is
/// not resident. A resource without allocations (RES-82) has nothing that is anywhere else than in
/// memory of the system.
pub fn of_resource(mut allocations: impl Iterator<Item = u32>) -> u32 {
    let first = allocations.next().unwrap_or(IN_SHARED_MEMORY);

    if allocations.any(|status| status == NOT_RESIDENT) {
        NOT_RESIDENT
    } else {
        first
    }
}
