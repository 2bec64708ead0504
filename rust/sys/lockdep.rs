// SPDX-License-Identifier: GPL-2.0

//! What lockdep is told about threads that wait for each other without a lock: in the gates of KMDs
//! (`ddi/gate.rs`). Kernels without lockdep do nothing here.

use core::marker::PhantomData;

#[cfg(CONFIG_LOCKDEP)]
use super::ffi;

/// Until this is dropped, the thread holds the lock that all gates are to lockdep.
pub(crate) struct GateHeld(PhantomData<*mut ()>);

/// The thread is inside of a gate, for which it may have waited, or could not have.
pub(crate) fn gate_entered(may_wait: bool) -> GateHeld {
    #[cfg(CONFIG_LOCKDEP)]
    // SAFETY: `GateHeld` stays on this thread, which releases the lock when it is dropped.
    unsafe {
        ffi::dxg_gate_enter(may_wait)
    };
    #[cfg(not(CONFIG_LOCKDEP))]
    let _ = may_wait;
    GateHeld(PhantomData)
}

/// The thread waits for those inside of a gate, and lets nobody in.
pub(crate) fn gate_closed() -> GateHeld {
    #[cfg(CONFIG_LOCKDEP)]
    // SAFETY: As above.
    unsafe {
        ffi::dxg_gate_close()
    };
    GateHeld(PhantomData)
}

impl Drop for GateHeld {
    fn drop(&mut self) {
        #[cfg(CONFIG_LOCKDEP)]
        // SAFETY: Taken by this thread when this was made.
        unsafe {
            ffi::dxg_gate_leave()
        };
    }
}

/// Whether the thread is inside of a gate or has closed one, as lockdep sees it.
#[cfg(all(CONFIG_KUNIT = "y", CONFIG_LOCKDEP))]
pub(crate) fn is_gate_held() -> bool {
    // SAFETY: Looks at the current task only.
    unsafe { ffi::dxg_gate_is_held() }
}
