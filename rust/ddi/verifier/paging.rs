// SPDX-License-Identifier: GPL-2.0

//! BuildPagingBuffer, verified: each operation has rules of its own.

use super::{
    call::Call,
    entry::Entry,
    objects::Kind,
    rule::Rule,
    Verifier, //
};
use crate::ddi::{
    class::Passive,
    context_allocation::MAX_PRIVATE_DATA,
    paging::{
        Built,
        Entries,
        FillVirtual,
        InitContextResource,
        MapApertureSegment,
        NotifyResidency,
        PagesOf,
        PagingBuffer,
        PagingOperation,
        TableAddress,
        TransferVirtual,
        UnmapApertureSegment,
        UpdateContextAllocation,
        UpdatePageTable,
        MAX_APERTURE_PAGES,
        MAX_ENTRIES, //
    },
    types::{
        AllocationCookie,
        ContextCookie,
        ProcessCookie,
        Scheduling, //
    }, //
};

/// Pages of segments and of page tables.
const PAGE_SIZE: u64 = 4096;

/// Most entries of a page table, which have 4 bytes at least.
const TABLE_ENTRIES: usize = 1024;

/// The only kind of context that a paging buffer is for.
const PACKETS: Kind = Kind::Context(Scheduling::Packets);

impl Verifier {
    /// BuildPagingBuffer.
    pub(super) fn build_paging(&self, class: &Passive, operation: PagingOperation<'_>) -> Built {
        let built = match operation {
            PagingOperation::UpdatePageTable(update, buffer) => {
                self.update_page_table(class, update, buffer)
            }
            PagingOperation::FlushTlb {
                process,
                first,
                last,
                buffer,
            } => self.flush_tlb(class, process, (first, last), buffer),
            PagingOperation::MapApertureSegment(map) => self.map_aperture(class, map),
            PagingOperation::UnmapApertureSegment(unmap) => self.unmap_aperture(class, unmap),
            PagingOperation::TransferVirtual(transfer, buffer) => {
                self.transfer(class, transfer, buffer)
            }
            PagingOperation::FillVirtual(fill, buffer) => self.fill(class, fill, buffer),
            PagingOperation::InitContextResource(init, buffer) => {
                self.init_context_resource(class, init, buffer)
            }
            PagingOperation::UpdateContextAllocation(update, buffer) => {
                self.update_context_allocation(class, update, buffer)
            }
            PagingOperation::NotifyResidency(notify) => self.notify_residency(class, notify),
        };

        // Without its object the KMD is not called, and nothing is to be done.
        built.unwrap_or(Built::All)
    }

    /// An operation without a buffer is done on return.
    fn is_done(call: &Call<'_>, built: Built) -> Option<Built> {
        call.check(Rule::BadAnswer, built == Built::All);
        Some(built)
    }

    /// Runs `build`, which gets the buffer if there is one; without one it is done on return.
    fn build_or_do(
        &self,
        call: &Call<'_>,
        buffer: Option<&mut PagingBuffer>,
        build: impl FnOnce(Option<&mut PagingBuffer>) -> Built,
    ) -> Option<Built> {
        match buffer {
            Some(buffer) => {
                call.check(Rule::BadValue, self.caps.paging_node.is_some());
                self.build(call, buffer, false, |buffer| build(Some(buffer)))
            }
            None => Self::is_done(call, build(None)),
        }
    }

    fn update_page_table(
        &self,
        class: &Passive,
        update: UpdatePageTable<'_>,
        buffer: Option<&mut PagingBuffer>,
    ) -> Option<Built> {
        let process = update.process.0;
        let (call, process) = self.enter_on(Entry::UpdatePageTable, Kind::Process, process)?;
        let count = update.entries.count();
        // CAST: 32 bits fit a usize. OVERFLOW: a table has two entries in a word at most.
        let end = (update.start as usize).checked_add(count);
        let room = match update.table {
            TableAddress::CpuVirtual(table) => table.len().saturating_mul(2),
            TableAddress::GpuVirtual(_) => TABLE_ENTRIES,
        };
        // An engine writes what the buffer says; the processor has none.
        let is_by_gpu = matches!(update.table, TableAddress::GpuVirtual(_));

        call.check(
            Rule::BadValue,
            update.level < self.caps.gpu_mmu.page_table_levels
                && update.address % PAGE_SIZE == 0
                && is_by_gpu == buffer.is_some()
                && end.is_some_and(|end| end <= room)
                && !matches!(update.entries, Entries::Each(entries) if entries.len() > MAX_ENTRIES),
        );
        self.build_or_do(&call, buffer, |buffer| {
            self.kmd.build_paging_buffer(
                class,
                PagingOperation::UpdatePageTable(
                    UpdatePageTable {
                        process: ProcessCookie(process.cookie()),
                        ..update
                    },
                    buffer,
                ),
            )
        })
    }

