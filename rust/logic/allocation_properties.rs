// SPDX-License-Identifier: GPL-2.0

//! Where an allocation may be, and how: what its KMD says at creation, and what
//! UpdateAllocationProperty changes (MEM-3, MEM-4, MEM-8).

use super::{
    invalid_if,
    Invalid, //
};

/// What decides where an allocation is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// In which segments it may be: bit n is segment n. The aperture stands for system memory
    /// (MEM-5). Not 0.
    pub supported: u32,
    /// In which of these it had best be.
    pub preferred: u32,
    /// Whether engines use physical addresses of it.
    pub accessed_physically: bool,
    /// Whether it is one range in a memory segment anyway: a primary, or PhysicallyContiguous.
    pub contiguous: bool,
    /// Whether it stays where it is while it is resident.
    pub unmoveable: bool,
}

/// Whether a segment is in a set.
pub(super) fn is_in(set: u32, segment: u32) -> bool {
    1u32.checked_shl(segment).is_some_and(|bit| set & bit != 0)
}

impl Properties {
    /// What a KMD says, on an adapter that has the segments `known`. A set that names another one,
    /// or none, or not the preferred one, makes no sense.
    pub fn new(
        known: u32,
        supported: u32,
        preferred: u32,
        accessed_physically: bool,
        contiguous: bool,
    ) -> Result<Self, Invalid> {
        invalid_if(supported & !known != 0 || !is_in(supported, preferred))?;
        Ok(Self {
            supported,
            preferred,
            accessed_physically,
            contiguous,
            unmoveable: false,
        })
    }

    /// Whether it may be in this segment.
    pub fn may_be_in(&self, segment: u32) -> bool {
        is_in(self.supported, segment)
    }
}

/// Bits of the mask of `D3DDDI_UPDATEALLOCPROPERTY`: what it changes.
pub mod mask {
    /// Whether it is accessed physically.
    pub const ACCESSED_PHYSICALLY: u32 = 1 << 0;
    /// In which segments it may be.
    pub const SUPPORTED_SEGMENTS: u32 = 1 << 1;
    /// In which it had best be.
    pub const PREFERRED_SEGMENT: u32 = 1 << 2;
    /// Whether it stays where it is.
    pub const UNMOVEABLE: u32 = 1 << 3;
}

/// Bits of `D3DDDI_UPDATEALLOCPROPERTY_FLAGS`.
pub mod flags {
    /// Engines use physical addresses of it.
    pub const ACCESSED_PHYSICALLY: u32 = 1 << 0;
    /// It stays where it is.
    pub const UNMOVEABLE: u32 = 1 << 1;
}

/// How many segments a `D3DDDI_SEGMENTPREFERENCE` names.
const PREFERENCES: u32 = 5;
/// Bits of each: the segment, and above it the end at which to begin.
const PREFERENCE_BITS: u32 = 6;
/// The bits that name it, without the end at which to begin.
const SEGMENT: u32 = (1 << 5) - 1;
/// Bits of it that mean nothing.
const RESERVED_PREFERENCE: u32 = !((1 << (PREFERENCES * PREFERENCE_BITS)) - 1);

/// UpdateAllocationProperty as a client asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// What to change, see [`mask`].
    pub mask: u32,
    /// The segments it may be in: bit n is segment n + 1.
    pub supported: u32,
    /// The segments it had best be in, `D3DDDI_SEGMENTPREFERENCE`.
    pub preference: u32,
    /// See [`flags`].
    pub flags: u32,
}

/// The segments of a preference, the best first. 0 is none.
fn preferred(preference: u32) -> impl Iterator<Item = u32> {
    (0..PREFERENCES)
        .map(move |place| (preference >> (place * PREFERENCE_BITS)) & SEGMENT)
        .filter(|segment| *segment != 0)
}

impl Update {
    fn changes(&self, bit: u32) -> bool {
        self.mask & bit != 0
    }

    /// Checks what is the same for all adapters: reserved bits, and an empty set (MEM-8). What is
    /// not changed may be anything else.
    pub fn check(&self) -> Result<(), Invalid> {
        use mask::*;

        invalid_if(self.changes(SUPPORTED_SEGMENTS) && self.supported == 0)?;
        invalid_if(
            self.mask
                & !(ACCESSED_PHYSICALLY | SUPPORTED_SEGMENTS | PREFERRED_SEGMENT | UNMOVEABLE)
                != 0
                || self.flags & !(flags::ACCESSED_PHYSICALLY | flags::UNMOVEABLE) != 0
                || self.preference & RESERVED_PREFERENCE != 0,
        )
    }

    /// Checks that an adapter with the segments `known` has those that it names.
    pub fn check_segments(&self, known: u32) -> Result<(), Invalid> {
        use mask::*;

        // Segments count from 1, and there are 31 at most.
        invalid_if(self.changes(SUPPORTED_SEGMENTS) && self.supported & !(known >> 1) != 0)?;
        invalid_if(
            self.changes(PREFERRED_SEGMENT)
                && preferred(self.preference).any(|segment| !is_in(known, segment)),
        )
    }

    /// What an allocation with these properties has then. Of what it had best be in only what it
    /// may be in counts: the first of those that are named now, else what it was, else the first of
    /// the set.
    pub fn apply(&self, old: Properties) -> Properties {
        use mask::*;

        let supported = match self.changes(SUPPORTED_SEGMENTS) {
            true => self.supported << 1,
            false => old.supported,
        };
        let asked = preferred(self.preference)
            .filter(|_| self.changes(PREFERRED_SEGMENT))
            .find(|segment| is_in(supported, *segment));
        let kept = Some(old.preferred).filter(|segment| is_in(supported, *segment));
        let chosen = |bit, flag, old| match self.changes(bit) {
            true => self.flags & flag != 0,
            false => old,
        };

        Properties {
            supported,
            preferred: asked.or(kept).unwrap_or(supported.trailing_zeros()),
            accessed_physically: chosen(
                ACCESSED_PHYSICALLY,
                flags::ACCESSED_PHYSICALLY,
                old.accessed_physically,
            ),
            contiguous: old.contiguous,
            unmoveable: chosen(UNMOVEABLE, flags::UNMOVEABLE, old.unmoveable),
        }
    }
}
