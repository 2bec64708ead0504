// SPDX-License-Identifier: GPL-2.0

//! What people see of engines and queues, in debugfs: a line for each, with words `NAME=VALUE`
//! behind its number. The tool `opendxg` reads them.

use super::wait::Blocked;
use crate::dxgk::adapter::Adapter;
use crate::{
    ddi::{
        class::Passive,
        queue::{
            Fault,
            FaultKind,
            NodeStatus, //
        }, //
    },
    logic::doorbell::DoorbellStatus,
    sys::task::sleep, //
};
use kernel::fmt;

/// How many queues of an adapter are shown.
const QUEUES_SHOWN: usize = 16384;
/// More nodes have no lines.
const NODES_SHOWN: usize = 32;

/// Prints how the adapter has recovered, and what each engine does.
///
/// Context: may sleep, no locks held.
pub(in crate::dxgk) fn engines(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let class = Passive::here();
    let counts = adapter.recovery.counts();

    writeln!(
        f,
        "recovery:\ttdr_delay_ms={} engine_resets={} adapter_resets={}",
        adapter.recovery.delay_ms(),
        counts.engine_resets,
        counts.adapter_resets
    )?;
    // CAST: 32.
    for node in 0..adapter.caps.nodes.min(NODES_SHOWN as u32) {
        // A removed adapter does nothing.
        let Ok(kmd) = adapter.port.enter() else {
            return Ok(());
        };
        let name = kmd.get_node_metadata(&class, node).name;
        let status = kmd.query_node_status(&class, node);

        drop(kmd);
        engine(node, name.word(), &status, f)?;
        if let Some(last) = adapter.last_faults.get(node) {
            write!(f, " fault_queue={} fault_pid={}", last.queue, last.pid)?;
            fault(&last.fault, f)?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn engine(
    node: u32,
    name: impl Iterator<Item = char>,
    status: &NodeStatus,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let NodeStatus {
        running,
        busy_ns,
        submissions,
        switches,
        ready,
        blocked,
    } = *status;

    write!(f, "engine:\t{node} kind=")?;
    for character in name {
        write!(f, "{character}")?;
    }
    match running {
        Some(queue) => write!(f, " state=running running={queue}")?,
        None => write!(f, " state=idle")?,
    }
    write!(
        f,
        " busy_ns={busy_ns} submissions={submissions} switches={switches} ready={ready} \
         blocked={blocked}"
    )
}

/// Which queue each engine runs.
fn running(adapter: &Adapter) -> [Option<u64>; NODES_SHOWN] {
    let mut queues = [None; NODES_SHOWN];

    if let Ok(kmd) = adapter.port.enter() {
        // CAST: 32.
        let nodes = 0..adapter.caps.nodes.min(NODES_SHOWN as u32);

        for (queue, node) in queues.iter_mut().zip(nodes) {
            *queue = kmd.query_node_status(&Passive::here(), node).running;
        }
    }
    queues
}

/// Prints the queues, the first ones if there are very many.
///
/// Context: may sleep, no locks held.
pub(in crate::dxgk) fn queues(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let running = running(adapter);
    let mut hidden: u64 = 0;

    for (index, found) in adapter.queues.iter().enumerate() {
        // Who does not wait for the rest does not get it.
        if sleep::is_killed() {
            return Ok(());
        }
        if index >= QUEUES_SHOWN {
            // OVERFLOW: as many as there is memory for.
            hidden += 1;
            continue;
        }
        line(&found.snapshot(), &running, f)?;
    }
    if hidden != 0 {
        writeln!(f, "queues-more:\t{hidden}")?;
    }
    Ok(())
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
