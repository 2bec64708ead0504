// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of the program that run when its last local handle of a container is gone.
//!
//! The kernel counts: after every call that can end handles the library asks, through a weak reference, how
//! many this process still has. So it does not matter which handle is the last one, nor who made it.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library;

/// A function of the program.
pub type Function = unsafe extern "C" fn(*mut c_void);

/// One function to run.
struct Cleanup {
    weak: OwnedFd,
    function: Function,
    context: *mut c_void,
}

// SAFETY: the program lets any thread of its call the function with the context.
unsafe impl Send for Cleanup {}

impl Cleanup {
    /// Whether this process has no local handle of the container any more.
    fn is_due(&self) -> bool {
        let mut query = opendxg_query_object::zeroed();
        query.handle = self.weak.as_raw_fd() as u64;
        query.handle_type = OPENDXG_HANDLE_WEAK;
        // SAFETY: the struct has no address.
        let status = unsafe { library::call(&mut query) };
        status.is_success() && (query.alive == 0 || query.local_references == 0)
    }

    fn run(self) {
        // SAFETY: promised when the function was set.
        unsafe { (self.function)(self.context) };
    }
}

/// The functions of one process. A forked child has none, and must not touch the lock of its parent, which
/// another thread may have held.
struct Registry {
    process: u32,
    entries: Mutex<Vec<Cleanup>>,
}

/// Null until the first function is set; never freed.
static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(null_mut());

/// The registry of this process, if it has one.
fn registry() -> Option<&'static Registry> {
    // SAFETY: null or a leaked box.
    let registry = unsafe { REGISTRY.load(Ordering::Acquire).as_ref() };
    registry.filter(|registry| registry.process == std::process::id())
}

/// The registry of this process, made if there is none.
fn make_registry() -> &'static Registry {
    if let Some(registry) = registry() {
        return registry;
    }
    let old = REGISTRY.load(Ordering::Acquire);
    let new = Box::into_raw(Box::new(Registry {
        process: std::process::id(),
        entries: Mutex::default(),
    }));
    match REGISTRY.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a box that is never freed from here on.
        Ok(_) => unsafe { &*new },
        Err(_) => {
            // SAFETY: another thread was first; nobody has seen this one.
            drop(unsafe { Box::from_raw(new) });
            make_registry()
        }
    }
}

/// Sets a function for the container that a local handle belongs to.
///
/// # Safety
///
/// Any thread may call the function with the context.
pub(crate) unsafe fn set(handle: u32, function: Function, context: *mut c_void) -> Status {
    let mut open = opendxg_open_weak::zeroed();
    open.handle = handle.into();
    open.handle_type = OPENDXG_HANDLE_LOCAL;
    // SAFETY: the struct has no address.
    let status = unsafe { library::call(&mut open) };
    if !status.is_success() {
        return status;
    }
    let cleanup = Cleanup {
        // SAFETY: the driver made the descriptor for this call.
        weak: unsafe { OwnedFd::from_raw_fd(open.fd) },
        function,
        context,
    };
    let entries = &make_registry().entries;
    entries
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(cleanup);
    status
}

/// Runs the functions whose containers have no local handle any more.
pub(crate) fn after_destroy() {
    run_where(Cleanup::is_due);
}

/// Runs all functions: the device was closed, and with it every local handle.
pub(crate) fn after_close() {
    run_where(|_| true);
}

/// Takes out what is due, so that nobody else runs it, and runs it without the lock.
fn run_where(is_due: impl Fn(&Cleanup) -> bool) {
    let Some(registry) = registry() else {
        return;
    };
    let entries = registry.entries.lock();
    let mut entries = entries.unwrap_or_else(PoisonError::into_inner);
    let (due, rest): (Vec<_>, Vec<_>) = entries.drain(..).partition(is_due);
    *entries = rest;
    drop(entries);
    due.into_iter().for_each(Cleanup::run);
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;
    use std::os::fd::AsFd;

    use super::*;

    static RUNS: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn count(context: *mut c_void) {
        assert_eq!(context as usize, 7);
        RUNS.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn each_function_runs_once() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let cleanup = || Cleanup {
            weak: file.as_fd().try_clone_to_owned().unwrap(),
            function: count,
            context: 7 as *mut c_void,
        };
        assert!(!cleanup().is_due());
        make_registry()
            .entries
            .lock()
            .unwrap()
            .extend([cleanup(), cleanup()]);
        after_destroy();
        assert_eq!(RUNS.load(Ordering::Relaxed), 0);
        after_close();
        after_close();
        assert_eq!(RUNS.load(Ordering::Relaxed), 2);
    }
}
