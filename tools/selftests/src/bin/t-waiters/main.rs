// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadlocks and lost signals, and whom `opendxg waiters` blames. `PATH` has to lead to it.
//!
//! A seed says which process has which part in a situation, so that the culprit is the first one
//! that was made or the last one. All processes are stopped while the command runs for the second
//! time.

mod actor;
mod situations;

use std::process::Command;

use selftests::child::{Child, Gate};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, rounds, task, Failure, Suite, TestResult};
use serde_json::Value;

use actor::{act, Shared, Step};
use situations::{Situation, SITUATIONS};

pub(crate) fn main() {
    let seed = rounds::seed();
    SITUATIONS
        .iter()
        .zip(0..)
        .fold(Suite::new("waiters"), |suite, (make, number)| {
            let situation = make();
            suite.test(situation.name, move || check(&situation, seed ^ number))
        })
        .test("FEN-28 RES-15 --watch shows it again", watch)
        .run()
}

/// Each number below `count` once, in an order that the seed decides.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = seed;
    for at in (1..count).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

/// A process that has a part.
struct Actor {
    child: Option<Child>,
    pid: i32,
    go: Gate,
    done: Gate,
}

/// Makes the situation and asks the command twice: while all go on, and while all are stopped.
fn check(situation: &Situation, seed: u64) -> TestResult {
    let mut actors = begin(situation, seed)?;
    play(situation, &actors)?;
    for &place in situation.killed {
        let child = actors[place].child.take();
        child.ok_or("killed twice")?.kill()?;
    }
    let culprits: Vec<u64> = situation
        .culprits
        .iter()
        .map(|&at| actors[at].pid as u64)
        .collect();
    let waiter = &actors[situation.waiter];
    if let Some(stopped) = situation.stopped {
        stop(&actors[stopped])?;
    }
    let (verdict, blamed) = verdict(waiter.pid)?;
    ensure_eq!(
        (verdict.as_str(), sorted(&blamed)),
        (situation.verdict, sorted(&culprits))
    );

    for actor in actors.iter().filter(|actor| actor.child.is_some()) {
        stop(actor)?;
    }
    let (verdict, blamed) = self::verdict(waiter.pid)?;
    let is_same = verdict == situation.verdict || verdict == "stopped";
    ensure!(is_same, "{verdict}, not {}", situation.verdict);
    ensure_eq!(sorted(&blamed), sorted(&culprits));
    let table = text(&["waiters"])?;
    for pid in &culprits {
        let is_named =
            |line: &str| line.starts_with("  culprit") && line.contains(&pid.to_string());
        ensure!(table.lines().any(is_named), "{pid}: {table}");
    }
    for actor in actors {
        actor.child.map_or(Ok(()), Child::kill)?;
    }
    Ok(())
}

fn sorted(pids: &[u64]) -> Vec<u64> {
    let mut pids = pids.to_vec();
    pids.sort_unstable();
    pids
}

/// Makes the processes, in an order of the seed. They have everything open when this returns, and
/// this process has nothing.
fn begin(situation: &Situation, seed: u64) -> TestResult<Vec<Actor>> {
    let shared = Shared::new(situation)?;
    let mut actors: Vec<Option<Actor>> = situation.parts.iter().map(|_| None).collect();
    for place in shuffled(situation.parts.len(), seed) {
        let (ready, go, done) = (Gate::new()?, Gate::new()?, Gate::new()?);
        let part = &situation.parts[place];
        let child = Child::spawn(|| act(part, &shared, &ready, &go, &done))?;
        ready.wait_for_child(&child)?;
        actors[place] = Some(Actor {
            pid: child.pid(),
            child: Some(child),
            go,
            done,
        });
    }
    shared.close()?;
    Ok(actors.into_iter().flatten().collect())
}

/// Lets one after the other play its part, until it is done or waits.
fn play(situation: &Situation, actors: &[Actor]) -> TestResult {
    for (part, actor) in situation.parts.iter().zip(actors) {
        let child = actor.child.as_ref().ok_or("no child")?;
        actor.go.open()?;
        actor.done.wait_for_child(child)?;
        if part.steps.last().is_some_and(Step::blocks) {
            let pid = actor.pid;
            eventually("the process sleeps", || {
                // For an event in another call than for objects.
                task::is_blocked(pid)
                    || [libc::SYS_poll, libc::SYS_ppoll]
                        .iter()
                        .any(|call| task::is_in(pid, *call))
            })?;
        }
    }
    Ok(())
}

/// Stops a process. A thread that waits with a time limit is stopped when it is over.
fn stop(actor: &Actor) -> TestResult {
    let child = actor.child.as_ref().ok_or("it is gone")?;
    child.signal(libc::SIGSTOP)?;
    eventually("the process is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", actor.pid)).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        matches!(state, Some('T' | 'D'))
    })
}

fn text(args: &[&str]) -> TestResult<String> {
    let output = Command::new("opendxg").args(args).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {error}", output.status);
    String::from_utf8(output.stdout).map_err(|_| Failure::Failed("output is not UTF-8".into()))
}

fn waits() -> TestResult<Vec<Value>> {
    let document: Value = serde_json::from_str(&text(&["waiters", "--json"])?)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(document["waits"].as_array().cloned().unwrap_or_default())
}

/// What the command says of the thread that waits in this process: why, and who is to blame.
fn verdict(pid: i32) -> TestResult<(String, Vec<u64>)> {
    let waits = waits()?;
    let is_its =
        |wait: &&Value| wait["pid"].as_i64() == Some(pid.into()) && wait["receiver"] != "queue";
    let wait = waits.iter().find(is_its);
    let wait = wait.ok_or_else(|| format!("{pid} does not wait: {waits:?}"))?;
    ensure!(wait["ago_ns"].as_u64() < Some(600_000_000_000), "{wait}");
    let culprits = wait["culprits"].as_array().ok_or("no culprits")?;
    let culprits = culprits.iter().filter_map(Value::as_u64).collect();
    Ok((wait["verdict"].as_str().unwrap_or("?").into(), culprits))
}

fn watch() -> TestResult {
    let table = text(&["waiters", "--watch", "--count", "2", "--delay", "0.01"])?;
    let heads = table.lines().filter(|line| line.starts_with("OBJECT"));
    ensure_eq!(heads.count(), 2);
    Ok(())
}
