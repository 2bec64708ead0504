// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resources and allocations by raw calls, each with everything it points to, so that tests can
//! make any part of a call wrong. What a call made is destroyed when dropped.

mod create;
mod lock;
mod open;

pub use create::{driver_data, page_resource, Create, OpenResource};
pub use lock::{is_revoked, lock, locked_again, no_core, Locked};
pub use open::{query_global, query_nt, Buffers, OpenAtOnce, OpenGlobal, OpenNt, Shape, UNTOUCHED};

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::Status;

use crate::call::succeeds;
use crate::memory::PAGE;
use crate::TestResult;

/// Short names of the flags of CreateAllocation.
pub mod flags {
    pub use opendxg::uapi::{
        D3DKMT_CREATEALLOCATIONFLAGS_CreateResource as RESOURCE,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateShared as SHARED,
        D3DKMT_CREATEALLOCATIONFLAGS_CrossAdapter as CROSS_ADAPTER,
        D3DKMT_CREATEALLOCATIONFLAGS_ExistingSection as SECTION,
        D3DKMT_CREATEALLOCATIONFLAGS_ExistingSysMem as SYSTEM_MEMORY,
        D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing as NT_SECURITY,
        D3DKMT_CREATEALLOCATIONFLAGS_ReadOnly as READ_ONLY,
        D3DKMT_CREATEALLOCATIONFLAGS_StandardAllocation as STANDARD,
    };

    /// A resource with a global handle.
    pub const GLOBAL: u32 = RESOURCE | SHARED;
    /// A resource that ShareObjects takes.
    pub const NT: u32 = RESOURCE | SHARED | NT_SECURITY;
}

/// A page, in the type of sizes of allocations.
pub const PAGE_SIZE: u64 = PAGE as u64;

/// All access to a resource.
pub const ALL_ACCESS: u32 = SHARED_ALLOCATION_ALL_ACCESS;
/// READ_CONTROL alone: a resource is opened read-only.
pub const READ_ACCESS: u32 = 0x2_0000;

/// Destroys a resource (with an empty list) or the allocations of a list.
pub fn destroy(
    raw: &Raw,
    device: u32,
    resource: u32,
    list: &[u32],
    flags: u32,
) -> rustix::io::Result<Status> {
    let mut arg = destruction(device, resource, list, flags);
    raw.exec(&mut arg)
}

/// The argument of [`destroy`].
pub fn destruction(
    device: u32,
    resource: u32,
    list: &[u32],
    flags: u32,
) -> D3DKMT_DESTROYALLOCATION2 {
    let mut arg = D3DKMT_DESTROYALLOCATION2::zeroed();
    arg.hDevice = device;
    arg.hResource = resource;
    arg.phAllocationList = if list.is_empty() {
        0
    } else {
        list.as_ptr() as u64
    };
    arg.AllocationCount = list.len() as u32;
    arg.Flags = flags;
    arg
}

/// What QUERY_OBJECT says about a local handle.
pub fn query_local(raw: &Raw, handle: u32) -> TestResult<opendxg_query_object> {
    query_object(raw, u64::from(handle), OPENDXG_HANDLE_LOCAL)
}

/// What QUERY_OBJECT says about a handle of any type.
pub fn query_object(raw: &Raw, handle: u64, handle_type: u32) -> TestResult<opendxg_query_object> {
    let mut arg = opendxg_query_object::zeroed();
    arg.handle = handle;
    arg.handle_type = handle_type;
    succeeds(raw, &mut arg)?;
    Ok(arg)
}

/// A descriptor as arguments take it where an NT handle may stand.
pub fn slot(fd: impl AsFd) -> u64 {
    fd.as_fd().as_raw_fd() as u64
}

/// A dma-buf of an allocation.
pub fn export(raw: &Raw, allocation: u32, flags: u32) -> TestResult<OwnedFd> {
    let mut arg = opendxg_export_dmabuf::zeroed();
    arg.allocation = allocation;
    arg.flags = flags;
    succeeds(raw, &mut arg)?;
    if arg.fd < 0 {
        return Err("EXPORT_DMABUF returned no descriptor".into());
    }
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
}
