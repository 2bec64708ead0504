// SPDX-License-Identifier: GPL-2.0

//! Requests of a guest, as bytes. Little endian; what a request does not have is 0.
//!
//! ```text
//! byte 0  what is asked
//!      4  flags of the escape
//!      8  place of the event
//!     12  its generation
//!     16  process, as the guest calls it
//!     24  device, as the guest calls it
//!     32  48 bytes of the escape
//! ```

use crate::ddi::types::{
    KmdError,
    KmdResult, //
};

/// What an event is called on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName {
    /// Its place, below [`MOST_EVENTS`](super::MOST_EVENTS).
    pub place: u32,
    /// Which event of that place it is; not 0.
    pub generation: u32,
}

impl EventName {
    /// The same as one number, which is never 0.
    pub fn id(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.place)
    }

    /// What such a number means.
    pub fn of_id(id: u64) -> Self {
        Self {
            // CAST: the halves.
            place: id as u32,
            generation: (id >> 32) as u32,
        }
    }
}

/// Bytes of a request.
pub const SIZE: usize = 80;
/// A request.
pub type Bytes = [u8; SIZE];
/// Bytes of the usage escape, `D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE`.
pub const USAGE_SIZE: usize = 48;
const USAGE_AT: usize = SIZE - USAGE_SIZE;

/// What a guest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// CREATE_CPUEVENT.
    Create {
        event: EventName,
        process: u64,
        device: u64,
    },
    /// DESTROY_CPUEVENT.
    Destroy { event: EventName },
    /// ESCAPE_KNOWN: the usage escape.
    Usage {
        event: EventName,
        flags: u32,
        data: [u8; USAGE_SIZE],
    },
}

/// What it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What the KMD calls the event towards clients.
    Created {
        client: u64,
    },
    Destroyed,
    /// What the KMD has made of the escape.
    Usage([u8; USAGE_SIZE]),
}

const CREATE: u32 = 1;
const DESTROY: u32 = 2;
const USAGE: u32 = 3;

impl Request {
    /// Its bytes.
    pub fn encode(&self) -> Bytes {
        let mut bytes = [0; SIZE];
        let (kind, event) = match self {
            Self::Create {
                event,
                process,
                device,
            } => {
                put(&mut bytes, 16, &process.to_le_bytes());
                put(&mut bytes, 24, &device.to_le_bytes());
                (CREATE, event)
            }
            Self::Destroy { event } => (DESTROY, event),
            Self::Usage { event, flags, data } => {
                put(&mut bytes, 4, &flags.to_le_bytes());
                put(&mut bytes, USAGE_AT, data);
                (USAGE, event)
            }
        };

        put(&mut bytes, 0, &kind.to_le_bytes());
        put(&mut bytes, 8, &event.place.to_le_bytes());
        put(&mut bytes, 12, &event.generation.to_le_bytes());
        bytes
    }

    /// What bytes ask for. InvalidParameter if that is nothing, or if they have what the request
    /// does not have.
    pub fn decode(bytes: &Bytes) -> KmdResult<Self> {
        let event = EventName {
            place: word(bytes, 8),
            generation: word(bytes, 12),
        };
        let request = match word(bytes, 0) {
            CREATE => Self::Create {
                event,
                process: long(bytes, 16),
                device: long(bytes, 24),
            },
            DESTROY => Self::Destroy { event },
            USAGE => Self::Usage {
                event,
                flags: word(bytes, 4),
                data: core::array::from_fn(|at| {
                    // OVERFLOW: below the size.
                    bytes.get(USAGE_AT + at).copied().unwrap_or_default()
                }),
            },
            _ => return Err(KmdError::InvalidParameter),
        };

        if event.generation == 0 || request.encode() != *bytes {
            return Err(KmdError::InvalidParameter);
        }
        Ok(request)
    }
}

/// The word at a place.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);

    u32::from_le_bytes(word.copied().unwrap_or_default())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let long = bytes.get(at..).and_then(<[u8]>::first_chunk);

    u64::from_le_bytes(long.copied().unwrap_or_default())
}

/// Writes bytes to a place that there is.
pub(super) fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in out.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}
