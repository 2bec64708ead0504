// SPDX-License-Identifier: GPL-2.0

//! One object that the whole module finds, while it is published.
//!
//! For callbacks of the kernel that are not told whose they are. Everything else is handed what it
//! works on.

use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    bindings,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        rcu,
        Arc,
        ArcBorrow, //
    }, //
};

/// A place for one object.
pub(crate) struct Shared<T: Send + Sync + 'static> {
    /// INVARIANT: null, or from `Arc::into_raw`. That reference is taken back only after this is
    /// null again and a grace period has passed.
    published: Atomic<*mut T>,
    _object: PhantomData<Arc<T>>,
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// An empty place.
    pub(crate) const fn new() -> Self {
        Self {
            published: Atomic::new(ptr::null_mut()),
            _object: PhantomData,
        }
    }

    /// Publishes an object until the result is dropped; `None` if there is one already.
    pub(crate) fn publish(&'static self, object: Arc<T>) -> Option<Published<T>> {
        let raw = Arc::into_raw(object).cast_mut();

        // ORDERING: full, so that a thread that finds the object sees all of it.
        if self.published.cmpxchg(ptr::null_mut(), raw, Full).is_ok() {
            return Some(Published(self));
        }
        // SAFETY: From `into_raw` above, and published nowhere.
        drop(unsafe { Arc::from_raw(raw) });
        None
    }

    /// The object, if there is one.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        let guard = rcu::read_lock();
        let raw = self.published.load(Acquire);
        let object = if raw.is_null() {
            None
        } else {
            // SAFETY: By the invariant, one reference stays at least until the guard is dropped.
            Some(Arc::from(unsafe { ArcBorrow::from_raw(raw.cast_const()) }))
        };

        drop(guard);
        object
    }
}

/// Keeps an object published. Dropping it takes the object back.
///
/// Context of the drop: may sleep.
pub(crate) struct Published<T: Send + Sync + 'static>(&'static Shared<T>);

impl<T: Send + Sync + 'static> Drop for Published<T> {
    fn drop(&mut self) {
        let raw = self.0.published.xchg(ptr::null_mut(), Full);

        // SAFETY: May be called wherever sleeping is allowed.
        unsafe { bindings::synchronize_rcu() };
        // SAFETY: From `into_raw` of the thread that published it, which is this one; a thread that
        // found it has a reference of its own by now.
        drop(unsafe { Arc::from_raw(raw) });
    }
}
