// SPDX-License-Identifier: GPL-2.0

//! Formats of page tables (GPU-63, GPU-64).
//!
//! The engine reads entries; the KMD writes them with the same type.

use super::memory::{
    Memory,
    Physical,
    Place,
    LARGE_PAGE_SHIFT,
    PAGE_SHIFT,
    PAGE_SIZE, //
};

/// Entry: bit 0, 1, 3, 6 and 7, and where the place, the frame and the function are.
const VALID: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const EXECUTABLE: u64 = 1 << 2;
const ZERO: u64 = 1 << 3;
const PLACE_SHIFT: u32 = 4;
const SYSTEM_ONLY: u64 = 1 << 6;
const LARGE_PAGES: u64 = 1 << 7;
const FRAME_MASK: u64 = 0x000f_ffff_ffff_f000;
const FUNCTION_SHIFT: u32 = 52;

impl Place {
    /// The place with the lowest two bits of `bits` as its number.
    pub const fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::System,
            1 => Self::Local,
            2 => Self::Aperture,
            _ => Self::Peer,
        }
    }

    /// Its number.
    pub const fn bits(self) -> u64 {
        match self {
            Self::System => 0,
            Self::Local => 1,
            Self::Aperture => 2,
            Self::Peer => 3,
        }
    }
}

/// An entry of a page table (GPU-64).
///
/// In a table of pages it leads to a page, in a table of a higher level to the table below. Of the
/// latter only `valid`, `zero` and where it leads to count; rights are those of the page's entry.
/// With `zero`, at any level, all that is below the entry are zero pages. With `large pages` the
/// table of level 0 that it leads to has pages of 64 KiB; nobody looks at that bit elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// Leads nowhere.
    pub const INVALID: Self = Self(0);

    /// Leads to zero pages.
    pub const ZERO: Self = Self(VALID | ZERO);

    /// Leads to this page or table, which is only read. The address is rounded down to a page. The
    /// highest 12 bits of an address of a peer are the function.
    pub const fn to(target: Physical) -> Self {
        let function = match target.place {
            Place::Peer => target.address & !(u64::MAX >> (64 - FUNCTION_SHIFT)),
            _ => 0,
        };

        Self(
            VALID | (target.place.bits() << PLACE_SHIFT) | (target.address & FRAME_MASK) | function,
        )
    }

    /// The same, and it may be written.
    #[must_use]
    pub const fn writable(self) -> Self {
        Self(self.0 | WRITABLE)
    }

    /// The same, and it may be executed, which nobody looks at.
    #[must_use]
    pub const fn executable(self) -> Self {
        Self(self.0 | EXECUTABLE)
    }

    /// The same, and only the system may use it.
    #[must_use]
    pub const fn system_only(self) -> Self {
        Self(self.0 | SYSTEM_ONLY)
    }

    /// The same, and the table that it leads to has pages of 64 KiB.
    #[must_use]
    pub const fn to_large_pages(self) -> Self {
        Self(self.0 | LARGE_PAGES)
    }

    /// The entry with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits. Those of an entry of 4 bytes are the lowest 32.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether it leads anywhere.
    pub const fn is_valid(self) -> bool {
        self.0 & VALID != 0
    }

    /// Whether what is below are zero pages.
    pub const fn is_zero(self) -> bool {
        self.0 & ZERO != 0
    }

    /// Whether the page may be written.
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Whether the page is for the system only.
    pub const fn is_system_only(self) -> bool {
        self.0 & SYSTEM_ONLY != 0
    }

    /// Whether the table that it leads to has pages of 64 KiB.
    pub const fn leads_to_large_pages(self) -> bool {
        self.0 & LARGE_PAGES != 0
    }

    /// How many of some entries, from the first one on, lead to memory that follows and allow the
    /// same.
    pub(super) fn following(entries: &[Self]) -> usize {
        let first = entries.first().copied().unwrap_or_default();

        entries
            .iter()
            .zip(0..)
            .take_while(|(entry, pages)| **entry == first.further(*pages))
            .count()
    }

    /// The entry that leads to the page so many pages behind, and allows the same. What leads to no
    /// memory stays as it is.
    #[must_use]
    pub const fn further(self, pages: u32) -> Self {
        // CAST: to a wider type.
        // OVERFLOW: nothing is at the end of any place.
        Self(self.0.wrapping_add(self.step().wrapping_mul(pages as u64)))
    }

    /// How much more the entry of what follows in memory is.
    const fn step(self) -> u64 {
        match self.is_valid() && !self.is_zero() {
            true => PAGE_SIZE,
            false => 0,
        }
    }

    /// Where it leads to.
    pub const fn target(self) -> Physical {
        let place = Place::from_bits(self.0 >> PLACE_SHIFT);
        let function = match place {
            Place::Peer => self.0 & !(u64::MAX >> (64 - FUNCTION_SHIFT)),
            _ => 0,
        };

        Physical::new(place, (self.0 & FRAME_MASK) | function)
    }
}

