// SPDX-License-Identifier: GPL-2.0

//! What CPU events are for, what is kept for them, and how clients read it (cpu-events.md section
//! 8).
//!
//! ```text
//! byte 0  magic, "ODXR"
//!      4  version, 1
//!      8  the event, `hKmdCpuEvent`
//!     16  out: how many records follow
//!     20  out: how many were lost since the last time
//!     24  out: 16 records
//! ```
//!
//! A record:
//!
//! ```text
//! byte 0  class, Usage[0]
//!      4  node; all bits are set if it was the whole device
//!      8  number, from 1 without gaps for each event
//!     16  time, CLOCK_MONOTONIC in nanoseconds
//!     24  queue, as debugfs shows it
//!     32  GPU virtual address, or argument; how many slices a queue has refused to yield; what
//!         something has changed to
//!     40  cookie, Usage[3]
//!     44  reason: of a page fault 1 for a store, of a reset one of `ResetReason`, of a trap its
//!         class, of an illegal packet its header, of a change one of `Change`
//! ```

use crate::ddi::{
    power::PowerState,
    types::{
        DeviceError,
        HandleData,
        KmdError,
        KmdResult,
        QueueHandle, //
    }, //
};

/// Records that are kept for an event.
const KEPT: usize = 16;

/// Bytes of a record.
const RECORD_SIZE: usize = 48;
/// The same of a request, with the answer.
pub const READ_SIZE: usize = 24 + KEPT * RECORD_SIZE;

const MAGIC: [u8; 4] = *b"ODXR";
const VERSION: u32 = 1;

/// What has happened: Usage[0].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Class {
    /// A queue of the device took a page fault.
    PageFault = 2,
    /// The device was put in error by a reset, or by a client.
    Reset = 3,
    /// A packet asked for it.
    Trap = 4,
    /// An illegal packet.
    BadObject = 5,
    /// A queue of the device has not yielded for more slices than are allowed.
    Preemption = 6,
    /// Something of the whole adapter has changed, which control panels want to show.
    Internal = 7,
}

/// The class of an event that is for all of them, and the last class that there is.
const ANY: u32 = 1;
// CAST: its number.
const LAST: u32 = Class::Internal as u32;

/// Why a device was put in error, when its work has not faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ResetReason {
    /// Its engine or its adapter was reset.
    Reset = 0,
    /// A client said so (D3DKMTMarkDeviceAsError).
    Marked = 1,
    /// Its adapter is removed. Nobody reads this any more: requests are then DEVICE_REMOVED.
    Removed = 2,
    /// Memory that it was promised is not there.
    OutOfMemory = 3,
    /// Commands have named memory by physical address that is not accessed so.
    Misused = 4,
}

/// What of the adapter has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Change {
    /// Its temperature, in thousandths of a degree. By a command only.
    Temperature = 1,
    /// Its clock, in hertz. By a command only.
    Clock = 2,
    /// Its power state: 0 for D0, 3 for D3.
    Power = 3,
    /// Somebody wants memory where there is no room.
    Memory = 4,
}

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub class: Class,
    pub node: u32,
    /// What the OS part calls the queue; 0 if it was all of a context, a device or the adapter.
    pub queue: u64,
    /// A GPU virtual address, or the argument of a packet.
    pub detail: u64,
    pub reason: u32,
}

/// The node of what happens to the whole device.
const ALL_NODES: u32 = u32::MAX;

impl Cause {
    /// The adapter is removed.
    // CAST: the number of the reason.
    pub const REMOVED: Self = Self::of_all(Class::Reset, ResetReason::Removed as u32, 0);
    /// Somebody wants memory where there is no room.
    pub const MEMORY_PRESSURE: Self = Self::of_change(Change::Memory, 0);

    const fn of_all(class: Class, reason: u32, detail: u64) -> Self {
        Self {
            class,
            node: ALL_NODES,
            queue: 0,
            detail,
            reason,
        }
    }

    /// A device is in error.
    pub const fn of_device_error(why: DeviceError) -> Self {
        let reason = match why {
            DeviceError::Marked => ResetReason::Marked,
            DeviceError::OutOfMemory => ResetReason::OutOfMemory,
            DeviceError::Misused => ResetReason::Misused,
        };

        // CAST: the number of the reason.
        Self::of_all(Class::Reset, reason as u32, 0)
    }

    /// Something of the adapter has changed, to this value.
    pub const fn of_change(change: Change, value: u64) -> Self {
        // CAST: its number.
        Self::of_all(Class::Internal, change as u32, value)
    }

    /// The adapter goes to this power state.
    pub const fn of_power(state: PowerState) -> Self {
        let value = match state {
            PowerState::D0 => 0,
            PowerState::D3 => 3,
        };

        Self::of_change(Change::Power, value)
    }
}

/// Whether a mask names nodes only that there are.
fn are_nodes(mask: u32, count: u32) -> bool {
    mask.checked_shr(count).unwrap_or(0) == 0
}

/// What an event is for: the words of the usage escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    words: [u32; 8],
    /// The queue that Usage[2] restricts it to.
    only: Option<QueueHandle>,
}

impl Usage {
    /// What these words say. InvalidParameter for a class of the table with words that it does not
    /// have: nodes that there are not, or a queue that is none of the device (CPU-42).
    pub fn new(words: [u32; 8], nodes: u32, handles: Option<&dyn HandleData>) -> KmdResult<Self> {
        let [class, mask, queue, _cookie, rest @ ..] = words;
        let is_known = (ANY..=LAST).contains(&class);
        let mut only = None;

        if is_known && (rest != [0; 4] || !are_nodes(mask, nodes)) {
            return Err(KmdError::InvalidParameter);
        }
        if is_known && queue != 0 {
            only = handles
                // CAST: the number of the class. What changes is not that of a queue.
                .filter(|_| class != Class::Internal as u32)
                .and_then(|handles| handles.queue(queue));
            only.ok_or(KmdError::InvalidParameter)?;
        }
        Ok(Self { words, only })
    }

