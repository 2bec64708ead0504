// SPDX-License-Identifier: GPL-2.0

//! Page tables of GPU address spaces (MEM-51 to MEM-59), and the aperture (MEM-4, MEM-78).
//!
//! The OS part decides what is mapped where, and owns the tables. The KMD knows the format of their
//! entries. Without a paging buffer the processor updates a table (CPU_VIRTUAL), and that is done
//! when BuildPagingBuffer returns.
//!
//! Bytes are filled and moved by the paging node, where the adapter has one, and tables are updated
//! by it, if the KMD says so (GPU_VIRTUAL). The KMD writes commands to a [`PagingBuffer`]; the OS
//! part submits them to a context of the paging process, by whose addresses they name memory.

use super::types::{
    AllocationCookie,
    ContextCookie,
    ProcessCookie, //
};
use crate::platform::Word64;

/// Most entries of one [`PagingOperation::UpdatePageTable`].
pub const MAX_ENTRIES: usize = 64;

/// Most pages of one [`PagingOperation::MapApertureSegment`].
pub const MAX_APERTURE_PAGES: usize = 64;

/// What is to be done to a GPU address space, or to the aperture (`DXGKARG_BUILDPAGINGBUFFER`).
pub enum PagingOperation<'a> {
    /// DXGK_OPERATION_UPDATE_PAGE_TABLE: writes entries. It does not flush. With a buffer the table
    /// is at a GPU virtual address, and otherwise where the processor sees it.
    UpdatePageTable(UpdatePageTable<'a>, Option<&'a mut PagingBuffer>),
    /// DXGK_OPERATION_FLUSH_TLB: when this is done, no engine has or uses a translation that the
    /// tables do not have any more, and no access that has used one is in progress (MEM-58,
    /// GPU-97). Engines may run meanwhile.
    FlushTlb {
        /// Whose address space it is.
        process: ProcessCookie,
        /// GPU virtual address of the first byte.
        first: u64,
        /// GPU virtual address after the last byte. Both 0: the whole address space.
        last: u64,
        /// Where the commands go that do it; `None`: it is done on return.
        buffer: Option<&'a mut PagingBuffer>,
    },
    /// DXGK_OPERATION_MAP_APERTURE_SEGMENT: the aperture shows pages where it showed none.
    MapApertureSegment(MapApertureSegment<'a>),
    /// DXGK_OPERATION_UNMAP_APERTURE_SEGMENT: the aperture does not show them any more. When this
    /// returns, no access that has gone through it to one of them is in progress (MEM-58).
    UnmapApertureSegment(UnmapApertureSegment),
    /// DXGK_OPERATION_VIRTUAL_TRANSFER: commands that copy bytes of an allocation.
    TransferVirtual(TransferVirtual, &'a mut PagingBuffer),
    /// DXGK_OPERATION_VIRTUAL_FILL: commands that fill bytes of an allocation.
    FillVirtual(FillVirtual, &'a mut PagingBuffer),
    /// DXGK_OPERATION_INIT_CONTEXT_RESOURCE: commands that make a new context allocation what it
    /// is to be before its context runs. There may be nothing to do.
    InitContextResource(InitContextResource, &'a mut PagingBuffer),
    /// DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION: commands that UpdateContextAllocation has asked
    /// for.
    UpdateContextAllocation(UpdateContextAllocation<'a>, &'a mut PagingBuffer),
    /// DXGK_OPERATION_NOTIFY_RESIDENCY: where an allocation is that has asked for it.
    NotifyResidency(NotifyResidency),
}

impl PagingOperation<'_> {
    /// Its number (`DXGK_BUILDPAGINGBUFFER_OPERATION`).
    pub const fn number(&self) -> u32 {
        match self {
            Self::MapApertureSegment(_) => 5,
            Self::UnmapApertureSegment(_) => 6,
            Self::TransferVirtual(..) => 8,
            Self::FillVirtual(..) => 9,
            Self::InitContextResource(..) => 10,
            Self::UpdatePageTable(..) => 11,
            Self::FlushTlb { .. } => 12,
            Self::UpdateContextAllocation(..) => 13,
            Self::NotifyResidency(_) => 15,
        }
    }
}

/// What BuildPagingBuffer has done. An operation without a paging buffer is always done on return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Built {
    /// All of it is in the buffer, or done.
    All,
    /// STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER: what is in the buffer is to be submitted. Then the
    /// same operation comes again with an empty one, and with the offset as it was left.
    InsufficientDmaBuffer,
    /// STATUS_GRAPHICS_ALLOCATION_BUSY: it is to come again when no engine uses the allocation.
    AllocationBusy,
    /// Anything else went wrong: the adapter is in error.
    Failed,
}

/// Most dwords of a paging buffer.
pub const PAGING_BUFFER_DWORDS: usize = 1024;

/// A paging buffer, to which the KMD writes commands for the paging node (`pDmaBuffer`). There are
/// no private data of the driver with it.
pub struct PagingBuffer {
    /// The context of the paging process that will run it (`hSystemContext`).
    pub context: ContextCookie,
    /// GPU virtual address of its first dword, in the paging process.
    pub address: u64,
    /// `MultipassOffset`: 0 at first, then as the KMD has left it.
    pub multipass_offset: u32,
    dwords: [u32; PAGING_BUFFER_DWORDS],
    room: usize,
    written: usize,
}

impl PagingBuffer {
    /// One without room.
    pub const fn new() -> Self {
        Self {
            context: ContextCookie(0),
            address: 0,
            multipass_offset: 0,
            dwords: [0; PAGING_BUFFER_DWORDS],
            room: 0,
            written: 0,
        }
    }

    /// It is empty, and has room for so many dwords, or for all that there are.
    pub fn begin(&mut self, room: usize) {
        self.room = room.min(PAGING_BUFFER_DWORDS);
        self.written = 0;
    }

    /// How many more dwords it has room for.
    pub const fn room(&self) -> usize {
        self.room.saturating_sub(self.written)
    }

    /// Writes these dwords. False if they have no room: then none is written.
    pub fn write(&mut self, dwords: &[u32]) -> bool {
        let end = self.written.saturating_add(dwords.len());
        let places = self.dwords.get_mut(..self.room);
        let Some(places) = places.and_then(|places| places.get_mut(self.written..end)) else {
            return false;
        };

        places.copy_from_slice(dwords);
        self.written = end;
        true
    }

    /// What is written.
    pub fn written(&self) -> &[u32] {
        self.dwords.get(..self.written).unwrap_or_default()
    }
}

impl Default for PagingBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// Between which kinds of memory bytes are moved (`DXGK_MEMORY_TRANSFER_DIRECTION`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a segment to system memory.
    LocalToSystem,
    /// From system memory to a segment.
    SystemToLocal,
    /// From a segment to a segment.
    LocalToLocal,
}

