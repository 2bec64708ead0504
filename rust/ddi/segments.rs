// SPDX-License-Identifier: GPL-2.0

//! Memory segments of an adapter (MEM-1, MEM-2).

use crate::platform::SegmentMemory;
use core::array;

/// Most segments of an adapter. Their ids are from 1 on; 0 is system memory, which is none.
pub const MAX_SEGMENTS: usize = 31;

/// Id of system memory, where a segment is named.
pub const SYSTEM_MEMORY: u32 = 0;

/// What kind of segment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// It has memory of its own.
    Memory,
    /// It makes pages of system memory look like one range.
    Aperture,
}

/// A segment (`DXGK_SEGMENTDESCRIPTOR4`).
#[derive(Clone)]
pub struct SegmentDescriptor {
    /// What kind it is.
    pub kind: SegmentKind,
    /// Bytes.
    pub size: u64,
    /// Most bytes of system memory that an aperture shows at a time (`CommitLimit`).
    pub commit_limit: u64,
    /// `CpuVisible`: processors can access it.
    pub cpu_visible: bool,
    /// `CacheCoherent`: accesses through an aperture see what is in caches of the CPU.
    pub cache_coherent: bool,
    /// `Use64KBPages`: all that is in a memory segment begins at multiples of 64 KiB and takes
    /// whole ones.
    pub use_64kb_pages: bool,
    /// `ApplicationTarget`: it counts in budgets.
    pub application_target: bool,
    /// `LocalBudgetGroup`: it counts in the budget of local memory.
    pub local_budget_group: bool,
    /// How processors reach the bytes of a memory segment (`CpuTranslatedAddress`).
    pub memory: Option<SegmentMemory>,
}

/// The segments of an adapter, by id.
pub struct Segments {
    all: [Option<SegmentDescriptor>; MAX_SEGMENTS],
}

impl Segments {
    /// No segments.
    pub fn new() -> Self {
        Self {
            all: array::from_fn(|_| None),
        }
    }

    /// Adds one, whose id is the next; `None` if there are too many.
    pub fn add(&mut self, segment: SegmentDescriptor) -> Option<u32> {
        let (id, place) = (1u32..)
            .zip(&mut self.all)
            .find(|(_, place)| place.is_none())?;

        *place = Some(segment);
        Some(id)
    }

    /// The segment with this id. None has the id of system memory.
    pub fn get(&self, id: u32) -> Option<&SegmentDescriptor> {
        self.iter()
            .find(|(number, _)| *number == id)
            .map(|(_, segment)| segment)
    }

    /// All of them, in order, with their ids, which have no gaps.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &SegmentDescriptor)> + '_ {
        (1u32..)
            .zip(&self.all)
            .map_while(|(id, segment)| Some((id, segment.as_ref()?)))
    }
}

impl Default for Segments {
    fn default() -> Self {
        Self::new()
    }
}
