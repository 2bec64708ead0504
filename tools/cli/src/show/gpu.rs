// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines, queues, and who keeps engines busy.

use serde::Serialize;

use super::text::{command_of, known, or_none};
use crate::engines::{Engine, Fault, Queue, Recovery};
use crate::table::Table;
use crate::top::Share;
use crate::world::World;

/// An engine or a queue with its adapter.
#[derive(Serialize)]
pub(super) struct OfAdapter<'a, T> {
    pub(super) luid: &'a str,
    #[serde(flatten)]
    pub(super) value: T,
}

/// Engines, and the process whose queue each runs.
#[derive(Serialize)]
pub(super) struct EngineRow<'a> {
    #[serde(flatten)]
    engine: &'a Engine,
    running_pid: Option<u64>,
}

pub(super) fn engines_of(world: &World) -> impl Iterator<Item = OfAdapter<'_, EngineRow<'_>>> {
    let reading = &world.reading;
    let each = reading.engines.iter();
    let each = each.flat_map(|(luid, engines)| engines.iter().map(move |one| (luid, one)));
    each.map(|(luid, engine)| {
        let queues = || reading.queues.get(luid).into_iter().flatten();
        let running = queues().find(|queue| Some(queue.id) == engine.running);
        let value = EngineRow {
            engine,
            running_pid: running.and_then(|queue| queue.pid),
        };
        OfAdapter { luid, value }
    })
}

pub(super) fn engines(world: &World) -> String {
    let mut table = Table::new(&[
        "ADAPTER",
        "NODE",
        "KIND",
        "STATE",
        "QUEUE",
        "PID",
        "COMMAND",
        "READY",
        "BLOCKED",
        "SUBMISSIONS",
        "SWITCHES",
        "BUSY-MS",
        "LAST FAULT",
    ]);
    for OfAdapter { luid, value } in engines_of(world) {
        let EngineRow {
            engine,
            running_pid,
        } = value;
        table.row([
            luid.into(),
            engine.node.to_string(),
            engine.kind.clone(),
            engine.state.clone(),
            or_none(engine.running),
            or_none(running_pid),
            running_pid.map_or("-".into(), |pid| command_of(world, pid)),
            known(engine.ready),
            known(engine.blocked),
            known(engine.submissions),
            known(engine.switches),
            known(engine.busy_ns.map(|ns| ns / 1_000_000)),
            engine.last_fault.as_ref().map_or("-".into(), |last| {
                let (queue, pid) = (known(last.queue), or_none(last.pid));
                format!("queue {queue} of {pid}: {}", describe(&last.fault))
            }),
        ]);
    }
    match world.reading.recovery.is_empty() {
        true => table.to_string(),
        false => format!("{table}\n{}", recovery(world)),
    }
}

pub(super) fn recovery_of(world: &World) -> impl Iterator<Item = OfAdapter<'_, &Recovery>> {
    let each = world.reading.recovery.iter();
    each.map(|(luid, value)| OfAdapter { luid, value })
}

/// How adapters have recovered.
fn recovery(world: &World) -> String {
    let mut table = Table::new(&["ADAPTER", "TDR-MS", "ENGINE-RESETS", "ADAPTER-RESETS"]);
    for OfAdapter { luid, value } in recovery_of(world) {
        table.row([
            luid.into(),
            known(value.tdr_delay_ms),
            known(value.engine_resets),
            known(value.adapter_resets),
        ]);
    }
    table.to_string()
}

/// The queues of all processes or of one, with the LUIDs of their adapters.
pub(super) fn chosen_queues(
    world: &World,
    pid: Option<u32>,
) -> impl Iterator<Item = (&str, &Queue)> {
    let each = world.reading.queues.iter();
    let each = each.flat_map(|(luid, queues)| queues.iter().map(move |one| (luid.as_str(), one)));
    each.filter(move |(_, queue)| pid.is_none() || queue.pid == pid.map(u64::from))
}

pub(super) fn queues(world: &World, pid: Option<u32>) -> String {
    queue_table(world, chosen_queues(world, pid)).to_string()
}

