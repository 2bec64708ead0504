// SPDX-License-Identifier: GPL-2.0

//! Fences of the kernel (`struct dma_fence`): what all drivers wait for (FEN-160 to FEN-165).
//!
//! A fence signals once, perhaps with an error, and within a bounded time. [`own`] has fences of
//! this module, which keep that promise. A [`Callback`] hears of the signal of any fence.

pub(crate) mod own;

use super::{
    alloc::pin_box,
    ffi, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    container_of,
    prelude::*,
    types::Opaque, //
};

/// A reference to a fence of any driver.
pub(crate) struct DmaFence(NonNull<bindings::dma_fence>);

// SAFETY: Fences are reference counted, and all their functions may be called from any thread.
unsafe impl Send for DmaFence {}
// SAFETY: As above.
unsafe impl Sync for DmaFence {}

impl DmaFence {
    /// # Safety
    ///
    /// The caller has a reference, which this takes over.
    pub(in crate::sys) unsafe fn from_raw(fence: NonNull<bindings::dma_fence>) -> Self {
        Self(fence)
    }

    pub(in crate::sys) fn as_ptr(&self) -> *mut bindings::dma_fence {
        self.0.as_ptr()
    }

    /// Whether it has signalled, with or without an error, as far as its driver has told.
    ///
    /// Context: any.
    pub(crate) fn has_signalled(&self) -> bool {
        // SAFETY: We own a reference.
        unsafe { ffi::dxg_dma_fence_has_signalled(self.as_ptr()) }
    }

    /// The numbers that name it: its context, and its place in that.
    pub(crate) fn name(&self) -> (u64, u64) {
        // SAFETY: We own a reference; neither changes.
        unsafe { ((*self.as_ptr()).context, (*self.as_ptr()).seqno) }
    }
}

impl Clone for DmaFence {
    fn clone(&self) -> Self {
        // SAFETY: We own a reference, and the new one is for the clone.
        unsafe { ffi::dxg_dma_fence_get(self.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for DmaFence {
    /// Context: any.
    fn drop(&mut self) {
        // SAFETY: We own the reference and give it back once.
        unsafe { ffi::dxg_dma_fence_put(self.as_ptr()) }
    }
}

/// Hears of the signal of a fence.
pub(crate) trait Notified: Send + Sync + Unpin + 'static {
    /// The fence has signalled, with or without an error.
    ///
    /// Context: interrupts are off, and the lock of the fence is held. Touches atomics and queues
    /// work, nothing else.
    fn signalled(&self);
}

/// What the fence points to.
#[pin_data]
struct Entry<T: Notified> {
    #[pin]
    entry: Opaque<bindings::dma_fence_cb>,
    notified: T,
}

/// Notifies `T` of the signal of a fence. After the drop nothing is called any more.
///
/// LOCK: making and dropping it take the lock of the fence, which is inside all locks of the
/// module.
pub(crate) struct Callback<T: Notified> {
    /// INVARIANT: was handed to `dma_fence_add_callback()` of `fence`.
    entry: Pin<KBox<Entry<T>>>,
    fence: DmaFence,
}

// SAFETY: The entry is touched under the lock of the fence only, by any thread.
unsafe impl<T: Notified> Send for Callback<T> {}
// SAFETY: As above.
unsafe impl<T: Notified> Sync for Callback<T> {}

impl<T: Notified> Callback<T> {
    /// From the return on, `notified` hears of the signal of `fence`, unless that has signalled
    /// already; [`Callback::has_signalled`] says so.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(fence: DmaFence, notified: T) -> Result<Self, AllocError> {
        let entry = pin_box(
            pin_init!(Entry {
                entry <- Opaque::zeroed(),
                notified,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        // SAFETY: The entry is pinned, and stays until the drop has taken it off; we own a
        // reference to the fence. What this returns says whether the fence has signalled, which it
        // says itself; either way the list head in the entry is initialised.
        let _signalled = unsafe {
            bindings::dma_fence_add_callback(
                fence.as_ptr(),
                entry.entry.get(),
                Some(called::<T>), //
            )
        };

        // INVARIANT: Done just now.
        Ok(Self { entry, fence })
    }

    /// Whether the fence has signalled.
    ///
    /// Context: any.
    pub(crate) fn has_signalled(&self) -> bool {
        self.fence.has_signalled()
    }
}

impl<T: Notified> Drop for Callback<T> {
    /// Context: any in which what `T` has may be dropped.
    fn drop(&mut self) {
        // SAFETY: By the type invariant. A function that runs holds the lock that this takes, so
        // that it is over when this returns.
        unsafe {
            bindings::dma_fence_remove_callback(self.fence.as_ptr(), self.entry.entry.get());
        }
    }
}

/// # Safety
///
/// Called by the kernel as the function of an [`Entry`] of `T`, under the lock of its fence.
unsafe extern "C" fn called<T: Notified>(
    _fence: *mut bindings::dma_fence,
    entry: *mut bindings::dma_fence_cb,
) {
    // SAFETY: The entry is part of an `Entry<T>`, which stays until its callback is dropped; that
    // waits for the lock.
    let this = unsafe { &*container_of!(Opaque::cast_from(entry), Entry<T>, entry) };

    this.notified.signalled();
}

/// Until this is dropped, the thread is on the way to the signal of a fence: it must not wait for
/// memory, or for a lock that somebody holds who does (FEN-164). Kernels with lockdep check that.
pub(crate) struct Signalling {
    cookie: bool,
    /// It stays on its thread.
    _thread: PhantomData<*mut ()>,
}

impl Signalling {
    /// The way begins.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: Ended by the drop, on the same thread.
            cookie: unsafe { ffi::dxg_signalling_begin() },
            _thread: PhantomData,
        }
    }
}

impl Drop for Signalling {
    fn drop(&mut self) {
        // SAFETY: Begun by this thread.
        unsafe { ffi::dxg_signalling_end(self.cookie) }
    }
}
