// SPDX-License-Identifier: GPL-2.0

//! The memory of an adapter: its segments, and how its page tables divide addresses (MEM-1, MEM-2).
//!
//! A segment is divided by the kernel's allocator for memory of GPUs. What an allocation gets of it
//! is filled with zeros before anybody sees it (MEM-7), and goes back with the last reference: when
//! no page table and no mapping has it any more. A segment with pages of 64 KiB is divided into
//! those, so that an allocation begins at a multiple of 64 KiB and all its pages are whole.
//!
//! LOCK: `taking` is a mutex and a leaf, also inside `AllocationMemory::turn`.

use super::{
    all_allocations::AllAllocations,
    aperture::Aperture,
    forced_moves::ForcedMoves,
    freed::{
        Freed,
        TakenRoom, //
    },
    idle::IdleList,
    notice::Notices,
    paging_log::{
        LogAbout,
        PagingLog, //
    },
    paging_switches::PagingSwitches,
    paging_worker::PagingWorker,
    reserved::ReservedMemory,
    rotation::Rotation,
    shrinker::{
        AdapterShrinker,
        Scanner, //
    }, //
};
use crate::{
    ddi::{
        caps::{
            AdapterQuery,
            DriverCaps, //
        },
        class::Passive,
        native_fence::NativeFenceCaps,
        paging::PageSize,
        segments::{
            self,
            SegmentDescriptor,
            SegmentKind,
            SYSTEM_MEMORY, //
        },
        types::{
            KmdError,
            KmdResult, //
        },
        Kmd, //
    },
    logic::{
        kept_pages::{
            self,
            Division, //
        },
        page_levels::Levels,
        paging_log::{
            Action,
            Kind, //
        }, //
    },
    platform::SegmentMemory,
    sys::{
        alloc::pin_arc,
        mem::{
            blocks::{
                Blocks,
                Buddy,
                Layout, //
            },
            pages::{
                Frame,
                PageSource, //
            }, //
        },
        params,
        work, //
    }, //
};
use core::ops::Range;
use kernel::{
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A memory segment.
#[pin_data]
pub(crate) struct Segment {
    /// Its number; not 0.
    pub(crate) id: u32,
    /// Bytes.
    pub(crate) size: u64,
    /// Whether it counts in the budget of local memory.
    pub(crate) is_local_group: bool,
    /// What it is divided into.
    pub(crate) page_size: PageSize,
    buddy: Buddy,
    /// Nobody else takes room after it was looked at, so that no more is in use than may be.
    #[pin]
    taking: Mutex<()>,
    memory: SegmentMemory,
    switches: Arc<PagingSwitches>,
    /// What is in it and could give way.
    pub(super) idle: Arc<IdleList>,
    /// What of it comes back.
    pub(super) freed: Arc<Freed>,
}

impl Segment {
    fn new(
        id: u32,
        descriptor: &SegmentDescriptor,
        switches: &Arc<PagingSwitches>,
    ) -> KmdResult<Option<Arc<Self>>> {
        let SegmentDescriptor {
            kind: SegmentKind::Memory,
            size,
            local_budget_group,
            use_64kb_pages,
            memory: Some(memory),
            ..
        } = descriptor
        else {
            return Ok(None);
        };
        let page_size = match use_64kb_pages {
            true => PageSize::Kib64,
            false => PageSize::Kib4,
        };

        if size.checked_rem(page_size.bytes()) != Some(0) {
            return Err(KmdError::InvalidParameter);
        }

        let buddy = Buddy::new(*size, page_size.bytes()).map_err(|_| KmdError::NoMemory)?;
        let idle = IdleList::new(Some(switches.clone())).map_err(|_| KmdError::NoMemory)?;
        let freed = Freed::new().map_err(|_| KmdError::NoMemory)?;
        let segment = pin_init!(Self {
            id,
            size: *size,
            is_local_group: *local_budget_group,
            page_size,
            buddy,
            taking <- new_mutex!((), "Segment::taking"),
            memory: memory.clone(),
            switches: switches.clone(),
            idle,
            freed,
        });

        pin_arc(segment, GFP_KERNEL)
            .map(Some)
            .map_err(|_| KmdError::NoMemory)
    }

    /// How many bytes are in use.
    pub(super) fn used(&self) -> u64 {
        self.size.saturating_sub(self.buddy.available())
    }

    /// How many bytes allocations can have besides.
    pub(super) fn available(&self) -> u64 {
        self.switches
            .segment_bytes(self.size)
            .saturating_sub(self.used())
    }

    /// Takes so many pages, whose bytes may be those of an earlier owner: ENOSPC if there are not
    /// as many, or not so. `log` says what becomes of them, unless somebody else does.
    ///
    /// Context: may sleep.
    pub(super) fn take(
        self: &Arc<Self>,
        count: usize,
        layout: Layout,
        log: Option<&LogAbout>,
    ) -> Result<Arc<LocalPages>> {
        // CAST: a usize fits 64 bits.
        let size = count.checked_mul(PAGE_SIZE).ok_or(ENOSPC)? as u64;

        let blocks = self.blocks(size, layout)?;
        let mut extents = KVVec::new();

        if layout.contiguous {
            // CAST: the memory of a segment fits a usize.
            let offset = blocks.first() as usize / PAGE_SIZE;

            extents.push(Extent { first: 0, offset }, GFP_KERNEL_ACCOUNT)?;
        } else {
            let mut first = 0;

            for (offset, size) in blocks.iter() {
                // CAST: as above.
                let (offset, pages) = (offset as usize / PAGE_SIZE, size as usize / PAGE_SIZE);

                extents.push(Extent { first, offset }, GFP_KERNEL_ACCOUNT)?;
                first += pages;
            }
        }

        let pages = Arc::new(
            LocalPages {
                count,
                extents,
                segment: self.clone(),
                log: log.cloned(),
                _blocks: blocks,
                room: TakenRoom::new(&self.freed),
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        pages.record(Kind::Commit);
        Ok(pages)
    }

    fn blocks(&self, size: u64, layout: Layout) -> Result<Blocks> {
        let _taking = self.taking.lock();

        if size > self.available() {
            return Err(ENOSPC);
        }
        self.buddy.take(size, layout)
    }
}

/// Pages that follow each other in a segment.
struct Extent {
    /// The first page of the allocation that is there.
    first: usize,
    /// Its place in the segment, in pages.
    offset: usize,
}

/// Pages of a segment, for one allocation. The place goes back when this is dropped.
pub(super) struct LocalPages {
    count: usize,
    /// In the order of the pages.
    extents: KVVec<Extent>,
    segment: Arc<Segment>,
    log: Option<LogAbout>,
    _blocks: Blocks,
    /// Dropped after the blocks.
    room: TakenRoom,
}

impl LocalPages {
    /// Says of each extent what has become of it.
    fn record(&self, kind: Kind) {
        let Some(log) = &self.log else {
            return;
        };
        let ends = self.extents.iter().skip(1).map(|next| next.first);

        for (extent, end) in self.extents.iter().zip(Iterator::chain(ends, [self.count])) {
            log.write(|| Action {
                kind,
                // CAST: a usize fits 64 bits, and so do bytes of a segment.
                start: extent.first as u64,
                count: end.saturating_sub(extent.first) as u64,
                segment: self.segment.id,
                offset: extent.offset.saturating_mul(PAGE_SIZE) as u64,
                ..Action::default()
            });
        }
    }

    /// The place of a page in the segment, in pages.
    fn place(&self, index: usize) -> Option<usize> {
        self.run(index).map(|(place, _)| place)
    }

    /// The same, and how many pages follow each other in the segment from there on.
    fn run(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.count {
            return None;
        }

        let after = self.extents.partition_point(|extent| extent.first <= index);
        let extent = self.extents.get(after.checked_sub(1)?)?;
        let end = self
            .extents
            .get(after)
            .map_or(self.count, |next| next.first);
        let place = extent.offset.checked_add(index - extent.first)?;

        Some((place, end.saturating_sub(index)))
    }

    /// The offset of a page in the segment, in bytes.
    pub(super) fn offset(&self, index: usize) -> Option<u64> {
        // CAST: a usize fits 64 bits.
        self.place(index).map(|place| (place * PAGE_SIZE) as u64)
    }

    /// The number of the segment.
    pub(super) fn segment(&self) -> u32 {
        self.segment.id
    }

    /// Whether they are in whole pages of 64 KiB.
    pub(super) fn has_64kb_pages(&self) -> bool {
        self.segment.page_size == PageSize::Kib64
    }

    /// Their place is about to go back.
    pub(super) fn leave(&self) {
        self.room.leave();
    }

    /// Where it waits if nobody wants it.
    pub(super) fn idle(&self) -> &Arc<IdleList> {
        &self.segment.idle
    }

    /// The processor fills these of them with zeros, as long as it can.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(super) fn clear(&self, pages: Range<usize>) -> Result {
        for index in pages.clone() {
            self.page(index)?.clear()?;
            if index % 512 == 511 {
                work::breathe();
            }
        }
        if let Some(log) = &self.log {
            log.write(|| Action {
                kind: Kind::Fill,
                // CAST: a usize fits 64 bits.
                start: pages.start as u64,
                count: pages.len() as u64,
                segment: self.segment.id,
                ..Action::default()
            });
        }
        Ok(())
    }
}

impl Drop for LocalPages {
    fn drop(&mut self) {
        self.record(Kind::Decommit);
    }
}

impl PageSource for LocalPages {
    fn count(&self) -> usize {
        self.count
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.segment.memory.page(self.place(index).ok_or(EINVAL)?)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        self.segment.memory.present(self.place(index)?)
    }

    fn device_run(&self, index: usize, most: usize) -> Option<(u64, usize)> {
        let (place, count) = self.run(index)?;

        // CAST: a usize fits 64 bits.
        Some(((place * PAGE_SIZE) as u64, count.min(most)))
    }

    /// They were taken before anybody else had this.
    fn is_complete(&self) -> bool {
        true
    }

    /// All of them.
    fn taken(&self) -> usize {
        self.count
    }
}

/// What an adapter has of memory.
pub(crate) struct AdapterMemory {
    /// How its page tables divide addresses, and who has which; `None` if it has no GPU addresses.
    pub(crate) addresses: Option<(Levels, Division)>,
    /// What it has at all, in the order of the ids.
    pub(crate) reported: segments::Segments,
    /// Those with memory of their own, in the order of the ids.
    pub(crate) segments: KVec<Arc<Segment>>,
    /// Shows what engines use by physical addresses in system memory.
    pub(super) aperture: Arc<Aperture>,
    /// Bytes of system memory that its allocations may take.
    system: u64,
    /// What processes have reserved of it.
    pub(super) reserved: Arc<ReservedMemory>,
    /// Who is told of that, and when it is short.
    pub(in crate::dxgk) notices: Arc<Notices>,
    /// What is done with it.
    pub(in crate::dxgk) log: Arc<PagingLog>,
    /// Runs what is queued.
    pub(crate) worker: Arc<PagingWorker>,
    /// What is to be in it.
    pub(in crate::dxgk) allocations: Arc<AllAllocations>,
    /// Moves it, for tests.
    pub(in crate::dxgk) moves: Arc<ForcedMoves>,
    /// Who uses it, where not all fits.
    pub(in crate::dxgk) rotation: Arc<Rotation>,
    /// Frees system memory of its allocations.
    pub(in crate::dxgk) shrinker: Arc<AdapterShrinker>,
}

impl AdapterMemory {
    /// What the KMD says that its adapter has, and where it wants its native fences, if it has any.
    /// InvalidParameter if that makes no sense, so that it does not start. `id` is the number of
    /// the adapter.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        id: u64,
        caps: &DriverCaps,
        native_fences: Option<&NativeFenceCaps>,
        kmd: &dyn Kmd,
        class: &Passive,
    ) -> KmdResult<Self> {
        let levels = match caps.gpu_mmu.page_table_levels {
            // MEM-51: addresses of the CPU are no model of their own.
            0 if caps.io_mmu => return Err(KmdError::InvalidParameter),
            0 => None,
            _ => Some(Levels::new(&caps.gpu_mmu).ok_or(KmdError::InvalidParameter)?),
        };
        let wish = native_fences.map(kept_pages::wish);
        let divide = |levels: Levels| Some((levels, kept_pages::divide(&levels, wish)?));
        let addresses = levels
            .map(|levels| divide(levels).ok_or(KmdError::InvalidParameter))
            .transpose()?;
        let mut reported = segments::Segments::new();

        kmd.query_adapter_info(class, AdapterQuery::Segments(&mut reported));

        let log = PagingLog::new(id).map_err(|_| KmdError::NoMemory)?;
        let switches = PagingSwitches::new().map_err(|_| KmdError::NoMemory)?;
        let mut aperture = None;
        let mut own = KVec::new();

        for (id, descriptor) in reported.iter() {
            if descriptor.kind == SegmentKind::Aperture
                && aperture
                    .replace(Aperture::new(id, descriptor, &log)?)
                    .is_some()
            {
                return Err(KmdError::InvalidParameter);
            }
            if let Some(segment) = Segment::new(id, descriptor, &switches)? {
                own.push(segment, GFP_KERNEL)
                    .map_err(|_| KmdError::NoMemory)?;
            }
        }

        // A table is a page.
        let may_have_tables = |id| {
            let found = own.iter().find(|segment| segment.id == id);

            id == SYSTEM_MEMORY || found.is_some_and(|found| found.page_size == PageSize::Kib4)
        };
        let mut wanted = caps.gpu_mmu.levels.iter();

        if !wanted.all(|level| {
            may_have_tables(level.segment) && may_have_tables(level.paging_process_segment)
        }) {
            return Err(KmdError::InvalidParameter);
        }

        let notices = Notices::new().map_err(|_| KmdError::NoMemory)?;
        let worker = PagingWorker::new(log.clone(), switches).map_err(|_| KmdError::NoMemory)?;
        let allocations = AllAllocations::new().map_err(|_| KmdError::NoMemory)?;
        let moves = ForcedMoves::new(&allocations, &worker).map_err(|_| KmdError::NoMemory)?;
        let rotation = Rotation::new(&allocations, &worker).map_err(|_| KmdError::NoMemory)?;
        let shrinker = AdapterShrinker::new(id, Scanner::new(&worker));

        Ok(Self {
            addresses,
            reported,
            segments: own,
            // MEM-1: exactly one.
            aperture: aperture.ok_or(KmdError::InvalidParameter)?,
            system: match caps.system_memory {
                0 => params::shared_memory(),
                bytes => bytes,
            },
            reserved: ReservedMemory::new(&notices).map_err(|_| KmdError::NoMemory)?,
            notices,
            worker,
            allocations,
            moves,
            rotation,
            shrinker: shrinker.map_err(|_| KmdError::NoMemory)?,
            log,
        })
    }

    /// The memory segment with this id.
    pub(crate) fn segment(&self, id: u32) -> Option<&Arc<Segment>> {
        self.segments.iter().find(|segment| segment.id == id)
    }

    /// What an allocation that can be in these segments begins at a multiple of, and is made of
    /// (MEM-2).
    pub(crate) fn page_size(&self, segments: u32) -> PageSize {
        let has_64kb = self.segments.iter().any(|segment| {
            let bit = 1u32.checked_shl(segment.id).unwrap_or(0);

            segment.page_size == PageSize::Kib64 && segments & bit != 0
        });

        match has_64kb {
            true => PageSize::Kib64,
            false => PageSize::Kib4,
        }
    }

    /// The set of its segments: bit n is segment n. System memory is the aperture (MEM-5).
    pub(crate) fn known_segments(&self) -> u32 {
        self.reported.iter().fold(0u32, |known, (id, _)| {
            known | 1u32.checked_shl(id).unwrap_or(0)
        })
    }

    /// Bytes of a budget group: 0 is local memory, 1 is the rest.
    pub(crate) fn group_size(&self, group: usize) -> u64 {
        let local = |is_local| {
            self.segments
                .iter()
                .filter(|segment| segment.is_local_group == is_local)
                .fold(0u64, |sum, segment| sum.saturating_add(segment.size))
        };

        match group {
            0 => local(true),
            _ => local(false).saturating_add(self.system),
        }
    }
}
