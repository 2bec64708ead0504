// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the memory manager of an adapter has its paging node do (MEM-103, MEM-105).
//!
//! Operations of one change have one batch. Those that were built before a paging buffer was
//! submitted are what the node does with it. What is never submitted the processor has done.

use std::collections::{BTreeMap, HashMap};

use crate::lanes::Extent;

/// An operation of BuildPagingBuffer, by its DXGK_BUILDPAGINGBUFFER_OPERATION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// MapApertureSegment.
    MapApertureSegment,
    /// UnmapApertureSegment.
    UnmapApertureSegment,
    /// TransferVirtual: bytes are copied.
    TransferVirtual,
    /// FillVirtual: bytes are filled.
    FillVirtual,
    /// InitContextResource.
    InitContextResource,
    /// UpdatePageTable.
    UpdatePageTable,
    /// FlushTlb.
    FlushTlb,
    /// UpdateContextAllocation.
    UpdateContextAllocation,
    /// NotifyResidency.
    NotifyResidency,
}

impl Operation {
    /// From its number.
    pub fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            5 => Self::MapApertureSegment,
            6 => Self::UnmapApertureSegment,
            8 => Self::TransferVirtual,
            9 => Self::FillVirtual,
            10 => Self::InitContextResource,
            11 => Self::UpdatePageTable,
            12 => Self::FlushTlb,
            13 => Self::UpdateContextAllocation,
            15 => Self::NotifyResidency,
            _ => return None,
        })
    }

    /// Its public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MapApertureSegment => "MapApertureSegment",
            Self::UnmapApertureSegment => "UnmapApertureSegment",
            Self::TransferVirtual => "TransferVirtual",
            Self::FillVirtual => "FillVirtual",
            Self::InitContextResource => "InitContextResource",
            Self::UpdatePageTable => "UpdatePageTable",
            Self::FlushTlb => "FlushTlb",
            Self::UpdateContextAllocation => "UpdateContextAllocation",
            Self::NotifyResidency => "NotifyResidency",
        }
    }

    /// Whether its size is that of bytes that it changes.
    fn has_bytes(self) -> bool {
        matches!(self, Self::TransferVirtual | Self::FillVirtual)
    }
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From system memory to a segment.
    SystemToLocal,
    /// From a segment to system memory.
    LocalToSystem,
    /// From one place of a segment to another.
    LocalToLocal,
}

impl Direction {
    /// From the flags of a TransferVirtual.
    pub fn from_flags(flags: u64) -> Option<Self> {
        match (flags & FROM_SEGMENT != 0, flags & TO_SEGMENT != 0) {
            (false, true) => Some(Self::SystemToLocal),
            (true, false) => Some(Self::LocalToSystem),
            (true, true) => Some(Self::LocalToLocal),
            (false, false) => None,
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemToLocal => "system to local",
            Self::LocalToSystem => "local to system",
            Self::LocalToLocal => "local to local",
        }
    }
}

/// Flags of a TransferVirtual.
const FROM_SEGMENT: u64 = 0x40;
const TO_SEGMENT: u64 = 0x80;

/// An operation that was given to the KMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// When.
    pub time: u64,
    /// Which.
    pub operation: Operation,
    /// Where bytes go, if they are copied.
    pub direction: Option<Direction>,
    /// How many bytes it changes.
    pub bytes: u64,
    /// The allocation, 0 if it is about none.
    pub object: u64,
    /// The process, 0 for the paging process.
    pub process: u64,
}

impl Built {
    /// From the fields of an event.
    pub fn new(
        time: u64,
        operation: Operation,
        (size, flags): (u64, u64),
        object: u64,
        process: u64,
    ) -> Self {
        let is_copy = operation == Operation::TransferVirtual;
        Self {
            time,
            operation,
            direction: Direction::from_flags(flags).filter(|_| is_copy),
            bytes: if operation.has_bytes() { size } else { 0 },
            object,
            process,
        }
    }
}