/// Bytes of an allocation that move to another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferVirtual {
    /// Whose bytes they are.
    pub allocation: AllocationCookie,
    /// Where in the allocation they begin. It is not added to the addresses.
    pub offset: u64,
    /// How many there are: a multiple of the page size.
    pub size: u64,
    /// GPU virtual address where they are, in the paging process.
    pub source: u64,
    /// GPU virtual address where they are to be.
    pub destination: u64,
    /// Between which kinds of memory.
    pub direction: Direction,
}

/// Bytes of an allocation that get a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillVirtual {
    /// Whose bytes they are.
    pub allocation: AllocationCookie,
    /// Where in the allocation they begin. It is not added to the address.
    pub offset: u64,
    /// How many there are: a multiple of the page size.
    pub size: u64,
    /// Each dword of them.
    pub pattern: u32,
    /// GPU virtual address where they are, in the paging process.
    pub destination: u64,
}

/// A context allocation that has just got its memory, which is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitContextResource {
    /// What the KMD calls it: as in its CreateContextAllocation.
    pub allocation: AllocationCookie,
    /// The segment or aperture that it is in, or 0, and where its first byte is there.
    pub at: (u32, u64),
    /// How many bytes it has.
    pub size: u64,
    /// GPU virtual address where they are, in the paging process.
    pub destination: u64,
}

/// A context allocation whose KMD wants to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateContextAllocation<'a> {
    /// How many bytes it has.
    pub size: u64,
    /// GPU virtual address where they are, in the paging process.
    pub destination: u64,
    /// What the KMD has given to UpdateContextAllocation (`pPrivateDriverData`).
    pub private_data: &'a [u8],
}

/// Whether WDDM 2 has no operation of this number any more: Transfer, Fill, DiscardContent,
/// ReadPhysical, WritePhysical and SpecialLockTransfer name memory by physical addresses. None is
/// ever issued (MEM-93).
pub const fn is_removed(number: u32) -> bool {
    matches!(number, 0..=4 | 7)
}

/// Whose pages an aperture shows, as the KMD calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagesOf {
    /// An allocation of CreateAllocation. It has one placement, whoever has opened it (MEM-26), so
    /// no device is named.
    Allocation(AllocationCookie),
    /// One of CreateContextAllocation.
    ContextAllocation(AllocationCookie),
}

/// Pages that the aperture is to show.
#[derive(Clone, Copy)]
pub struct MapApertureSegment<'a> {
    /// Whose pages they are.
    pub pages_of: PagesOf,
    /// Which aperture: its id.
    pub segment: u32,
    /// Where in the aperture, in pages.
    pub first: u64,
    /// Which of its pages is there (`MdlOffset`).
    pub page: u64,
    /// Physical addresses of the pages, at most [`MAX_APERTURE_PAGES`], multiples of the page size.
    pub pages: &'a [u64],
}

/// Part of the aperture that is to show nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmapApertureSegment {
    /// Whose pages it shows.
    pub pages_of: PagesOf,
    /// Which aperture: its id.
    pub segment: u32,
    /// Where in the aperture, in pages.
    pub first: u64,
    /// How many pages.
    pub count: u64,
    /// Physical address of a page that belongs to nobody, for hardware that must show something.
    pub dummy: u64,
}

/// Where an allocation is from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyResidency {
    /// Which one.
    pub allocation: AllocationCookie,
    /// The id of its segment or aperture, and the address of its first byte there, which is that of
    /// one range. `None`: it is not resident, and no engine uses it.
    pub at: Option<(u32, u64)>,
}

