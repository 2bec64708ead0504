// SPDX-License-Identifier: MIT OR Apache-2.0
//! DXCore without a device: there is a factory, and its lists are empty. What cannot be allocated
//! is E_OUTOFMEMORY.
//!
//! Functions are called by their place in the tables of `directx/dxcore_interface.h`, as C++
//! programs do.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use d3dkmt::dxcore::{DXCoreCreateAdapterFactory, Guid, HResult};

#[rustfmt::skip]
mod iid {
    use d3dkmt::dxcore::Guid;
    pub const UNKNOWN: Guid = Guid(0, 0, 0, [0xc0, 0, 0, 0, 0, 0, 0, 0x46]);
    pub const FACTORY: Guid = Guid(0x78ee5945, 0xc36e, 0x4b13, [0xa6, 0x69, 0, 0x5d, 0xd1, 0x1c, 0x0f, 0x06]);
    pub const FACTORY1: Guid = Guid(0xd5682e19, 0x6d21, 0x401c, [0x82, 0x7a, 0x9a, 0x51, 0xa4, 0xea, 0x35, 0xd7]);
    pub const LIST: Guid = Guid(0x526c7776, 0x40e9, 0x459b, [0xb7, 0x11, 0xf3, 0x2a, 0xd7, 0x6d, 0xfc, 0x28]);
    pub const ADAPTER: Guid = Guid(0xf0db4c7f, 0xfe5a, 0x42a2, [0xbd, 0x62, 0xf2, 0xa6, 0xcf, 0x6f, 0xc8, 0x3e]);
    pub const GRAPHICS: Guid = Guid(0x0c9ece4d, 0x2f6e, 0x4f01, [0x8c, 0x96, 0xe8, 0x9e, 0x33, 0x1b, 0x47, 0xb1]);
}

type This = *mut c_void;
type Callback = unsafe extern "C" fn(u32, This, *mut c_void);

/// The function at a place of an object's table.
///
/// # Safety
///
/// `F` is the type of that function.
unsafe fn at<F: Copy>(object: This, place: usize) -> F {
    assert_eq!(size_of::<F>(), size_of::<usize>());
    // SAFETY: an object starts with the address of its table, and the table has the place.
    unsafe { object.cast::<*const F>().read().add(place).read() }
}

macro_rules! call {
    ($object:expr, $place:literal, fn($($kind:ty),*) -> $result:ty, $($argument:expr),* $(,)?) => {{
        let object = $object;
        // SAFETY: the types are those of the header.
        let function: unsafe extern "C" fn(This, $($kind),*) -> $result = unsafe { at(object, $place) };
        // SAFETY: live variables, or what has to be refused.
        unsafe { function(object, $($argument),*) }
    }};
}

fn query(object: This, iid: &Guid) -> (HResult, This) {
    let mut out = object;
    let result = call!(
        object,
        0,
        fn(*const Guid, *mut This) -> HResult,
        iid,
        &mut out
    );
    (result, out)
}

fn release(object: This) -> u32 {
    call!(object, 2, fn() -> u32,)
}

fn factory() -> This {
    let mut factory = null_mut();
    // SAFETY: live variables.
    let result = unsafe { DXCoreCreateAdapterFactory(&iid::FACTORY1, &mut factory) };
    assert_eq!(result, HResult::S_OK);
    factory
}

fn create_list(factory: This, list: &mut This) -> HResult {
    let attributes = [iid::GRAPHICS];
    call!(
        factory,
        3,
        fn(u32, *const Guid, *const Guid, *mut This) -> HResult,
        1,
        attributes.as_ptr(),
        &iid::LIST,
        list
    )
}

#[test]
fn the_factory_makes_empty_lists() {
    crate::without_a_device("dxcore::the_factory_makes_empty_lists", nothing_there);
}

