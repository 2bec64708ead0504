// SPDX-License-Identifier: GPL-2.0

//! CPU events across the border of a virtual machine (cpu-events.md section 9).
//!
//! The process and its eventfd are in the guest, the KMD is in the host. Neither of them knows: a
//! KMD signals what it was given with CreateCpuEvent, as for a local event, and that puts an id
//! into the mailbox of the guest. A local event has none of this: its callbacks are those of the
//! OS part, and a signal is one call.
//!
//! ```text
//! guest                                            host
//! Guest::create ------- CreateCpuEvent ------> Function::serve ---> CreateCpuEvent
//! Guest::set_usage ---- EscapeKnown ---------> Function::serve ---> Escape
//! signal_event <--- Receiver::look <-----+
//!                                        +---- Mailbox <----------- signal_event
//! Guest::destroy ------ DestroyCpuEvent -----> Function::serve ---> DestroyCpuEvent
//! ```
//!
//! What the two sides may rely on:
//!
//! - Only ids cross (CPU-47). An id is a place and a generation, so that one that comes late never
//!   means another event (CPU-51).
//! - A request has one answer, in the order of the requests of one event. It fails with
//!   DeviceRemoved if the function is gone. An answer may be lost then, so the host gives up what a
//!   create of the same place finds there.
//! - Signals may be merged and come in any order. None is put into the mailbox after the answer to
//!   the destroy, and the last one before it is never lost (CPU-50): the guest looks once more.
//! - Each side checks all that the other one has written, and waits for nothing in it (CPU-52).
//!
//! ```text
//! message.rs  requests and answers as bytes
//! mailbox.rs  what the host tells the guest
//! guest.rs    the guest's side: its requests
//! receiver.rs the guest's side: the signals that it gets
//! host.rs     the host's side, for one function of a guest
//! ways.rs     the host's side: what the KMD signals
//! ```

pub mod guest;
pub mod host;
pub mod mailbox;
pub mod message;
pub mod receiver;
mod ways;

use super::{
    class::Passive,
    types::KmdResult, //
};
pub use message::EventName;
use message::{
    Answer,
    Bytes, //
};

/// Most events of a function. Fewer where all interleavings are explored.
pub const MOST_EVENTS: usize = if cfg!(loom) { 2 } else { 4096 };

/// Carries requests from a guest's OS part to the host's. In one kernel that is a call.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the answer, killably. DeviceRemoved if the function is gone.
    ///
    /// Context: may sleep, no locks held.
    fn call(&self, class: &Passive, request: &Bytes) -> KmdResult<Answer>;
}

/// Something that somebody is to look at soon: the guest's interrupt, or DpcRoutine of the host.
pub trait Bell: Send + Sync {
    /// Asks for it.
    ///
    /// Context: any; touches atomics and queues work.
    fn ring(&self);
}
