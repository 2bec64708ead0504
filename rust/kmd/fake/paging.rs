// SPDX-License-Identifier: GPL-2.0

//! What a test double does for page tables and its aperture.

use super::{
    facts::{
        self,
        PAGE_SIZE, //
    },
    journal::{
        Entry,
        Kind, //
    },
    FakeKmd, //
};
use crate::{
    ddi::paging::{
        Entries,
        InitContextResource,
        MapApertureSegment,
        NotifyResidency,
        TableAddress,
        UnmapApertureSegment,
        UpdatePageTable,
        MAX_APERTURE_PAGES,
        MAX_ENTRIES, //
    },
    platform, //
};

impl FakeKmd {
    pub(super) fn update_page_table(&self, update: &UpdatePageTable<'_>) {
        let _call = self.enter(Entry::UpdatePageTable);

        self.linger();
        self.journal.check(Kind::Process, update.process.0);

        if matches!(update.entries, Entries::Each(entries) if entries.len() > MAX_ENTRIES)
            || update.address % PAGE_SIZE != 0
        {
            self.journal.bad_value();
        }
        if let Some(mmu) = &self.behaviour.mmu {
            mmu.update(update);
            return;
        }

        let TableAddress::CpuVirtual(table) = update.table else {
            self.journal.bad_value();
            return;
        };
        // CAST: 32 bits fit a usize.
        let words = table.iter().skip(update.start as usize);

        if words.len() < update.entries.count() {
            self.journal.bad_value();
        }
        for (word, entry) in words.zip(update.entries.iter()) {
            platform::store_release(word, facts::entry(&entry));
        }
    }

    pub(super) fn map_aperture(&self, map: &MapApertureSegment<'_>) {
        let _call = self.enter(Entry::MapApertureSegment);

        self.linger();
        if map.segment != facts::APERTURE
            || map.pages.is_empty()
            || map.pages.len() > MAX_APERTURE_PAGES
            || map.pages.iter().any(|address| address % PAGE_SIZE != 0)
        {
            self.journal.bad_value();
        }
        // CAST: a usize fits 64 bits.
        self.journal
            .map_aperture(map.pages_of, map.first, map.pages.len() as u64);
    }

    /// It leaves the zeros that are there.
    pub(super) fn init_context_resource(&self, init: &InitContextResource) {
        let _call = self.enter(Entry::InitContextResource);

        self.linger();
        if init.size == 0
            || [init.at.1, init.size, init.destination]
                .iter()
                .any(|value| value % PAGE_SIZE != 0)
        {
            self.journal.bad_value();
        }
    }

    pub(super) fn notify_residency(&self, notify: &NotifyResidency) {
        let _call = self.enter(Entry::NotifyResidency);

        self.linger();
        self.journal.check(Kind::Allocation, notify.allocation.0);
        if notify
            .at
            .is_some_and(|(segment, address)| segment == 0 || address % PAGE_SIZE != 0)
        {
            self.journal.bad_value();
        }
    }

    pub(super) fn unmap_aperture(&self, unmap: &UnmapApertureSegment) {
        let _call = self.enter(Entry::UnmapApertureSegment);

        self.linger();
        if unmap.segment != facts::APERTURE || unmap.count == 0 || unmap.dummy % PAGE_SIZE != 0 {
            self.journal.bad_value();
        }
        self.journal
            .unmap_aperture(unmap.pages_of, unmap.first, unmap.count);
    }
}