fn nothing_there() {
    let mut out: This = null_mut();
    // SAFETY: live variables, or NULL.
    unsafe {
        let create = |iid: *const Guid, out| DXCoreCreateAdapterFactory(iid, out);
        assert_eq!(create(&iid::FACTORY, null_mut()), HResult::E_POINTER);
        out = (&raw mut out).cast();
        assert_eq!(create(&iid::LIST, &mut out), HResult::E_NOINTERFACE);
        assert!(out.is_null());
        assert_eq!(create(null(), &mut out), HResult::E_NOINTERFACE);
    }
    let factory = factory();
    for iid in [iid::UNKNOWN, iid::FACTORY, iid::FACTORY1] {
        assert_eq!(query(factory, &iid), (HResult::S_OK, factory));
        assert_eq!(release(factory), 1);
    }
    assert_eq!(
        query(factory, &iid::ADAPTER),
        (HResult::E_NOINTERFACE, null_mut())
    );

    let mut list = null_mut();
    assert_eq!(create_list(factory, &mut list), HResult::S_OK);
    assert_eq!(call!(list, 4, fn() -> u32,), 0);
    assert!(!call!(list, 5, fn() -> bool,));
    let mut adapter = factory;
    let get = call!(
        list,
        3,
        fn(u32, *const Guid, *mut This) -> HResult,
        0,
        &iid::ADAPTER,
        &mut adapter
    );
    assert_eq!((get, adapter), (HResult::E_INVALIDARG, null_mut()));
    let by_luid = |out| {
        let luid = [0x0d9a_0000u32, 0];
        let luid = luid.as_ptr();
        call!(
            factory,
            4,
            fn(*const u32, *const Guid, *mut This) -> HResult,
            luid,
            &iid::ADAPTER,
            out
        )
    };
    assert_eq!(by_luid(&mut adapter), HResult::E_INVALIDARG);
    assert_eq!(by_luid(null_mut()), HResult::E_POINTER);
    for workload in 0..5 {
        let mut list = null_mut();
        let result = call!(
            factory,
            8,
            fn(u32, u32, u32, *const Guid, *mut This) -> HResult,
            workload,
            0,
            0,
            &iid::LIST,
            &mut list
        );
        if workload == 4 {
            assert_eq!((result, list), (HResult::E_INVALIDARG, null_mut()));
        } else {
            assert_eq!((result, call!(list, 4, fn() -> u32,)), (HResult::S_OK, 0));
            assert_eq!(release(list), 0);
        }
    }
    notifications(factory, list);
    out_of_memory(factory);

    let mut again = null_mut();
    let get = call!(
        list,
        6,
        fn(*const Guid, *mut This) -> HResult,
        &iid::UNKNOWN,
        &mut again
    );
    assert_eq!((get, again), (HResult::S_OK, factory));
    assert_eq!((release(again), release(list), release(factory)), (1, 0, 0));
}

unsafe extern "C" fn not_to_be_called(_: u32, _: This, _: *mut c_void) {
    std::process::abort();
}

/// Nothing comes and nothing goes.
fn notifications(factory: This, list: This) {
    for kind in 0..4 {
        assert!(call!(factory, 5, fn(u32) -> bool, kind));
    }
    assert!(!call!(factory, 5, fn(u32) -> bool, 4));
    let register = |object: This, kind: u32, callback: Option<Callback>, cookie: *mut u32| {
        call!(
            factory,
            6,
            fn(This, u32, Option<Callback>, *mut c_void, *mut u32) -> HResult,
            object,
            kind,
            callback,
            null_mut(),
            cookie
        )
    };
    let unregister = |cookie: u32| call!(factory, 7, fn(u32) -> HResult, cookie);
    let callback: Option<Callback> = Some(not_to_be_called);
    let mut cookie = 77;
    assert_eq!(register(list, 0, callback, null_mut()), HResult::E_POINTER);
    for (object, kind, callback, expected) in [
        (list, 0, None, HResult::E_POINTER),
        (list, 4, callback, HResult::DXGI_ERROR_INVALID_CALL),
        (null_mut(), 0, callback, HResult::E_INVALIDARG),
        (list, 1, callback, HResult::E_INVALIDARG),
        (factory, 0, callback, HResult::E_INVALIDARG),
    ] {
        cookie = 77;
        assert_eq!(register(object, kind, callback, &mut cookie), expected);
        assert_eq!(cookie, 0);
    }
    assert_eq!(unregister(0), HResult::E_INVALIDARG);
    assert_eq!(register(list, 0, callback, &mut cookie), HResult::S_OK);
    assert_ne!(cookie, 0);
    assert_eq!(unregister(cookie), HResult::S_OK);
    assert_eq!(unregister(cookie), HResult::E_INVALIDARG);
}

/// Allocates until it is told not to.
struct Failing;

thread_local! {
    /// How many more allocations of this thread succeed.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

// SAFETY: the system's allocator, or NULL.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = LEFT.get();
        if left == 0 {
            return null_mut();
        }
        LEFT.set(left.saturating_sub(usize::from(left != usize::MAX)));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

fn out_of_memory(factory: This) {
    let mut refused = 0;
    loop {
        let mut list = factory;
        LEFT.set(refused);
        let result = create_list(factory, &mut list);
        LEFT.set(usize::MAX);
        if result == HResult::S_OK {
            assert_eq!(release(list), 0);
            break;
        }
        assert_eq!((result, list), (HResult::E_OUTOFMEMORY, null_mut()));
        refused += 1;
    }
    assert!(refused > 0);
}
