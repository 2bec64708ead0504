// SPDX-License-Identifier: MIT OR Apache-2.0
//! Without a device every function returns UNSUCCESSFUL, and none touches its argument.

use core::ptr::null_mut;
use std::os::fd::AsRawFd;

use d3dkmt::functions::GROUPS;
use d3dkmt::signatures::*;
use opendxg::uapi::{opendxg_query_object, opendxg_watch_state};
use opendxg::Status;

/// As large as the largest argument struct, and aligned for all.
#[derive(Clone, PartialEq)]
#[repr(align(8))]
struct Argument([u8; 4096]);

#[test]
fn every_function_is_unsuccessful() {
    crate::without_a_device("functions::every_function_is_unsuccessful", call_all);
}

fn call_all() {
    let mut called = 0;
    for function in GROUPS.iter().flat_map(|(_, functions)| *functions) {
        let Some(entry) = function.entry else {
            continue;
        };
        let before = Argument([0xa5; 4096]);
        let mut argument = before.clone();
        // SAFETY: large enough and aligned for every argument struct; its bogus addresses are not
        // followed without a device, which is what this test is about.
        let status = unsafe { entry((&raw mut argument).cast()) };
        assert_eq!(status, Status::UNSUCCESSFUL, "{}", function.name);
        assert!(argument == before, "{} wrote its argument", function.name);
        // SAFETY: NULL is allowed.
        let status = unsafe { entry(null_mut()) };
        assert_eq!(status, Status::UNSUCCESSFUL, "{}(NULL)", function.name);
        called += 1;
    }
    assert!(called > 190, "{called}");

    let (handle, mut slot) = (0x4000_0040, 7);
    // SAFETY: live variables.
    let status = unsafe { D3DKMTShareObjects(1, &handle, null_mut(), 0, &mut slot) };
    assert_eq!((status, slot), (Status::UNSUCCESSFUL, 7));
    assert_eq!(
        D3DKMTSetProcessSchedulingPriorityClass(0, 0),
        Status::UNSUCCESSFUL
    );
    assert_eq!(
        D3DKMTGetProcessSchedulingPriorityClass(0, null_mut()),
        Status::UNSUCCESSFUL
    );
    assert_eq!(
        D3DKMTReleaseProcessVidPnSourceOwners(0),
        Status::UNSUCCESSFUL
    );
    assert_eq!(
        D3DKMTGetPresentQueueEvent(0, null_mut()),
        Status::UNSUCCESSFUL
    );
    unsafe extern "C-unwind" fn nothing(_: *mut core::ffi::c_void) {}
    // SAFETY: no context.
    let status = unsafe { opendxg_set_cleanup(handle, Some(nothing), null_mut()) };
    assert_eq!(status, Status::UNSUCCESSFUL);
    assert_eq!(D3DKMTCheckExclusiveOwnership(), 0);
    needs_no_device();
    D3DKMTCloseDxCoreDevice();
}

/// Calls on the descriptor of an NT handle work without a device, so the descriptor decides.
fn needs_no_device() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let other_file = null.as_raw_fd() as u64;
    let mut query = opendxg_query_object::default();
    for (handle, expected) in [
        (u64::MAX, Status::INVALID_HANDLE),
        (0x3fff_ffff, Status::INVALID_HANDLE),
        (other_file, Status::OBJECT_TYPE_MISMATCH),
    ] {
        query.handle = handle;
        // SAFETY: a live struct without addresses.
        let status = unsafe { d3dkmt::functions::opendxg_query_object((&raw mut query).cast()) };
        assert_eq!((status, query.handle), (expected, handle));
    }
    let mut state = opendxg_watch_state::default();
    // SAFETY: a live struct.
    let status = unsafe { d3dkmt::signatures::opendxg_watch_state(-1, &mut state) };
    assert_eq!(status, Status::INVALID_HANDLE);
}