    fn flush_tlb(
        &self,
        class: &Passive,
        process: ProcessCookie,
        (first, last): (u64, u64),
        buffer: Option<&mut PagingBuffer>,
    ) -> Option<Built> {
        let (call, process) = self.enter_on(Entry::FlushTlb, Kind::Process, process.0)?;

        call.check(Rule::BadValue, first <= last);
        self.build_or_do(&call, buffer, |buffer| {
            self.kmd.build_paging_buffer(
                class,
                PagingOperation::FlushTlb {
                    process: ProcessCookie(process.cookie()),
                    first,
                    last,
                    buffer,
                },
            )
        })
    }

    /// An operation of the aperture, and how the KMD calls whose pages it is about. A context
    /// allocation has one name, which was never the verifier's.
    fn enter_aperture(&self, entry: Entry, pages_of: PagesOf) -> Option<(Call<'_>, PagesOf)> {
        match pages_of {
            PagesOf::Allocation(cookie) => {
                let (call, allocation) = self.enter_on(entry, Kind::Allocation, cookie.0)?;
                let own = AllocationCookie(allocation.cookie());

                Some((call, PagesOf::Allocation(own)))
            }
            PagesOf::ContextAllocation(_) => Some((self.enter(entry, 0), pages_of)),
        }
    }

    fn map_aperture(&self, class: &Passive, map: MapApertureSegment<'_>) -> Option<Built> {
        let (call, pages_of) = self.enter_aperture(Entry::MapApertureSegment, map.pages_of)?;

        call.check(
            Rule::BadValue,
            map.segment != 0
                && (1..=MAX_APERTURE_PAGES).contains(&map.pages.len())
                && map.pages.iter().all(|address| address % PAGE_SIZE == 0),
        );

        let map = MapApertureSegment { pages_of, ..map };

        Self::is_done(
            &call,
            self.kmd
                .build_paging_buffer(class, PagingOperation::MapApertureSegment(map)),
        )
    }

    fn unmap_aperture(&self, class: &Passive, unmap: UnmapApertureSegment) -> Option<Built> {
        let (call, pages_of) = self.enter_aperture(Entry::UnmapApertureSegment, unmap.pages_of)?;

        call.check(
            Rule::BadValue,
            unmap.segment != 0 && unmap.count != 0 && unmap.dummy % PAGE_SIZE == 0,
        );

        let unmap = UnmapApertureSegment { pages_of, ..unmap };

        Self::is_done(
            &call,
            self.kmd
                .build_paging_buffer(class, PagingOperation::UnmapApertureSegment(unmap)),
        )
    }

    fn notify_residency(&self, class: &Passive, notify: NotifyResidency) -> Option<Built> {
        let (call, allocation) = self.enter_on(
            Entry::NotifyResidency,
            Kind::Allocation,
            notify.allocation.0,
        )?;

        call.check(
            Rule::BadValue,
            notify
                .at
                .is_none_or(|(segment, address)| segment != 0 && address % PAGE_SIZE == 0),
        );
        Self::is_done(
            &call,
            self.kmd.build_paging_buffer(
                class,
                PagingOperation::NotifyResidency(NotifyResidency {
                    allocation: AllocationCookie(allocation.cookie()),
                    ..notify
                }),
            ),
        )
    }

