// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer to each command, as text or as JSON.

use std::collections::BTreeMap;
use std::fmt::Display;

use opendxg::Guid;
use serde::Serialize;

use crate::args::Command;
use crate::engines::{Engine, Fault, Queue};
use crate::fdinfo::{self, Handle, Info};
use crate::table::{harmless, harmless_json, Table};
use crate::top::Share;
use crate::world::{HeldHandle, Object, Process, World};

/// What to print, or why there is nothing.
pub fn answer(world: &World, command: Command, json: bool) -> Result<String, String> {
    match json {
        true => as_json(world, command),
        false => as_text(world, command),
    }
}

fn as_text(world: &World, command: Command) -> Result<String, String> {
    let mut text = match command {
        Command::Overview => overview(world),
        Command::Adapters => adapters(world),
        Command::Processes => processes(world),
        Command::Objects => objects(world.objects.iter()),
        Command::Object { id } => object(world, find(world, id)?),
        Command::Handles { pid } => handles(&chosen(world, pid)?),
        Command::Names => names(world),
        Command::Info { id } => info(world, id)?,
        Command::Waiters => waiters(world),
        Command::Queues { pid } => queues(world, pid),
        Command::Engines => engines(world),
        Command::Top(_) => top(world),
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
        (world.reading.hidden_queues, "queues", "an adapter"),
    ] {
        if count > 0 {
            text += &format!("({count} more {what} are not included: the module shows the first 16384 of {of})\n");
        }
    }
    Ok(text)
}

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
    hidden_queues: u64,
    #[serde(flatten)]
    content: T,
}

fn as_json(world: &World, command: Command) -> Result<String, String> {
    Ok(match command {
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
        Command::Waiters => member(world, "objects", waited(world).collect::<Vec<_>>()),
        Command::Queues { pid } => {
            let queues = chosen_queues(world, pid);
            let queues = queues.map(|(luid, value)| OfAdapter { luid, value });
            member(world, "queues", queues.collect::<Vec<_>>())
        }
        Command::Engines => member(world, "engines", engines_of(world).collect::<Vec<_>>()),
        Command::Top(_) => member(world, "load", &world.loads),
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

/// An entry of the store of one of several objects.
#[derive(Serialize)]
struct Entry<'a> {
    object: u64,
    #[serde(flatten)]
    info: &'a Info,
}

fn find(world: &World, id: u64) -> Result<&Object, String> {
    let object = world.objects.iter().find(|object| object.id == id);
    object.ok_or_else(|| format!("no visible process has an object {id}"))
}

fn waited(world: &World) -> impl Iterator<Item = &Object> {
    world
        .objects
        .iter()
        .filter(|object| object.waiters.unwrap_or(0) > 0)
}

/// All processes, or one.
fn chosen(world: &World, pid: Option<u32>) -> Result<Vec<&Process>, String> {
    let Some(pid) = pid else {
        return Ok(world.processes.iter().collect());
    };
    let process = world.process(pid);
    let missing =
        || format!("process {pid} does not exist, is hidden, or has nothing of the module open");
    Ok(vec![process.ok_or_else(missing)?])
}

fn entries(world: &World, id: Option<u64>) -> Result<Vec<Entry<'_>>, String> {
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

fn overview(world: &World) -> String {
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

fn adapters(world: &World) -> String {
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

fn processes(world: &World) -> String {
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

fn objects<'a>(objects: impl Iterator<Item = &'a Object>) -> String {
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

fn object(world: &World, object: &Object) -> String {
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

fn handles(processes: &[&Process]) -> String {
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

fn names(world: &World) -> String {
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

fn info(world: &World, id: Option<u64>) -> Result<String, String> {
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

fn waiters(world: &World) -> String {
    let mut table = Table::new(&["OBJECT", "KIND", "WAITERS", "OWNER", "OPEN IN", "NAME"]);
    for object in waited(world) {
        let held: Vec<String> = object
            .holders()
            .iter()
            .map(|&pid| match world.process(pid) {
                Some(process) => format!("{pid} {} ({})", process.command, process.state),
                None => pid.to_string(),
            })
            .collect();
        table.row([
            object.id.to_string(),
            object.kind().into(),
            known(object.waiters),
            object
                .owner
                .map_or("-".into(), |thread| format!("thread {thread}")),
            held.join(", "),
            name_of(object),
        ]);
    }
    table.to_string()
}

/// An engine or a queue with its adapter.
#[derive(Serialize)]
struct OfAdapter<'a, T> {
    luid: &'a str,
    #[serde(flatten)]
    value: T,
}

/// Engines, and the process whose queue each runs.
#[derive(Serialize)]
struct EngineRow<'a> {
    #[serde(flatten)]
    engine: &'a Engine,
    running_pid: Option<u64>,
}

fn engines_of(world: &World) -> impl Iterator<Item = OfAdapter<'_, EngineRow<'_>>> {
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

fn engines(world: &World) -> String {
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
    table.to_string()
}

/// The queues of all processes or of one, with the LUIDs of their adapters.
fn chosen_queues(world: &World, pid: Option<u32>) -> impl Iterator<Item = (&str, &Queue)> {
    let each = world.reading.queues.iter();
    let each = each.flat_map(|(luid, queues)| queues.iter().map(move |one| (luid.as_str(), one)));
    each.filter(move |(_, queue)| pid.is_none() || queue.pid == pid.map(u64::from))
}

fn queues(world: &World, pid: Option<u32>) -> String {
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
        "WHY",
    ]);
    for (luid, queue) in chosen_queues(world, pid) {
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
            why,
        ]);
    }
    table.to_string()
}

/// Why a queue has stopped, in words.
fn describe(fault: &Fault) -> String {
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

fn top(world: &World) -> String {
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

/// The program of a process, if it was seen.
fn command_of(world: &World, pid: u64) -> String {
    let process = u32::try_from(pid).ok().and_then(|pid| world.process(pid));
    process.map_or("?".into(), |process| process.command.clone())
}

fn or_none(number: Option<u64>) -> String {
    number.map_or("-".into(), |number| number.to_string())
}

fn name_of(object: &Object) -> String {
    match object.names.is_empty() {
        true => "-".into(),
        false => list(&object.names),
    }
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items
        .into_iter()
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn known(count: Option<u64>) -> String {
    count.map_or("?".into(), |count| count.to_string())
}

fn access(mask: Option<u32>) -> String {
    mask.map_or("?".into(), |mask| format!("{mask:#x}"))
}
