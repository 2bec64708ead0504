// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of the program that run when its last local handle of a container is gone.
//!
//! The kernel counts, so it does not matter which handle is the last one, nor who made it. The
//! library asks only about the containers whose handles a call destroys, however many others there
//! are:
//!
//! 1. Before the call it asks what is behind each handle (QueryObject). If functions wait for the
//!    end of that container, it opens a weak reference, for the length of the call.
//! 2. After the call it asks through the weak reference how many handles are left. If two threads
//!    destroy the last two, the second one to ask finds none. The thread that takes the functions
//!    out of the table runs them.
//!
//! DestroyDevice does not say which containers it is about, so it asks about all (`sweep`).
//!
//! The lock is held over no call and no allocation, and with all signals blocked: destroying is
//! allowed in a signal handler.

mod lock;
mod sweep;
mod table;

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use opendxg::node::Process;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library;
use lock::Lock;
use table::{Cleanup, Table};

/// A function of the program. An exception that leaves it ends the process: it would have to pass
/// functions that C programs may call.
pub type Function = unsafe extern "C-unwind" fn(*mut c_void);

/// The functions of one process. A forked child has none, and must not touch the lock of its
/// parent, which another thread may have held.
struct Registry {
    process: Process,
    table: Lock<Table>,
    /// How many functions there are, to be read without the lock.
    len: AtomicUsize,
}

/// Null until the first function is set; never freed.
static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(null_mut());

/// Functions that a new registry has room for.
const FIRST_CAPACITY: u32 = 64;

impl Registry {
    /// The registry of this process, if it has one.
    fn own() -> Option<&'static Self> {
        // SAFETY: null or a leaked box.
        let registry = unsafe { REGISTRY.load(Ordering::Acquire).as_ref() };
        registry.filter(|registry| registry.process == Process::current())
    }

    /// The registry of this process, if there is a function in it.
    fn in_use() -> Option<&'static Self> {
        // ORDERING: who sets a function and destroys handles in another thread orders the two.
        Self::own().filter(|registry| registry.len.load(Ordering::Relaxed) != 0)
    }

    /// The registry of this process, made if there is none; `None` when there is no memory.
    fn make() -> Option<&'static Self> {
        loop {
            if let Some(registry) = Self::own() {
                return Some(registry);
            }
            let old = REGISTRY.load(Ordering::Acquire);
            let mut new = Vec::new();
            new.try_reserve_exact(1).ok()?;
            new.push(Self {
                process: Process::current(),
                table: Lock::new(Table::with_capacity(FIRST_CAPACITY)?),
                len: AtomicUsize::new(0),
            });
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            let place = new.as_mut_ptr();
            if REGISTRY
                .compare_exchange(old, place, success, failure)
                .is_ok()
            {
                // Never freed.
                new.leak();
            }
        }
    }

    /// Looks at the table, or changes it.
    fn with<T>(&self, run: impl FnOnce(&mut Table) -> T) -> T {
        self.table.with(|table| {
            let result = run(table);
            self.len.store(table.len(), Ordering::Relaxed);
            result
        })
    }

    /// Adds a function.
    fn insert(&self, id: u64, handle: u32, cleanup: Cleanup) -> Status {
        loop {
            let capacity =
                match self.with(|table| (table.insert(id, handle, cleanup), table.capacity())) {
                    (true, _) => return Status::SUCCESS,
                    (false, capacity) => capacity,
                };
            let larger = capacity.checked_mul(2).and_then(Table::with_capacity);
            let Some(larger) = larger else {
                return Status::NO_MEMORY;
            };
            // Dropped without the lock: the old table, or the new one if somebody else was first.
            let _left = self.with(|table| match table.capacity() == capacity {
                true => table.grow_into(larger),
                false => larger,
            });
        }
    }

    /// Runs the functions that are due, of a container or of all.
    fn run_due(&self, id: Option<u64>) {
        while let Some((cleanup, witness)) = self.with(|table| table.take_due(id)) {
            drop(witness);
            // SAFETY: promised when the function was set.
            unsafe { (cleanup.function)(cleanup.context) };
        }
    }

    /// The container is gone.
    fn end(&self, id: u64) {
        self.with(|table| table.set_due(id));
        self.run_due(Some(id));
    }
}