/// A paging buffer: what was built for it, and when the node had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The batch.
    pub batch: u64,
    /// What is in it, in order.
    pub operations: Vec<Built>,
    /// When it was submitted.
    pub submitted: u64,
    /// When the node was through with it; `None` if it never was.
    pub done: Option<u64>,
}

impl Run {
    /// From the first operation until it was done.
    pub fn extent(&self) -> Extent {
        let first = self.operations.first().map(|built| built.time);
        (first.unwrap_or(self.submitted), self.done)
    }

    /// Bytes that it has changed.
    pub fn bytes(&self) -> u64 {
        let all = self.operations.iter().map(|built| built.bytes);
        all.fold(0, u64::saturating_add)
    }

    /// The operation that it is for: one that changes bytes, if there is one.
    pub fn main(&self) -> Option<&Built> {
        let is_main = |built: &&Built| !is_mapping(built.operation);
        let found = self.operations.iter().find(is_main);
        found.or(self.operations.first())
    }

    /// The name of the operation that it is for.
    pub fn main_title(&self) -> String {
        self.main()
            .map_or(String::new(), |built| built.operation.name().into())
    }

    /// What it does: each operation once, those that others prepare first.
    pub fn title(&self) -> String {
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for built in &self.operations {
            let key = (
                is_mapping(built.operation),
                built.operation,
                built.direction,
            );
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(built.bytes));
        }
        let words = sums.into_iter().map(|((_, operation, direction), sum)| {
            let (count, bytes) = sum;
            let mut words = operation.name().to_owned();
            if operation.has_bytes() {
                words += &format!(" {}", size(bytes));
            } else if count > 1 {
                words += &format!(" x{count}");
            }
            if let Some(direction) = direction {
                words += &format!(" {}", direction.name());
            }
            words
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Whether it only says what addresses show.
fn is_mapping(operation: Operation) -> bool {
    matches!(operation, Operation::UpdatePageTable | Operation::FlushTlb)
}

/// Bytes as a person writes them.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{} KiB", bytes / 1024),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// What the memory manager of one adapter has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// What its paging node has run, as it was submitted.
    pub runs: Vec<Run>,
    /// What the processor has done, by time.
    pub others: Vec<Built>,
}

/// Joins what was built with what was submitted.
#[derive(Default)]
pub struct Joiner {
    adapters: BTreeMap<u64, Paging>,
    /// What is built and not submitted, by adapter and batch.
    built: HashMap<(u64, u64), Vec<Built>>,
}

impl Joiner {
    /// An operation was built.
    pub fn build(&mut self, adapter: u64, batch: u64, built: Built) {
        self.built.entry((adapter, batch)).or_default().push(built);
    }

    /// What was built is submitted.
    pub fn submit(&mut self, adapter: u64, batch: u64, time: u64) {
        let operations = self.built.remove(&(adapter, batch)).unwrap_or_default();
        self.adapters.entry(adapter).or_default().runs.push(Run {
            batch,
            operations,
            submitted: time,
            done: None,
        });
    }

    /// The node is through with it.
    pub fn done(&mut self, adapter: u64, batch: u64, time: u64) {
        let Some(paging) = self.adapters.get_mut(&adapter) else {
            return;
        };
        let last = paging.runs.iter_mut().rev().find(|run| run.batch == batch);
        if let Some(run) = last {
            run.done.get_or_insert(time);
        }
    }

    /// All adapters that have done something.
    pub fn end(mut self) -> BTreeMap<u64, Paging> {
        for ((adapter, _), built) in self.built {
            let paging = self.adapters.entry(adapter).or_default();
            paging.others.extend(built);
        }
        for paging in self.adapters.values_mut() {
            paging.runs.sort_by_key(Run::extent);
            paging.others.sort_by_key(|built| built.time);
        }
        self.adapters
    }
}
