// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the objects of a process share: the adapters that somebody holds, and the registered
//! callbacks.
//!
//! A forked child starts anew: a lock that another thread of the parent held would stay locked in
//! it, and the thread of the callbacks does not exist. Objects of the parent can still be asked
//! for their properties, and released.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::com::HResult;
use super::notify::Notifier;
use super::roster::Roster;

/// What is shared.
pub(super) struct World {
    pub(super) roster: Roster,
    pub(super) notifier: Notifier,
}

struct Shared(UnsafeCell<World>);

// SAFETY: both parts lock themselves. They are replaced only in a forked child, which has one
// thread.
unsafe impl Sync for Shared {}

static WORLD: Shared = Shared(UnsafeCell::new(World {
    roster: Roster::new(),
    notifier: Notifier::new(),
}));

/// What the process shares.
pub(super) fn world() -> &'static World {
    // SAFETY: replaced only where no other thread is, see `begin_anew`.
    unsafe { &*WORLD.0.get() }
}

extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// A lock that can be taken before a fork and released after it, in the parent and in the child.
struct ForkLock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: made to be used by several threads.
unsafe impl Sync for ForkLock {}

/// Held while the thread of the callbacks looks at the device.
static BACKGROUND: ForkLock = ForkLock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

extern "C" fn hold_background() {
    // SAFETY: a static that was initialised; a lock of this kind cannot fail.
    unsafe { libc::pthread_mutex_lock(BACKGROUND.0.get()) };
}

extern "C" fn release_background() {
    // SAFETY: held by this thread, in a child by the one that forked.
    unsafe { libc::pthread_mutex_unlock(BACKGROUND.0.get()) };
}

/// What must not happen at the same time: looks of the thread of the callbacks, the program's
/// closing the device, and a fork, whose child would keep a device that is open for a moment only.
pub(crate) fn undisturbed<T>(what: impl FnOnce() -> T) -> T {
    hold_background();
    let result = what();
    release_background();
    result
}

/// Runs in a forked child.
extern "C" fn begin_anew() {
    release_background();
    let new = World {
        roster: Roster::new(),
        notifier: Notifier::new(),
    };
    // SAFETY: the only thread of the child. What was there belongs to the parent, and is not
    // dropped: its locks may be held.
    unsafe { WORLD.0.get().write(new) };
}

/// Makes forked children begin anew. Called before there can be anything to forget.
pub(super) fn prepare_for_fork() -> Result<(), HResult> {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    if !PREPARED.swap(true, Ordering::Relaxed) {
        // SAFETY: functions that live as long as the process: the library is never unloaded.
        let refused = unsafe {
            pthread_atfork(
                Some(hold_background),
                Some(release_background),
                Some(begin_anew),
            )
        };
        if refused != 0 {
            PREPARED.store(false, Ordering::Relaxed);
            return Err(HResult::E_OUTOFMEMORY);
        }
    }
    Ok(())
}
