// SPDX-License-Identifier: GPL-2.0

//! A page of some memory, as the kernel stores words to it.

use super::{
    pages::PageSource,
    value_page::WORDS, //
};
use core::{
    ptr::NonNull,
    slice, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    }, //
};

/// A page whose words the kernel loads and stores, and what keeps it.
///
/// # Invariants
///
/// `words` is where the kernel has a page of `keeper`: valid for `WORDS` aligned words as long as
/// that is there. All accesses to these words, in the kernel and by engines, are single 64-bit
/// accesses while this is there (FEN-9).
pub(crate) struct PageWords<K: PageSource> {
    words: NonNull<u64>,
    keeper: Arc<K>,
}

// SAFETY: The page is only accessed through atomics, and what keeps it may go to other threads.
unsafe impl<K: PageSource> Send for PageWords<K> {}
// SAFETY: As above.
unsafe impl<K: PageSource> Sync for PageWords<K> {}

impl<K: PageSource> PageWords<K> {
    /// The first page of `keeper`, which is for words only from now on: EOPNOTSUPP if the kernel
    /// has it nowhere, as memory behind a bus.
    ///
    /// Context: may sleep.
    pub(crate) fn new(keeper: Arc<K>) -> Result<Self> {
        let words = keeper.page(0)?.address()?.cast();

        // INVARIANT: `PageSource` keeps a page in place that was taken, and a page is aligned for
        // words. Who takes it for this does nothing else with it.
        Ok(Self { words, keeper })
    }

    /// The word at `index`, counted modulo [`WORDS`].
    pub(crate) fn word(&self, index: usize) -> &Atomic<u64> {
        // SAFETY: By the type invariant the word lies in the page and lives as long as `self`, and
        // all accesses to it are single 64-bit accesses.
        unsafe { Atomic::from_ptr(self.words.as_ptr().add(index % WORDS)) }
    }

    /// All words.
    pub(crate) fn words(&self) -> &[Atomic<u64>] {
        // SAFETY: By the type invariant these words lie in the page and live as long as `self`, and
        // all accesses to them are single 64-bit accesses. An atomic has the layout of its word.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast::<Atomic<u64>>(), WORDS) }
    }

    /// What keeps the page.
    pub(crate) fn keeper(&self) -> &Arc<K> {
        &self.keeper
    }
}