    /// Whether an event with this usage is to be told of what has happened to a context, or to the
    /// whole device or adapter if that is 0.
    pub fn wants(&self, cause: &Cause, context: u64) -> bool {
        let [class, nodes, ..] = self.words;
        let is_of_node = nodes == 0
            || cause.node == ALL_NODES
            || nodes & 1_u32.checked_shl(cause.node).unwrap_or(0) != 0;

        // CAST: the number of the class.
        (class == ANY || class == cause.class as u32) && is_of_node && self.reaches(cause, context)
    }

    /// Whether the queue that it is restricted to is among those that something has happened to.
    fn reaches(&self, cause: &Cause, context: u64) -> bool {
        let (own, queue) = match self.only {
            None => return true,
            Some(QueueHandle::Context(own)) => (own, None),
            Some(QueueHandle::HwQueue(queue, own)) => (own, Some(queue.0)),
        };
        let is_of_device = context == 0 && cause.class != Class::Internal;
        let is_of_queue = cause.queue == 0 || queue.is_none_or(|queue| queue == cause.queue);

        is_of_device || context == own.0 && is_of_queue
    }

    /// What the client wants to find in its records.
    pub fn cookie(&self) -> u32 {
        let [_, _, _, cookie, ..] = self.words;

        cookie
    }
}

#[derive(Clone, Copy)]
struct Record {
    cause: Cause,
    number: u64,
    time_ns: u64,
    cookie: u32,
}

/// The last records of an event.
pub struct Log {
    records: [Option<Record>; KEPT],
    /// How many there were so far.
    count: u64,
    lost: u32,
}

impl Log {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            records: [None; KEPT],
            count: 0,
            lost: 0,
        }
    }

    /// Adds a record, in the place of the oldest one if there are as many as are kept.
    pub fn add(&mut self, cause: &Cause, time_ns: u64, cookie: u32) {
        // CAST: below `KEPT`.
        let place = (self.count % KEPT as u64) as usize;

        // OVERFLOW: 64 bits do not.
        self.count = self.count.wrapping_add(1);
        if let Some(place) = self.records.get_mut(place) {
            let record = Record {
                cause: *cause,
                number: self.count,
                time_ns,
                cookie,
            };

            if place.replace(record).is_some() {
                self.lost = self.lost.saturating_add(1);
            }
        }
    }

    /// Takes all records out.
    pub fn take(&mut self) -> Self {
        let rest = Self {
            records: [None; KEPT],
            count: self.count,
            lost: 0,
        };

        core::mem::replace(self, rest)
    }

    /// Answers a request: the records, the oldest first.
    pub fn answer(&self, out: &mut [u8]) {
        // CAST: below `KEPT`.
        let first = (self.count % KEPT as u64) as usize;
        let (newer, older) = self.records.split_at(first);
        let records = older.iter().chain(newer).flatten();
        let mut rest = out
            .split_at_mut_checked(24)
            .map_or(&mut [][..], |(_, rest)| rest);
        let mut count = 0_u32;

        for record in records {
            let Some((place, more)) = rest.split_at_mut_checked(RECORD_SIZE) else {
                break;
            };

            record.encode(place);
            rest = more;
            count = count.saturating_add(1);
        }
        put(out, 16, &count.to_le_bytes());
        put(out, 20, &self.lost.to_le_bytes());
    }
}

impl Record {
    fn encode(&self, out: &mut [u8]) {
        let Self {
            cause,
            number,
            time_ns,
            cookie,
        } = self;

        // CAST: the number of the class.
        put(out, 0, &(cause.class as u32).to_le_bytes());
        put(out, 4, &cause.node.to_le_bytes());
        put(out, 8, &number.to_le_bytes());
        put(out, 16, &time_ns.to_le_bytes());
        put(out, 24, &cause.queue.to_le_bytes());
        put(out, 32, &cause.detail.to_le_bytes());
        put(out, 40, &cookie.to_le_bytes());
        put(out, 44, &cause.reason.to_le_bytes());
    }
}

/// Writes bytes to a place that there is.
fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    let places = out.iter_mut().skip(at).zip(bytes);

    for (place, byte) in places {
        *place = *byte;
    }
}

/// The event that a request for records names; `None` if it is no such request. Everything that is
/// written has to be 0.
pub fn requested(data: &[u8]) -> Option<KmdResult<u64>> {
    let (head, rest) = data.split_first_chunk::<16>()?;
    let [m0, m1, m2, m3, v0, v1, v2, v3, event @ ..] = *head;

    if [m0, m1, m2, m3] != MAGIC {
        return None;
    }

    let is_good = data.len() == READ_SIZE
        && u32::from_le_bytes([v0, v1, v2, v3]) == VERSION
        && rest.iter().all(|byte| *byte == 0);

    Some(if is_good {
        Ok(u64::from_le_bytes(event))
    } else {
        Err(KmdError::InvalidParameter)
    })
}

/// The event and the words of the usage escape (`D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE`), in which the
/// OS part has put the event.
pub fn usage_of(data: &[u8]) -> (u64, [u32; 8]) {
    let dword = |at: usize| {
        let bytes = data.get(at..).and_then(|rest| rest.first_chunk());

        u32::from_le_bytes(bytes.copied().unwrap_or_default())
    };
    let event = u64::from(dword(8)) | (u64::from(dword(12)) << 32);

    // OVERFLOW: eight words.
    (event, core::array::from_fn(|word| dword(16 + word * 4)))
}

/// Bytes of the usage escape.
pub const USAGE_SIZE: usize = 48;
