// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can happen. Objects have the numbers that the module gives them, times are nanoseconds of
//! `CLOCK_MONOTONIC`.

use crate::paging::Built;

/// What a queue does with a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// It stores a value.
    Signal,
    /// It waits for a value.
    Wait,
}

impl Operation {
    /// From the number in an entry of a log.
    pub fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Signal),
            1 => Some(Self::Wait),
            _ => None,
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Wait => "wait",
        }
    }

    /// What a GPU has done at its end.
    pub fn done(self) -> &'static str {
        match self {
            Self::Signal => "executed",
            Self::Wait => "unblocked",
        }
    }
}

/// An operation on a fence in a queue: what joins its start and its end (GPU-90).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The queue.
    pub queue: u64,
    /// What it does.
    pub operation: Operation,
    /// The fence.
    pub fence: u64,
    /// The value that is stored or waited for.
    pub value: u64,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The operation was put into the queue, or into commands for it.
    Queued(Key),
    /// The GPU, or the OS part for a kernel-mode queue, has done the operation.
    Done {
        /// Which.
        key: Key,
        /// When a wait was looked at first.
        observed: Option<u64>,
        /// When it was done; `None` if that is only known from the record.
        end: Option<u64>,
    },
    /// Entries of the log of a queue were overwritten before they were read.
    EntriesLost {
        /// The queue.
        queue: u64,
        /// How many.
        count: u64,
    },
    /// A native fence has interrupted.
    Interrupt {
        /// The adapter.
        adapter: u64,
        /// The fence, if it names one.
        fence: Option<u64>,
        /// The queue, if it names one.
        queue: Option<u64>,
    },
    /// Somebody on the CPU begins to wait.
    WaitBegins {
        /// The fence.
        fence: u64,
        /// The value.
        value: u64,
        /// Who.
        waiter: u64,
    },
    /// The OS part has stored a value.
    Stored {
        /// The fence.
        fence: u64,
        /// The value.
        value: u64,
    },
    /// A wait on the CPU has ended.
    Wake {
        /// Who.
        waiter: u64,
        /// 1 satisfied, 2 orphaned, 3 cancelled.
        outcome: u64,
    },
    /// Commands went to the KMD.
    Run {
        /// The queue.
        queue: u64,
        /// Their number.
        number: u64,
    },
    /// All commands up to a number have completed.
    Complete {
        /// The queue.
        queue: u64,
        /// The number.
        number: u64,
    },
    /// A kernel-mode queue waits for an object.
    Block {
        /// The queue.
        queue: u64,
        /// The object.
        object: u64,
        /// The value, 0 if it has none.
        value: u64,
    },
    /// It goes on.
    Unblock {
        /// The queue.
        queue: u64,
    },
    /// A queue has stopped for good.
    Fault {
        /// The queue.
        queue: u64,
        /// GPU address of the packet.
        packet: u64,
    },
    /// An engine or an adapter is reset.
    Reset {
        /// The adapter.
        adapter: u64,
        /// What hangs, if it is known.
        queue: Option<u64>,
    },
    /// An object came into being; [`CONTEXT`] and [`HW_QUEUE`] are queues.
    Create {
        /// The object.
        object: u64,
        /// `OPENDXG_KIND_*`.
        kind: u64,
    },
    /// An operation was given to the KMD of an adapter (BuildPagingBuffer).
    PageOpBuilt {
        /// The adapter.
        adapter: u64,
        /// The change that it is a part of.
        batch: u64,
        /// The operation.
        built: Built,
    },
    /// The paging node has got a paging buffer.
    PageOpSubmitted {
        /// The adapter.
        adapter: u64,
        /// The change.
        batch: u64,
    },
    /// It is through with it.
    PageOpDone {
        /// The adapter.
        adapter: u64,
        /// The change.
        batch: u64,
    },
    /// The tracer had no room for so many events.
    Lost {
        /// The time of the last one before them.
        since: u64,
        /// How many.
        count: u64,
    },
}

/// The kind of a context.
pub const CONTEXT: u64 = 17;
/// The kind of a hardware queue.
pub const HW_QUEUE: u64 = 18;

/// An event, when it was recorded, and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When. The text of the kernel's trace is rounded down ([`crate::text::RESOLUTION`]).
    pub time: u64,
    /// The thread on whose time it happened; 0 for an interrupt of an idle CPU.
    pub thread: u32,
    /// What.
    pub event: Event,
}
