// SPDX-License-Identifier: MIT OR Apache-2.0
//! `IDXCoreAdapterList`.

use core::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::abi::{Luid, IID_LIST};
use super::adapter::{self, Adapter, Missing};
use super::attributes::Filter;
use super::com::{clear, Class, Guid, HResult, Object, Reference, Table, Unknown};
use super::factory;
use super::kmt::{look, Look, Present, Session};
use super::preference;
use super::world::world;

/// A list.
pub(super) struct AdapterList {
    filter: Filter,
    /// Its adapters, in the order of the last Sort.
    members: Mutex<Vec<Reference<Adapter>>>,
    /// LUIDs of adapters that were there and did not belong into it.
    others: Mutex<Vec<Luid>>,
    /// Never again false.
    stale: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push<T>(items: &mut Vec<T>, item: T) -> Result<(), HResult> {
    items.try_reserve(1).map_err(|_| HResult::E_OUTOFMEMORY)?;
    items.push(item);
    Ok(())
}

impl AdapterList {
    /// The adapters that are there now and that the filter admits.
    pub(super) fn of(filter: Filter) -> Result<Reference<Self>, HResult> {
        let (session, present) = look(Look::Finding)?;
        world().roster.see(&present);
        let (mut members, mut others) = (Vec::new(), Vec::new());
        for &luid in present.luids() {
            let Some(session) = &session else { break };
            match adapter::of(session, luid, &present) {
                Ok(adapter) if filter.admits(adapter.facts().attributes) => {
                    push(&mut members, adapter)?;
                }
                Ok(_) => push(&mut others, luid)?,
                Err(Missing::Gone) => {}
                Err(Missing::Because(refused)) => return Err(refused),
            }
        }
        if let Filter::Workload { .. } = filter {
            // Specialised hardware first, and software after hardware.
            let key = |it: &Reference<Adapter>| {
                (!it.facts().is_hardware, it.facts().attributes.generality())
            };
            preference::sort(&mut members, |one, other| key(one) < key(other));
        }
        Reference::new(Self {
            filter,
            members: Mutex::new(members),
            others: Mutex::new(others),
            stale: AtomicBool::new(false),
        })
    }

    /// Whether the list differs from one that would be made now.
    pub(super) fn is_stale(&self) -> bool {
        if self.stale.load(Ordering::Acquire) {
            return true;
        }
        // If the kernel cannot be asked, nothing says that the list is stale.
        let Ok((session, present)) = look(Look::InPassing) else {
            return false;
        };
        world().roster.see(&present);
        let stale = self.has_lost() || session.is_some_and(|it| self.has_missed(&it, &present));
        if stale && !self.stale.swap(true, Ordering::AcqRel) {
            world().notifier.wake();
        }
        stale
    }

    /// Whether an adapter of the list is gone.
    fn has_lost(&self) -> bool {
        lock(&self.members).iter().any(|adapter| adapter.is_gone())
    }

    /// Whether there is an adapter that should be in the list.
    fn has_missed(&self, session: &Session, present: &Present) -> bool {
        let is_new = |luid: &Luid| {
            let members = lock(&self.members);
            let known = members.iter().any(|adapter| adapter.facts().luid == *luid);
            !known && !lock(&self.others).contains(luid)
        };
        for &luid in present.luids() {
            if !is_new(&luid) {
                continue;
            }
            match adapter::of(session, luid, present) {
                Ok(adapter) if self.filter.admits(adapter.facts().attributes) => return true,
                // Without memory to remember it, it is asked again the next time.
                Ok(_) => drop(push(&mut lock(&self.others), luid)),
                Err(_) => {}
            }
        }
        false
    }

    /// The adapter at an index.
    fn adapter(&self, index: u32) -> Option<Reference<Adapter>> {
        lock(&self.members).get(index as usize).cloned()
    }
}

#[repr(C)]
pub(super) struct Functions {
    unknown: Unknown,
    get_adapter: unsafe extern "C" fn(*mut c_void, u32, *const Guid, *mut *mut c_void) -> HResult,
    get_adapter_count: unsafe extern "C" fn(*mut c_void) -> u32,
    is_stale: unsafe extern "C" fn(*mut c_void) -> bool,
    get_factory: unsafe extern "C" fn(*mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    sort: unsafe extern "C" fn(*mut c_void, u32, *const u32) -> HResult,
    is_adapter_preference_supported: unsafe extern "C" fn(*mut c_void, u32) -> bool,
}

static TABLE: Table<Functions> = Table::new(Functions {
    unknown: Unknown::of::<AdapterList>(),
    get_adapter,
    get_adapter_count,
    is_stale,
    get_factory: factory::get,
    sort,
    is_adapter_preference_supported,
});

impl Class for AdapterList {
    type Functions = Functions;
    const INTERFACES: &'static [Guid] = &[IID_LIST];

    fn table() -> &'static Table<Functions> {
        &TABLE
    }
}

/// The list behind the first argument.
///
/// # Safety
///
/// `this` is the address of one that lives as long as the result.
unsafe fn list<'a>(this: *mut c_void) -> &'a AdapterList {
    // SAFETY: the caller's promise.
    unsafe { Object::<AdapterList>::of(this) }
}

unsafe extern "C" fn get_adapter(
    this: *mut c_void,
    index: u32,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's pointer.
    if let Err(refused) = unsafe { clear(out) } {
        return refused;
    }
    // SAFETY: the caller's object.
    match unsafe { list(this) }.adapter(index) {
        None => HResult::E_INVALIDARG,
        Some(adapter) if !adapter.is_valid() => HResult::DXGI_ERROR_DEVICE_REMOVED,
        // SAFETY: the caller's pointers.
        Some(adapter) => unsafe { adapter.give(iid, out) },
    }
}

unsafe extern "C" fn get_adapter_count(this: *mut c_void) -> u32 {
    // SAFETY: the caller's object.
    lock(&unsafe { list(this) }.members).len() as u32
}

unsafe extern "C" fn is_stale(this: *mut c_void) -> bool {
    // SAFETY: the caller's object.
    unsafe { list(this) }.is_stale()
}

unsafe extern "C" fn sort(this: *mut c_void, count: u32, preferences: *const u32) -> HResult {
    if count == 0 || preferences.is_null() {
        return HResult::E_INVALIDARG;
    }
    let preferences = || {
        (0..count as usize).map(|index| {
            // SAFETY: not null; the caller promises `count` numbers.
            unsafe { preferences.add(index).read_unaligned() }
        })
    };
    // SAFETY: the caller's object.
    let mut members = lock(&unsafe { list(this) }.members);
    preference::sort(&mut members, |one, other| {
        preference::is_before(one.facts(), other.facts(), preferences())
    });
    HResult::S_OK
}

unsafe extern "C" fn is_adapter_preference_supported(_: *mut c_void, preference: u32) -> bool {
    preference::is_supported(preference)
}