/// Sets a function for the container that a local handle belongs to.
///
/// # Safety
///
/// Any thread may call the function with the context.
pub(crate) unsafe fn set(handle: u32, function: Function, context: *mut c_void) -> Status {
    let (status, answer) = query(handle.into(), OPENDXG_HANDLE_LOCAL);
    if !status.is_success() {
        return status;
    }
    match Registry::make() {
        Some(registry) => registry.insert(answer.object_id, handle, Cleanup { function, context }),
        None => Status::NO_MEMORY,
    }
}

/// What is behind a handle.
fn query(handle: u64, handle_type: u32) -> (Status, opendxg_query_object) {
    let mut query = opendxg_query_object::zeroed();
    query.handle = handle;
    query.handle_type = handle_type;
    // SAFETY: the struct has no address.
    (unsafe { library::call(&mut query) }, query)
}

/// A weak reference to what is behind a local handle.
fn open_weak(handle: u32) -> Option<OwnedFd> {
    let mut open = opendxg_open_weak::zeroed();
    open.handle = handle.into();
    open.handle_type = OPENDXG_HANDLE_LOCAL;
    // SAFETY: the struct has no address.
    let status = unsafe { library::call(&mut open) };
    if !status.is_success() {
        return None;
    }
    // SAFETY: the driver made the descriptor for this call.
    Some(unsafe { OwnedFd::from_raw_fd(open.fd) })
}

/// Whether this process has no local handle of a container any more.
fn is_gone(weak: &OwnedFd) -> bool {
    let (status, answer) = query(weak.as_raw_fd() as u64, OPENDXG_HANDLE_WEAK);
    status.is_success() && (answer.alive == 0 || answer.local_references == 0)
}

/// A container that may end with a call.
struct Suspect {
    id: u64,
    handle: u32,
    weak: Option<OwnedFd>,
    /// Its handle was the only one.
    alone: bool,
}

/// Containers that are looked after in one call; with more of them, all are asked.
const MAX_SUSPECTS: usize = 64;

/// What may end with a call.
pub(crate) struct Suspects {
    registry: &'static Registry,
    list: [Option<Suspect>; MAX_SUSPECTS],
    len: usize,
    all: bool,
}

impl Suspects {
    /// Looks at what a call is about to destroy; `None` if it destroys nothing, or nobody waits
    /// for it.
    ///
    /// # Safety
    ///
    /// `arg` is NULL or a `T` with readable addresses.
    pub(crate) unsafe fn of<T: Argument>(arg: *const c_void) -> Option<Self> {
        if !destroys(T::NR) || arg.is_null() {
            return None;
        }
        let mut suspects = Self {
            registry: Registry::in_use()?,
            list: [const { None }; MAX_SUSPECTS],
            len: 0,
            all: false,
        };
        match T::NR {
            DXG_NR_DESTROYDEVICE => suspects.all = true,
            DXG_NR_DESTROYALLOCATION2 => {
                // SAFETY: the struct of this call.
                let arg = unsafe { arg.cast::<D3DKMT_DESTROYALLOCATION2>().read_unaligned() };
                suspects.add(arg.hResource);
                let list = arg.phAllocationList as usize as *const u32;
                let count = if list.is_null() {
                    0
                } else {
                    arg.AllocationCount
                };
                for index in 0..count as usize {
                    if suspects.all {
                        break;
                    }
                    // SAFETY: the caller promises so many readable handles.
                    suspects.add(unsafe { list.add(index).read_unaligned() });
                }
            }
            // SAFETY: the structs of the other two calls hold a handle and nothing else.
            _ => suspects.add(unsafe { arg.cast::<u32>().read_unaligned() }),
        }
        if suspects.all {
            sweep::before(suspects.registry);
        }
        Some(suspects)
    }

