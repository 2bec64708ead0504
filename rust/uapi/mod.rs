// SPDX-License-Identifier: GPL-2.0

//! The `/dev/dxg` contract as Rust types.
//!
//! `generated.rs` is bindgen's output from `uapi/*.h` and carries the sizes and offsets as
//! compile-time checks; a test regenerates and compares it. This wrapper marks which structs may
//! be copied from and to user memory, and reads their unions without `unsafe` for the callers.

mod logic;
mod unions;

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub
)]
mod generated;

pub(crate) use generated::*;

use crate::sys::user::Plain;

/// Marks argument structs as plain bytes.
macro_rules! plain {
    ($($name:ty),* $(,)?) => {
        $(
            // SAFETY: The headers consist of integers, arrays and unions of these, with all padding
            // written out (the header test compiles them with -Wpadded), so every bit pattern is a
            // value and no byte is uninitialised.
            unsafe impl Plain for $name {}
        )*
    };
}

plain!(
    D3DKMT_ACQUIREKEYEDMUTEX,
    D3DKMT_ACQUIREKEYEDMUTEX2,
    D3DKMT_ADAPTERINFO,
    D3DKMT_CHECKSHAREDRESOURCEACCESS,
    D3DKMT_CLOSEADAPTER,
    D3DKMT_CONFIGURESHAREDRESOURCE,
    D3DDDI_ALLOCATIONINFO2,
    D3DKMT_CREATEALLOCATION,
    D3DKMT_CREATECONTEXTVIRTUAL,
    D3DKMT_CREATESTANDARDALLOCATION,
    D3DKMT_DESTROYALLOCATION2,
    D3DKMT_CREATEDEVICE,
    D3DKMT_CREATEHWCONTEXT,
    D3DKMT_CREATEKEYEDMUTEX,
    D3DKMT_CREATEKEYEDMUTEX2,
    D3DKMT_CREATESYNCHRONIZATIONOBJECT2,
    D3DKMT_DESTROYCONTEXT,
    D3DKMT_DESTROYDEVICE,
    D3DKMT_DESTROYHWCONTEXT,
    D3DKMT_DESTROYKEYEDMUTEX,
    D3DKMT_DESTROYSYNCHRONIZATIONOBJECT,
    D3DKMT_ENUMADAPTERS2,
    D3DKMT_ENUMADAPTERS3,
    D3DKMT_GETDEVICESTATE,
    D3DKMT_GETRUNTIMEDATA,
    D3DKMT_GETSHAREDRESOURCEADAPTERLUID,
    D3DKMT_ISFEATUREENABLED,
    D3DKMT_OPENRESOURCE,
    D3DKMT_OPENRESOURCEFROMNTHANDLE,
    D3DKMT_QUERYRESOURCEINFO,
    D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE,
    D3DDDI_OPENALLOCATIONINFO2,
    D3DKMT_OPENADAPTERFROMLUID,
    D3DKMT_OPENNTHANDLEFROMNAME,
    D3DKMT_OPENKEYEDMUTEX,
    D3DKMT_OPENKEYEDMUTEX2,
    D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE,
    D3DKMT_OPENSYNCHRONIZATIONOBJECT,
    D3DKMT_OPENSYNCOBJECTFROMNTHANDLE,
    D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2,
    D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME,
    D3DKMT_QUERYADAPTERINFO,
    D3DKMT_QUERYCLOCKCALIBRATION,
    D3DKMT_RELEASEKEYEDMUTEX,
    D3DKMT_RELEASEKEYEDMUTEX2,
    D3DKMT_SHAREOBJECTS,
    D3DKMT_SHAREOBJECTWITHHOST,
    D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU,
    D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU,
    D3DKMT_DEVICEPAGEFAULT_STATE,
    OBJECT_ATTRIBUTES,
    D3DKMT_ESCAPE,
    D3DKMT_GETALLOCATIONPRIORITY,
    D3DKMT_INVALIDATECACHE,
    D3DKMT_LOCK2,
    D3DKMT_QUERYALLOCATIONRESIDENCY,
    D3DKMT_SETALLOCATIONPRIORITY,
    D3DKMT_UNLOCK2,
    opendxg_dup_local,
    opendxg_dup_nt,
    UNICODE_STRING,
    opendxg_exec,
    opendxg_export_dmabuf,
    opendxg_fence_point,
    opendxg_get_container,
    opendxg_query_object,
    opendxg_share_objects,
    opendxg_delete_info,
    opendxg_enum_info,
    opendxg_get_info,
    opendxg_info_entry,
    opendxg_info_item,
    opendxg_open_weak,
    opendxg_resolve_weak,
    opendxg_set_info,
    opendxg_watch,
    opendxg_watch_state,
    opendxg_version,
);
