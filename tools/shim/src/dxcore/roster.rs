// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adapters that somebody holds: one object each, so that programs can compare addresses.

use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::abi::Luid;
use super::adapter::Adapter;
use super::com::{HResult, Object, Reference};
use super::kmt::Present;

/// An adapter, not counted as a reference.
struct Held(NonNull<Object<Adapter>>);

// SAFETY: adapters can be used by any thread.
unsafe impl Send for Held {}

impl Held {
    fn adapter(&self) -> &Object<Adapter> {
        // SAFETY: an object leaves the list, with the lock held, before it is freed.
        unsafe { self.0.as_ref() }
    }
}

/// The list.
pub(super) struct Roster(Mutex<Vec<Held>>);

impl Roster {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of an adapter that is there.
    fn find(held: &[Held], luid: Luid) -> Option<Reference<Adapter>> {
        let adapters = held.iter().map(Held::adapter);
        adapters
            .filter(|adapter| adapter.facts().luid == luid && !adapter.is_gone())
            .find_map(Object::try_reference)
    }

    /// The object of an adapter; `make` makes one if nobody holds it.
    pub(super) fn hold<E: From<HResult>>(
        &self,
        luid: Luid,
        make: impl FnOnce() -> Result<Reference<Adapter>, E>,
    ) -> Result<Reference<Adapter>, E> {
        if let Some(adapter) = Self::find(&self.lock(), luid) {
            return Ok(adapter);
        }
        // Declared before the lock, so that a second object of the same adapter is released after
        // it.
        let new = make()?;
        let mut held = self.lock();
        if let Some(adapter) = Self::find(&held, luid) {
            return Ok(adapter);
        }
        held.try_reserve(1).map_err(|_| HResult::E_OUTOFMEMORY)?;
        held.push(Held(NonNull::from(&*new)));
        Ok(new.clone())
    }

    /// Whether somebody holds an adapter of this LUID that is gone.
    pub(super) fn knew(&self, luid: Luid) -> bool {
        let held = self.lock();
        let mut adapters = held.iter().map(Held::adapter);
        adapters.any(|adapter| adapter.facts().luid == luid)
    }

    /// Adapters that are not present are gone, unless a look that ended later has seen them.
    pub(super) fn see(&self, present: &Present) {
        let held = self.lock();
        for adapter in held.iter().map(Held::adapter) {
            if present.has(adapter.facts().luid) {
                adapter.seen(present.ended());
            } else {
                adapter.missed(present.begun());
            }
        }
    }

    /// Forgets an object that is about to be freed.
    pub(super) fn forget(&self, adapter: NonNull<Object<Adapter>>) {
        let mut held = self.lock();
        held.retain(|it| it.0 != adapter);
    }
}