    /// A handle is about to be destroyed.
    fn add(&mut self, handle: u32) {
        if handle == 0 {
            return;
        }
        let (status, answer) = query(handle.into(), OPENDXG_HANDLE_LOCAL);
        let id = answer.object_id;
        let known = |suspect: &Suspect| suspect.id == id;
        if !status.is_success()
            || self.list[..self.len].iter().flatten().any(known)
            || !self.registry.with(|table| table.knows(id))
        {
            return;
        }
        match self.list.get_mut(self.len) {
            Some(place) => {
                *place = Some(Suspect {
                    id,
                    handle,
                    weak: open_weak(handle),
                    alone: answer.local_references == 1,
                });
                self.len += 1;
            }
            None => self.all = true,
        }
    }

    /// The call was made: runs the functions of what is gone.
    pub(crate) fn check(self, status: Status) {
        for suspect in self.list.into_iter().flatten() {
            let is_gone = match &suspect.weak {
                Some(weak) => is_gone(weak),
                // No descriptor was left.
                None => status.is_success() && suspect.alone,
            };
            if is_gone {
                drop(suspect.weak);
                self.registry.end(suspect.id);
            } else {
                keep(self.registry, suspect);
            }
        }
        if self.all {
            sweep::after(self.registry);
        }
    }
}

/// Other handles are left. If the one that was set is not among them, the weak reference stands
/// for them when a device is destroyed.
fn keep(registry: &Registry, suspect: Suspect) {
    let is_witness = registry.with(|table| {
        let witness = table.witness(suspect.id);
        witness.is_some_and(|witness| witness.handle == suspect.handle)
    });
    let is_alive = || {
        let (status, answer) = query(suspect.handle.into(), OPENDXG_HANDLE_LOCAL);
        status.is_success() && answer.object_id == suspect.id
    };
    if !is_witness || is_alive() {
        return;
    }
    let mut weak = suspect.weak;
    registry.with(|table| {
        if let Some(witness) = table.witness(suspect.id) {
            core::mem::swap(&mut witness.weak, &mut weak);
        }
    });
}

/// Whether a call can end local handles of objects.
pub(crate) const fn destroys(nr: u32) -> bool {
    matches!(
        nr,
        DXG_NR_DESTROYALLOCATION2
            | DXG_NR_DESTROYSYNCHRONIZATIONOBJECT
            | DXG_NR_DESTROYKEYEDMUTEX
            | DXG_NR_DESTROYDEVICE
    )
}

/// Runs all functions: the device was closed, and with it every local handle.
pub(crate) fn after_close() {
    if let Some(registry) = Registry::in_use() {
        registry.with(Table::set_all_due);
        registry.run_due(None);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    // Threads reach it through a pointer, for which the compiler asks nothing.
    static_assertions::assert_impl_all!(Registry: Send, Sync);
    static_assertions::assert_impl_all!(opendxg::node::Node: Send, Sync);

    static RUNS: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C-unwind" fn count(context: *mut c_void) {
        assert_eq!(context as usize, 7);
        RUNS.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn each_function_runs_once() {
        let registry = Registry::make().unwrap();
        let cleanup = Cleanup {
            function: count,
            context: 7 as *mut c_void,
        };
        // More than there is room for at first.
        for id in 0..100 {
            assert_eq!(registry.insert(id, 0x40, cleanup), Status::SUCCESS);
        }
        assert!(Registry::in_use().is_some());
        registry.end(99);
        registry.end(99);
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
        after_close();
        after_close();
        assert_eq!(RUNS.load(Ordering::Relaxed), 100);
        assert!(Registry::in_use().is_none());
    }
}
