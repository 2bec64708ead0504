// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the rules need, from what was found.

use std::collections::{BTreeMap, BTreeSet};

use super::{Facts, Life, Target};
use crate::world::{Object, World};

/// Access of a handle of a synchronisation object that may signal it.
const SIGNAL: u32 = 0x2;

impl Facts {
    /// The facts about all waits that were seen.
    pub fn of(world: &World) -> Self {
        let waited: BTreeSet<u64> = world.waits.iter().map(|wait| wait.object).collect();
        let objects = world.objects.iter().filter(|one| waited.contains(&one.id));
        let targets = objects.map(|object| (object.id, target(world, object)));
        Self {
            waits: world.waits.clone(),
            targets: targets.collect(),
            lives: lives(world),
        }
    }
}

/// The process that a thread belongs to, if it was seen.
pub fn process_of(world: &World, thread: u64) -> Option<u32> {
    let thread = u32::try_from(thread).ok()?;
    let found = world.processes.iter();
    let mut found = found.filter(|one| one.pid == thread || one.threads.contains(&thread));
    found.next().map(|process| process.pid)
}

fn target(world: &World, object: &Object) -> Target {
    let is_mutex = object.kinds.contains("keyed-mutex");
    // Every handle of a keyed mutex may acquire and release it.
    let may = |access: Option<u32>| is_mutex || access.is_none_or(|mask| mask & SIGNAL != 0);
    let handles = object.handles.iter();
    let handles = handles.filter(|held| may(held.handle.access) && !held.handle.waits_only);
    let handles = handles.map(|held| held.pid);
    // Those of a resource are for the mutex and the fence that are shared with it.
    let with_resource = |class: &str| class.contains("Resource");
    let files = object.files.iter();
    let files = files.filter(|held| {
        held.class.contains("Shared") && (with_resource(&held.class) || may(held.access))
    });
    let files = files.map(|held| held.pid);
    let seen = (object.handles.len() + object.files.len()) as u64;
    Target {
        could: handles.chain(files).collect(),
        last: object.by,
        owner: object.owner.and_then(|thread| process_of(world, thread)),
        is_mutex,
        has_more: world.hidden_processes > 0 || object.references > Some(seen),
    }
}

fn lives(world: &World) -> BTreeMap<u32, Life> {
    let life = |state: &str| match state {
        "stopped" | "traced" => Life::Stopped,
        "zombie" => Life::Gone,
        _ => Life::Alive,
    };
    let seen = world
        .processes
        .iter()
        .map(|one| (one.pid, life(&one.state)));
    let mentioned = world.mentioned.iter().map(|(&pid, what)| {
        let life = what.as_ref().map_or(Life::Gone, |(_, state)| life(state));
        (pid, life)
    });
    // A process that is gone may have left its number to one that was seen.
    seen.chain(mentioned).collect()
}
