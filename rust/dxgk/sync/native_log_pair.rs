// SPDX-License-Identifier: GPL-2.0

//! Both logs of a HW queue: the memory that engines write to, and how far it has been read.
//!
//! The pages of a log are beside each other for engines, and anywhere for the kernel. They may be
//! replaced by others (GPU-81); each pair has its size for ever.

use super::fence_storage::CountedPage;
use crate::{
    ddi::native_fence::{
        self,
        LogBuffer, //
    },
    dxgk::vidmm::{
        address_space::AddressSpace,
        fence_pages::ShownPages, //
    },
    error::DxgResult,
    logic::fence_log::{
        Entry,
        LogSize,
        LogType,
        LogWords,
        Read,
        Reader, //
    },
    platform::{
        load_acquire,
        store_release, //
    },
    sys::mem::value_page::WORDS, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    }, //
};

/// The pages of a log, as the kernel sees them. INVARIANT: there is at least one.
struct Pages(KVec<CountedPage>);

impl Pages {
    /// Context: a system call of who pays for them, no locks held.
    fn new(ty: LogType, size: LogSize) -> DxgResult<Self> {
        // CAST: 16 at most.
        let count = size.pages() as usize;
        let mut pages = KVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

        for _ in 0..count {
            pages.push(CountedPage::new()?, GFP_KERNEL_ACCOUNT)?;
        }

        let pages = Self(pages);

        for (number, value) in ty.header(size) {
            if let Some(word) = pages.word(number) {
                store_release(word, value);
            }
        }
        Ok(pages)
    }

    fn word(&self, number: usize) -> Option<&Atomic<u64>> {
        let page = self.0.get(number / WORDS)?;

        // It counts modulo the words of a page.
        Some(page.page.word(number))
    }
}

impl LogWords for Pages {
    fn load(&self, word: usize) -> u64 {
        // The reader knows how many there are.
        self.word(word).map_or(0, load_acquire)
    }
}

/// A log, as engines of the process see it.
///
/// Context of the drop: may sleep, no locks held.
pub(super) struct Log {
    pub(super) ty: LogType,
    pages: Pages,
    shown: ShownPages,
    reader: Reader,
    /// The header up to which it is read next, if it has moved.
    header: Option<u64>,
    space: Arc<AddressSpace>,
}

impl Log {
    /// An empty one.
    ///
    /// Context: as for [`Pages::new`].
    fn new(space: &Arc<AddressSpace>, ty: LogType, size: LogSize) -> DxgResult<Self> {
        let pages = Pages::new(ty, size)?;
        let shown = space.show_pages(pages.0.iter().map(|counted| &counted.page))?;

        Ok(Self {
            ty,
            pages,
            shown,
            reader: Reader::new(ty, size.entries()),
            header: None,
            space: space.clone(),
        })
    }

    /// Looks at the header. Whether there is something new to be read.
    pub(super) fn look(&mut self) -> bool {
        self.header = self.reader.moved(&self.pages);
        self.header.is_some()
    }

    /// Reads what there was at the last [`Log::look`], and tells each entry. The KMD was asked
    /// meanwhile to make that visible.
    pub(super) fn read(&mut self, each: impl FnMut(&Entry)) -> Option<Read> {
        let header = self.header.take()?;

        Some(self.reader.read(&self.pages, header, each))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.space.hide_pages(self.shown);
    }
}

/// Where the logs of a queue are (D3DKMTGetNativeFenceLogDetail).
#[derive(Clone, Copy)]
pub(crate) struct LogDetail {
    /// How many entries each has.
    pub(crate) entries: u32,
    /// GPU virtual address of the log of waits.
    pub(crate) waits: u64,
    /// GPU virtual address of the log of signals.
    pub(crate) signals: u64,
}

/// Both logs of a queue.
///
/// Context of the drop: as that of a [`Log`].
pub(super) struct LogPair {
    pub(super) size: LogSize,
    waits: Log,
    signals: Log,
}

impl LogPair {
    /// Empty ones.
    ///
    /// Context: as for [`Pages::new`].
    pub(super) fn new(space: &Arc<AddressSpace>, size: LogSize) -> DxgResult<Self> {
        Ok(Self {
            size,
            waits: Log::new(space, LogType::Waits, size)?,
            signals: Log::new(space, LogType::Signals, size)?,
        })
    }

    /// Both of them.
    pub(super) fn each(&mut self) -> [&mut Log; 2] {
        [&mut self.signals, &mut self.waits]
    }

    /// Where they are.
    pub(super) fn detail(&self) -> LogDetail {
        LogDetail {
            entries: self.size.entries(),
            waits: self.waits.shown.address(),
            signals: self.signals.shown.address(),
        }
    }

    /// What the KMD is told of them.
    pub(super) fn buffers(&self) -> [LogBuffer; 2] {
        let LogDetail {
            entries,
            waits,
            signals,
        } = self.detail();

        [
            LogBuffer {
                ty: native_fence::LogType::Waits,
                address: waits,
                entries,
            },
            LogBuffer {
                ty: native_fence::LogType::Signals,
                address: signals,
                entries,
            },
        ]
    }
}
