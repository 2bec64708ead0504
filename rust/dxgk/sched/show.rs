// SPDX-License-Identifier: GPL-2.0

//! What people see of engines and queues, in debugfs: a line for each, with words `NAME=VALUE`
//! behind its number. The tool `opendxg` reads them.

use super::snapshot;
use crate::dxgk::adapter::Adapter;
use crate::{
    ddi::{
        class::Passive,
        queue::NodeStatus, //
    },
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
            snapshot::fault(&last.fault, f)?;
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
        snapshot::line(&found.snapshot(), &running, f)?;
    }
    if hidden != 0 {
        writeln!(f, "queues-more:\t{hidden}")?;
    }
    Ok(())
}
