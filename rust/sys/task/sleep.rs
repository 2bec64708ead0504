// SPDX-License-Identifier: GPL-2.0

//! Sleeping until a word changes: the kernel's own sleep and wake-up, no polling, no ticks.

use crate::logic::timeout::Deadline;
use crate::sys::ffi;
use core::ptr;
use kernel::{
    bindings,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::Atomic, //
    },
    task::Task, //
};

/// Why a sleep ended before the word changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Early {
    /// The deadline has passed.
    TimedOut,
    /// A signal; the system call restarts or ends with EINTR as the handler says.
    Interrupted,
}

/// Which signals end a sleep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signals {
    /// All that are not blocked.
    All,
    /// Those that kill; handlers of other signals run later.
    Fatal,
}

/// A reference to the calling task, to be woken by [`wake`].
pub(crate) fn me() -> ARef<Task> {
    ARef::from(&**kernel::current!())
}

/// The number of a thread in the initial namespace of process ids.
pub(crate) fn number(task: &Task) -> u32 {
    u32::try_from(task.pid()).unwrap_or(0)
}

/// Sleeps until `word` is not 0, until the deadline, or until a signal is pending. The caller looks
/// at the word again; it wins over the other two. Timers have high resolution and are never early.
///
/// Context: a system call, no locks held.
pub(crate) fn until_nonzero(
    word: &Atomic<u32>,
    deadline: Deadline,
    signals: Signals,
) -> Result<(), Early> {
    let (at, realtime) = match deadline {
        Deadline::Now => return Err(Early::TimedOut),
        Deadline::Never => (None, false),
        Deadline::Monotonic(at) => (Some(at), false),
        Deadline::Realtime(at) => (Some(at), true),
    };
    let at = at.as_ref().map_or(ptr::null(), ptr::from_ref);
    let killable = signals == Signals::Fatal;
    // SAFETY: An `Atomic<u32>` has the representation of an `atomic_t`; it and the deadline outlive
    // the call.
    let ret = unsafe {
        ffi::dxg_sleep_until(
            word.as_ptr().cast::<bindings::atomic_t>(),
            at,
            realtime,
            killable,
        )
    };

    match ret {
        0 => Ok(()),
        ret if ret == ETIMEDOUT.to_errno() => Err(Early::TimedOut),
        _ => Err(Early::Interrupted),
    }
}

/// Whether the interrupted call of the calling thread will be restarted, as far as it can be known
/// now: no handler runs, or the first one that does has SA_RESTART.
pub(crate) fn call_restarts() -> bool {
    // SAFETY: Looks at the current task only.
    unsafe { ffi::dxg_call_restarts() }
}

/// The instruction and stack pointers of the calling thread in user space. A restarted call has the
/// same ones.
pub(crate) fn call_site() -> [u64; 2] {
    let mut site = [0; 2];

    // SAFETY: Valid for the write; looks at the current task only.
    unsafe { ffi::dxg_call_site(site.as_mut_ptr()) };
    site
}

/// Whether the calling thread is being killed.
pub(crate) fn is_killed() -> bool {
    // SAFETY: Looks at the current task only.
    unsafe { ffi::dxg_is_killed() }
}

/// Wakes a task that sleeps in [`until_nonzero`]. Its word must have been stored before.
pub(crate) fn wake(task: &Task) {
    task.wake_up();
}

/// Whether the caller may sleep here, for checks; `None` if the kernel does not keep count.
pub(crate) fn may_sleep() -> Option<bool> {
    // SAFETY: Looks at the current task only.
    cfg!(CONFIG_PREEMPT_RCU).then(|| unsafe { ffi::dxg_may_sleep() })
}

/// Whether the caller holds a spinlock, or interrupts are off, for checks. RCU readers do not
/// count. `None` if the kernel does not keep count.
pub(crate) fn holds_spinlock() -> Option<bool> {
    // SAFETY: Looks at the current task only.
    cfg!(CONFIG_PREEMPT_RCU).then(|| unsafe { ffi::dxg_holds_spinlock() })
}
