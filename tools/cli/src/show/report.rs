// SPDX-License-Identifier: MIT OR Apache-2.0
//! What went wrong on adapters.

use std::fmt::Write;

use super::gpu::{describe, queue_table, OfAdapter};
use super::text::{command_of, known};
use crate::reports::{Packet, Report, Step};
use crate::table::harmless;
use crate::world::World;

pub(super) fn reports_of(world: &World) -> impl Iterator<Item = OfAdapter<'_, &Report>> {
    let each = world.reports.iter();
    each.flat_map(|(luid, reports)| {
        let reports = reports.iter();
        reports.map(move |value| OfAdapter { luid, value })
    })
}

/// The reports, one below the other, each with what belongs to it.
pub(super) fn report(world: &World) -> String {
    let reports = reports_of(world).map(|OfAdapter { luid, value }| one(world, luid, value));
    let reports: Vec<String> = reports.collect();
    match reports.is_empty() {
        true => "nothing went wrong\n".into(),
        false => reports.join("\n"),
    }
}

fn one(world: &World, luid: &str, report: &Report) -> String {
    let mut text = format!(
        "Report {} of adapter {luid}: {}\n",
        report.number,
        why(report)
    );
    let mut line = |name: &str, what: &str| {
        // Writing to text does not fail.
        let _ = writeln!(text, "  {name:<8}{}", harmless(what));
    };
    line("when", &when(report));
    if let Some(node) = report.node {
        line("engine", &format!("node {node}"));
    }
    line("done", done(&report.done));
    if let Some(queue) = report.queue {
        let owner = match report.pid {
            Some(pid) => format!("of process {pid}, {}", command_of(world, pid)),
            None => "of a process that was gone".into(),
        };
        line("queue", &format!("{queue} {owner}"));
    }
    if let Some(fault) = &report.fault {
        line("fault", &describe(fault));
    } else if let Some(packet) = report.packet {
        let stale = match report.stale {
            Some(true) => ", as the engine has told last",
            _ => "",
        };
        line("packet", &format!("{packet:#x}{stale}"));
        text += &packets(packet, &report.commands);
    }
    if let Some(walk) = &report.walk {
        text += &steps(walk);
    }
    if !report.queues.is_empty() {
        text += "  queues with work\n";
        let queues = report.queues.iter().map(|queue| (luid, queue));
        for line in queue_table(world, queues).to_string().lines() {
            text += &format!("    {line}\n");
        }
    }
    if report.hidden_queues > 0 {
        text += &format!("    ({} more queues had work)\n", report.hidden_queues);
    }
    text
}

fn why(report: &Report) -> &str {
    match &*report.kind {
        "queue-hang" => "the work of a queue took too long",
        "engine-hang" => "an engine did not yield",
        "requested" => "a reset was requested",
        "paging" => "the paging node could not do its work",
        "fault" => "a queue has faulted",
        other => other,
    }
}

fn done(done: &str) -> &str {
    match done {
        "in-progress" => "nothing yet",
        "engine-reset" => "the engine was reset",
        "adapter-reset" => "the adapter was reset",
        "adapter-stopped" => "the adapter was stopped",
        "none" => "nothing",
        other => other,
    }
}

fn when(report: &Report) -> String {
    let seconds = |ns: Option<u64>| match ns {
        Some(ns) => format!("{}.{:06} s", ns / 1_000_000_000, ns / 1000 % 1_000_000),
        None => "?".into(),
    };
    format!(
        "{} ago, at {}",
        seconds(report.ago_ns),
        seconds(report.time_ns)
    )
}

/// The packets from an address on.
fn packets(first: u64, packets: &[Packet]) -> String {
    let mut text = String::new();
    let mut at = first;
    for packet in packets {
        let words: Vec<String> = packet
            .words
            .iter()
            .map(|word| format!("{word:08x}"))
            .collect();
        let more = if packet.cut { " …" } else { "" };
        let name = packet.name.unwrap_or("not a packet");
        text += &format!("    {at:#014x}  {name:<16}{}{more}\n", words.join(" "));
        at = at.wrapping_add(4 * packet.words.len() as u64);
    }
    text
}

/// The way through page tables.
fn steps(walk: &[Step]) -> String {
    let mut text = String::from("  page tables\n");
    if walk.is_empty() {
        text += "    the address is beyond them\n";
    }
    for step in walk {
        let what = match (&*step.entry, step.address) {
            (entry @ ("table" | "page"), Some(address)) => {
                let segment = match step.segment {
                    Some(0) => "system memory".into(),
                    segment => format!("segment {}", known(segment)),
                };
                let rights = match (entry, step.write) {
                    ("page", Some(false)) => ", read only",
                    _ => "",
                };
                format!("{entry} at {address:#x} of {segment}{rights}")
            }
            (entry, _) => harmless(entry),
        };
        text += &format!(
            "    level {}, entry {}: {what}\n",
            step.level,
            known(step.index)
        );
    }
    text
}
