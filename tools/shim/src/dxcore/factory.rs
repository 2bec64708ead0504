// SPDX-License-Identifier: MIT OR Apache-2.0
//! `IDXCoreAdapterFactory` and `IDXCoreAdapterFactory1`. There is one factory, and it is always
//! there.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::abi::{Luid, IID_FACTORY, IID_FACTORY1};
use super::adapter::{self, Adapter, Missing};
use super::attributes::Filter;
use super::com::{clear, has_interface, Class, Guid, HResult, Object, Table, Unknown};
use super::kmt::{look, Look};
use super::list::AdapterList;
use super::notify::{self, Callback};
use super::world::{prepare_for_fork, world};

/// The factory.
pub(super) struct Factory;

#[repr(C)]
pub(super) struct Functions {
    unknown: Unknown,
    create_adapter_list: unsafe extern "C" fn(
        *mut c_void,
        u32,
        *const Guid,
        *const Guid,
        *mut *mut c_void,
    ) -> HResult,
    get_adapter_by_luid:
        unsafe extern "C" fn(*mut c_void, *const Luid, *const Guid, *mut *mut c_void) -> HResult,
    is_notification_type_supported: unsafe extern "C" fn(*mut c_void, u32) -> bool,
    register_event_notification: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        u32,
        Option<Callback>,
        *mut c_void,
        *mut u32,
    ) -> HResult,
    unregister_event_notification: unsafe extern "C" fn(*mut c_void, u32) -> HResult,
    create_adapter_list_by_workload:
        unsafe extern "C" fn(*mut c_void, u32, u32, u32, *const Guid, *mut *mut c_void) -> HResult,
}

static TABLE: Table<Functions> = Table::new(Functions {
    unknown: Unknown::of::<Factory>(),
    create_adapter_list,
    get_adapter_by_luid,
    is_notification_type_supported,
    register_event_notification,
    unregister_event_notification,
    create_adapter_list_by_workload,
});

static FACTORY: Object<Factory> = Object::unreferenced(&TABLE, Factory);

impl Class for Factory {
    type Functions = Functions;
    const INTERFACES: &'static [Guid] = &[IID_FACTORY, IID_FACTORY1];

    fn table() -> &'static Table<Functions> {
        &TABLE
    }

    unsafe fn finish(_: NonNull<Object<Self>>) {
        // It is a static.
    }
}

/// DXCoreCreateAdapterFactory.
///
/// # Safety
///
/// As for `QueryInterface`.
pub(super) unsafe fn create(iid: *const Guid, out: *mut *mut c_void) -> HResult {
    // SAFETY: the caller's pointer.
    if let Err(refused) = unsafe { clear(out) }.and_then(|()| prepare_for_fork()) {
        return refused;
    }
    // SAFETY: the caller's pointers.
    unsafe { FACTORY.reference().give(iid, out) }
}

/// GetFactory of lists and adapters.
pub(super) unsafe extern "C" fn get(
    _: *mut c_void,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's pointers.
    unsafe { FACTORY.reference().give(iid, out) }
}

/// Makes a list for a program.
///
/// # Safety
///
/// As for `QueryInterface`; `out` has been cleared.
unsafe fn give_list(filter: Filter, iid: *const Guid, out: *mut *mut c_void) -> HResult {
    // SAFETY: the caller's pointer.
    if !unsafe { has_interface::<AdapterList>(iid) } {
        return HResult::E_NOINTERFACE;
    }
    match AdapterList::of(filter) {
        // SAFETY: as above.
        Ok(list) => unsafe { list.give(iid, out) },
        Err(refused) => refused,
    }
}

unsafe extern "C" fn create_adapter_list(
    _: *mut c_void,
    count: u32,
    attributes: *const Guid,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's pointer.
    if let Err(refused) = unsafe { clear(out) } {
        return refused;
    }
    if count == 0 || attributes.is_null() {
        return HResult::E_INVALIDARG;
    }
    let attributes = (0..count as usize).map(|index| {
        // SAFETY: not null; the caller promises `count` GUIDs.
        unsafe { attributes.add(index).read_unaligned() }
    });
    // SAFETY: the caller's pointers.
    unsafe { give_list(Filter::all(attributes), iid, out) }
}

unsafe extern "C" fn create_adapter_list_by_workload(
    _: *mut c_void,
    workload: u32,
    runtimes: u32,
    hardware: u32,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's pointer.
    if let Err(refused) = unsafe { clear(out) } {
        return refused;
    }
    match Filter::workload(workload, runtimes, hardware) {
        // SAFETY: the caller's pointers.
        Ok(filter) => unsafe { give_list(filter, iid, out) },
        Err(refused) => refused,
    }
}

unsafe extern "C" fn get_adapter_by_luid(
    _: *mut c_void,
    luid: *const Luid,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's pointer.
    if let Err(refused) = unsafe { clear(out) } {
        return refused;
    }
    if luid.is_null() {
        return HResult::E_INVALIDARG;
    }
    // SAFETY: the caller's pointer.
    if !unsafe { has_interface::<Adapter>(iid) } {
        return HResult::E_NOINTERFACE;
    }
    // SAFETY: not null; the caller promises a LUID.
    let luid = unsafe { luid.read_unaligned() };
    let (session, present) = match look(Look::Finding) {
        Ok(found) => found,
        Err(unknown) => return unknown.into(),
    };
    world().roster.see(&present);
    let found = match &session {
        Some(session) if present.has(luid) => adapter::of(session, luid, &present),
        _ => Err(Missing::Gone),
    };
    match found {
        // SAFETY: the caller's pointers.
        Ok(adapter) => unsafe { adapter.give(iid, out) },
        Err(Missing::Because(refused)) => refused,
        Err(Missing::Gone) if world().roster.knew(luid) => HResult::DXGI_ERROR_DEVICE_REMOVED,
        Err(Missing::Gone) => HResult::E_INVALIDARG,
    }
}

unsafe extern "C" fn is_notification_type_supported(_: *mut c_void, kind: u32) -> bool {
    notify::Kind::of(kind).is_some()
}

unsafe extern "C" fn register_event_notification(
    _: *mut c_void,
    object: *mut c_void,
    kind: u32,
    callback: Option<Callback>,
    context: *mut c_void,
    cookie: *mut u32,
) -> HResult {
    if cookie.is_null() {
        return HResult::E_POINTER;
    }
    // SAFETY: not null; the caller promises a variable.
    unsafe { cookie.write(0) };
    let Some(callback) = callback else {
        return HResult::E_POINTER;
    };
    let Some(kind) = notify::Kind::of(kind) else {
        return HResult::DXGI_ERROR_INVALID_CALL;
    };
    // SAFETY: the caller's object.
    let Some(subject) = (unsafe { notify::Subject::of(object, kind) }) else {
        return HResult::E_INVALIDARG;
    };
    let registered = world()
        .notifier
        .register(subject, kind, callback, context, |number| {
            // SAFETY: as above.
            unsafe { cookie.write(number) };
        });
    registered.err().unwrap_or(HResult::S_OK)
}

unsafe extern "C" fn unregister_event_notification(_: *mut c_void, cookie: u32) -> HResult {
    let unregistered = world().notifier.unregister(cookie);
    unregistered.err().unwrap_or(HResult::S_OK)
}
