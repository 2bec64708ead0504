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

/// Some bytes that follow each other.
///
/// # Invariants
///
/// There is memory at `start`, so many bytes of it, for `'a`.
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

    /// What is behind the first ones; `None` if that is nothing.
    fn behind(self, count: usize) -> Option<Self> {
        let left = self.count.checked_sub(count).filter(|left| *left != 0)?;

        // INVARIANT: The rest of the same bytes.
        Some(Self {
            // SAFETY: Within the bytes, as was just looked at.
            start: unsafe { self.start.add(count) },
            count: left,
            ..self
        })
    }

    /// Copies as many bytes as both have, and says how many. Where all are words of 64 or of 32
    /// bits, each is one load and one store.
    fn copy(self, source: Self) -> u32 {
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
        // CAST: at most as many as were asked for.
        count as u32
    }

    /// Fills them with a pattern, whose lowest byte is the first one, and says how many they are.
    /// Where they are words of 64 or of 32 bits, each is one store.
    fn fill(self, pattern: u32) -> u32 {
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
        // CAST: at most as many as were asked for.
        self.count as u32
    }
}

/// Bytes that follow each other in a place, in parts that do so for processors.
struct Parts<'a> {
    memory: &'a PhysicalMemory,
    /// Where the next part is, and how many bytes there are from there on.
    at: Physical,
    left: u32,
    /// What is left of this part.
    part: Option<Bytes<'a>>,
}

impl<'a> Parts<'a> {
    /// Those from an address on, which begin with this part.
    fn new(memory: &'a PhysicalMemory, at: Physical, bytes: u32, part: Bytes<'a>) -> Self {
        Self {
            memory,
            at: at.plus(part.count as u64),
            // CAST: at most as many as were asked for.
            left: bytes.saturating_sub(part.count as u32),
            part: Some(part),
        }
    }

    /// The next bytes; `None` at the end, and where there is no memory.
    fn first(&mut self) -> Option<Bytes<'a>> {
        if self.part.is_none() && self.left != 0 {
            let part = self.memory.first_bytes(self.at, self.left)?;

            // CAST: at most as many as were asked for.
            self.left = self.left.saturating_sub(part.count as u32);
            self.at = self.at.plus(part.count as u64);
            self.part = Some(part);
        }
        self.part
    }

    /// So many of them are done.
    fn skip(&mut self, count: u32) {
        // CAST: 32 bits fit a usize.
        self.part = self.part.and_then(|part| part.behind(count as usize));
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
        let offset = in_page(at);

        if count > PAGE.checked_sub(offset)? {
            return None;
        }

        let (page, _) = self.pages(at, 1)?;

        // INVARIANT: By that of this file the page is memory for the rest of the engine's step,
        // which has the borrow of `self`.
        Some(Bytes {
            // SAFETY: Within the page, as was just looked at.
            start: unsafe { page.add(offset) },
            count,
            _memory: PhantomData,
        })
    }

    /// The first of some bytes, as many as follow each other for processors: at least those in the
    /// first page. `None` if there is no memory.
    fn first_bytes(&self, at: Physical, count: u32) -> Option<Bytes<'_>> {
        let offset = in_page(at);
        // CAST: 32 bits fit a usize.
        let wanted = offset.checked_add(count as usize)?;
        let (page, pages) = self.pages(at, wanted.div_ceil(PAGE))?;

        // INVARIANT: As in `bytes`, of all of these pages.
        Some(Bytes {
            // SAFETY: Within the first page.
            start: unsafe { page.add(offset) },
            // OVERFLOW: bytes that are in memory.
            count: wanted.min(pages * PAGE).checked_sub(offset)?,
            _memory: PhantomData,
        })
    }

    /// Where the page of an address is, and how many follow it there: with it, at most `most`.
    fn pages(&self, at: Physical, most: usize) -> Option<(NonNull<u8>, usize)> {
        let index = at.address >> PAGE_SHIFT;

        match at.place {
            Place::System => direct_map(index, most),
            Place::Local => {
                let local = self.local.as_ref()?;

                local.addresses(usize::try_from(index).ok()?, most)
            }
            Place::Aperture | Place::Peer => None,
        }
    }
}

/// Bytes of a page.
// CAST: a small number.
const PAGE: usize = PAGE_SIZE as usize;

/// Which byte of its page an address is.
fn in_page(at: Physical) -> usize {
    // CAST: the remainder is small.
    (at.address % PAGE_SIZE) as usize
}

/// The address of a frame in the direct map, and how many follow it there: with it, at most `most`;
/// `None` if processors cannot use memory there.
fn direct_map(frame: u64, most: usize) -> Option<(NonNull<u8>, usize)> {
    let frame = c_ulong::try_from(frame).ok()?;
    // SAFETY: Any number may be asked for: looks whether there is such a frame.
    let address = NonNull::new(unsafe { ffi::dxg_direct_map(frame) }.cast())?;

    Some(match most {
        1 => (address, 1),
        // SAFETY: The first one is there, and this looks whether the others are.
        // CAST: they have the same size.
        _ => (address, unsafe {
            ffi::dxg_direct_map_count(frame, most as c_ulong) as usize
        }),
    })
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

    fn store64s(&self, at: Physical, first: u64, increment: u64, count: u32) -> Option<()> {
        // CAST: 32 bits fit a usize.
        let size = (count as usize).checked_mul(size_of::<u64>())?;
        let mut value = first;

        for word in self.bytes(at, size)?.words64()? {
            word.store(value, Relaxed);
            // OVERFLOW: they count as they may.
            value = value.wrapping_add(increment);
        }
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

    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<u32> {
        let (source, target) = (self.first_bytes(from, bytes)?, self.first_bytes(to, bytes)?);

        // CAST: 32 bits fit a usize.
        if source.count.min(target.count) == bytes as usize {
            return Some(target.copy(source));
        }

        let mut source = Parts::new(self, from, bytes, source);
        let mut target = Parts::new(self, to, bytes, target);
        let mut done = 0;

        while let Some((from, to)) = source.first().zip(target.first()) {
            let count = to.copy(from);

            source.skip(count);
            target.skip(count);
            // OVERFLOW: at most as many as were asked for.
            done += count;
        }
        (done != 0).then_some(done)
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<u32> {
        let mut target = Parts::new(self, to, bytes, self.first_bytes(to, bytes)?);
        let mut done = 0;

        while let Some(part) = target.first() {
            // Its lowest byte is the first of all.
            // OVERFLOW: a few bits.
            let count = part.fill(pattern.rotate_right(done % 4 * u8::BITS));

            target.skip(count);
            // OVERFLOW: at most as many as were asked for.
            done += count;
        }
        (done != 0).then_some(done)
    }
}