    fn transfer(
        &self,
        class: &Passive,
        transfer: TransferVirtual,
        buffer: &mut PagingBuffer,
    ) -> Option<Built> {
        let (call, allocation) = self.enter_on(
            Entry::TransferVirtual,
            Kind::Allocation,
            transfer.allocation.0,
        )?;

        self.check_range(&call, transfer.offset, transfer.size, transfer.destination);
        call.check(Rule::BadValue, transfer.source % PAGE_SIZE == 0);
        self.build(&call, buffer, false, |buffer| {
            self.kmd.build_paging_buffer(
                class,
                PagingOperation::TransferVirtual(
                    TransferVirtual {
                        allocation: AllocationCookie(allocation.cookie()),
                        ..transfer
                    },
                    buffer,
                ),
            )
        })
    }

    fn fill(&self, class: &Passive, fill: FillVirtual, buffer: &mut PagingBuffer) -> Option<Built> {
        let (call, allocation) =
            self.enter_on(Entry::FillVirtual, Kind::Allocation, fill.allocation.0)?;

        self.check_range(&call, fill.offset, fill.size, fill.destination);
        self.build(&call, buffer, false, |buffer| {
            self.kmd.build_paging_buffer(
                class,
                PagingOperation::FillVirtual(
                    FillVirtual {
                        allocation: AllocationCookie(allocation.cookie()),
                        ..fill
                    },
                    buffer,
                ),
            )
        })
    }

    /// The KMD is called by its own name for the allocation, which was never the verifier's. It may
    /// have nothing to write.
    fn init_context_resource(
        &self,
        class: &Passive,
        init: InitContextResource,
        buffer: &mut PagingBuffer,
    ) -> Option<Built> {
        let call = self.enter(Entry::InitContextResource, 0);

        self.check_range(&call, 0, init.size, init.destination);
        call.check(Rule::BadValue, init.at.1 % PAGE_SIZE == 0);
        self.build(&call, buffer, true, |buffer| {
            let operation = PagingOperation::InitContextResource(init, buffer);

            self.kmd.build_paging_buffer(class, operation)
        })
    }

    fn update_context_allocation(
        &self,
        class: &Passive,
        update: UpdateContextAllocation<'_>,
        buffer: &mut PagingBuffer,
    ) -> Option<Built> {
        let call = self.enter(Entry::UpdateContextAllocation, 0);

        self.check_range(&call, 0, update.size, update.destination);
        call.check(
            Rule::BadValue,
            update.private_data.len() <= MAX_PRIVATE_DATA,
        );
        self.build(&call, buffer, false, |buffer| {
            let operation = PagingOperation::UpdateContextAllocation(update, buffer);

            self.kmd.build_paging_buffer(class, operation)
        })
    }

    /// What all of them have: whole pages, on an adapter with a paging node.
    fn check_range(&self, call: &Call<'_>, offset: u64, size: u64, destination: u64) {
        call.check(
            Rule::BadValue,
            self.caps.paging_node.is_some()
                && size != 0
                && [offset, size, destination]
                    .iter()
                    .all(|value| value % PAGE_SIZE == 0),
        );
    }

    /// The KMD writes to a buffer, and tells what it has done: it makes progress, and writes whole
    /// dwords only of what it says is there. There may be nothing to do if `may_be_empty`.
    fn build(
        &self,
        call: &Call<'_>,
        buffer: &mut PagingBuffer,
        may_be_empty: bool,
        build: impl FnOnce(&mut PagingBuffer) -> Built,
    ) -> Option<Built> {
        let context = call.find(PACKETS, buffer.context.0).ok()?;
        let own = core::mem::replace(&mut buffer.context, ContextCookie(context.cookie()));
        let (room, before) = (buffer.room(), buffer.multipass_offset);
        let built = build(buffer);
        let is_progress = buffer.room() != room || buffer.multipass_offset != before;

        buffer.context = own;
        call.check(
            Rule::BadAnswer,
            match built {
                Built::All => may_be_empty || buffer.room() != room,
                // Otherwise it would come again for ever.
                Built::InsufficientDmaBuffer => is_progress,
                Built::AllocationBusy | Built::Failed => buffer.room() == room,
            },
        );
        Some(built)
    }
}