/// Entries for one page table.
#[derive(Clone, Copy)]
pub struct UpdatePageTable<'a> {
    /// Whose address space it is.
    pub process: ProcessCookie,
    /// Level of the table; 0 has the pages.
    pub level: u32,
    /// Where the table is.
    pub table: TableAddress<'a>,
    /// `Use64KBPages`: what each entry of a table of level 0 stands for.
    pub page_size: PageSize,
    /// Index of the first entry; all that are to be written are in the table.
    pub start: u32,
    /// What to write.
    pub entries: Entries<'a>,
    /// `InitialUpdate`: the table says nothing yet, and nothing leads to it.
    pub initial_update: bool,
    /// `NotifyEviction`: the entries become invalid because what they lead to is about to go or to
    /// move, be it an allocation or the table itself (MEM-55).
    pub notify_eviction: bool,
    /// `DriverProtection` of the client's call that shows these pages, unchanged (MEM-43); 0 for
    /// what the OS part writes by itself.
    pub driver_protection: u64,
    /// GPU virtual address that the first entry is for.
    pub address: u64,
}

/// Where a page table is (`DXGK_PAGETABLEUPDATEADDRESS`).
#[derive(Clone, Copy)]
pub enum TableAddress<'a> {
    /// `CpuVirtual`: the whole table, as the processor sees it.
    CpuVirtual(&'a [Word64]),
    /// `GpuVirtual`: its address in the paging process.
    GpuVirtual(u64),
}

/// How large the pages of a table of level 0 are (`DXGK_PTE_PAGE_SIZE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Kib4,
    /// 64 KiB.
    Kib64,
}

impl PageSize {
    /// How many pages of 4 KiB one has.
    pub const fn pages(self) -> u64 {
        match self {
            Self::Kib4 => 1,
            Self::Kib64 => 16,
        }
    }

    /// How many bytes one has.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Kib4 => 4 << 10,
            Self::Kib64 => 64 << 10,
        }
    }
}

/// Entries that follow each other in a table.
#[derive(Clone, Copy, Debug)]
pub enum Entries<'a> {
    /// These: at most [`MAX_ENTRIES`].
    Each(&'a [PageTableEntry]),
    /// `Repeat`: so many times the same one, at most as many as the table has.
    Repeat(PageTableEntry, u32),
    /// So many pages of 4 KiB that follow each other in the same memory, by the entry of the first
    /// one: at most as many as the table has.
    Following(PageTableEntry, u32),
}

impl<'a> Entries<'a> {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Each(entries) => entries.len(),
            // CAST: 32 bits fit a usize.
            Self::Repeat(_, count) | Self::Following(_, count) => *count as usize,
        }
    }

    /// The one with this number among them.
    pub fn get(&self, index: usize) -> Option<PageTableEntry> {
        match self {
            Self::Each(entries) => entries.get(index).copied(),
            Self::Repeat(entry, _) => (index < self.count()).then_some(*entry),
            Self::Following(entry, _) => {
                // CAST: a usize fits 64 bits.
                let bytes = (index as u64).saturating_mul(PageSize::Kib4.bytes());

                (index < self.count()).then_some(entry.further(bytes))
            }
        }
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = PageTableEntry> + 'a {
        (0..self.count()).filter_map(move |index| self.get(index))
    }
}

/// An entry of a page table, as the OS part means it (`DXGK_PTE`). The KMD encodes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageTableEntry {
    /// Nothing is there: an access faults.
    #[default]
    Invalid,
    /// A page that reads as zero, and whose stores are dropped.
    Zero,
    /// A page, or a table of the next level.
    Page(PageEntry),
}

impl PageTableEntry {
    /// The entry for what is so many bytes further on in the same memory.
    #[must_use]
    pub fn further(self, bytes: u64) -> Self {
        match self {
            Self::Page(page) => Self::Page(PageEntry {
                address: page.address.saturating_add(bytes),
                ..page
            }),
            other => other,
        }
    }
}

/// A page, or a table of the next level below, of which only the place counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// The segment it is in; 0 is system memory.
    pub segment: u32,
    /// Where it is: the physical address in system memory, or the offset in the segment. A
    /// multiple of the page size.
    pub address: u64,
    /// `PageTablePageSize`: how large the pages of the table of level 0 are that it leads to. 4 KiB
    /// for what leads to anything else.
    pub page_size: PageSize,
    /// Stores fault.
    pub read_only: bool,
    /// Instructions are not fetched from it.
    pub no_execute: bool,
    /// Only the system may access it (`SystemUseOnly`).
    pub system_use_only: bool,
    /// `CacheCoherent`: accesses see what is in caches of the CPU.
    pub cache_coherent: bool,
}

/// Where the page tables of a context begin (`DXGKARG_SETROOTPAGETABLE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootPageTable {
    /// The segment that the root table is in; 0 is system memory.
    pub segment: u32,
    /// Where it is, as in [`PageEntry::address`].
    pub address: u64,
    /// How many entries it has. An access whose index is not below faults.
    pub entries: u32,
}
