// SPDX-License-Identifier: GPL-2.0

//! Notification that the counter of an eventfd is not 0, without reading it.
//!
//! An entry of this module waits in the queue of the eventfd, where polls wait, too. The context of
//! the eventfd keeps the queue. It does not keep the file: the end of the last descriptor is told.

use super::eventfd::{
    BadEvent,
    EventFd, //
};
use crate::{
    logic::handle,
    sys::{
        alloc::pin_box,
        ffi, //
    }, //
};
use core::{
    mem::offset_of,
    ptr::NonNull, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    error::{
        code,
        from_err_ptr, //
    },
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

/// What happens to an eventfd.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// Its counter has gone up.
    Signalled,
    /// Its last descriptor is gone.
    Closed,
}

/// Is notified of what happens to an eventfd.
pub(crate) trait EventWatcher: Send + Sync + Sized + 'static {
    /// This has happened. May be called more than once.
    ///
    /// Context: interrupts are off, and locks of the kernel are held. Touches atomics and queues
    /// work, nothing else. `this` is not the last reference.
    fn happened(this: ArcBorrow<'_, Self>, what: Happened);
}

/// The file of an eventfd, in a system call.
///
/// INVARIANT: a reference that this owns.
pub(crate) struct EventFile {
    file: NonNull<bindings::file>,
}

impl EventFile {
    /// The eventfd that the slot of an argument struct names: a descriptor of the calling process
    /// (FEN-21).
    ///
    /// Context: a system call; to be dropped in it.
    pub(crate) fn from_slot(slot: u64) -> core::result::Result<Self, BadEvent> {
        let fd = handle::nt_fd(slot).ok_or(BadEvent::Closed)?;
        // CAST: below 2^30.
        let fd = fd as i32;
        // SAFETY: Any number may be asked for; the result owns a reference or is an error.
        let file = from_err_ptr(unsafe { bindings::eventfd_fget(fd) });

        match file {
            Ok(file) => NonNull::new(file)
                .map(|file| Self { file })
                .ok_or(BadEvent::Closed),
            Err(error) if error == code::EBADF => Err(BadEvent::Closed),
            Err(_) => Err(BadEvent::NotAnEvent),
        }
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        // SAFETY: We own the reference and give it back once.
        unsafe { bindings::fput(self.file.as_ptr()) }
    }
}

/// What the wait queue of an eventfd points to.
#[pin_data]
struct Entry<T: EventWatcher> {
    #[pin]
    entry: Opaque<bindings::wait_queue_entry>,
    /// INVARIANT: points to a `T` in an `Arc` that [`EventWatch`] owns a reference of, while the
    /// entry is queued.
    watcher: *const T,
}

/// A watch on an eventfd. Dropping it ends it: after that the watcher is not called.
///
/// Context of the drop: interrupts are on.
pub(crate) struct EventWatch<T: EventWatcher> {
    /// INVARIANT: queued on `head`.
    entry: Pin<KBox<Entry<T>>>,
    /// INVARIANT: the wait queue of `_event`, which keeps it.
    head: NonNull<bindings::wait_queue_head>,
    _event: EventFd,
    _watcher: Arc<T>,
}

// SAFETY: The entry is touched under the lock of the wait queue only, by any thread; the watcher
// may be used anywhere.
unsafe impl<T: EventWatcher> Send for EventWatch<T> {}
// SAFETY: As above; there is nothing to call by reference.
unsafe impl<T: EventWatcher> Sync for EventWatch<T> {}

impl<T: EventWatcher> EventWatch<T> {
    /// From the return on, `watcher` is notified. True if the counter is not 0 already; then it may
    /// have been notified as well.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn new(file: &EventFile, watcher: &Arc<T>) -> Result<(Self, bool), AllocError> {
        let entry = pin_box(
            pin_init!(Entry {
                entry: Opaque::uninit(),
                watcher: Arc::as_ptr(watcher),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // SAFETY: The file is that of an eventfd, and open.
        let event = unsafe { EventFd::of_file(file.file) }.ok_or(AllocError)?;
        let mut events = 0;
        // SAFETY: The file is that of an eventfd, and open. The entry is pinned and not queued; it
        // stays until the watch is dropped, which takes it off.
        let head = unsafe {
            ffi::dxg_event_watch(
                file.file.as_ptr(),
                entry.entry.get(),
                Some(wake::<T>),
                &raw mut events,
            )
        };
        // Every eventfd has a queue. What is not queued needs no watch.
        let head = NonNull::new(head).ok_or(AllocError)?;

        Ok((
            Self {
                entry,
                head,
                _event: event,
                _watcher: watcher.clone(),
            },
            events & bindings::POLLIN != 0,
        ))
    }
}

impl<T: EventWatcher> Drop for EventWatch<T> {
    fn drop(&mut self) {
        // SAFETY: Queued by the invariant, on a queue that the eventfd keeps. A function that runs
        // has the lock that this takes.
        unsafe { ffi::dxg_event_unwatch(self.head.as_ptr(), self.entry.entry.get()) }
    }
}

/// # Safety
///
/// Called by the kernel as the function of a queued [`Entry`] of `T`, under the lock of the wait
/// queue.
unsafe extern "C" fn wake<T: EventWatcher>(
    entry: *mut bindings::wait_queue_entry,
    _mode: c_uint,
    _flags: c_int,
    key: *mut c_void,
) -> c_int {
    // CAST: the key of a wake-up by a file are its events, which have 32 bits.
    let events = key.addr() as u32;
    // SAFETY: The entry is that of an `Entry<T>`, which stays as long as it is queued, and so does
    // the reference to the watcher.
    let watcher = unsafe {
        let this = entry
            .byte_sub(offset_of!(Entry<T>, entry))
            .cast::<Entry<T>>();

        ArcBorrow::from_raw((*this).watcher)
    };

    if events & bindings::POLLIN != 0 {
        T::happened(watcher, Happened::Signalled);
    }
    if events & bindings::POLLHUP != 0 {
        T::happened(watcher, Happened::Closed);
    }
    0
}
