// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who waits, and who is to blame that it does not end.

use std::collections::BTreeSet;

use serde::Serialize;

use super::objects::waited;
use super::text::{known, list, name_of};
use crate::table::{harmless, Table};
use crate::waiters::{blame, process_of, Blame, Facts, Target, Verdict, Wait};
use crate::world::{Object, World};

/// A wait that holds up its process.
#[derive(Serialize)]
pub(super) struct ShownWait {
    pid: Option<u32>,
    thread: Option<u32>,
    ago_ns: u64,
    receiver: String,
    any: bool,
    elements: Vec<Element>,
    verdict: Verdict,
    culprits: BTreeSet<u32>,
}

/// What it waits for.
#[derive(Serialize)]
struct Element {
    object: u64,
    kind: String,
    /// The value of a fence or the key of a keyed mutex that is waited for.
    wanted: u64,
    /// The one that there is.
    value: Option<u64>,
    /// Who has signalled or released last, and how long ago.
    by: Option<u32>,
    by_ago_ns: Option<u64>,
    /// The process that owns a keyed mutex.
    owner: Option<u32>,
    /// Who could signal or release it.
    could: BTreeSet<u32>,
}

/// The oldest one comes first.
pub(super) fn shown_waits(world: &World) -> Vec<ShownWait> {
    let facts = Facts::of(world);
    let shown = |blame: Blame| ShownWait::new(world, &facts, blame);
    blame(&facts).into_iter().map(shown).collect()
}

impl ShownWait {
    fn new(world: &World, facts: &Facts, blame: Blame) -> Self {
        let of = |at: &usize| &facts.waits[*at];
        let elements = blame.elements.iter().map(of);
        let first = of(&blame.elements[0]);
        Self {
            pid: first.pid,
            thread: first.thread,
            ago_ns: first.ago_ns,
            receiver: first.receiver.clone(),
            any: first.any,
            elements: elements
                .map(|wait| Element::new(world, facts, wait))
                .collect(),
            verdict: blame.verdict,
            culprits: blame.culprits,
        }
    }
}

impl Element {
    fn new(world: &World, facts: &Facts, wait: &Wait) -> Self {
        let object = world.objects.iter().find(|one| one.id == wait.object);
        let target: Option<&Target> = facts.targets.get(&wait.object);
        Self {
            object: wait.object,
            kind: object.map_or("?", Object::kind).into(),
            wanted: wait.value,
            value: object.and_then(|one| one.value.or(one.key)),
            by: object.and_then(|one| one.by),
            by_ago_ns: object.and_then(|one| one.ago_ns),
            owner: object.and_then(|one| process_of(world, one.owner?)),
            could: target.map(|one| one.could.clone()).unwrap_or_default(),
        }
    }
}

pub(super) fn waiters(world: &World) -> String {
    let mut text = objects(world);
    for wait in shown_waits(world) {
        text.push('\n');
        text += &one(world, &wait);
    }
    text
}

/// Everything that is waited for.
fn objects(world: &World) -> String {
    let mut table = Table::new(&["OBJECT", "KIND", "WAITERS", "OWNER", "OPEN IN", "NAME"]);
    for object in waited(world) {
        table.row([
            object.id.to_string(),
            object.kind().into(),
            known(object.waiters),
            object
                .owner
                .map_or("-".into(), |thread| format!("thread {thread}")),
            list(object.holders().iter().map(|&pid| who(world, pid))),
            name_of(object),
        ]);
    }
    table.to_string()
}

fn one(world: &World, wait: &ShownWait) -> String {
    let pid = wait.pid.map_or("a process".into(), |pid| who(world, pid));
    let with = match (wait.receiver.as_str(), wait.thread) {
        ("thread", Some(thread)) => format!("in thread {thread}"),
        ("event", _) => "for an event".into(),
        ("poll", _) => "in a fence point".into(),
        ("queue", _) => "in a queue".into(),
        _ => String::new(),
    };
    let mut text = format!("{pid} waits {with} for {} s\n", seconds(wait.ago_ns));
    for (number, element) in wait.elements.iter().enumerate() {
        let word = match (number, wait.any) {
            (0, _) => "for",
            (_, true) => "or",
            (_, false) => "and",
        };
        text += &format!("  {word:<9}{}\n", wanted(world, element));
    }
    text + &format!("  culprit  {}\n", culprit(world, wait))
}

/// What an element waits for, what there is, and since when.
fn wanted(world: &World, element: &Element) -> String {
    let (what, is) = match element.kind.as_str() {
        "keyed-mutex" => ("at key", "the key is"),
        _ => ("to reach", "it is"),
    };
    let mut text = format!(
        "{} {} {what} {}",
        element.kind, element.object, element.wanted
    );
    text += &format!("; {is} {}", known(element.value));
    if let Some(owner) = element.owner {
        text += &format!(", owned by {}", who(world, owner));
    }
    match (element.by, element.by_ago_ns) {
        (Some(by), Some(ago)) => {
            text += &format!(", by {}, {} s ago", who(world, by), seconds(ago));
        }
        (None, Some(ago)) => text += &format!(", {} s ago", seconds(ago)),
        _ => text += ", nobody has changed it",
    }
    let could = element.could.iter().map(|&pid| who(world, pid));
    let could = list(could);
    let could = if could.is_empty() { "nobody" } else { &could };
    text + &format!("; could be changed by {could}")
}

fn culprit(world: &World, wait: &ShownWait) -> String {
    let all = list(wait.culprits.iter().map(|&pid| who(world, pid)));
    match wait.verdict {
        Verdict::Cycle if wait.culprits.len() == 1 => format!("{all}: it waits for itself"),
        Verdict::Cycle => format!("{all}: they wait for each other"),
        Verdict::LastWriterGone => format!("{all}: nobody else can, the last writer is gone"),
        Verdict::Stopped => format!("{all}: stopped"),
        Verdict::Owner => format!("{all}: has not released it"),
        Verdict::OtherKey => format!("{all}: has released it with another key"),
        Verdict::HasNot => format!("{all}: has not done it"),
        Verdict::Alone => format!("{all}: nobody else has it open"),
        Verdict::Unseen => "?: queued work, or a process that is not shown".into(),
    }
}

/// A process with its name and state.
fn who(world: &World, pid: u32) -> String {
    let seen = world.process(pid);
    let seen = seen.map(|one| (one.command.as_str(), one.state.as_str()));
    let mentioned = world.mentioned.get(&pid).map(|found| {
        let found = found.as_ref();
        found.map_or(("?", "gone"), |(name, state)| {
            (name.as_str(), state.as_str())
        })
    });
    match mentioned.or(seen) {
        Some(("?", state)) => format!("{pid} ({state})"),
        Some((name, state)) => format!("{pid} {} ({state})", harmless(name)),
        None => pid.to_string(),
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}
