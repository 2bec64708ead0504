// SPDX-License-Identifier: GPL-2.0

//! What the engine wants of physical memory.

/// Bytes of a page of GPU virtual memory.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// The same as a number of bits.
pub const PAGE_SHIFT: u32 = 12;
/// Bits of an address in one of the large pages that a table can have instead.
pub const LARGE_PAGE_SHIFT: u32 = 16;

/// Where something is in physical memory, with the numbers of page table entries (GPU-64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Place {
    /// Pages of the CPU. An address is a page frame number, shifted, and an offset.
    System = 0,
    /// The adapter's own memory, VRAM. An address is an offset in it.
    Local = 1,
    /// The aperture, a table of system pages. An address is an offset in it.
    Aperture = 2,
    /// Memory of another function. The highest 12 bits of an address name the function.
    Peer = 3,
}

/// A physical address, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Physical {
    /// What `address` counts in.
    pub place: Place,
    /// Bytes from the start of the place.
    pub address: u64,
}

impl Physical {
    /// An address in a place.
    pub const fn new(place: Place, address: u64) -> Self {
        Self { place, address }
    }

    /// The address this many bytes further on.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self {
            place: self.place,
            // OVERFLOW: nothing is at the end of any place, so what wraps is refused like the rest.
            address: self.address.wrapping_add(bytes),
        }
    }
}

/// Physical memory. `None` says that nothing is there; the engine reports a page fault.
///
/// Other processors and engines use the same memory at the same time. So every word is loaded and
/// stored by one access that others cannot see half of (GPU-39, FEN-9). No ordering is asked for:
/// the engine has its own barriers (`platform::full_fence`).
///
/// Words are aligned to their size. The ranges of `copy` and `fill` may begin and end anywhere.
pub trait Memory {
    /// One 32-bit load.
    fn load32(&self, at: Physical) -> Option<u32>;

    /// 32-bit loads of dwords that follow each other in one page, one for each.
    fn load32s(&self, at: Physical, to: &mut [u32]) -> Option<()> {
        let mut from = at;

        for place in to {
            *place = self.load32(from)?;
            from = from.plus(4);
        }
        Some(())
    }

    /// One 64-bit load.
    fn load64(&self, at: Physical) -> Option<u64>;

    /// 64-bit loads of words that follow each other in one page, one for each.
    fn load64s(&self, at: Physical, to: &mut [u64]) -> Option<()> {
        let mut from = at;

        for place in to {
            *place = self.load64(from)?;
            from = from.plus(8);
        }
        Some(())
    }

    /// One 32-bit store.
    fn store32(&self, at: Physical, value: u32) -> Option<()>;

    /// One 64-bit store.
    fn store64(&self, at: Physical, value: u64) -> Option<()>;

    /// 64-bit stores to words that follow each other in one page: `first`, and then each more by
    /// `increment` than the one before.
    fn store64s(&self, at: Physical, first: u64, increment: u64, count: u32) -> Option<()> {
        let (mut to, mut value) = (at, first);

        for _ in 0..count {
            self.store64(to, value)?;
            to = to.plus(8);
            // OVERFLOW: they count as they may.
            value = value.wrapping_add(increment);
        }
        Some(())
    }

    /// One 64-bit store that nobody sees before the stores that came before it.
    fn store64_release(&self, at: Physical, value: u64) -> Option<()>;

    /// One 64-bit store of an entry of a log. Others may see it later than the stores that follow,
    /// until [`Memory::drain`] (GPU-78).
    fn store64_late(&self, at: Physical, value: u64) -> Option<()> {
        self.store64(at, value)
    }

    /// Others see all that [`Memory::store64_late`] has stored, on return.
    fn drain(&self) {}

    /// Replaces `old` by `new`, in one 64-bit access. Returns what was there: `old` if it did.
    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64>;

    /// Copies the first of some bytes, and says how many: all, or those up to the end of a page of
    /// one side, behind which others are not there or lie elsewhere. `None` if a first page is not
    /// there. If both addresses and the size are multiples of 8, every 8 bytes are one load and one
    /// store (GPU-39). If the ranges overlap, what the overlap holds then is open, but nothing else
    /// is touched (GPU-42).
    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<u32>;

    /// Fills the first of some bytes, as many as [`Memory::copy`] would, with a pattern that begins
    /// at `to` with its lowest byte. If address and size are multiples of 8, every 8 bytes are one
    /// store; of 4, every 4 bytes.
    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<u32>;
}
