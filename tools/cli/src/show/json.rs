// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::gpu::{chosen_queues, engines_of, recovery_of, EngineRow, OfAdapter};
use super::objects::{chosen, entries, find, waited};
use super::refusals::refusals;
use super::report::reports_of;
use super::waiters::{shown_waits, ShownWait};
use crate::args::Command;
use crate::engines::Recovery;
use crate::fdinfo;
use crate::refusals::Refusal;
use crate::table::harmless_json;
use crate::world::{Object, Process, World};

/// Version of the JSON document: it rises when a member goes or changes its meaning, not when one
/// comes.
pub const JSON_VERSION: u32 = 1;

/// What every JSON document has.
#[derive(Serialize)]
struct Document<T> {
    version: u32,
    hidden_processes: usize,
    hidden_handles: u64,
    hidden_info: u64,
    hidden_waits: u64,
    hidden_queues: u64,
    #[serde(flatten)]
    content: T,
}

pub(super) fn as_json(world: &World, command: &Command) -> Result<String, String> {
    Ok(match *command {
        Command::Overview => document(world, world),
        Command::Adapters => member(world, "adapters", &world.adapters),
        Command::Processes => document(
            world,
            Processes {
                processes: &world.processes,
                users: &world.users,
            },
        ),
        Command::Objects => member(world, "objects", &world.objects),
        Command::Object { id } => member(world, "object", find(world, id)?),
        Command::Handles { pid } => member(world, "processes", chosen(world, pid)?),
        Command::Names => {
            let named = world.objects.iter().filter(|one| !one.names.is_empty());
            member(world, "objects", named.collect::<Vec<_>>())
        }
        Command::Info { id } => member(world, "info", entries(world, id)?),
        Command::Waiters(_) => document(
            world,
            Waiters {
                objects: waited(world).collect(),
                waits: shown_waits(world),
            },
        ),
        Command::Why { pid } => {
            let refusals = refusals(world, pid)?.iter().map(Refusal::shown);
            member(world, "refusals", refusals.collect::<Vec<_>>())
        }
        Command::Queues { pid } => {
            let queues = chosen_queues(world, pid);
            let queues = queues.map(|(luid, value)| OfAdapter { luid, value });
            member(world, "queues", queues.collect::<Vec<_>>())
        }
        Command::Engines => document(
            world,
            Engines {
                engines: engines_of(world).collect(),
                recovery: recovery_of(world).collect(),
            },
        ),
        Command::Top(_) => member(world, "load", &world.loads),
        Command::Report { .. } => member(world, "reports", reports_of(world).collect::<Vec<_>>()),
        // These show nothing.
        Command::Trace(_)
        | Command::Reset { .. }
        | Command::Stop { .. }
        | Command::Continue { .. } => String::new(),
    })
}

/// A document with one member of content.
fn member(world: &World, name: &'static str, content: impl Serialize) -> String {
    document(world, BTreeMap::from([(name, content)]))
}

fn document(world: &World, content: impl Serialize) -> String {
    let document = Document {
        version: JSON_VERSION,
        hidden_processes: world.hidden_processes,
        hidden_handles: world.hidden_handles,
        hidden_info: world.hidden_info,
        hidden_waits: world.hidden_waits,
        hidden_queues: world.reading.hidden_queues,
        content,
    };
    let text = serde_json::to_string_pretty(&document).expect("plain data with text keys");
    harmless_json(&text) + "\n"
}

/// The processes, and what their users have.
#[derive(Serialize)]
struct Processes<'a> {
    processes: &'a [Process],
    users: &'a BTreeMap<u64, BTreeMap<String, fdinfo::Share>>,
}

/// The objects that are waited for, and who waits.
#[derive(Serialize)]
struct Waiters<'a> {
    objects: Vec<&'a Object>,
    waits: Vec<ShownWait>,
}

/// The engines, and how their adapters have recovered.
#[derive(Serialize)]
struct Engines<'a> {
    engines: Vec<OfAdapter<'a, EngineRow<'a>>>,
    recovery: Vec<OfAdapter<'a, &'a Recovery>>,
}
