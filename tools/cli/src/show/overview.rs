// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters, processes and users.

use crate::fdinfo::Handle;
use crate::table::Table;
use crate::world::{Object, Process, World};

pub(super) fn overview(world: &World) -> String {
    let mut text = String::new();
    let mut line = |what: &str, count: String| text += &format!("{what:<32}{count}\n");
    line("adapters", world.adapters.len().to_string());
    for (name, count) in &world.totals {
        line(&format!("{name}, all processes"), count.to_string());
    }
    if let Some(why) = &world.no_totals {
        line("all processes", format!("? ({why})"));
    }
    line("processes seen", world.processes.len().to_string());
    line("shareable objects seen", world.objects.len().to_string());
    let with = |test: fn(&Object) -> bool| {
        world
            .objects
            .iter()
            .filter(|one| test(one))
            .count()
            .to_string()
    };
    line("  with a name", with(|one| !one.names.is_empty()));
    line("  with metadata", with(|one| !one.info.is_empty()));
    line(
        "  somebody waits for",
        with(|one| one.waiters.unwrap_or(0) > 0),
    );
    text
}

pub(super) fn adapters(world: &World) -> String {
    let mut table = Table::new(&[
        "ID",
        "LUID",
        "STATE",
        "OBJECTS",
        "BYTES",
        "HANDLES",
        "PROCESSES",
        "DESCRIPTION",
    ]);
    for adapter in &world.adapters {
        let is_its = |handle: &&Handle| handle.kind == "adapter" && handle.object == adapter.id;
        let count = |process: &Process| process.handles.iter().filter(is_its).count();
        let handles: usize = world.processes.iter().map(count).sum();
        let processes = world
            .processes
            .iter()
            .filter(|process| count(process) > 0)
            .count();
        let known = |name: &str| {
            let count = adapter.counts.get(name);
            count.map_or("?".into(), u64::to_string)
        };
        table.row([
            adapter.id.to_string(),
            adapter.luid.clone(),
            adapter.state.clone(),
            known("objects"),
            known("bytes"),
            handles.to_string(),
            processes.to_string(),
            adapter.description.clone(),
        ]);
    }
    table.to_string()
}

pub(super) fn processes(world: &World) -> String {
    let head = &[
        "PID",
        "COMMAND",
        "STATE",
        "HANDLES",
        "NT-HANDLES",
        "DMA-BUFS",
        "WAITS",
        "ALLOCATIONS",
        "BYTES",
        "RESIDENT",
        "FILES",
        "DEVICE",
    ];
    let mut table = Table::new(head);
    for process in &world.processes {
        let device = match (process.devices.is_empty(), process.inherited_from) {
            (true, _) => "-".into(),
            (false, None) => "open".into(),
            (false, Some(pid)) => format!("inherited from {pid}"),
        };
        table.row([
            process.pid.to_string(),
            process.command.clone(),
            process.state.clone(),
            process.handles.len().to_string(),
            process.files.len().to_string(),
            process.dma_bufs.len().to_string(),
            process.waiters.to_string(),
            process.allocations.to_string(),
            process.bytes.to_string(),
            process.resident.to_string(),
            process.held_files.to_string(),
            device,
        ]);
    }
    table.to_string() + &users(world)
}

/// What the users of the processes have, and may have.
fn users(world: &World) -> String {
    if world.users.values().all(|shares| shares.is_empty()) {
        return String::new();
    }
    let mut table = Table::new(&["USER", "WHAT", "USED", "LIMIT"]);
    for (user, shares) in &world.users {
        for (name, share) in shares {
            table.row([
                user.to_string(),
                name.clone(),
                share.used.to_string(),
                share.limit.to_string(),
            ]);
        }
    }
    format!("\n{table}")
}
