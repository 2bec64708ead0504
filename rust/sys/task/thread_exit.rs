// SPDX-License-Identifier: GPL-2.0

//! Hearing of threads that are gone: they exit, or they turn into another program.
//!
//! The kernel tells nobody but those who trace it. Hence two probes, on the tracepoints
//! `sched_process_exit` and `sched_process_exec`. They are not exported by symbol and are found by
//! name. Registering patches kernel text and unregistering waits for all who may run a probe, so that
//! both are slow; while a probe is registered, each exit and exec of the system calls it.

use super::thread::Thread;
use crate::sys::ffi;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    error::to_result,
    ffi::c_void,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::ForeignOwnable, //
};

/// Hears of threads that are gone.
pub(crate) trait Listener: Send + Sync + Sized + 'static {
    /// A thread, and perhaps a second one whose place it took, makes no more calls.
    ///
    /// Context: the end of that thread, or of its exec. Must not sleep, allocate or free much: it is
    /// part of every exit in the system.
    fn gone(this: ArcBorrow<'_, Self>, gone: &Gone);
}

/// Which threads are gone.
pub(crate) struct Gone {
    number: u32,
    thread: *const c_void,
}

impl Gone {
    /// All of them have this number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether a thread with this number is gone.
    pub(crate) fn includes(&self, thread: &Thread) -> bool {
        // The second look is for a thread that called exec and is the first thread of its process
        // from now on: its old identity is nobody's.
        thread.as_ptr() == self.thread || thread.is_gone()
    }
}

/// A tracepoint of the kernel, which stays for ever.
#[derive(Clone, Copy)]
struct Tracepoint(NonNull<bindings::tracepoint>);

impl Tracepoint {
    fn find(name: &CStr) -> Result<Self> {
        // SAFETY: Reads the string during the call.
        NonNull::new(unsafe { ffi::dxg_tracepoint(name.as_char_ptr()) })
            .map(Self)
            .ok_or(ENOENT)
    }
}

/// One registered probe.
struct Probe {
    tracepoint: Tracepoint,
    probe: *mut c_void,
    data: *mut c_void,
}

impl Probe {
    /// # Safety
    ///
    /// `probe` takes what the tracepoint gives, and `data` stays valid until the result is dropped
    /// and [`quiesce`] has returned.
    unsafe fn new(name: &CStr, probe: *mut c_void, data: *mut c_void) -> Result<Self> {
        let tracepoint = Tracepoint::find(name)?;

        // SAFETY: The tracepoint is valid, the rest is promised by the caller.
        to_result(unsafe {
            bindings::tracepoint_probe_register(tracepoint.0.as_ptr(), probe, data)
        })?;
        Ok(Self {
            tracepoint,
            probe,
            data,
        })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: Registered in `new` with the same arguments. It fails only for a probe that is not
        // registered.
        let _done = unsafe {
            bindings::tracepoint_probe_unregister(self.tracepoint.0.as_ptr(), self.probe, self.data)
        };
    }
}

/// Waits until no unregistered probe runs any more.
fn quiesce() {
    // SAFETY: May be called wherever sleeping is allowed.
    unsafe { ffi::dxg_tracepoint_quiesce() }
}

/// Both probes. Dropping it unregisters them and waits until neither runs any more.
///
/// Context: making and dropping may sleep, dropping for long.
pub(crate) struct Probes<T: Listener> {
    probes: Option<(Probe, Probe)>,
    data: *mut c_void,
    _listener: PhantomData<Arc<T>>,
}

// SAFETY: The pointers are only handed to the kernel, and the listener may be used anywhere.
unsafe impl<T: Listener> Send for Probes<T> {}

impl<T: Listener> Probes<T> {
    /// From the return of this on, `listener` hears of every thread that goes.
    pub(crate) fn new(listener: Arc<T>) -> Result<Self> {
        let mut registered = Self {
            probes: None,
            data: listener.into_foreign(),
            _listener: PhantomData,
        };
        let on_exit: unsafe extern "C" fn(*mut c_void, *mut bindings::task_struct, bool) =
            on_exit::<T>;
        let on_exec: unsafe extern "C" fn(
            *mut c_void,
            *mut bindings::task_struct,
            bindings::pid_t,
            *mut bindings::linux_binprm,
        ) = on_exec::<T>;
        // SAFETY: The functions have the signatures of the tracepoints, and `data` is a reference
        // that `drop` gives back after both are unregistered and quiet.
        let probes = unsafe {
            (
                Probe::new(
                    c"sched_process_exit",
                    on_exit as *mut c_void,
                    registered.data,
                )?,
                Probe::new(
                    c"sched_process_exec",
                    on_exec as *mut c_void,
                    registered.data,
                )?,
            )
        };

        registered.probes = Some(probes);
        Ok(registered)
    }

    /// Unregisters the probes, which may still run somewhere.
    pub(crate) fn unregister(&mut self) {
        self.probes = None;
    }
}

impl<T: Listener> Drop for Probes<T> {
    fn drop(&mut self) {
        self.unregister();
        quiesce();
        // SAFETY: Came from `into_foreign` in `new`, and no probe uses it any more.
        drop(unsafe { Arc::<T>::from_foreign(self.data) });
    }
}

/// # Safety
///
/// Called by the kernel as a probe of `sched_process_exit`, with the data of [`Probes`].
unsafe extern "C" fn on_exit<T: Listener>(
    data: *mut c_void,
    task: *mut bindings::task_struct,
    _group_dead: bool,
) {
    // SAFETY: The task is the current one, on its way out; its identity is still attached.
    let gone = unsafe {
        Gone {
            number: ffi::dxg_task_number(task),
            thread: ffi::dxg_task_thread(task),
        }
    };

    // SAFETY: `data` is a reference that is kept until the probe is quiet.
    T::gone(unsafe { Arc::<T>::borrow(data) }, &gone);
}

/// # Safety
///
/// Called by the kernel as a probe of `sched_process_exec`, with the data of [`Probes`].
unsafe extern "C" fn on_exec<T: Listener>(
    data: *mut c_void,
    task: *mut bindings::task_struct,
    old_number: bindings::pid_t,
    _program: *mut bindings::linux_binprm,
) {
    let gone = Gone {
        // Numbers of threads are positive.
        number: u32::try_from(old_number).unwrap_or(0),
        // SAFETY: The task is the current one.
        thread: unsafe { ffi::dxg_task_thread(task) },
    };

    // SAFETY: `data` is a reference that is kept until the probe is quiet.
    T::gone(unsafe { Arc::<T>::borrow(data) }, &gone);
}
