// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exported functions that do not take one pointer to a struct.

#![allow(non_snake_case)]

use core::ffi::{c_char, c_void};

use opendxg::raw::Argument;
use opendxg::uapi::{
    opendxg_signal_nt, opendxg_value_nt, opendxg_wait_nt, opendxg_watch_state, D3DKMT_SHAREOBJECTS,
};
use opendxg::Status;

use crate::library::{self, not_served};
use crate::{cleanup, names};

/// Stands for "no pointer to check" where only the other checks of every function matter.
const SOME: *mut c_void = core::ptr::NonNull::<c_void>::dangling().as_ptr();

/// `void D3DKMTCloseDxCoreDevice(void)`: closes the device. No other call may be in progress.
///
/// Functions fail with UNSUCCESSFUL afterwards, until one of those that find adapters opens the
/// device again.
#[no_mangle]
pub extern "C" fn D3DKMTCloseDxCoreDevice() {
    library::close_for_program();
}

/// `BOOLEAN D3DKMTCheckExclusiveOwnership(void)`: FALSE, there are no displays to own.
#[no_mangle]
pub extern "C" fn D3DKMTCheckExclusiveOwnership() -> c_char {
    0
}

/// `NTSTATUS D3DKMTShareObjects(UINT, const D3DKMT_HANDLE *, OBJECT_ATTRIBUTES *, DWORD, HANDLE
/// *)`
///
/// # Safety
///
/// `objects` are `count` handles, `attributes` is NULL or valid, `nt_handle` can be written.
#[no_mangle]
pub unsafe extern "C" fn D3DKMTShareObjects(
    count: u32,
    objects: *const u32,
    attributes: *mut c_void,
    access: u32,
    nt_handle: *mut u64,
) -> Status {
    if objects.is_null() || nt_handle.is_null() {
        return not_served(core::ptr::null_mut(), Status::INVALID_PARAMETER);
    }
    let mut arg = D3DKMT_SHAREOBJECTS::zeroed();
    arg.ObjectCount = count;
    arg.ObjectHandleArray = objects as u64;
    arg.pObjectAttributes = attributes as u64;
    arg.DesiredAccess = access;
    arg.pSharedNtHandle = nt_handle as u64;
    // SAFETY: the caller's addresses.
    unsafe { names::share(arg) }
}

/// A call on a descriptor, which works without a device.
///
/// # Safety
///
/// The argument is NULL or such a struct.
unsafe fn on_descriptor<T: Argument>(fd: i32, arg: *mut T) -> Status {
    if arg.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // A negative number does not become a descriptor.
    let slot = fd as i64 as u64;
    // SAFETY: not null; the caller promises a live struct.
    unsafe { library::descriptor(slot, &mut *arg) }
}

macro_rules! on_descriptors {
    ($($name:ident $arg:literal;)*) => {
        $(
            #[doc = concat!("`NTSTATUS ", $arg, "`: works without a device.")]
            ///
            /// # Safety
            ///
            /// The argument is NULL or such a struct.
            #[no_mangle]
            pub unsafe extern "C" fn $name(fd: i32, arg: *mut $name) -> Status {
                // SAFETY: the caller's promise.
                unsafe { on_descriptor(fd, arg) }
            }
        )*
    };
}

on_descriptors! {
    opendxg_watch_state "opendxg_watch_state(int fd, struct opendxg_watch_state *)";
    opendxg_signal_nt "opendxg_signal_nt(int fd, struct opendxg_signal_nt *)";
    opendxg_wait_nt "opendxg_wait_nt(int fd, struct opendxg_wait_nt *)";
    opendxg_value_nt "opendxg_value_nt(int fd, struct opendxg_value_nt *)";
}

/// `NTSTATUS opendxg_set_cleanup(D3DKMT_HANDLE, void (*)(void *), void *)`: runs the function once
/// when the process's last local handle of the container is gone.
///
/// # Safety
///
/// The function may be called with the context from any thread that destroys handles.
#[no_mangle]
pub unsafe extern "C" fn opendxg_set_cleanup(
    handle: u32,
    function: Option<cleanup::Function>,
    context: *mut c_void,
) -> Status {
    match function {
        // SAFETY: the caller's promise.
        Some(function) => unsafe { cleanup::set(handle, function, context) },
        None => not_served(core::ptr::null_mut(), Status::INVALID_PARAMETER),
    }
}

/// `NTSTATUS D3DKMTSetProcessSchedulingPriorityClass(HANDLE, D3DKMT_SCHEDULINGPRIORITYCLASS)`
#[no_mangle]
pub extern "C" fn D3DKMTSetProcessSchedulingPriorityClass(_process: u64, _class: u32) -> Status {
    not_served(SOME, Status::NOT_SUPPORTED)
}

/// `NTSTATUS D3DKMTGetProcessSchedulingPriorityClass(HANDLE, D3DKMT_SCHEDULINGPRIORITYCLASS *)`
#[no_mangle]
pub extern "C" fn D3DKMTGetProcessSchedulingPriorityClass(
    _process: u64,
    class: *mut u32,
) -> Status {
    not_served(class.cast(), Status::NOT_SUPPORTED)
}

/// `NTSTATUS D3DKMTReleaseProcessVidPnSourceOwners(HANDLE)`
#[no_mangle]
pub extern "C" fn D3DKMTReleaseProcessVidPnSourceOwners(_process: u64) -> Status {
    not_served(SOME, Status::NOT_SUPPORTED)
}

/// `NTSTATUS D3DKMTGetPresentQueueEvent(D3DKMT_HANDLE, HANDLE *)`
#[no_mangle]
pub extern "C" fn D3DKMTGetPresentQueueEvent(_adapter: u32, event: *mut u64) -> Status {
    not_served(event.cast(), Status::NOT_SUPPORTED)
}
