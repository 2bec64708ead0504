// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lock that a signal handler may take.

use core::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// A mutex whose holder is not interrupted, so that a handler never waits for the thread that it
/// has interrupted. Held for a few accesses of memory: no allocation, no call of the driver.
pub(super) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(super) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        let blocked = Blocked::new();
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = run(&mut guard);
        // In this order: a handler must not find the lock taken by its own thread.
        drop(guard);
        drop(blocked);
        result
    }
}

/// All signals are blocked in this thread until it is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both are written before they are read: `sigfillset` cannot fail, nor can
        // `pthread_sigmask` with a valid command.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the mask that was read before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, core::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: i32) -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: the mask is only read.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, core::ptr::null(), now.as_mut_ptr());
            libc::sigismember(now.as_ptr(), signal) == 1
        }
    }

    /// A handler runs as soon as signals are not blocked any more, and takes the lock.
    #[test]
    fn a_handler_finds_the_lock_free() {
        static LOCK: Lock<u32> = Lock(Mutex::new(0));
        extern "C" fn handler(_: i32) {
            LOCK.with(|count| *count += 1);
        }
        // SAFETY: the handler only takes the lock.
        unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
        for _ in 0..100 {
            // SAFETY: sends a signal that has a handler to this thread, which has it blocked.
            LOCK.with(|_| unsafe { libc::raise(libc::SIGUSR1) });
        }
        assert_eq!(LOCK.with(|count| *count), 100);
    }

    #[test]
    fn the_holder_is_not_interrupted() {
        let lock = Lock::new(());
        assert!(!is_blocked(libc::SIGALRM));
        assert!(lock.with(|()| is_blocked(libc::SIGALRM)));
        assert!(!is_blocked(libc::SIGALRM));
    }
}
