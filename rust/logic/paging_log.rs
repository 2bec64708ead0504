// SPDX-License-Identifier: GPL-2.0

//! Records of the operation log of the memory manager (MEM-103). Where they are kept is in
//! `paging_ring.rs`.
//!
//! A process reads the records that are about it, and those of the paging process that were written
//! for it (MEM-104).

use core::fmt::{
    self,
    Write, //
};

/// Gives the variants of an enum the names that the log has for them.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Its name in the log.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

named! {
    /// What a record is about.
    Kind {
        /// An operation was given to the KMD (BuildPagingBuffer).
        #[default]
        Build = "BUILD",
        /// A paging buffer was given to the paging node.
        Submit = "SUBMIT",
        /// The paging node is through with it.
        Complete = "COMPLETE",
        /// Pages of system memory were taken, and stay where they are.
        Pin = "PIN",
        /// They may go elsewhere again.
        Unpin = "UNPIN",
        /// Pages of a segment were taken.
        Commit = "COMMIT",
        /// They went back.
        Decommit = "DECOMMIT",
        /// The processor has filled pages of a segment.
        Fill = "FILL",
        /// The processor has moved the bytes of an allocation to a segment, or to system memory.
        Move = "MOVE",
        /// Bytes that were offered are dropped.
        Discard = "DISCARD",
        /// A paging queue has given out a value.
        FenceId = "FENCE_ID",
        /// An operation was left to the worker.
        Queue = "QUEUE",
        /// A call has its result.
        Return = "RETURN",
        /// An update waits for a fence.
        Wait = "WAIT",
        /// A fence is about to show a value.
        Signal = "SIGNAL",
        /// There is a new page table.
        PtCreate = "PT_CREATE",
        /// A page table is gone.
        PtFree = "PT_FREE",
        /// Another entry of the KMD is called.
        Ddi = "DDI",
        /// The paging process shows something at addresses of its own.
        VaAlloc = "VA_ALLOC",
        /// It does not any more.
        VaFree = "VA_FREE",
        /// A GPU address led to no page that may be used so.
        Fault = "FAULT",
        /// The KMD asks for something.
        Cb = "CB",
        /// The contexts of a process are off the engines.
        Suspend = "SUSPEND",
        /// They may go on.
        Resume = "RESUME",
    }
}

named! {
    /// Which operation, entry or call it was.
    Operation {
        /// The kind says it all.
        #[default]
        None = "-",
        /// DXGK_OPERATION_UPDATE_PAGE_TABLE.
        UpdatePageTable = "UpdatePageTable",
        /// DXGK_OPERATION_FLUSH_TLB.
        FlushTlb = "FlushTlb",
        /// DXGK_OPERATION_MAP_APERTURE_SEGMENT.
        MapApertureSegment = "MapApertureSegment",
        /// DXGK_OPERATION_UNMAP_APERTURE_SEGMENT.
        UnmapApertureSegment = "UnmapApertureSegment",
        /// DXGK_OPERATION_VIRTUAL_TRANSFER.
        TransferVirtual = "TransferVirtual",
        /// DXGK_OPERATION_VIRTUAL_FILL.
        FillVirtual = "FillVirtual",
        /// DXGK_OPERATION_INIT_CONTEXT_RESOURCE.
        InitContextResource = "InitContextResource",
        /// DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION, or DxgkCbUpdateContextAllocation.
        UpdateContextAllocation = "UpdateContextAllocation",
        /// DxgkCbCreateContextAllocation.
        CreateContextAllocation = "CreateContextAllocation",
        /// DxgkCbMapContextAllocation.
        MapContextAllocation = "MapContextAllocation",
        /// DxgkCbDestroyContextAllocation.
        DestroyContextAllocation = "DestroyContextAllocation",
        /// DXGK_OPERATION_NOTIFY_RESIDENCY.
        NotifyResidency = "NotifyResidency",
        /// D3DKMTMakeResident.
        MakeResident = "MakeResident",
        /// D3DKMTEvict.
        Evict = "Evict",
        /// D3DKMTUpdateGpuVirtualAddress.
        UpdateGpuVirtualAddress = "UpdateGpuVirtualAddress",
        /// What was done in its call, and only waits for its turn.
        Nothing = "Nothing",
        /// DxgkDdiCreateProcess.
        CreateProcess = "CreateProcess",
        /// DxgkDdiCreateDevice.
        CreateDevice = "CreateDevice",
        /// DxgkDdiCreateContext.
        CreateContext = "CreateContext",
        /// DxgkDdiSetRootPageTable.
        SetRootPageTable = "SetRootPageTable",
    }
}

impl Operation {
    /// The number of DXGK_BUILDPAGINGBUFFER_OPERATION, for the tracer; 0 for what is no operation
    /// of the paging node.
    pub const fn number(self) -> u32 {
        match self {
            Self::MapApertureSegment => 5,
            Self::UnmapApertureSegment => 6,
            Self::TransferVirtual => 8,
            Self::FillVirtual => 9,
            Self::InitContextResource => 10,
            Self::UpdatePageTable => 11,
            Self::FlushTlb => 12,
            Self::UpdateContextAllocation => 13,
            Self::NotifyResidency => 15,
            _ => 0,
        }
    }
}

/// The paging process. All others have numbers.
pub const PAGING_PROCESS: u64 = 0;

/// What `segment` says of system memory.
const SYSTEM_MEMORY: u32 = 0;

