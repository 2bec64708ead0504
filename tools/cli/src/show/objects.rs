// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects, their handles, names, stores and waiters.

use opendxg::Guid;
use serde::Serialize;

use super::text::{access, known, list, name_of};
use crate::fdinfo::Info;
use crate::table::{harmless, Table};
use crate::world::{HeldHandle, Object, Process, World};

/// An entry of the store of one of several objects.
#[derive(Serialize)]
pub(super) struct Entry<'a> {
    pub(super) object: u64,
    #[serde(flatten)]
    pub(super) info: &'a Info,
}

pub(super) fn find(world: &World, id: u64) -> Result<&Object, String> {
    let object = world.objects.iter().find(|object| object.id == id);
    object.ok_or_else(|| format!("no visible process has an object {id}"))
}

pub(super) fn waited(world: &World) -> impl Iterator<Item = &Object> {
    world
        .objects
        .iter()
        .filter(|object| object.waiters.unwrap_or(0) > 0)
}

/// All processes, or one.
pub(super) fn chosen(world: &World, pid: Option<u32>) -> Result<Vec<&Process>, String> {
    let Some(pid) = pid else {
        return Ok(world.processes.iter().collect());
    };
    let process = world.process(pid);
    let missing =
        || format!("process {pid} does not exist, is hidden, or has nothing of the module open");
    Ok(vec![process.ok_or_else(missing)?])
}

pub(super) fn entries(world: &World, id: Option<u64>) -> Result<Vec<Entry<'_>>, String> {
    let objects: Vec<_> = match id {
        Some(id) => vec![find(world, id)?],
        None => world.objects.iter().collect(),
    };
    let entries = objects.iter().flat_map(|one| entries_of(one));
    Ok(entries.collect())
}

fn entries_of(object: &Object) -> impl Iterator<Item = Entry<'_>> {
    object.info.iter().map(|info| Entry {
        object: object.id,
        info,
    })
}

pub(super) fn objects<'a>(objects: impl Iterator<Item = &'a Object>) -> String {
    let head = &[
        "ID",
        "KIND",
        "REFERENCES",
        "WAITERS",
        "HANDLES",
        "NT-HANDLES",
        "PROCESSES",
        "METADATA",
        "NAME",
    ];
    let mut table = Table::new(head);
    for object in objects {
        table.row([
            object.id.to_string(),
            object.kind().into(),
            known(object.references),
            known(object.waiters),
            object.handles.len().to_string(),
            object.files.len().to_string(),
            object.holders().len().to_string(),
            object.info.len().to_string(),
            name_of(object),
        ]);
    }
    table.to_string()
}

pub(super) fn object(world: &World, object: &Object) -> String {
    let mut text = format!("object      {}\n", object.id);
    let kinds: Vec<&str> = object.kinds.iter().map(String::as_str).collect();
    text += &format!("kind        {}\n", harmless(&kinds.join(", ")));
    text += &format!("name        {}\n", harmless(&name_of(object)));
    text += &format!("references  {}\n", known(object.references));
    text += &format!("waiters     {}\n", known(object.waiters));
    if let Some(thread) = object.owner {
        text += &format!("owner       thread {thread}\n");
    }
    text.push('\n');

    let mut table = Table::new(&["PID", "COMMAND", "STATE", "HANDLE", "KIND", "ACCESS"]);
    let who = |pid: u32| {
        world.process(pid).map_or(("?".into(), "?".into()), |one| {
            (one.command.clone(), one.state.clone())
        })
    };
    for HeldHandle { pid, handle } in &object.handles {
        let (command, state) = who(*pid);
        let value = format!("{:#010x}", handle.handle);
        table.row([
            pid.to_string(),
            command,
            state,
            value,
            handle.kind.clone(),
            access(handle.access),
        ]);
    }
    for file in &object.files {
        let (command, state) = who(file.pid);
        table.row([
            file.pid.to_string(),
            command,
            state,
            format!("fd {}", file.fd),
            file.class.clone(),
            access(file.access),
        ]);
    }
    text += &table.to_string();
    if !object.info.is_empty() {
        text += "\n";
        text += &info_table(entries_of(object));
    }
    text
}

pub(super) fn handles(processes: &[&Process]) -> String {
    let mut table = Table::new(&[
        "PID", "COMMAND", "HANDLE", "KIND", "OBJECT", "ACCESS", "NAME",
    ]);
    for process in processes {
        for handle in &process.handles {
            table.row([
                process.pid.to_string(),
                process.command.clone(),
                format!("{:#010x}", handle.handle),
                handle.kind.clone(),
                handle.object.to_string(),
                access(handle.access),
                handle.name.clone().unwrap_or("-".into()),
            ]);
        }
        for file in &process.files {
            let ids: Vec<String> = file.objects.iter().map(u64::to_string).collect();
            table.row([
                process.pid.to_string(),
                process.command.clone(),
                format!("fd {}", file.fd),
                file.class.clone(),
                ids.join(" "),
                access(file.access),
                file.name.clone().unwrap_or("-".into()),
            ]);
        }
    }
    table.to_string()
}

pub(super) fn names(world: &World) -> String {
    let mut table = Table::new(&["NAME", "OBJECT", "KIND", "PROCESSES"]);
    let mut rows: Vec<(&String, &Object)> = world
        .objects
        .iter()
        .flat_map(|object| object.names.iter().map(move |name| (name, object)))
        .collect();
    rows.sort_by_key(|(name, object)| (*name, object.id));
    for (name, object) in rows {
        let holders = list(object.holders());
        table.row([
            name.clone(),
            object.id.to_string(),
            object.kind().into(),
            holders,
        ]);
    }
    table.to_string()
}

pub(super) fn info(world: &World, id: Option<u64>) -> Result<String, String> {
    Ok(info_table(entries(world, id)?.into_iter()))
}

fn info_table<'a>(entries: impl Iterator<Item = Entry<'a>>) -> String {
    let mut table = Table::new(&[
        "OBJECT",
        "KEY",
        "SCHEMA",
        "BYTES",
        "GENERATION",
        "CONVENTION",
    ]);
    for Entry { object, info } in entries {
        table.row([
            object.to_string(),
            info.key.clone(),
            info.schema.to_string(),
            info.size.to_string(),
            info.generation.to_string(),
            convention(&info.key).into(),
        ]);
    }
    table.to_string()
}

/// The name of a reserved key.
fn convention(key: &str) -> &'static str {
    let guid = key.parse::<Guid>().ok();
    guid.and_then(Guid::name).unwrap_or("-")
}
