// SPDX-License-Identifier: GPL-2.0

//! A shrinker: what the kernel asks to free memory when that is short, for the machine or for a
//! memory cgroup.
//!
//! It has some lists, and in each one list for each cgroup. An item belongs to the cgroup of the
//! task that has made it, and keeps its owner while it is in its list.

use crate::sys::ffi;
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    alloc::AllocError,
    ffi::{
        c_ulong,
        c_void, //
    },
    prelude::*,
    sync::Arc,
    types::NotThreadSafe, //
};

/// Who frees memory.
pub(crate) trait Reclaim: Send + Sync + 'static {
    /// The owner of an item.
    type Owner: Send + Sync + 'static;

    /// How many lists it has.
    const LISTS: usize;

    /// Looks at so many items at most, and says how many pages are free now. The last reference to
    /// an owner may not be dropped here.
    ///
    /// Context: may sleep, but waits neither for memory nor for a lock that is held while memory is
    /// waited for. The caller may hold any lock that is.
    fn scan(&self, pass: &Pass<'_, Self::Owner>, most: usize) -> usize;
}

/// What may be freed for one cgroup, or for those that have none.
pub(crate) struct Pass<'a, O> {
    raw: NonNull<ffi::dxg_pass>,
    lists: usize,
    _owners: PhantomData<&'a O>,
    _here: NotThreadSafe,
}

impl<O> Pass<'_, O> {
    /// How many items a list has.
    pub(crate) fn count(&self, list: usize) -> usize {
        if list >= self.lists {
            return 0;
        }
        // SAFETY: The pass is valid as long as `self`, and there is this list.
        unsafe { ffi::dxg_pass_count(self.raw.as_ptr(), list as u32) }
    }

    /// The owner of the first item of a list, which goes to its end.
    pub(crate) fn next(&self, list: usize) -> Option<Arc<O>> {
        if list >= self.lists {
            return None;
        }
        // SAFETY: As above.
        let owner = unsafe { ffi::dxg_pass_next(self.raw.as_ptr(), list as u32) };

        // SAFETY: An item was given a reference to an owner of this type, and the helper has made
        // another one by `keep`, which is this one.
        NonNull::new(owner).map(|owner| unsafe { Arc::from_raw(owner.as_ptr().cast::<O>()) })
    }
}

/// Makes one more reference of that of an item.
///
/// # Safety
///
/// `owner` must come from [`Arc::into_raw`] of this type, and that reference must be there during
/// the call.
unsafe extern "C" fn keep<O>(owner: *mut c_void) {
    // SAFETY: By the requirement. The reference is not given up here.
    let owner = ManuallyDrop::new(unsafe { Arc::from_raw(owner.cast_const().cast::<O>()) });

    // For `Pass::next`.
    core::mem::forget(Arc::clone(&owner));
}

/// # Safety
///
/// `this` must be the [`Reclaim`] of a [`Shrinker`] that is there during the call, and `pass` one
/// of its passes.
unsafe extern "C" fn scan<R: Reclaim>(
    this: *mut c_void,
    pass: *mut ffi::dxg_pass,
    most: c_ulong,
) -> c_ulong {
    let Some(raw) = NonNull::new(pass) else {
        return 0;
    };
    let pass = Pass {
        raw,
        lists: R::LISTS,
        _owners: PhantomData,
        _here: NotThreadSafe,
    };

    // SAFETY: By the requirement.
    unsafe { &*this.cast_const().cast::<R>() }.scan(&pass, most)
}

/// A shrinker, until this is dropped. Context of the drop: may sleep, not from a scan.
///
/// # Invariants
///
/// `raw` is valid, and calls `scan` with `reclaim`. It has `R::LISTS` lists.
pub(crate) struct Shrinker<R: Reclaim> {
    raw: NonNull<ffi::dxg_shrinker>,
    _reclaim: KBox<R>,
}

// SAFETY: The helpers may be called by any thread, and so may `R`.
unsafe impl<R: Reclaim> Send for Shrinker<R> {}
// SAFETY: As above.
unsafe impl<R: Reclaim> Sync for Shrinker<R> {}

