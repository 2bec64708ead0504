// SPDX-License-Identifier: GPL-2.0

//! Physical memory as the software GPU reaches it: system memory by the kernel's direct map, and
//! the adapter's own memory.
//!
//! INVARIANT: an address is used only in the step of an engine that has found it in a page table of
//! its adapter, and a step is done under `soft::Shell::core`. The OS part writes the entries, keeps
//! the page behind each of them allocated and in place, and lets go of it only after the entry is
//! gone and FlushTlb has returned, which takes `soft::Shell::core` of each engine (MEM-58). So the
//! memory behind an address stays for the rest of the step. The engine itself has no other
//! addresses: what packets name are GPU virtual addresses (GPU-65).
//!
//! Nothing here allocates or sleeps.

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
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_ulong,
    page,
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

// The page of an entry is a page of the kernel, whose frame number the entry has.
// CAST: a small number.
const _: () = assert!(PAGE_SIZE == page::PAGE_SIZE as u64);

/// All memory that page tables of one adapter lead to.
pub(crate) struct PhysicalMemory {
    local: Option<Arc<LocalMemory>>,
}

/// Some bytes within one page.
///
/// # Invariants
///
/// There is memory at `start`, so many bytes of it, all in one page, for `'a`.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    start: NonNull<u8>,
    count: usize,
    _memory: PhantomData<&'a PhysicalMemory>,
}

impl<'a> Bytes<'a> {
    /// Whether the bytes are whole words of so many bytes.
    fn is_words(self, size: usize) -> bool {
        self.start.addr().get() % size == 0 && self.count % size == 0
    }

    /// A word of 64 bits.
    fn word64(self, index: usize) -> Option<&'a Atomic<u64>> {
        let offset = index.checked_mul(size_of::<u64>())?;

        if !self.is_words(size_of::<u64>()) || offset >= self.count {
            return None;
        }
        // SAFETY: The word is aligned and within the bytes, which by the type invariant are memory
        // for `'a`. Processes, other engines and the kernel access the same bytes at any time; all
        // accesses to them that this file makes are single ones, atomic or volatile.
        Some(unsafe { Atomic::from_ptr(self.start.as_ptr().add(offset).cast()) })
    }

    /// A word of 32 bits.
    fn word32(self, index: usize) -> Option<&'a Atomic<u32>> {
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
            // SAFETY: Within the bytes of both, and aligned, as `is_words` has said of both; see
            // `word64` for the rest.
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

    /// Where some bytes are, which are in one page; `None` if there is no memory, or if they are in
    /// more than one page.
    fn bytes(&self, at: Physical, count: usize) -> Option<Bytes<'_>> {
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
        // INVARIANT: By that of this file the page is memory for the rest of the engine's step,
        // which has the borrow of `self`.
        Some(Bytes {
            // SAFETY: Within the page, as was just looked at.
            start: unsafe { page.add(offset) },
            count,
            _memory: PhantomData,
        })
    }
}

/// The address of a frame in the direct map; `None` if processors cannot use memory there.
fn direct_map(frame: u64) -> Option<NonNull<u8>> {
    let frame = c_ulong::try_from(frame).ok()?;

    // SAFETY: Any number may be asked for: looks whether there is such a frame.
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
