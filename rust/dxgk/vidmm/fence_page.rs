// SPDX-License-Identifier: GPL-2.0

//! A page of fence values, wherever it is (FEN-63, FEN-64).
//!
//! Each has a page of system memory, which is its home. Most are there for good. A page of a
//! process that its driver wants in a segment is there from the beginning ([`LocalPage`]), and goes
//! home when the segment is full.

use super::local_page::LocalPage;
use crate::{
    ddi::segments::SYSTEM_MEMORY,
    platform::{
        load_acquire,
        store_release,
        Word64, //
    },
    sys::mem::value_page::ValuePage, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// A page of fence values.
#[derive(Clone)]
pub(in crate::dxgk) struct FencePage {
    home: Arc<ValuePage>,
    /// What it is while it is somewhere else, and was so once.
    local: Option<Arc<LocalPage>>,
}

impl FencePage {
    /// A page of zeros in system memory, charged to the caller.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new() -> Result<Self, AllocError> {
        Ok(Self::of(Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?))
    }

    /// A page that is in system memory for good.
    pub(in crate::dxgk) fn of(home: Arc<ValuePage>) -> Self {
        Self { home, local: None }
    }

    /// A page that is in a segment now.
    pub(super) fn in_segment(local: Arc<LocalPage>) -> Self {
        Self {
            home: local.home().clone(),
            local: Some(local),
        }
    }

    /// Its page of system memory. Only while it is there for good, it has the values.
    pub(in crate::dxgk) fn home(&self) -> &Arc<ValuePage> {
        &self.home
    }

    /// A name that no other page has while this one is there: the address of its home.
    pub(in crate::dxgk) fn name(&self) -> u64 {
        self.home.physical()
    }

    /// A word, by its index, of a page that is in system memory for good.
    #[inline(always)]
    pub(in crate::dxgk) fn word(&self, index: usize) -> &Word64 {
        self.home.word(index)
    }

    /// A word now, with acquire ordering.
    #[inline(always)]
    pub(in crate::dxgk) fn load(&self, index: usize) -> u64 {
        match &self.local {
            None => load_acquire(self.home.word(index)),
            Some(local) => local.load(index),
        }
    }

    /// Stores to a word where it is now, by `store`. When that is done, engines that see the page
    /// find the value, and later ones do wherever it goes.
    ///
    /// Context: `store` may run with a spinlock held.
    #[inline(always)]
    pub(in crate::dxgk) fn store_by(&self, index: usize, value: u64, store: impl FnOnce(&Word64)) {
        match &self.local {
            None => store(self.home.word(index)),
            Some(local) => local.store_by(index, value, store),
        }
    }

    /// Stores to a word, with release ordering.
    pub(in crate::dxgk) fn store(&self, index: usize, value: u64) {
        self.store_by(index, value, |word| store_release(word, value));
    }

    /// Where page tables lead: a segment, and the place in it.
    pub(super) fn place(&self) -> (u32, u64) {
        match &self.local {
            None => (SYSTEM_MEMORY, self.home.physical()),
            Some(local) => local.place(),
        }
    }

    /// The page if it may move.
    pub(super) fn local(&self) -> Option<&Arc<LocalPage>> {
        self.local.as_ref()
    }

    /// No fence is in it any more: it does not give way to others.
    pub(in crate::dxgk) fn end(&self) {
        if let Some(local) = &self.local {
            local.end();
        }
    }
}