impl<R: Reclaim> Shrinker<R> {
    /// One that the kernel asks from now on. `id` is that of the adapter.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(id: u64, reclaim: R) -> Result<Arc<Self>, AllocError> {
        let reclaim = KBox::new(reclaim, GFP_KERNEL)?;
        let this = (&raw const *reclaim).cast_mut().cast();
        // CAST: a few.
        let lists = R::LISTS as u32;
        // SAFETY: `scan` gets `this`, which is there until the shrinker is freed; owners are of the
        // type that `keep` takes.
        let raw = unsafe {
            ffi::dxg_shrinker_new(id, lists, Some(scan::<R>), Some(keep::<R::Owner>), this)
        };

        // INVARIANT: As said.
        let shrinker = Self {
            raw: NonNull::new(raw).ok_or(AllocError)?,
            _reclaim: reclaim,
        };

        Arc::new(shrinker, GFP_KERNEL)
    }
}

impl<R: Reclaim> Drop for Shrinker<R> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. Items have a reference, so that there are none.
        unsafe { ffi::dxg_shrinker_free(self.raw.as_ptr()) }
    }
}

/// A place in the lists of a shrinker.
///
/// # Invariants
///
/// `raw` is an item of `shrinker`. It is in the list `list`, and has a reference to its owner; or
/// it is in none.
pub(crate) struct Item<R: Reclaim> {
    raw: NonNull<ffi::dxg_reclaim_item>,
    list: Option<usize>,
    shrinker: Arc<Shrinker<R>>,
}

// SAFETY: As for [`Shrinker`]; owners may be dropped by any thread.
unsafe impl<R: Reclaim> Send for Item<R> {}
// SAFETY: As above; what changes an item wants it exclusively.
unsafe impl<R: Reclaim> Sync for Item<R> {}

impl<R: Reclaim> Item<R> {
    /// One that is in no list. It belongs to the memory cgroup of the caller.
    ///
    /// Context: may sleep.
    pub(crate) fn new(shrinker: &Arc<Shrinker<R>>) -> Result<Self, AllocError> {
        // SAFETY: The shrinker is valid.
        let raw = unsafe { ffi::dxg_reclaim_item_new(shrinker.raw.as_ptr()) };

        Ok(Self {
            raw: NonNull::new(raw).ok_or(AllocError)?,
            list: None,
            shrinker: shrinker.clone(),
        })
    }

    /// Puts it into this list, or into none. Returns the reference that it has no more.
    pub(crate) fn put(
        &mut self,
        list: Option<usize>,
        owner: &Arc<R::Owner>,
    ) -> Option<Arc<R::Owner>> {
        let before = self.remove();

        if let Some(list) = list.filter(|list| *list < R::LISTS) {
            let owner = Arc::into_raw(owner.clone()).cast_mut().cast();
            let shrinker = self.shrinker.raw.as_ptr();

            // INVARIANT: It has the reference, and is in this list.
            self.list = Some(list);
            // SAFETY: By the type invariant. It was in no list, and there is this one.
            unsafe { ffi::dxg_reclaim_add(shrinker, list as u32, self.raw.as_ptr(), owner) }
        }
        before
    }

    fn remove(&mut self) -> Option<Arc<R::Owner>> {
        let list = self.list.take()?;
        let shrinker = self.shrinker.raw.as_ptr();
        // SAFETY: By the type invariant it is there; nobody else takes it out.
        let owner = unsafe { ffi::dxg_reclaim_remove(shrinker, list as u32, self.raw.as_ptr()) };

        // SAFETY: It is the reference that `put` has made.
        Some(unsafe { Arc::from_raw(owner.cast_const().cast()) })
    }
}

impl<R: Reclaim> Drop for Item<R> {
    fn drop(&mut self) {
        let _owner = self.remove();

        // SAFETY: By the type invariant, and it is in no list.
        unsafe { ffi::dxg_reclaim_item_free(self.shrinker.raw.as_ptr(), self.raw.as_ptr()) }
    }
}

/// Memory that the task allocates makes no [`Shrinker`] run until this is dropped: a lock may be
/// held that scans try.
pub(in crate::sys) struct NoReclaim {
    flags: u32,
    _here: NotThreadSafe,
}

impl NoReclaim {
    /// From here on. They are dropped in the opposite order.
    pub(in crate::sys) fn here() -> Self {
        Self {
            // SAFETY: Changes flags of the current task, which `drop` sets again.
            flags: unsafe { ffi::dxg_reclaim_pause() },
            _here: NotThreadSafe,
        }
    }
}

impl Drop for NoReclaim {
    fn drop(&mut self) {
        // SAFETY: By the same task, as `_here` says.
        unsafe { ffi::dxg_reclaim_resume(self.flags) }
    }
}
