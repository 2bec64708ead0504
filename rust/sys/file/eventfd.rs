// SPDX-License-Identifier: GPL-2.0

//! A counted reference to an eventfd: the event HANDLE of the D3DKMT calls.

use crate::logic::handle;
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        code,
        from_err_ptr, //
    }, //
};

/// Why a number is not an event (FEN-21).
pub(crate) enum BadEvent {
    /// No open descriptor.
    Closed,
    /// A descriptor of another kind.
    NotAnEvent,
}

/// Owns one reference to an eventfd context; closing the descriptor does not change it (FEN-20).
pub(crate) struct EventFd {
    ctx: NonNull<bindings::eventfd_ctx>,
}

// SAFETY: An eventfd context is reference counted and all its functions may be called from any
// thread.
unsafe impl Send for EventFd {}
// SAFETY: As above; signalling takes the context's own lock.
unsafe impl Sync for EventFd {}

impl EventFd {
    /// Takes a reference to the eventfd that the slot of an argument struct names: a descriptor of
    /// the calling process (FEN-21, CPU-3).
    ///
    /// Context: a system call.
    pub(crate) fn from_slot(slot: u64) -> core::result::Result<Self, BadEvent> {
        let fd = handle::nt_fd(slot).ok_or(BadEvent::Closed)?;
        // CAST: below 2^30.
        let fd = fd as i32;
        // SAFETY: Any number may be asked for; the result owns a reference or is an error.
        let ctx = from_err_ptr(unsafe { bindings::eventfd_ctx_fdget(fd) });

        match ctx {
            Ok(ctx) => NonNull::new(ctx)
                .map(|ctx| Self { ctx })
                .ok_or(BadEvent::Closed),
            Err(error) if error == code::EBADF => Err(BadEvent::Closed),
            Err(_) => Err(BadEvent::NotAnEvent),
        }
    }

    /// Takes a reference to the eventfd behind a file; `None` if it is another file.
    ///
    /// # Safety
    ///
    /// The file is open.
    pub(super) unsafe fn of_file(file: NonNull<bindings::file>) -> Option<Self> {
        // SAFETY: The file is open; the result owns a reference or is an error.
        let ctx = from_err_ptr(unsafe { bindings::eventfd_ctx_fileget(file.as_ptr()) });

        ctx.ok().and_then(NonNull::new).map(|ctx| Self { ctx })
    }

    /// Adds 1 to the counter and wakes its readers.
    ///
    /// Context: none of our locks held, because wake-up callbacks of epoll run inside (FEN-90).
    pub(crate) fn signal(&self) {
        // SAFETY: `ctx` is valid because we own a reference to it.
        unsafe { bindings::eventfd_signal_mask(self.ctx.as_ptr(), 0) }
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        // SAFETY: We own the reference and give it back once.
        unsafe { bindings::eventfd_ctx_put(self.ctx.as_ptr()) }
    }
}
