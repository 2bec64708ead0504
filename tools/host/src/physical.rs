// SPDX-License-Identifier: MIT OR Apache-2.0

//! Physical memory of a machine that is not there: frames of system memory, which tests make and
//! end, and memory of adapters. What a test has ended is found no more, so an engine that uses it
//! later reports a fault.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, Release},
        },
        Arc, Mutex,
    },
};

use crate::engine::memory::{Memory, Physical, Place, PAGE_SIZE};

/// 64-bit words of a page.
const WORDS: usize = 512;

/// A page of memory.
pub(crate) struct Page([AtomicU64; WORDS]);

impl Page {
    fn new() -> Arc<Self> {
        Arc::new(Self([const { AtomicU64::new(0) }; WORDS]))
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[AtomicU64; WORDS] {
        &self.0
    }

    /// The word that a byte is in, and how many bits it is from the lowest one.
    fn word(&self, at: Physical, size: u64) -> Option<(&AtomicU64, u64)> {
        let offset = at.address % PAGE_SIZE;

        assert_eq!(offset % size, 0, "a word that is not aligned");
        Some((self.0.get((offset / 8) as usize)?, offset % 8 * 8))
    }
}

/// The frames of system memory that there are, and the number of the next one.
static FRAMES: Mutex<(BTreeMap<u64, Arc<Page>>, u64)> = Mutex::new((BTreeMap::new(), 1));

/// A frame of system memory. Dropping it takes it away.
pub(crate) struct Frame {
    number: u64,
    page: Arc<Page>,
}

impl Frame {
    /// A frame full of zeros. Numbers are not used again.
    pub(crate) fn new() -> Self {
        let mut frames = FRAMES.lock().expect("nobody panics");
        let number = frames.1;
        let page = Page::new();

        frames.1 += 1;
        frames.0.insert(number, page.clone());
        Self { number, page }
    }

    /// Its physical address.
    pub(crate) fn address(&self) -> u64 {
        self.number * PAGE_SIZE
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[AtomicU64; WORDS] {
        self.page.words()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        FRAMES.lock().expect("nobody panics").0.remove(&self.number);
    }
}

/// How processors reach the memory of a segment.
pub(crate) type SegmentMemory = Arc<LocalMemory>;

/// Memory in pages that are taken at their first use.
pub(crate) struct LocalMemory {
    count: u64,
    pages: Mutex<BTreeMap<u64, Arc<Page>>>,
}

impl LocalMemory {
    /// The page at an index, taken now if it was not there yet.
    pub(crate) fn page(&self, index: u64) -> Option<Arc<Page>> {
        let mut pages = self.pages.lock().expect("nobody panics");

        (index < self.count).then(|| pages.entry(index).or_insert_with(Page::new).clone())
    }

    /// How many pages were taken.
    pub(crate) fn taken(&self) -> usize {
        self.pages.lock().expect("nobody panics").len()
    }
}

thread_local! {
    /// Where memory ends for adapters that this thread starts.
    static MEMORY_END: Cell<u64> = const { Cell::new(1 << 32) };
}

/// The physical address after the last byte of system memory.
pub(crate) fn memory_end() -> u64 {
    MEMORY_END.get()
}

/// From here on it ends there, for this thread.
pub(crate) fn set_memory_end(end: u64) {
    MEMORY_END.set(end);
}

/// Memory of so many bytes; `None` if these are not whole pages.
pub(crate) fn segment_memory(bytes: u64) -> Option<SegmentMemory> {
    (bytes % PAGE_SIZE == 0).then(|| {
        Arc::new(LocalMemory {
            count: bytes / PAGE_SIZE,
            pages: Mutex::default(),
        })
    })
}

/// All memory that page tables of one adapter lead to.
pub(crate) struct PhysicalMemory {
    local: Option<SegmentMemory>,
}

impl PhysicalMemory {
    /// System memory, and this memory of the adapter.
    pub(crate) fn new(local: Option<SegmentMemory>) -> Self {
        Self { local }
    }

    fn page(&self, at: Physical) -> Option<Arc<Page>> {
        let index = at.address / PAGE_SIZE;

        match at.place {
            Place::System => {
                let frames = FRAMES.lock().expect("nobody panics");

                frames.0.get(&index).cloned()
            }
            Place::Local => self.local.as_ref()?.page(index),
            Place::Aperture | Place::Peer => None,
        }
    }

    fn byte(&self, at: Physical) -> Option<u8> {
        let page = self.page(at)?;
        let (word, shift) = page.word(at, 1)?;

        Some((word.load(Relaxed) >> shift) as u8)
    }

    fn store_byte(&self, at: Physical, value: u8) -> Option<()> {
        let page = self.page(at)?;

        change(&page, at, 1, 0xff, value.into())
    }
}

/// Replaces some bits of a word.
fn change(page: &Page, at: Physical, size: u64, mask: u64, value: u64) -> Option<()> {
    let (word, shift) = page.word(at, size)?;

    word.fetch_update(Relaxed, Relaxed, |old| {
        Some(old & !(mask << shift) | (value << shift))
    })
    .ok()
    .map(drop)
}

/// Does so many bytes one after the other, as long as that succeeds. How many that were; `None` if
/// there was nothing.
fn as_many(bytes: u32, one: impl Fn(u64) -> Option<()>) -> Option<u32> {
    let done = (0..bytes.into())
        .take_while(|index| one(*index).is_some())
        .count() as u32;

    (done != 0).then_some(done)
}

impl Memory for PhysicalMemory {
    fn load32(&self, at: Physical) -> Option<u32> {
        let page = self.page(at)?;
        let (word, shift) = page.word(at, 4)?;

        Some((word.load(Relaxed) >> shift) as u32)
    }

    fn load64(&self, at: Physical) -> Option<u64> {
        Some(self.page(at)?.word(at, 8)?.0.load(Relaxed))
    }

    fn store32(&self, at: Physical, value: u32) -> Option<()> {
        change(&*self.page(at)?, at, 4, 0xffff_ffff, value.into())
    }

    fn store64(&self, at: Physical, value: u64) -> Option<()> {
        self.page(at)?.word(at, 8)?.0.store(value, Relaxed);
        Some(())
    }

    fn store64_release(&self, at: Physical, value: u64) -> Option<()> {
        self.page(at)?.word(at, 8)?.0.store(value, Release);
        Some(())
    }

    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64> {
        let page = self.page(at)?;
        let word = page.word(at, 8)?.0;

        Some(match word.compare_exchange(old, new, Relaxed, Relaxed) {
            Ok(found) | Err(found) => found,
        })
    }

    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<u32> {
        let copied = |index| self.store_byte(to.plus(index), self.byte(from.plus(index))?);

        self.page(to)?;
        as_many(bytes, copied)
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<u32> {
        let pattern = pattern.to_le_bytes();

        as_many(bytes, |index| {
            self.store_byte(to.plus(index), pattern[index as usize % 4])
        })
    }
}
