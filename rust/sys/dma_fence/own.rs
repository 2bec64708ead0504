// SPDX-License-Identifier: GPL-2.0

//! Fences of this module.
//!
//! Each is a fence of its own: it is in no order with others. It has an owner, which others find
//! by it, and which is told when nobody has the fence any more. The module stays until then.
//!
//! The kernel frees the memory of a fence after a grace period of RCU, because its readers may
//! look at a fence that goes.

use super::DmaFence;
use crate::{
    compat,
    sys::ffi, //
};
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::{
        ForeignOwnable,
        Opaque, //
    }, //
};

/// What a fence of this module is for.
pub(crate) trait Owner: Send + Sync + Sized + 'static {
    /// Nobody has the fence any more.
    ///
    /// Context: any; interrupts may be off. Touches atomics and queues work, nothing else; `this`
    /// may be the last reference.
    fn released(this: Arc<Self>);
}

/// The memory of a fence. The fence is first, because the kernel frees it by that address.
#[repr(C)]
struct Block {
    fence: Opaque<bindings::dma_fence>,
    /// From `into_foreign` of the `Arc` of the owner.
    owner: *mut c_void,
}

/// The operations of fences of `T`.
struct Table<T>(PhantomData<T>);

impl<T: Owner> Table<T> {
    /// With a `release`, so that a fence keeps its operations when it has signalled, and is still
    /// known by them.
    const OPERATIONS: bindings::dma_fence_ops = bindings::dma_fence_ops {
        get_driver_name: Some(Self::driver),
        get_timeline_name: Some(Self::timeline),
        release: Some(Self::release),
        // SAFETY: All members are nullable functions.
        ..unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    };