/// How page tables are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How many levels of tables there are. Level 0 has the entries of pages.
    pub levels: u8,
    /// How many bits of an address are the index into a table.
    pub index_bits: u8,
    /// Bytes of an entry: 8 or 4.
    pub entry_bytes: u8,
}

impl Profile {
    /// That of the software GPU: 48 bits, tables of 512 entries of 8 bytes.
    pub const VRAM4: Self = Self {
        levels: 4,
        index_bits: 9,
        entry_bytes: 8,
    };

    /// The example of the documentation of the paging process: 32 bits, tables of 1024 entries of
    /// 4 bytes.
    pub const DOC2: Self = Self {
        levels: 2,
        index_bits: 10,
        entry_bytes: 4,
    };

    /// How many bits an address has.
    pub const fn va_bits(&self) -> u32 {
        self.shift(self.levels)
    }

    /// Entries of a table, other than the root.
    pub const fn entries(&self) -> u32 {
        // OVERFLOW: far less than 32 bits in both profiles; wrapping is total.
        1_u32.wrapping_shl(self.index_bits as u32)
    }

    /// Bytes of such a table.
    pub const fn table_bytes(&self) -> u64 {
        // CAST: to wider types.
        (self.entries() as u64).saturating_mul(self.entry_bytes as u64)
    }

    /// Which bit of an address is the lowest of its index at this level.
    pub(super) const fn shift(&self, level: u8) -> u32 {
        // CAST: to a wider type.
        // OVERFLOW: products of two bytes.
        PAGE_SHIFT + level as u32 * self.index_bits as u32
    }

    /// Whether an address has no more bits than there are.
    pub const fn has_address(&self, va: u64) -> bool {
        match va.checked_shr(self.va_bits()) {
            Some(above) => above == 0,
            None => true,
        }
    }

    /// The index of the entry of an address in a table of this level.
    pub const fn index(&self, va: u64, level: u8) -> u32 {
        let index = match va.checked_shr(self.shift(level)) {
            Some(index) => index,
            None => 0,
        };

        // CAST: the mask leaves less than 32 bits.
        (index & (self.entries().wrapping_sub(1) as u64)) as u32
    }

    /// Entries of a table of level 0 that has pages of 64 KiB: it stands for as much memory.
    pub const fn large_entries(&self) -> u32 {
        self.entries() >> (LARGE_PAGE_SHIFT - PAGE_SHIFT)
    }

    /// The index of the entry of an address in such a table.
    pub const fn large_index(&self, va: u64) -> u32 {
        self.index(va, 0) >> (LARGE_PAGE_SHIFT - PAGE_SHIFT)
    }

    /// Where the entry with this index is.
    pub const fn entry_at(&self, table: Physical, index: u32) -> Physical {
        // CAST: to wider types.
        // OVERFLOW: a product of 32 and 8 bits.
        table.plus(index as u64 * self.entry_bytes as u64)
    }

    /// Reads an entry by one load. `None` if there is no memory.
    pub fn load(&self, memory: &impl Memory, at: Physical) -> Option<Entry> {
        if self.entry_bytes == 4 {
            memory.load32(at).map(|bits| Entry(bits.into()))
        } else {
            memory.load64(at).map(Entry)
        }
    }

    /// Reads entries that follow each other in one page, each by one load. `None` if there is no
    /// memory.
    pub fn load_all<const N: usize>(
        &self,
        memory: &impl Memory,
        at: Physical,
    ) -> Option<[Entry; N]> {
        if self.entry_bytes == 4 {
            let mut bits = [0; N];

            memory.load32s(at, &mut bits)?;
            Some(bits.map(|bits| Entry(bits.into())))
        } else {
            let mut bits = [0; N];

            memory.load64s(at, &mut bits)?;
            Some(bits.map(Entry))
        }
    }
}
