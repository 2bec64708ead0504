// SPDX-License-Identifier: GPL-2.0

//! Physical memory as the software GPU reaches it: system memory by the kernel's direct map, and
//! the adapter's own memory.
//!
//! INVARIANT: an address is used only in the step of an engine that has found it in a page table of
//! its adapter, and a step is done under `soft::Shell::core`; or in one access of the CMP, which is
//! done under `soft::SystemSpace::translations`. The OS part writes the entries, keeps the page
//! behind each of them allocated and in place, and lets go of it only after the entry is gone and
//! FlushTlb has returned, which takes `soft::Shell::core` of each engine and the lock of the CMP
//! (MEM-58). So the memory behind an address stays for the rest of the step. The engine itself has
//! no other addresses: what packets name are GPU virtual addresses (GPU-65). After StopDevice
//! neither engines nor the CMP have a root.
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
    ptr::NonNull,
    slice, //
};
use kernel::{
    ffi::c_ulong,
    page,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

// The page of an entry is a page of the kernel, whose frame number the entry has.
// CAST: a small number.
const _: () = assert!(PAGE_SIZE == page::PAGE_SIZE as u64);

/// The physical address after the last byte of system memory.
pub(crate) fn memory_end() -> u64 {
    // SAFETY: It reads what the kernel has set at boot.
    unsafe { ffi::dxg_memory_end() }
}

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

    /// The word of 64 bits that they are.
    fn word64(self) -> Option<&'a Atomic<u64>> {
        if !self.is_words(size_of::<u64>()) || self.count < size_of::<u64>() {
            return None;
        }
        // SAFETY: The word is aligned and within the bytes, which by the type invariant are memory
        // for `'a`. Processes, other engines and the kernel access the same bytes at any time. What
        // this file does to words of them are single accesses, atomic, volatile, or of C code.
        Some(unsafe { Atomic::from_ptr(self.start.as_ptr().cast()) })
    }

    /// The word of 32 bits that they are.
    fn word32(self) -> Option<&'a Atomic<u32>> {
        if !self.is_words(size_of::<u32>()) || self.count < size_of::<u32>() {
            return None;
        }
        // SAFETY: As in `word64`.
        Some(unsafe { Atomic::from_ptr(self.start.as_ptr().cast()) })
    }

    /// The words of 32 bits that they are.
    fn words32(self) -> Option<&'a [Atomic<u32>]> {
        if !self.is_words(size_of::<u32>()) {
            return None;
        }

        let count = self.count / size_of::<u32>();

        // SAFETY: As in `word64`, of all of them. An atomic has the layout of its word.
        Some(unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), count) })
    }

    /// The words of 64 bits that they are.
    fn words64(self) -> Option<&'a [Atomic<u64>]> {
        if !self.is_words(size_of::<u64>()) {
            return None;
        }

        let count = self.count / size_of::<u64>();

        // SAFETY: As in `word64`, of all of them. An atomic has the layout of its word.
        Some(unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), count) })
    }

    /// Copies as many bytes as both have. Where all are words of 64 or of 32 bits, each is one load
    /// and one store.
    fn copy(self, source: Self) {
        let count = self.count.min(source.count);
        let (to, from) = (self.start.as_ptr(), source.start.as_ptr());
        let is_words = |size| self.is_words(size) && source.is_words(size);

        // SAFETY: By the type invariant both are memory of so many bytes, and `is_words` says that
        // words are aligned. They may overlap, and be accessed by others meanwhile, which C code
        // does not mind.
        unsafe {
            if is_words(size_of::<u64>()) {
                ffi::dxg_copy_words64(to.cast(), from.cast(), count / size_of::<u64>());
            } else if is_words(size_of::<u32>()) {
                ffi::dxg_copy_words32(to.cast(), from.cast(), count / size_of::<u32>());
            } else {
                ffi::dxg_copy_bytes(to.cast(), from.cast(), count);
            }
        }
    }

    /// Fills them with a pattern, whose lowest byte is the first one. Where they are words of 64 or
    /// of 32 bits, each is one store.
    fn fill(self, pattern: u32) {
        if self.is_words(size_of::<u64>()) {
            let word = u64::from(pattern) << 32 | u64::from(pattern);
            let count = self.count / size_of::<u64>();

            // SAFETY: By the type invariant so many words are within the bytes, and `is_words` says
            // that they are aligned; see `word64` for the rest.
            unsafe { ffi::dxg_fill_words64(self.start.as_ptr().cast(), word, count) }
        } else if self.is_words(size_of::<u32>()) {
            let count = self.count / size_of::<u32>();

            // SAFETY: As above.
            unsafe { ffi::dxg_fill_words32(self.start.as_ptr().cast(), pattern, count) }
        } else {
            let pattern = pattern.to_le_bytes().into_iter().cycle();

            for (index, byte) in (0..self.count).zip(pattern) {
                // SAFETY: Within the bytes; see `word64`. A byte cannot be seen half.
                unsafe { self.start.as_ptr().add(index).write_volatile(byte) }
            }
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

        Some(bytes.word32()?.load(Relaxed))
    }

    fn load32s(&self, at: Physical, to: &mut [u32]) -> Option<()> {
        let words = self.bytes(at, size_of_val(to))?.words32()?;

        for (place, word) in to.iter_mut().zip(words) {
            *place = word.load(Relaxed);
        }
        Some(())
    }

    fn load64(&self, at: Physical) -> Option<u64> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        Some(bytes.word64()?.load(Relaxed))
    }

    fn load64s(&self, at: Physical, to: &mut [u64]) -> Option<()> {
        let words = self.bytes(at, size_of_val(to))?.words64()?;

        for (place, word) in to.iter_mut().zip(words) {
            *place = word.load(Relaxed);
        }
        Some(())
    }

    fn store32(&self, at: Physical, value: u32) -> Option<()> {
        let bytes = self.bytes(at, size_of::<u32>())?;

        bytes.word32()?.store(value, Relaxed);
        Some(())
    }

    fn store64(&self, at: Physical, value: u64) -> Option<()> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        bytes.word64()?.store(value, Relaxed);
        Some(())
    }

    fn store64_release(&self, at: Physical, value: u64) -> Option<()> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        bytes.word64()?.store(value, Release);
        Some(())
    }

    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64> {
        let bytes = self.bytes(at, size_of::<u64>())?;

        Some(match bytes.word64()?.cmpxchg(old, new, Full) {
            Ok(found) | Err(found) => found,
        })
    }

    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<()> {
        // CAST: 32 bits fit a usize.
        let count = bytes as usize;
        let source = self.bytes(from, count)?;

        self.bytes(to, count)?.copy(source);
        Some(())
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<()> {
        // CAST: 32 bits fit a usize.
        self.bytes(to, bytes as usize)?.fill(pattern);
        Some(())
    }
}
