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
//!     32  GPU virtual address, or argument
//!     40  cookie, Usage[3]
//!     44  reason: of a page fault 1 for a store, of a reset 1 if a client put the device in error,
//!         of a trap its class, of an illegal packet its header
//! ```

use crate::ddi::types::{
    KmdError,
    KmdResult, //
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
}

/// The class of an event that is for all of them, and the last class that there is.
const ANY: u32 = 1;
const LAST: u32 = 7;

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub class: Class,
    pub node: u32,
    /// What the OS part calls the queue.
    pub queue: u64,
    /// A GPU virtual address, or the argument of a packet.
    pub detail: u64,
    pub reason: u32,
}

/// The node of what happens to the whole device.
const ALL_NODES: u32 = u32::MAX;

impl Cause {
    /// A client has put the device in error (D3DKMTMarkDeviceAsError).
    pub const MARKED: Self = Self {
        class: Class::Reset,
        node: ALL_NODES,
        queue: 0,
        detail: 0,
        reason: 1,
    };
}

/// What an event is for: the words of the usage escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage(pub [u32; 8]);

impl Usage {
    /// InvalidParameter for a class of the table with words that it does not have (CPU-42).
    /// Restricting an event to one queue (Usage[2]) is not supported.
    pub fn check(&self) -> KmdResult {
        let [class, _nodes, queue, _cookie, rest @ ..] = self.0;

        if (ANY..=LAST).contains(&class) {
            if rest != [0; 4] {
                return Err(KmdError::InvalidParameter);
            }
            if queue != 0 {
                return Err(KmdError::NotSupported);
            }
        }
        Ok(())
    }

    /// Whether an event with this usage is to be told.
    pub fn wants(&self, cause: &Cause) -> bool {
        let [class, nodes, ..] = self.0;
        let is_of_node = nodes == 0
            || cause.node == ALL_NODES
            || nodes & 1_u32.checked_shl(cause.node).unwrap_or(0) != 0;

        // CAST: the number of the class.
        (class == ANY || class == cause.class as u32) && is_of_node
    }

    /// What the client wants to find in its records.
    pub fn cookie(&self) -> u32 {
        let [_, _, _, cookie, ..] = self.0;

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

/// The event and the usage of the usage escape (`D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE`), in which the
/// OS part has put the event.
pub fn usage_of(data: &[u8]) -> (u64, Usage) {
    let dword = |at: usize| {
        let bytes = data.get(at..).and_then(|rest| rest.first_chunk());

        u32::from_le_bytes(bytes.copied().unwrap_or_default())
    };
    let event = u64::from(dword(8)) | (u64::from(dword(12)) << 32);

    // OVERFLOW: eight words.
    (
        event,
        Usage(core::array::from_fn(|word| dword(16 + word * 4))),
    )
}

/// Bytes of the usage escape.
pub const USAGE_SIZE: usize = 48;