/// These queues, with the LUIDs of their adapters.
pub(super) fn queue_table<'a>(
    world: &World,
    queues: impl Iterator<Item = (&'a str, &'a Queue)>,
) -> Table {
    let mut table = Table::new(&[
        "QUEUE",
        "ADAPTER",
        "NODE",
        "PID",
        "COMMAND",
        "KIND",
        "PRIORITY",
        "STATE",
        "QUEUED",
        "IN-FLIGHT",
        "DONE",
        "BUSY-MS",
        "DOORBELL",
        "PROGRESS",
        "WHY",
    ]);
    for (luid, queue) in queues {
        let why = match (&queue.fault, &queue.blocked_on) {
            (Some(fault), _) => describe(fault),
            (None, Some(on)) => match on.value {
                Some(value) => format!("{} {} to reach {value}", on.kind, on.object),
                None => format!("{} {}", on.kind, on.object),
            },
            (None, None) => "-".into(),
        };
        table.row([
            queue.id.to_string(),
            luid.into(),
            known(queue.node),
            or_none(queue.pid),
            queue.pid.map_or("-".into(), |pid| command_of(world, pid)),
            queue.kind.clone(),
            queue.priority.map_or("?".into(), |one| one.to_string()),
            queue.state.clone(),
            known(queue.queued),
            known(queue.in_flight),
            known(queue.submissions),
            known(queue.busy_ns.map(|ns| ns / 1_000_000)),
            queue.doorbell.clone().unwrap_or("-".into()),
            match (queue.progress, queue.last_queued) {
                (Some(progress), Some(last)) => format!("{progress}/{last}"),
                _ => "-".into(),
            },
            why,
        ]);
    }
    table
}

/// Why a queue has stopped, in words.
pub(super) fn describe(fault: &Fault) -> String {
    let hex = |word: Option<u64>| word.map_or("?".into(), |word| format!("{word:#x}"));
    let what = match (fault.header, fault.write) {
        (Some(header), _) => format!("illegal packet {header:#x}"),
        (None, Some(true)) => format!("write to {}", hex(fault.address)),
        (None, _) => format!("read from {}", hex(fault.address)),
    };
    format!(
        "{what}, packet at {}, submission {}",
        hex(fault.packet),
        known(fault.submission)
    )
}

pub(super) fn top(world: &World) -> String {
    let mut table = Table::new(&[
        "ADAPTER",
        "NODE",
        "KIND",
        "PID",
        "COMMAND",
        "BUSY",
        "SUBMISSIONS",
        "SWITCHES",
        "QUEUED",
        "QUEUES",
        "BLOCKED",
    ]);
    let percent = |part: f64| format!("{part:.1}%");
    for load in &world.loads {
        let sum = |value: fn(&Share) -> u64| load.processes.iter().map(value).sum::<u64>();
        table.row([
            load.luid.clone(),
            load.node.to_string(),
            load.kind.clone(),
            "all".into(),
            "-".into(),
            load.busy.map_or("?".into(), percent),
            known(load.submissions),
            known(load.switches),
            sum(|one| one.queued).to_string(),
            sum(|one| one.queues).to_string(),
            sum(|one| one.blocked).to_string(),
        ]);
        for share in &load.processes {
            table.row([
                String::new(),
                String::new(),
                String::new(),
                or_none(share.pid),
                share.command.clone().unwrap_or("?".into()),
                percent(share.busy),
                share.submissions.to_string(),
                String::new(),
                share.queued.to_string(),
                share.queues.to_string(),
                share.blocked.to_string(),
            ]);
        }
        if load.ended.queues > 0 {
            table.row([
                String::new(),
                String::new(),
                String::new(),
                "ended".into(),
                "-".into(),
                percent(load.ended.busy),
                load.ended.submissions.to_string(),
                String::new(),
                "-".into(),
                load.ended.queues.to_string(),
                "-".into(),
            ]);
        }
    }
    table.to_string()
}
