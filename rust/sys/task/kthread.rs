// SPDX-License-Identifier: GPL-2.0

//! Threads of the kernel that belong to an object: they run until the object ends them, and are
//! gone when that returns. They freeze with the processes.

use crate::sys::{
    ffi,
    wait_queue::WaitQueue, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc, //
    }, //
};

/// Bits of [`Wakeup::word`].
const RUNG: u32 = 1 << 0;
const STOPPED: u32 = 1 << 1;

/// What one thread sleeps on until somebody has something for it.
#[pin_data]
pub(crate) struct Wakeup {
    word: Atomic<u32>,
    #[pin]
    queue: WaitQueue,
}

impl Wakeup {
    /// One that nobody has rung.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            word: Atomic::new(0),
            queue <- WaitQueue::new(),
        })
    }

    /// There is something for the thread. What it is was stored before.
    ///
    /// Context: does not sleep; spinlocks may be held.
    pub(crate) fn ring(&self) {
        self.set(RUNG);
    }

    /// Whether there is something for the thread, or it has to end: [`Wakeup::wait`] would return
    /// at once.
    pub(crate) fn is_rung(&self) -> bool {
        self.word.load(Acquire) != 0
    }

    /// Whether the thread has to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.word.load(Acquire) & STOPPED != 0
    }

    /// Returns when there is something for the thread since the last call, when it has to end, or
    /// at the deadline, in nanoseconds of CLOCK_MONOTONIC; perhaps a little later, and perhaps for
    /// no reason. False if the thread has to end.
    ///
    /// Context: the thread, no locks held.
    pub(crate) fn wait(&self, deadline_ns: Option<u64>) -> bool {
        let deadline = deadline_ns.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        let at = deadline
            .as_ref()
            .map_or(core::ptr::null(), core::ptr::from_ref);

        // SAFETY: The queue is pinned and initialised, an `Atomic<u32>` has the representation of
        // an `atomic_t`, and all outlive the call.
        unsafe { ffi::dxg_thread_wait(self.queue.as_ptr(), self.word.as_ptr().cast(), at) };
        self.take(RUNG);
        !self.is_stopped()
    }

    fn set(&self, bit: u32) {
        let mut old = self.word.load(Acquire);

        // ORDERING: full, so that the thread sees what was stored before.
        while let Err(now) = self.word.cmpxchg(old, old | bit, Full) {
            old = now;
        }
        self.queue.wake();
    }

    fn take(&self, bit: u32) {
        let mut old = self.word.load(Acquire);

        while let Err(now) = self.word.cmpxchg(old, old & !bit, Full) {
            old = now;
        }
    }
}

/// What a thread does.
pub(crate) trait Run: Send + Sync + 'static {
    /// What it sleeps on.
    fn wakeup(&self) -> &Wakeup;

    /// Does it, until [`Wakeup::wait`] or [`Wakeup::is_stopped`] says that it has to end. Calls
    /// [`breathe`] between the steps of what takes long.
    ///
    /// Context: may sleep, no locks held.
    fn run(&self);
}

/// A thread that runs. Dropping it ends it, and returns when it is gone.
///
/// Context of the drop: may sleep, no locks held that the thread takes.
///
/// # Invariants
///
/// `task` has a reference. Its data is `raw`, from `Arc::into_raw` of `body`.
pub(crate) struct Thread<T: Run> {
    task: NonNull<bindings::task_struct>,
    body: Arc<T>,
    raw: *const T,
}

// SAFETY: Threads may be ended by any thread.
unsafe impl<T: Run> Send for Thread<T> {}
// SAFETY: As above; there is nothing to call by a shared reference.
unsafe impl<T: Run> Sync for Thread<T> {}

impl<T: Run> Thread<T> {
    /// Starts a thread of this name. May sleep.
    pub(crate) fn start(name: &CStr, body: Arc<T>) -> Result<Self> {
        let raw = Arc::into_raw(body.clone());
        // SAFETY: `main` takes the reference behind `raw` over, with this type; the name is copied.
        let task = unsafe {
            ffi::dxg_kthread_start(
                Some(Self::main),
                raw.cast_mut().cast::<c_void>(),
                name.as_char_ptr(),
            )
        };

        match from_err_ptr(task).and_then(|task| NonNull::new(task).ok_or(ENOMEM)) {
            // INVARIANT: The C half took a reference.
            Ok(task) => Ok(Self { task, body, raw }),
            Err(error) => {
                // SAFETY: There is no thread that could take it over.
                drop(unsafe { Arc::from_raw(raw) });
                Err(error)
            }
        }
    }

    /// # Safety
    ///
    /// `data` is from `Arc::into_raw` of an `Arc<T>`, whose reference this takes over.
    unsafe extern "C" fn main(data: *mut c_void) -> c_int {
        // SAFETY: By the requirement.
        let body = unsafe { Arc::from_raw(data.cast_const().cast::<T>()) };

        // SAFETY: This is a new thread of the kernel.
        unsafe { ffi::dxg_kthread_begin() };
        body.run();
        0
    }
}

impl<T: Run> Drop for Thread<T> {
    fn drop(&mut self) {
        self.body.wakeup().set(STOPPED);
        // SAFETY: By the type invariant; this gives the reference back.
        let ret = unsafe { ffi::dxg_kthread_stop(self.task.as_ptr()) };

        if ret != 0 {
            // It was ended before it began, so nobody has taken the reference over.
            // SAFETY: By the type invariant.
            drop(unsafe { Arc::from_raw(self.raw) });
        }
    }
}

/// Lets others run, and freezes if that is wanted. Called by a thread between its steps.
///
/// Context: a [`Thread`], no locks held.
pub(crate) fn breathe() {
    // SAFETY: May be called by threads of the kernel wherever sleeping is allowed.
    unsafe { ffi::dxg_kthread_breathe() }
}

/// Whether no other thread wants the processor that this one is on. A hint for threads that look
/// for something again and again before they sleep, as of now.
///
/// Context: any.
pub(crate) fn is_alone() -> bool {
    // SAFETY: May be called anywhere.
    unsafe { ffi::dxg_is_alone() }
}
