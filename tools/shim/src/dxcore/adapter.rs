// SPDX-License-Identifier: MIT OR Apache-2.0
//! `IDXCoreAdapter` and `IDXCoreAdapter1`.

use core::ffi::c_void;
use core::ptr::{write_bytes, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opendxg::Status;

use super::abi::{Luid, IID_ADAPTER, IID_ADAPTER1};
use super::com::{self, Class, Guid, HResult, Object, Reference, Table, Unknown};
use super::factory;
use super::facts::Facts;
use super::kmt::{look, Look, OpenAdapter, Present, Session};
use super::property::{self, Input};
use super::state;
use super::world::world;

/// An adapter.
pub(super) struct Adapter {
    facts: Facts,
    /// Never again false.
    gone: AtomicBool,
    /// The end of the last look that found it.
    seen: AtomicU64,
}

/// Why an adapter that was found a moment ago is not to be had.
pub(super) enum Missing {
    /// It is gone.
    Gone,
    /// Something else.
    Because(HResult),
}

impl From<HResult> for Missing {
    fn from(result: HResult) -> Self {
        Self::Because(result)
    }
}

impl Adapter {
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether the adapter was found to be gone.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// A look that ended then has found it.
    pub(super) fn seen(&self, ended: u64) {
        self.seen.fetch_max(ended, Ordering::AcqRel);
    }

    /// A look that began then has not found it.
    pub(super) fn missed(&self, begun: u64) {
        if self.seen.load(Ordering::Acquire) < begun {
            self.set_gone();
        }
    }

    fn set_gone(&self) {
        if !self.gone.swap(true, Ordering::AcqRel) {
            world().notifier.wake();
        }
    }

    /// Whether the adapter is still there.
    pub(super) fn is_valid(&self) -> bool {
        match self.open(|_| Ok(())) {
            Err(HResult::DXGI_ERROR_DEVICE_REMOVED) => false,
            // Also when the kernel could not be asked: nothing says that it is gone.
            _ => !self.is_gone(),
        }
    }

    /// Opens the adapter for `with`.
    pub(super) fn open<T>(
        &self,
        with: impl FnOnce(&OpenAdapter<'_>) -> Result<T, HResult>,
    ) -> Result<T, HResult> {
        if self.is_gone() {
            return Err(HResult::DXGI_ERROR_DEVICE_REMOVED);
        }
        let (session, present) = look(Look::InPassing)?;
        world().roster.see(&present);
        if self.is_gone() {
            return Err(HResult::DXGI_ERROR_DEVICE_REMOVED);
        }
        let session = session.ok_or(HResult::E_FAIL)?;
        let adapter = session
            .open(self.facts.luid)
            .map_err(|status| match status {
                Status::NO_MEMORY => HResult::E_OUTOFMEMORY,
                _ => HResult::E_FAIL,
            })?;
        with(&adapter)
    }
}

/// The object of an adapter that a look has found.
pub(super) fn of(
    session: &Session,
    luid: Luid,
    present: &Present,
) -> Result<Reference<Adapter>, Missing> {
    world().roster.hold(luid, || {
        let adapter = session.open(luid).map_err(|status| match status {
            Status::NO_MEMORY => HResult::E_OUTOFMEMORY.into(),
            _ => Missing::Gone,
        })?;
        let adapter = Adapter {
            facts: Facts::of(&adapter)?,
            gone: AtomicBool::new(false),
            seen: AtomicU64::new(present.ended()),
        };
        Ok(Reference::new(adapter)?)
    })
}

#[repr(C)]
pub(super) struct Functions {
    unknown: Unknown,
    is_valid: unsafe extern "C" fn(*mut c_void) -> bool,
    is_attribute_supported: unsafe extern "C" fn(*mut c_void, *const Guid) -> bool,
    is_property_supported: unsafe extern "C" fn(*mut c_void, u32) -> bool,
    get_property: unsafe extern "C" fn(*mut c_void, u32, usize, *mut u8) -> HResult,
    get_property_size: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> HResult,
    is_query_state_supported: unsafe extern "C" fn(*mut c_void, u32) -> bool,
    query_state:
        unsafe extern "C" fn(*mut c_void, u32, usize, *const u8, usize, *mut u8) -> HResult,
    is_set_state_supported: unsafe extern "C" fn(*mut c_void, u32) -> bool,
    set_state:
        unsafe extern "C" fn(*mut c_void, u32, usize, *const u8, usize, *const u8) -> HResult,
    get_factory: unsafe extern "C" fn(*mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    get_property_with_input:
        unsafe extern "C" fn(*mut c_void, u32, usize, *const u8, usize, *mut u8) -> HResult,
}

static TABLE: Table<Functions> = Table::new(Functions {
    unknown: Unknown::of::<Adapter>(),
    is_valid,
    is_attribute_supported,
    is_property_supported,
    get_property,
    get_property_size,
    is_query_state_supported,
    query_state,
    is_set_state_supported,
    set_state,
    get_factory: factory::get,
    get_property_with_input,
});

impl Class for Adapter {
    type Functions = Functions;
    const INTERFACES: &'static [Guid] = &[IID_ADAPTER, IID_ADAPTER1];

    fn table() -> &'static Table<Functions> {
        &TABLE
    }

    unsafe fn finish(object: NonNull<Object<Self>>) {
        world().roster.forget(object);
        // SAFETY: the caller's promise; nobody finds it any more.
        unsafe { com::free(object) };
    }
}

/// The adapter behind the first argument.
///
/// # Safety
///
/// `this` is the address of one that lives as long as the result.
unsafe fn adapter<'a>(this: *mut c_void) -> &'a Adapter {
    // SAFETY: the caller's promise.
    unsafe { Object::<Adapter>::of(this) }
}

unsafe extern "C" fn is_valid(this: *mut c_void) -> bool {
    // SAFETY: the caller's object.
    unsafe { adapter(this) }.is_valid()
}

unsafe extern "C" fn is_attribute_supported(this: *mut c_void, attribute: *const Guid) -> bool {
    if attribute.is_null() {
        return false;
    }
    // SAFETY: not null; the caller promises a GUID.
    let attribute = unsafe { attribute.read_unaligned() };
    // SAFETY: the caller's object.
    unsafe { adapter(this) }.facts.attributes.has(&attribute)
}

unsafe extern "C" fn is_property_supported(this: *mut c_void, property: u32) -> bool {
    // SAFETY: the caller's object.
    property::is_supported(unsafe { adapter(this) }.facts(), property)
}

unsafe extern "C" fn get_property_size(
    this: *mut c_void,
    property: u32,
    size: *mut usize,
) -> HResult {
    // SAFETY: the caller's object.
    match property::size(unsafe { adapter(this) }.facts(), property) {
        Err(refused) => refused,
        Ok(_) if size.is_null() => HResult::E_POINTER,
        Ok(bytes) => {
            // SAFETY: not null; the caller promises a variable.
            unsafe { size.write(bytes) };
            HResult::S_OK
        }
    }
}

unsafe extern "C" fn get_property(
    this: *mut c_void,
    property: u32,
    size: usize,
    buffer: *mut u8,
) -> HResult {
    // SAFETY: the caller's object.
    match property::get(unsafe { adapter(this) }.facts(), property) {
        // SAFETY: the caller's buffer.
        Ok(value) => unsafe { fill(value.bytes(), size, buffer) },
        Err(refused) => refused,
    }
}

unsafe extern "C" fn get_property_with_input(
    this: *mut c_void,
    property: u32,
    input_size: usize,
    input: *const u8,
    size: usize,
    buffer: *mut u8,
) -> HResult {
    // SAFETY: the caller's object.
    let facts = unsafe { adapter(this) }.facts();
    // SAFETY: the caller's input.
    let answer = unsafe { Input::read(facts, property, input, input_size) }
        // SAFETY: the caller promises that the name has the characters that the input says.
        .and_then(|input| unsafe { property::get_with(facts, property, &input) });
    match answer {
        Ok(answer) => {
            // SAFETY: the caller's buffer.
            let filled = unsafe { fill(answer.value().bytes(), size, buffer) };
            if filled == HResult::S_OK {
                // SAFETY: the caller's name, whose length was checked.
                unsafe { answer.put_name() };
            }
            filled
        }
        Err(refused) => refused,
    }
}

/// Fills the buffer of a program: clears it and puts the bytes at its start.
///
/// # Safety
///
/// `buffer` is NULL or has `size` bytes.
pub(super) unsafe fn fill(bytes: &[u8], size: usize, buffer: *mut u8) -> HResult {
    if buffer.is_null() {
        return HResult::E_POINTER;
    }
    if size < bytes.len() {
        return HResult::E_INVALIDARG;
    }
    // SAFETY: not null; the caller promises the size, and the bytes fit.
    unsafe {
        write_bytes(buffer, 0, size);
        buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
    HResult::S_OK
}

unsafe extern "C" fn is_query_state_supported(this: *mut c_void, state: u32) -> bool {
    // SAFETY: the caller's object.
    state::is_query_supported(unsafe { adapter(this) }, state)
}

unsafe extern "C" fn query_state(
    this: *mut c_void,
    state: u32,
    input_size: usize,
    input: *const u8,
    size: usize,
    buffer: *mut u8,
) -> HResult {
    // SAFETY: the caller's object and buffers.
    match unsafe { state::query(adapter(this), state, (input_size, input), (size, buffer)) } {
        // SAFETY: as above.
        Ok(answer) => unsafe { fill(answer.bytes(), size, buffer) },
        Err(refused) => refused,
    }
}

unsafe extern "C" fn is_set_state_supported(this: *mut c_void, state: u32) -> bool {
    // SAFETY: the caller's object.
    state::is_set_supported(unsafe { adapter(this) }, state)
}

unsafe extern "C" fn set_state(
    this: *mut c_void,
    state: u32,
    input_size: usize,
    input: *const u8,
    data_size: usize,
    data: *const u8,
) -> HResult {
    // SAFETY: the caller's object and buffers.
    unsafe { state::set(adapter(this), state, (input_size, input), (data_size, data)) }
        .err()
        .unwrap_or(HResult::S_OK)
}
