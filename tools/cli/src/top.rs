// SPDX-License-Identifier: MIT OR Apache-2.0
//! How busy engines are, and with whose work: two readings, and the time between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::engines::{Engine, Queue, Recovery};

/// The engines and queues of all adapters at one time, by LUID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How the adapters have recovered.
    pub recovery: BTreeMap<String, Recovery>,
    /// The engines.
    pub engines: BTreeMap<String, Vec<Engine>>,
    /// The queues.
    pub queues: BTreeMap<String, Vec<Queue>>,
    /// Queues that the module did not show.
    pub hidden_queues: u64,
}

/// What happened on an engine between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// LUID of the adapter.
    pub luid: String,
    /// The node.
    pub node: u64,
    /// What it is for.
    pub kind: String,
    /// Part of the time that it was busy, in percent.
    pub busy: Option<f64>,
    /// Command buffers that it has done.
    pub submissions: Option<u64>,
    /// How often it went from one queue to another.
    pub switches: Option<u64>,
    /// Whose work it was, the busiest process first.
    pub processes: Vec<Share>,
    /// What it has done for queues that have ended meanwhile.
    pub ended: Ended,
}

/// What an engine has done, and for no queue that is still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ended {
    /// Queues of the first reading that are not in the second one.
    pub queues: u64,
    /// Part of the time that was for no process of the list, in percent.
    pub busy: f64,
    /// Command buffers of none of them.
    pub submissions: u64,
}

/// What an engine has done for a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The process; `None` for those that are gone.
    pub pid: Option<u64>,
    /// Name of its program.
    pub command: Option<String>,
    /// Part of the time that the engine ran its work, in percent.
    pub busy: f64,
    /// Its command buffers that were done.
    pub submissions: u64,
    /// What it has queued now.
    pub queued: u64,
    /// Its queues on this engine.
    pub queues: u64,
    /// Those of them that wait for something.
    pub blocked: u64,
}

/// What happened between two readings, `time` apart. `command` knows the names of programs.
pub fn loads(
    before: &Reading,
    after: &Reading,
    time: Duration,
    command: impl Fn(u64) -> Option<String>,
) -> Vec<Load> {
    let mut loads = Vec::new();
    for (luid, engines) in &after.engines {
        let earlier = before.engines.get(luid).map_or(&[][..], Vec::as_slice);
        for engine in engines {
            // An engine that was not there yet had done nothing.
            let earlier = earlier.iter().find(|one| one.node == engine.node);
            let since = |value: fn(&Engine) -> Option<u64>| {
                Some(value(engine)?.saturating_sub(earlier.and_then(value).unwrap_or(0)))
            };
            let busy = since(|one| one.busy_ns).map(|ns| percent(ns, time));
            let submissions = since(|one| one.submissions);
            let place = (luid.as_str(), engine.node);
            let processes = shares(before, after, place, time, &command);
            let shown: f64 = processes.iter().map(|one| one.busy).sum();
            let done: u64 = processes.iter().map(|one| one.submissions).sum();
            let ended = match ended(before, after, place) {
                0 => Ended::default(),
                queues => Ended {
                    queues,
                    busy: tenths((busy.unwrap_or(0.0) - shown).max(0.0)),
                    submissions: submissions.unwrap_or(0).saturating_sub(done),
                },
            };
            loads.push(Load {
                luid: luid.clone(),
                node: engine.node,
                kind: engine.kind.clone(),
                busy,
                submissions,
                switches: since(|one| one.switches),
                processes,
                ended,
            });
        }
    }
    loads
}

/// How many queues of an engine were there before and are not there after.
fn ended(before: &Reading, after: &Reading, (luid, node): (&str, u64)) -> u64 {
    let ids = |reading: &Reading| -> BTreeSet<u64> {
        let queues = reading.queues.get(luid).into_iter().flatten();
        let own = queues.filter(|queue| queue.node == Some(node));
        own.map(|queue| queue.id).collect()
    };
    ids(before).difference(&ids(after)).count() as u64
}

