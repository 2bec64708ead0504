// SPDX-License-Identifier: GPL-2.0

//! The aperture of the software adapter: a table of pages of system memory, which makes them look
//! like one range (MEM-4, MEM-78).

use super::late_stores::LateStores;
use crate::{
    engine::memory::{
        Memory,
        Physical,
        Place,
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    platform::{
        self,
        Boxed,
        PhysicalMemory,
        ShortLock, //
    }, //
};

/// Bytes of the aperture.
pub(super) const APERTURE_SIZE: u64 = (CHUNKS * CHUNK) as u64 * PAGE_SIZE;

/// Entries of a part of the table, and how many parts there are.
const CHUNK: usize = 512;
const CHUNKS: usize = 32;

/// Physical addresses of pages.
type Chunk = Boxed<[Option<u64>; CHUNK]>;

/// What each page of the aperture shows, in parts that are made when they are needed.
struct Table([Option<Chunk>; CHUNKS]);

impl Table {
    fn place(&mut self, page: u64) -> Option<&mut Option<u64>> {
        let page = usize::try_from(page).ok()?;
        let chunk = self.0.get_mut(page / CHUNK)?.as_mut()?;

        chunk.get_mut(page % CHUNK)
    }
}

/// An aperture. Engines look at it for each access, and keep nothing of what they find.
pub(super) struct Aperture {
    table: ShortLock<Table>,
}

impl Aperture {
    /// One that shows nothing; `None` if there is no memory. May sleep.
    pub(super) fn new() -> Option<Self> {
        let mut table = Table([const { None }; CHUNKS]);

        for chunk in &mut table.0 {
            *chunk = Some(platform::none_array()?);
        }
        Some(Self {
            table: platform::short_lock!(table, "soft::Aperture::table")?,
        })
    }

    /// Shows pages, by their physical addresses. There is nothing beyond its end.
    pub(super) fn map(&self, first: u64, pages: &[u64]) {
        // CAST: a usize fits 64 bits.
        let end = first.saturating_add(pages.len() as u64);
        let mut table = self.table.lock();

        for (page, address) in (first..end).zip(pages) {
            if let Some(place) = table.place(page) {
                *place = Some(*address);
            }
        }
    }

    /// Shows nothing there. An engine that has looked before may still be at it.
    pub(super) fn unmap(&self, first: u64, count: u64) {
        let end = first.saturating_add(count).min(APERTURE_SIZE / PAGE_SIZE);
        let mut table = self.table.lock();

        for page in first..end {
            if let Some(place) = table.place(page) {
                *place = None;
            }
        }
    }

    /// Where the bytes are that an engine wants; `None` if nothing is there.
    fn resolve(&self, at: Physical) -> Option<Physical> {
        if at.place != Place::Aperture {
            return Some(at);
        }

        let page = (*self.table.lock().place(at.address >> PAGE_SHIFT)?)?;

        Some(Physical::new(Place::System, page).plus(at.address % PAGE_SIZE))
    }
}

/// Memory as engines reach it, also through the aperture.
pub(super) struct Reached<'a> {
    pub(super) memory: &'a PhysicalMemory,
    pub(super) aperture: &'a Aperture,
    /// Where entries of logs are kept back, if they are.
    pub(super) late: Option<&'a LateStores>,
}

impl Memory for Reached<'_> {
    fn load32(&self, at: Physical) -> Option<u32> {
        self.memory.load32(self.aperture.resolve(at)?)
    }

    fn load32s(&self, at: Physical, to: &mut [u32]) -> Option<()> {
        self.memory.load32s(self.aperture.resolve(at)?, to)
    }

    fn load64(&self, at: Physical) -> Option<u64> {
        self.memory.load64(self.aperture.resolve(at)?)
    }

    fn load64s(&self, at: Physical, to: &mut [u64]) -> Option<()> {
        self.memory.load64s(self.aperture.resolve(at)?, to)
    }

    fn store32(&self, at: Physical, value: u32) -> Option<()> {
        self.memory.store32(self.aperture.resolve(at)?, value)
    }

    fn store64(&self, at: Physical, value: u64) -> Option<()> {
        self.memory.store64(self.aperture.resolve(at)?, value)
    }

    fn store64_release(&self, at: Physical, value: u64) -> Option<()> {
        self.memory
            .store64_release(self.aperture.resolve(at)?, value)
    }

    fn store64_late(&self, at: Physical, value: u64) -> Option<()> {
        match self.late {
            Some(late) => late.keep(self.aperture.resolve(at)?, value),
            None => self.store64(at, value),
        }
    }

    fn drain(&self) {
        if let Some(late) = self.late {
            late.drain();
        }
    }

    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64> {
        self.memory
            .compare_exchange64(self.aperture.resolve(at)?, old, new)
    }

    fn store64s(&self, at: Physical, first: u64, increment: u64, count: u32) -> Option<()> {
        let at = self.aperture.resolve(at)?;

        self.memory.store64s(at, first, increment, count)
    }

    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<u32> {
        let bytes = within(from, within(to, bytes));
        let (from, to) = (self.aperture.resolve(from)?, self.aperture.resolve(to)?);

        self.memory.copy(from, to, bytes)
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<u32> {
        let bytes = within(to, bytes);

        self.memory.fill(self.aperture.resolve(to)?, pattern, bytes)
    }
}

/// How many of some bytes follow each other in system memory: those in one page of the aperture.
fn within(at: Physical, bytes: u32) -> u32 {
    match at.place {
        // CAST: at most the size of a page.
        Place::Aperture => bytes.min((PAGE_SIZE - at.address % PAGE_SIZE) as u32),
        _ => bytes,
    }
}
