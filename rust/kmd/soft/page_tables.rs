// SPDX-License-Identifier: GPL-2.0

//! Page tables of the software adapter, in the formats that its engines know (GPU-63, GPU-64).

use super::{
    config::{
        AdapterProfile,
        Config,
        TableMemory, //
    },
    memory::SegmentIds, //
};
use crate::{
    ddi::{
        caps::{
            GpuMmuCaps,
            PageTableLevel,
            MAX_PAGE_TABLE_LEVELS, //
        },
        paging::{
            Entries,
            PageEntry,
            PageSize,
            PageTableEntry,
            TableAddress,
            UpdatePageTable, //
        },
        segments::SYSTEM_MEMORY, //
    },
    engine::page_table::{
        Entry,
        Profile, //
    },
    platform::{
        self,
        Word64, //
    }, //
};
use core::array;

/// The size of a root of two levels is a multiple of so many entries, so that it does not move
/// with each of them.
const ROOT_STEP: u32 = 64;

/// The format of the page tables.
pub(super) const fn format(profile: AdapterProfile) -> Profile {
    match profile {
        AdapterProfile::Vram4 | AdapterProfile::Uma => Profile::VRAM4,
        AdapterProfile::Doc2 => Profile::DOC2,
    }
}

/// What clients and the OS part know of it.
pub(super) fn mmu_caps(config: &Config) -> GpuMmuCaps {
    let format = format(config.profile);
    let segment = match config.tables {
        TableMemory::System => SYSTEM_MEMORY,
        TableMemory::Local => SegmentIds::new(config.local_memory != 0)
            .local
            .unwrap_or(SYSTEM_MEMORY),
    };
    let level = PageTableLevel {
        index_bits: format.index_bits.into(),
        // CAST: a page.
        table_bytes: format.table_bytes() as u32,
        segment,
        paging_process_segment: segment,
    };

    GpuMmuCaps {
        address_bits: format.va_bits(),
        read_only: true,
        // Nothing is fetched from pages but commands, which are data.
        no_execute: false,
        // It is the processor that reads.
        cache_coherent: true,
        page_table_update_mode: config.table_updates.mode(),
        page_table_update_require_address_space_idle: config.idle_updates,
        invalid_tlb_entries_not_cached: false,
        explicit_page_table_invalidation: false,
        leaf_table_bytes_64kb: match config.use_64kb_pages {
            // OVERFLOW: less than a page.
            true => format
                .large_entries()
                .wrapping_mul(format.entry_bytes.into()),
            false => 0,
        },
        page_table_levels: format.levels.into(),
        levels: array::from_fn::<_, MAX_PAGE_TABLE_LEVELS, _>(|number| {
            if number < usize::from(format.levels) {
                level
            } else {
                PageTableLevel::default()
            }
        }),
    }
}

/// GetRootPageTableSize: sets how many entries a root has that is to have so many at least, and
/// returns its bytes. Roots of four levels have one size.
pub(super) fn root_size(profile: AdapterProfile, entries: &mut u32) -> u32 {
    let format = format(profile);

    *entries = match format.levels {
        2 => entries
            .checked_next_multiple_of(ROOT_STEP)
            .unwrap_or(u32::MAX)
            .min(format.entries()),
        _ => format.entries(),
    };
    // OVERFLOW: a table is a page at most.
    entries.wrapping_mul(format.entry_bytes.into())
}

/// Writes entries of a page table that the processor sees.
pub fn update(profile: AdapterProfile, ids: &SegmentIds, update: &UpdatePageTable<'_>) {
    let is_short = format(profile).entry_bytes == 4;
    let TableAddress::CpuVirtual(table) = update.table else {
        return;
    };
    let write = |index, bits| {
        if is_short {
            write_short(table, index, bits);
        } else if let Some(word) = table.get(index) {
            platform::store_release(word, bits);
        }
    };
    // CAST: 32 bits fit a usize.
    let places = update.start as usize..;

    match update.entries {
        Entries::Each(entries) => {
            for (index, entry) in places.zip(entries) {
                write(index, encode(ids, entry).bits());
            }
        }
        Entries::Repeat(entry, count) => {
            let bits = encode(ids, &entry).bits();

            for (index, _) in places.zip(0..count) {
                write(index, bits);
            }
        }
        Entries::Following(entry, count) => {
            let first = encode(ids, &entry);

            for (index, page) in places.zip(0..count) {
                write(index, first.further(page).bits());
            }
        }
    }
}

/// An entry of 4 bytes. What it cannot say is invalid: `doc2` is refused where memory ends too far
/// above.
pub(super) fn short(bits: u64) -> u64 {
    u32::try_from(bits).map_or(Entry::INVALID.bits(), u64::from)
}

/// Writes an entry of 4 bytes.
fn write_short(table: &[Word64], index: usize, bits: u64) {
    let bits = short(bits);
    let shift = if index % 2 == 0 { 0 } else { u32::BITS };
    let mask = u64::from(u32::MAX) << shift;

    // The OS part writes a table by one thread at a time. Engines only read, 4 bytes at once.
    if let Some(word) = table.get(index / 2) {
        let other = platform::load_acquire(word) & !mask;

        platform::store_release(word, other | (bits << shift));
    }
}

/// The format of an entry. What leads to no segment is invalid.
pub(super) fn encode(ids: &SegmentIds, entry: &PageTableEntry) -> Entry {
    match entry {
        PageTableEntry::Invalid => Entry::INVALID,
        PageTableEntry::Zero => Entry::ZERO,
        PageTableEntry::Page(page) => ids
            .physical(page.segment, page.address)
            .map_or(Entry::INVALID, |at| with_flags(Entry::to(at), page)),
    }
}

fn with_flags(mut entry: Entry, page: &PageEntry) -> Entry {
    if page.page_size == PageSize::Kib64 {
        entry = entry.to_large_pages();
    }
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
