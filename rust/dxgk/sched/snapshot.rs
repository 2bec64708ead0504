// SPDX-License-Identifier: GPL-2.0

//! How a queue is, and the line of debugfs for it.

use crate::{
    ddi::queue::{
        Fault,
        FaultKind, //
    },
    logic::doorbell::DoorbellStatus, //
};
use kernel::fmt;

/// What a queue is blocked on, for those who look at it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Blocked {
    /// What the object is.
    pub(crate) kind: &'static str,
    /// The id of the object; the first one, if there are several.
    pub(crate) object: u64,
    /// Its value that is waited for; 0 for a mutex or a semaphore.
    pub(crate) value: u64,
}

/// How far a queue is that its process fills.
#[derive(Clone, Copy)]
pub(crate) struct RingState {
    /// What the status of its doorbell says.
    pub(crate) status: DoorbellStatus,
    /// The value of its progress fence.
    pub(crate) progress: u64,
    /// What that will be when all is done that the process has queued, as the process says.
    pub(crate) last_queued: u64,
}

/// How a queue is, for those who look at it.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    /// The id of its context or HW queue.
    pub(crate) id: u64,
    /// Where its work runs.
    pub(crate) node: u32,
    /// Whether it is a HW queue.
    pub(crate) is_hw: bool,
    /// Its ring, if its process fills it and there is one.
    pub(crate) ring: Option<RingState>,
    /// Who has made it.
    pub(crate) pid: u32,
    /// How many items are queued, in flight or not.
    pub(crate) items: u64,
    /// How many of them the KMD has.
    pub(crate) in_flight: u64,
    /// How many submissions have completed.
    pub(crate) completed: u64,
    /// Nanoseconds that an engine has run it.
    pub(crate) busy_ns: u64,
    /// What it waits for.
    pub(crate) blocked: Option<Blocked>,
    /// Its priority among all queues, as a KMD is told.
    pub(crate) priority: i32,
    /// Why it has stopped.
    pub(crate) fault: Option<Fault>,
    /// Its name.
    pub(crate) life: &'static str,
}

impl Snapshot {
    /// Whether there is something that is not over, or it has stopped in the middle.
    pub(in crate::dxgk) fn has_work(&self) -> bool {
        let is_filled = |ring: RingState| ring.progress < ring.last_queued;

        self.items != 0 || self.fault.is_some() || self.ring.is_some_and(is_filled)
    }
}

/// Prints a queue. `running`: those that engines run.
pub(in crate::dxgk) fn line(
    now: &Snapshot,
    running: &[Option<u64>],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let runs = running.contains(&Some(now.id));
    let state = match (&now.fault, now.life, &now.blocked) {
        (Some(_), _, _) => "faulted",
        (None, "closing" | "stopped" | "ended", _) => now.life,
        (None, _, Some(_)) => "blocked",
        (None, _, None) if runs && (now.in_flight != 0 || now.ring.is_some()) => "running",
        (None, _, None) if now.in_flight != 0 => "submitted",
        (None, _, None) if now.items != 0 => "queued",
        (None, _, None) => "idle",
    };
    let kind = if now.is_hw { "hw" } else { "packets" };
    let Snapshot { id, pid, node, .. } = now;

    write!(
        f,
        "queue:\t{id} pid={pid} kind={kind} node={node} priority={} state={state} queued={} \
         in_flight={} submissions={} busy_ns={}",
        now.priority, now.items, now.in_flight, now.completed, now.busy_ns
    )?;
    if let Some(ring) = &now.ring {
        write!(
            f,
            " doorbell={} progress={} last_queued={}",
            ring.status.name(),
            ring.progress,
            ring.last_queued
        )?;
    }
    if let Some(blocked) = &now.blocked {
        write!(
            f,
            " on={}:{} value={}",
            blocked.kind, blocked.object, blocked.value
        )?;
    }
    if let Some(found) = &now.fault {
        fault(found, f)?;
    }
    writeln!(f)
}

/// Prints why a queue has stopped.
pub(in crate::dxgk) fn fault(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault.kind {
        FaultKind::PageFault { address, write, .. } => {
            write!(
                f,
                " fault=page address={address:#x} write={}",
                u32::from(write)
            )
        }
        FaultKind::IllegalPacket { header } => write!(f, " fault=packet header={header:#x}"),
    }?;
    write!(f, " packet={:#x} submission={}", fault.packet, fault.number)
}
