// SPDX-License-Identifier: GPL-2.0

//! Sleeping until a word changes: the kernel's own sleep and wake-up, no polling, no ticks.

use super::ffi;
use crate::platform::Word32;
use kernel::{
    bindings,
    prelude::*,
    sync::aref::ARef,
    task::Task, //
};

/// Interrupted by a signal; the system call restarts or ends with EINTR as the handler says.
pub(crate) struct Interrupted;

/// A reference to the calling task, to be woken by [`wake`].
pub(crate) fn me() -> ARef<Task> {
    ARef::from(&**kernel::current!())
}

/// Sleeps until `word` is not 0 or a signal is pending. The caller looks at the word again, which
/// wins over the signal.
///
/// Context: a system call, no locks held.
pub(crate) fn until_nonzero(word: &Word32) -> Result<(), Interrupted> {
    // SAFETY: An `Atomic<u32>` has the representation of an `atomic_t` and `word` outlives the
    // call.
    let ret = unsafe { ffi::dxg_sleep_until(word.as_ptr().cast::<bindings::atomic_t>()) };

    if ret == 0 {
        Ok(())
    } else {
        Err(Interrupted)
    }
}

/// Wakes a task that sleeps in [`until_nonzero`]. Its word must have been stored before.
pub(crate) fn wake(task: &Task) {
    task.wake_up();
}