    /// The one address of the table.
    #[inline(never)]
    fn address() -> *const bindings::dma_fence_ops {
        &Self::OPERATIONS
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_fence_ops::get_driver_name`.
    unsafe extern "C" fn driver(_fence: *mut bindings::dma_fence) -> *const c_char {
        c"opendxg".as_char_ptr()
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_fence_ops::get_timeline_name`.
    unsafe extern "C" fn timeline(_fence: *mut bindings::dma_fence) -> *const c_char {
        c"point".as_char_ptr()
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_fence_ops::release`, as a reader of RCU.
    unsafe extern "C" fn release(fence: *mut bindings::dma_fence) {
        // SAFETY: A fence with this table is the beginning of a `Block`, whose owner nobody else
        // takes. The kernel frees the memory that it was made in.
        let owner = unsafe {
            let owner = (*fence.cast::<Block>()).owner;

            bindings::dma_fence_free(fence);
            Arc::<T>::from_foreign(owner)
        };

        T::released(owner);
        // SAFETY: Taken when the fence was made. The code of the module stays until this function
        // has returned, because its end waits for the readers of RCU.
        unsafe { bindings::module_put(compat::module()) };
    }
}

/// Why a fence signals although what it stands for was not done.
#[derive(Clone, Copy)]
pub(crate) enum Failure {
    /// It will not be done: -ECANCELED.
    Cancelled,
    /// What would have done it has failed: -EIO.
    Lost,
}

impl Failure {
    fn errno(self) -> c_int {
        // CAST: errnos are small.
        match self {
            Self::Cancelled => -(bindings::ECANCELED as c_int),
            Self::Lost => -(bindings::EIO as c_int),
        }
    }
}

/// A new fence, which will be signalled exactly once: by a drop as cancelled.
pub(crate) struct Unsignalled(DmaFence);

impl Unsignalled {
    /// A fence of `owner`.
    ///
    /// Context: a system call on a file of the module.
    pub(crate) fn new<T: Owner>(owner: Arc<T>) -> Result<Self, AllocError> {
        let block = KBox::<Block>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let block = KBox::into_raw(block).cast::<Block>();
        let fence = block.cast::<bindings::dma_fence>();

        // SAFETY: The memory is ours. It has the layout of a `Block`, so that the fence is at its
        // beginning, and `release` frees it. The table lives as long as the module, which the file
        // of the call keeps until there is a reference for the fence. A new context has one fence.
        // Without a lock of ours the fence has its own.
        unsafe {
            bindings::__module_get(compat::module());
            (*block).owner = owner.into_foreign();
            bindings::dma_fence_init64(
                fence,
                Table::<T>::address(),
                ptr::null_mut(),
                bindings::dma_fence_context_alloc(1),
                1,
            );

            // The first reference is this one.
            Ok(Self(DmaFence::from_raw(NonNull::new_unchecked(fence))))
        }
    }

    /// What others wait for.
    pub(crate) fn fence(&self) -> &DmaFence {
        &self.0
    }

    /// Signals it, as failed or not.
    ///
    /// Context: may sleep, no locks held: what others do when it has signalled runs here, with
    /// interrupts off. Allocates nothing.
    pub(crate) fn signal(self, result: Result<(), Failure>) {
        self.end(result);
    }

    fn end(&self, result: Result<(), Failure>) {
        if self.0.has_signalled() {
            return;
        }
        // SAFETY: A fence of this module, which nobody else signals.
        unsafe {
            ffi::dxg_dma_fence_signal(self.0.as_ptr(), result.err().map_or(0, Failure::errno));
        }
    }
}

impl Drop for Unsignalled {
    fn drop(&mut self) {
        self.end(Err(Failure::Cancelled));
    }
}

impl DmaFence {
    /// Its owner, if it is a fence of this module that is for a `T`.
    pub(crate) fn owner<T: Owner>(&self) -> Option<Arc<T>> {
        // SAFETY: We own a reference. The operations of fences of other drivers may go at any time,
        // but are only read once and compared; those of ours stay.
        unsafe {
            let operations = (&raw const (*self.as_ptr()).ops).read_volatile();

            if !ptr::eq(operations, Table::<T>::address()) {
                return None;
            }

            let owner: ArcBorrow<'_, T> = Arc::<T>::borrow((*self.as_ptr().cast::<Block>()).owner);

            Some(owner.into())
        }
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_dma_fence)]
mod tests {
    use super::{
        super::{
            Callback,
            Notified, //
        },
        *, //
    };
    use kernel::sync::atomic::{
        Atomic,
        Relaxed, //
    };

    /// How often it was told.
    struct Count(Atomic<u32>);

    impl Owner for Count {
        fn released(this: Arc<Self>) {
            this.0.add(1, Relaxed);
        }
    }

    /// Another owner.
    struct Other;

    impl Owner for Other {
        fn released(_this: Arc<Self>) {}
    }

    struct CountSignals(Arc<Count>);

    impl Notified for CountSignals {
        fn signalled(&self) {
            self.0 .0.add(1, Relaxed);
        }
    }

    fn count() -> Result<Arc<Count>> {
        Ok(Arc::new(Count(Atomic::new(0)), GFP_KERNEL)?)
    }

    fn status(fence: &DmaFence) -> c_int {
        // SAFETY: It is referenced.
        unsafe { bindings::dma_fence_get_status(fence.as_ptr()) }
    }

    /// FEN-162: it signals once, as its owner says, and what is dropped signals as cancelled.
    #[test]
    fn a_fence_signals_once() -> Result {
        for (result, expected) in [
            (Some(Ok(())), 1),
            (Some(Err(Failure::Lost)), EIO.to_errno()),
            (Some(Err(Failure::Cancelled)), Failure::Cancelled.errno()),
            (None, Failure::Cancelled.errno()),
        ] {
            let own = Unsignalled::new(count()?)?;
            let fence = own.fence().clone();

            assert!(!fence.has_signalled());
            assert_eq!(status(&fence), 0);
            match result {
                Some(result) => own.signal(result),
                None => drop(own),
            }
            assert!(fence.has_signalled());
            assert_eq!(status(&fence), expected);
        }
        Ok(())
    }

    /// FEN-165: who was notified, and who has given up before.
    #[test]
    fn a_callback_is_called_once_or_dropped() -> Result {
        let own = Unsignalled::new(Arc::new(Other, GFP_KERNEL)?)?;
        let fence = own.fence().clone();
        let (kept, dropped, late) = (count()?, count()?, count()?);
        let first = Callback::new(fence.clone(), CountSignals(kept.clone()))?;

        drop(Callback::new(fence.clone(), CountSignals(dropped.clone()))?);
        assert!(!first.has_signalled());
        own.signal(Ok(()));
        assert!(first.has_signalled());

        let last = Callback::new(fence, CountSignals(late.clone()))?;

        assert!(last.has_signalled());
        drop((first, last));
        assert_eq!(kept.0.load(Relaxed), 1);
        assert_eq!(dropped.0.load(Relaxed), 0);
        assert_eq!(late.0.load(Relaxed), 0);
        Ok(())
    }

    /// FEN-166: the owner is found by its own kind, also when the fence has signalled, and is told
    /// when nobody has the fence.
    #[test]
    fn a_fence_knows_its_owner() -> Result {
        let owner = count()?;
        let own = Unsignalled::new(owner.clone())?;
        let fence = own.fence().clone();

        assert!(fence.owner::<Other>().is_none());
        own.signal(Ok(()));

        let found = fence.owner::<Count>().ok_or(ENOENT)?;

        assert!(Arc::ptr_eq(&found, &owner));
        assert_eq!(owner.0.load(Relaxed), 0);
        drop(fence);
        assert_eq!(owner.0.load(Relaxed), 1);
        Ok(())
    }
}