/// What an engine has done for each process that has queues on it.
fn shares(
    before: &Reading,
    after: &Reading,
    (luid, node): (&str, u64),
    time: Duration,
    command: &impl Fn(u64) -> Option<String>,
) -> Vec<Share> {
    let earlier: BTreeMap<u64, &Queue> = before
        .queues
        .get(luid)
        .into_iter()
        .flatten()
        .map(|queue| (queue.id, queue))
        .collect();
    let mut found: BTreeMap<Option<u64>, Vec<&Queue>> = BTreeMap::new();
    let queues = after.queues.get(luid).into_iter().flatten();
    for queue in queues.filter(|queue| queue.node == Some(node)) {
        found.entry(queue.pid).or_default().push(queue);
    }
    let share = |(pid, queues): (Option<u64>, Vec<&Queue>)| {
        // A queue that was not there yet had done nothing.
        let since = |value: fn(&Queue) -> Option<u64>| -> u64 {
            let each = queues.iter().map(|queue| {
                let earlier = earlier.get(&queue.id).and_then(|queue| value(queue));
                value(queue)
                    .unwrap_or(0)
                    .saturating_sub(earlier.unwrap_or(0))
            });
            each.sum()
        };
        Share {
            pid,
            command: pid.and_then(command),
            busy: percent(since(|queue| queue.busy_ns), time),
            submissions: since(|queue| queue.submissions),
            queued: queues.iter().filter_map(|queue| queue.queued).sum(),
            queues: queues.len() as u64,
            blocked: queues.iter().filter(|one| one.blocked_on.is_some()).count() as u64,
        }
    };
    let mut shares: Vec<Share> = found.into_iter().map(share).collect();
    shares.sort_by(|one, other| other.busy.total_cmp(&one.busy));
    shares
}

/// A part of a time, with one digit after the point. The readings take a moment themselves, so a
/// little more than the time may seem to have gone.
fn percent(ns: u64, time: Duration) -> f64 {
    let part = (ns as f64 / time.as_nanos().max(1) as f64).min(1.0);
    tenths(part * 100.0)
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(busy: [u64; 4]) -> Reading {
        let [engine, first, second, other] = busy;
        let queue = |id, pid, node, busy_ns| Queue {
            id,
            pid,
            node: Some(node),
            busy_ns: Some(busy_ns),
            submissions: Some(busy_ns / 10),
            queued: Some(2),
            ..Queue::default()
        };
        let queues = vec![
            queue(1, Some(7), 0, first),
            queue(2, Some(7), 0, second),
            queue(3, Some(8), 0, other),
            queue(4, Some(7), 1, 5),
        ];
        let engine = Engine {
            busy_ns: Some(engine),
            ..Engine::default()
        };
        Reading {
            recovery: BTreeMap::new(),
            engines: [("a".to_owned(), vec![engine])].into(),
            queues: [("a".to_owned(), queues)].into(),
            hidden_queues: 0,
        }
    }

    #[test]
    fn processes_share_an_engine() {
        let (before, after) = (reading([100, 10, 20, 70]), reading([700, 110, 220, 370]));
        let time = Duration::from_nanos(1000);
        let name = |pid: u64| (pid == 7).then(|| "drawer".to_owned());
        let [load] = <[Load; 1]>::try_from(loads(&before, &after, time, name)).unwrap();
        assert_eq!((load.busy, load.node), (Some(60.0), 0));
        assert_eq!(load.submissions, None);
        let pids: Vec<_> = load.processes.iter().map(|one| one.pid).collect();
        assert_eq!(pids, [Some(7), Some(8)]);
        let busy: Vec<_> = load.processes.iter().map(|one| one.busy).collect();
        assert_eq!(busy, [30.0, 30.0]);
        let first = &load.processes[0];
        assert_eq!((first.queues, first.queued, first.submissions), (2, 4, 30));
        assert_eq!(first.command.as_deref(), Some("drawer"));
    }

    #[test]
    fn what_has_ended_meanwhile_is_told_together() {
        let (before, mut after) = (reading([100, 10, 20, 70]), reading([700, 110, 220, 370]));
        let time = Duration::from_nanos(1000);
        let found = |after: &Reading| loads(&before, after, time, |_| None).remove(0);
        assert_eq!(found(&after).ended, Ended::default());
        // That of process 8.
        after.queues.get_mut("a").unwrap().retain(|one| one.id != 3);
        let load = found(&after);
        assert_eq!((load.processes.len(), load.busy), (1, Some(60.0)));
        let ended = Ended {
            queues: 1,
            busy: 30.0,
            submissions: 0,
        };
        assert_eq!(load.ended, ended);
    }

    #[test]
    fn what_has_come_meanwhile_counts_from_nothing() {
        let after = reading([500, 250, 0, 0]);
        let time = Duration::from_nanos(1000);
        let loads = loads(&Reading::default(), &after, time, |_| None);
        assert_eq!(loads[0].busy, Some(50.0));
        assert_eq!(loads[0].processes[0].busy, 25.0);
        assert_eq!(percent(1, Duration::ZERO), 100.0);
    }
}
