// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers as text, by command, and the words that tables share.

use std::fmt::Display;

use super::gpu::{engines, queues, top};
use super::objects::{chosen, find, handles, info, names, object, objects};
use super::overview::{adapters, overview, processes};
use super::refusals::why;
use super::report::report;
use super::waiters::waiters;
use crate::args::Command;
use crate::world::{Object, World};

pub(super) fn as_text(world: &World, command: &Command) -> Result<String, String> {
    let mut text = match *command {
        Command::Overview => overview(world),
        Command::Adapters => adapters(world),
        Command::Processes => processes(world),
        Command::Objects => objects(world.objects.iter()),
        Command::Object { id } => object(world, find(world, id)?),
        Command::Handles { pid } => handles(&chosen(world, pid)?),
        Command::Names => names(world),
        Command::Info { id } => info(world, id)?,
        Command::Waiters(_) => waiters(world),
        Command::Why { pid } => why(world, pid)?,
        Command::Queues { pid } => queues(world, pid),
        Command::Engines => engines(world),
        Command::Top(_) => top(world),
        Command::Report { .. } => report(world),
        // These show nothing.
        Command::Trace(_)
        | Command::Reset { .. }
        | Command::Stop { .. }
        | Command::Continue { .. } => String::new(),
    };
    if world.hidden_processes > 0 {
        let count = world.hidden_processes;
        text += &format!(
            "({count} processes of other users are not included: run as root to see them)\n"
        );
    }
    for (count, what, of) in [
        (world.hidden_handles, "handles", "a process"),
        (world.hidden_info, "metadata entries", "a process"),
        (world.hidden_waits, "waits", "a process"),
        (world.reading.hidden_queues, "queues", "an adapter"),
    ] {
        if count > 0 {
            text += &format!("({count} more {what} are not included: the module shows the first 16384 of {of})\n");
        }
    }
    Ok(text)
}

/// The program of a process, if it was seen.
pub(super) fn command_of(world: &World, pid: u64) -> String {
    let process = u32::try_from(pid).ok().and_then(|pid| world.process(pid));
    process.map_or("?".into(), |process| process.command.clone())
}

pub(super) fn or_none(number: Option<u64>) -> String {
    number.map_or("-".into(), |number| number.to_string())
}

pub(super) fn name_of(object: &Object) -> String {
    match object.names.is_empty() {
        true => "-".into(),
        false => list(&object.names),
    }
}

pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items
        .into_iter()
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn known(count: Option<u64>) -> String {
    count.map_or("?".into(), |count| count.to_string())
}

pub(super) fn access(mask: Option<u32>) -> String {
    mask.map_or("?".into(), |mask| format!("{mask:#x}"))
}