/// `InitialUpdate` of an UpdatePageTable.
pub const INITIAL_UPDATE: u32 = 1 << 0;
/// `NotifyEviction` of an UpdatePageTable: the pages are about to leave their place.
pub const NOTIFY_EVICTION: u32 = 1 << 1;
/// `Repeat`: all entries are the same.
pub const REPEAT: u32 = 1 << 2;
/// The first entry is valid, or the allocation of a NotifyResidency is resident.
pub const VALID: u32 = 1 << 3;
/// The first entry reads as zero.
pub const ZERO: u32 = 1 << 4;
/// Pages of 64 KiB.
pub const PAGES_64KB: u32 = 1 << 5;
/// A TransferVirtual from a segment.
pub const FROM_SEGMENT: u32 = 1 << 6;
/// A TransferVirtual to a segment.
pub const TO_SEGMENT: u32 = 1 << 7;

/// What the memory manager has done. What a kind does not know is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// What it is.
    pub kind: Kind,
    /// Which operation.
    pub operation: Operation,
    /// Operations of one change belong together: the number of the change.
    pub batch: u64,
    /// The device of the paging queue, or who has called.
    pub device: u64,
    /// The paging queue.
    pub queue: u64,
    /// The value of a fence: that of the paging queue, unless `object` is another one.
    pub value: u64,
    /// Whose memory it is, by the number of the process.
    pub process: u64,
    /// Which process it was done for, if `process` does not say it; 0 if nobody but root is to
    /// know. It is not printed.
    pub made_for: u64,
    /// The allocation, context or fence.
    pub object: u64,
    /// Level of the table.
    pub level: u32,
    /// The first entry, or the first page.
    pub start: u64,
    /// How many entries, pages or allocations; bytes of private data.
    pub count: u64,
    /// The segment that the first page is in.
    pub segment: u32,
    /// Where it is there, in bytes.
    pub offset: u64,
    /// Where the first page is in its allocation, in bytes.
    pub source: u64,
    /// The GPU virtual address that bytes are copied from; that of a page table, in the paging
    /// process.
    pub from: u64,
    /// The GPU virtual address of the first byte; that of a copy, where it goes to.
    pub address: u64,
    /// Bytes of GPU virtual addresses.
    pub size: u64,
    /// What was filled in; a checksum of private data.
    pub pattern: u32,
    /// As above.
    pub flags: u32,
    /// The status of a call.
    pub status: u32,
}

/// The tracepoints of a memory manager (MEM-105).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// D3DKMTMakeResident has its result.
    MakeResident,
    /// D3DKMTEvict has its result.
    Evict,
    /// BuildPagingBuffer with another operation than those below.
    PageOpBuild,
    /// A paging buffer was given to the paging node.
    PageOpSubmit,
    /// The paging node is through with it.
    PageOpDone,
    /// BuildPagingBuffer with UpdatePageTable.
    PtUpdate,
    /// BuildPagingBuffer with FlushTlb.
    TlbFlush,
    /// The bytes of an allocation are in another place.
    Move,
    /// An allocation was offered.
    Offer,
    /// An allocation was reclaimed.
    Reclaim,
    /// Bytes that were offered are dropped.
    Discard,
    /// A process has reserved another part of its budget.
    BudgetChange,
    /// A process is told that it is above its budget, or what its budget is.
    Trim,
    /// A GPU address led to no page that may be used so.
    PageFault,
}

impl Action {
    /// The number of the process that may read it; 0 if there is none.
    pub const fn reader(&self) -> u64 {
        match self.process {
            PAGING_PROCESS => self.made_for,
            process => process,
        }
    }

    /// As that process reads it: physical addresses of system memory are for root.
    pub const fn without_physical(mut self) -> Self {
        if self.segment == SYSTEM_MEMORY {
            self.offset = 0;
        }
        self
    }

    /// The tracepoint that shows this record, if there is one.
    pub const fn event(&self) -> Option<Event> {
        Some(match (self.kind, self.operation) {
            (Kind::Return, Operation::MakeResident) => Event::MakeResident,
            (Kind::Return, Operation::Evict) => Event::Evict,
            (Kind::Build, Operation::UpdatePageTable) => Event::PtUpdate,
            (Kind::Build, Operation::FlushTlb) => Event::TlbFlush,
            (Kind::Build, _) => Event::PageOpBuild,
            (Kind::Submit, _) => Event::PageOpSubmit,
            (Kind::Complete, _) => Event::PageOpDone,
            (Kind::Discard, _) => Event::Discard,
            (Kind::Fault, _) => Event::PageFault,
            _ => return None,
        })
    }
}

/// What was done, when and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The first one of an adapter has 1.
    pub number: u64,
    /// When it was, by CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The number of the thread.
    pub thread: u64,
    /// What was done.
    pub action: Action,
}

impl Record {
    /// Prints it as one line, which tells two logs apart only by what was done.
    pub fn show(&self, f: &mut impl Write) -> fmt::Result {
        let Self {
            number,
            at_ns,
            thread,
            action,
        } = self;

        write!(
            f,
            "{number} time_ns={at_ns} thread={thread} type={} op={}",
            action.kind.name(),
            action.operation.name()
        )?;
        write!(
            f,
            " batch={} device={} queue={} value={} process={} object={}",
            action.batch, action.device, action.queue, action.value, action.process, action.object
        )?;
        write!(
            f,
            " level={} start={} count={} segment={} offset={:#x} source={:#x}",
            action.level, action.start, action.count, action.segment, action.offset, action.source
        )?;
        writeln!(
            f,
            " from={:#x} va={:#x} size={:#x} pattern={:#x} flags={:#x} status={:#x}",
            action.from, action.address, action.size, action.pattern, action.flags, action.status
        )
    }
}
