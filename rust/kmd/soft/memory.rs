// SPDX-License-Identifier: GPL-2.0

//! Memory segments of the software adapter, and its page tables.

use super::aperture::APERTURE_SIZE;
use crate::{
    ddi::{
        caps::{
            GpuMmuCaps,
            PageTableLevel,
            PageTableUpdateMode,
            MAX_PAGE_TABLE_LEVELS, //
        },
        paging::{
            PageEntry,
            PageTableEntry,
            UpdatePageTable, //
        },
        segments::{
            SegmentDescriptor,
            SegmentKind,
            Segments,
            SYSTEM_MEMORY, //
        }, //
    },
    engine::{
        memory::{
            Physical,
            Place, //
        },
        page_table::{
            Entry,
            Profile, //
        }, //
    },
    platform::{
        self,
        SegmentMemory, //
    }, //
};
use core::array;

/// Which segments an adapter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentIds {
    /// That of its own memory, if it has any.
    pub(super) local: Option<u32>,
    /// Leads to pages of the system.
    pub(super) aperture: u32,
}

impl SegmentIds {
    /// Those of an adapter that has memory of its own, or has none.
    pub(super) fn new(has_local: bool) -> Self {
        if has_local {
            Self {
                local: Some(1),
                aperture: 2,
            }
        } else {
            Self {
                local: None,
                aperture: 1,
            }
        }
    }

    /// What engines call a segment.
    fn place(&self, segment: u32) -> Option<Place> {
        match segment {
            SYSTEM_MEMORY => Some(Place::System),
            _ if self.local == Some(segment) => Some(Place::Local),
            _ if self.aperture == segment => Some(Place::Aperture),
            _ => None,
        }
    }

    /// Where something is, for engines.
    pub(super) fn physical(&self, segment: u32, address: u64) -> Option<Physical> {
        Some(Physical::new(self.place(segment)?, address))
    }
}

/// Describes the segments, in the order of their ids.
pub(super) fn describe(segments: &mut Segments, local: Option<&SegmentMemory>, bytes: u64) {
    if let Some(memory) = local {
        // There is room for two.
        let _id = segments.add(SegmentDescriptor {
            kind: SegmentKind::Memory,
            size: bytes,
            commit_limit: 0,
            cpu_visible: true,
            cache_coherent: false,
            application_target: true,
            local_budget_group: true,
            memory: Some(memory.clone()),
        });
    }

    let _id = segments.add(SegmentDescriptor {
        kind: SegmentKind::Aperture,
        size: APERTURE_SIZE,
        commit_limit: APERTURE_SIZE,
        cpu_visible: false,
        cache_coherent: true,
        application_target: true,
        local_budget_group: false,
        memory: None,
    });
}

/// The format of the page tables.
pub(super) const PROFILE: Profile = Profile::VRAM4;

/// What clients and the OS part know of it.
pub(super) fn mmu_caps() -> GpuMmuCaps {
    let level = PageTableLevel {
        index_bits: PROFILE.index_bits.into(),
        // CAST: a page.
        table_bytes: PROFILE.table_bytes() as u32,
        segment: SYSTEM_MEMORY,
    };

    GpuMmuCaps {
        address_bits: PROFILE.va_bits(),
        read_only: true,
        // Nothing is fetched from pages but commands, which are data.
        no_execute: false,
        // It is the processor that reads.
        cache_coherent: true,
        page_table_update_mode: PageTableUpdateMode::CpuVirtual,
        page_table_update_require_address_space_idle: false,
        invalid_tlb_entries_not_cached: false,
        explicit_page_table_invalidation: false,
        page_table_levels: PROFILE.levels.into(),
        levels: array::from_fn::<_, MAX_PAGE_TABLE_LEVELS, _>(|number| {
            if number < usize::from(PROFILE.levels) {
                level
            } else {
                PageTableLevel::default()
            }
        }),
    }
}

/// Writes entries of a page table.
pub(super) fn update(ids: &SegmentIds, update: &UpdatePageTable<'_>) {
    // CAST: 32 bits fit a usize.
    let words = update.table.iter().skip(update.start as usize);

    for (word, entry) in words.zip(update.entries.iter()) {
        platform::store_release(word, encode(ids, &entry).bits());
    }
}

/// The format of an entry. What leads to no segment is invalid.
fn encode(ids: &SegmentIds, entry: &PageTableEntry) -> Entry {
    match entry {
        PageTableEntry::Invalid => Entry::INVALID,
        PageTableEntry::Zero => Entry::ZERO,
        PageTableEntry::Page(page) => ids
            .physical(page.segment, page.address)
            .map_or(Entry::INVALID, |at| with_rights(Entry::to(at), page)),
    }
}

fn with_rights(mut entry: Entry, page: &PageEntry) -> Entry {
    if !page.read_only {
        entry = entry.writable();
    }
    if !page.no_execute {
        entry = entry.executable();
    }
    if page.system_use_only {
        entry = entry.system_only();
    }
    entry
}
