// SPDX-License-Identifier: GPL-2.0

//! Physical memory as the software GPU reaches it: system memory by the kernel's direct map, and
//! the adapter's own memory.
//!
//! The engine finds addresses in page tables. The OS part writes their entries, and keeps each
//! frame where it is until its entry is gone and a flush has made sure that no access to it is in
//! progress (MEM-58). So what an engine gets from a table may be used for the rest of its step.

use super::local_memory::LocalMemory;
use crate::{
    engine::memory::{
        Memory,
        Physical,
        Place,
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    sys::ffi, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_ulong,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// All memory that page tables of one adapter lead to.
pub(crate) struct PhysicalMemory {
    local: Option<Arc<LocalMemory>>,
}

/// Some bytes within one page.
#[derive(Clone, Copy)]
struct Bytes {
    start: NonNull<u8>,
    count: usize,
}

impl Bytes {
    /// Whether the bytes are whole words of so many bytes.
    fn is_words(self, size: usize) -> bool {
        self.start.addr().get() % size == 0 && self.count % size == 0
    }

    /// A word of 64 bits.
    fn word64(&self, index: usize) -> Option<&Atomic<u64>> {
        let offset = index.checked_mul(size_of::<u64>())?;

        if !self.is_words(size_of::<u64>()) || offset >= self.count {
            return None;
        }
        // SAFETY: The word is aligned and within the bytes, which are memory as long as `self` is
        // used (see the head of this file). The kernel's and other processors' accesses to it may
        // be anything at any time, and all of ours are atomic.
        Some(unsafe { Atomic::from_ptr(self.start.as_ptr().add(offset).cast()) })
    }

    /// A word of 32 bits.
    fn word32(&self, index: usize) -> Option<&Atomic<u32>> {
        let offset = index.checked_mul(size_of::<u32>())?;

        if !self.is_words(size_of::<u32>()) || offset >= self.count {
            return None;
        }
        // SAFETY: As in `word64`.
        Some(unsafe { Atomic::from_ptr(self.start.as_ptr().add(offset).cast()) })
    }

    /// Copies all words of 64 bits; both are such words, and there are as many of them.
    ///
    /// Volatile accesses are single ones of their size, as those of [`Atomic`] are. These would be
    /// a call of a function for each word.
    fn copy_words(self, source: Self) {
        let (to, from) = (self.start.cast::<u64>(), source.start.cast::<u64>());

        for index in 0..self.count.min(source.count) / size_of::<u64>() {
            // SAFETY: Within the bytes of both, and aligned, as `is_words` has said; see `word64`.
            unsafe {
                to.add(index)
                    .write_volatile(from.add(index).read_volatile())
            }
        }
    }

    /// Stores a word of 64 bits to all; they are such words.
    fn fill_words(self, word: u64) {
        let to = self.start.cast::<u64>();

        for index in 0..self.count / size_of::<u64>() {
            // SAFETY: As in `copy_words`.
            unsafe { to.add(index).write_volatile(word) }
        }
    }

    fn load_byte(self, index: usize) -> u8 {
        if index >= self.count {
            return 0;
        }
        // SAFETY: Within the bytes; see `word64`. A byte cannot be seen half.
        unsafe { self.start.as_ptr().add(index).read_volatile() }
    }

    fn store_byte(self, index: usize, value: u8) {
        if index < self.count {
            // SAFETY: As in `load_byte`.
            unsafe { self.start.as_ptr().add(index).write_volatile(value) }
        }
    }
}

impl PhysicalMemory {
    /// System memory, and this memory of the adapter.
    pub(crate) fn new(local: Option<Arc<LocalMemory>>) -> Self {
        Self { local }
    }

    /// Where some bytes are, which are in one page; `None` if there is no memory. May sleep: the
    /// page of local memory is taken now if it was not there yet.
    fn bytes(&self, at: Physical, count: usize) -> Option<Bytes> {
        let offset = usize::try_from(at.address % PAGE_SIZE).ok()?;
        let index = at.address >> PAGE_SHIFT;
        let page = match at.place {
            Place::System => direct_map(index)?,
            Place::Local => {
                let local = self.local.as_ref()?;

                local.address(usize::try_from(index).ok()?)?
            }
            Place::Aperture | Place::Peer => return None,
        };

        // CAST: 4096.
        if count > (PAGE_SIZE as usize).checked_sub(offset)? {
            return None;
        }
        Some(Bytes {
            // SAFETY: Within the page, as was just looked at.
            start: unsafe { page.add(offset) },
            count,
        })
    }
}

/// The address of a frame in the direct map; `None` if there is no memory at that number.
fn direct_map(frame: u64) -> Option<NonNull<u8>> {
    let frame = c_ulong::try_from(frame).ok()?;

    // SAFETY: Looks whether there is such a frame.
    NonNull::new(unsafe { ffi::dxg_direct_map(frame) }.cast())
}

impl Memory for PhysicalMemory {
    fn load32(&self, at: Physical) -> Option<u32> {
        let bytes = self.bytes(at, size_of::<u32>())?;

        Some(bytes.word32(0)?.load(Relaxed))
    }

    fn load64(&self, at: Physical) -> Option<u64> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        Some(bytes.word64(0)?.load(Relaxed))
    }

    fn store32(&self, at: Physical, value: u32) -> Option<()> {
        let bytes = self.bytes(at, size_of::<u32>())?;

        bytes.word32(0)?.store(value, Relaxed);
        Some(())
    }

    fn store64(&self, at: Physical, value: u64) -> Option<()> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        bytes.word64(0)?.store(value, Relaxed);
        Some(())
    }

    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        Some(match bytes.word64(0)?.cmpxchg(old, new, Full) {
            Ok(found) | Err(found) => found,
        })
    }

    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<()> {
        // CAST: 32 bits fit a usize.
        let count = bytes as usize;
        let source = self.bytes(from, count)?;
        let target = self.bytes(to, count)?;

        if source.is_words(size_of::<u64>()) && target.is_words(size_of::<u64>()) {
            target.copy_words(source);
        } else {
            for index in 0..count {
                target.store_byte(index, source.load_byte(index));
            }
        }
        Some(())
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<()> {
        // CAST: 32 bits fit a usize.
        let count = bytes as usize;
        let target = self.bytes(to, count)?;

        if target.is_words(size_of::<u64>()) {
            target.fill_words(u64::from(pattern) << 32 | u64::from(pattern));
        } else if target.is_words(size_of::<u32>()) {
            for index in 0..count / size_of::<u32>() {
                target.word32(index)?.store(pattern, Relaxed);
            }
        } else {
            for (index, byte) in (0..count).zip(pattern.to_le_bytes().into_iter().cycle()) {
                target.store_byte(index, byte);
            }
        }
        Some(())
    }
}
