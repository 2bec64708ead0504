// SPDX-License-Identifier: MIT OR Apache-2.0
//! From facts to verdicts.
//!
//! For each element the rules look for those who are likely to end it, and go on with what those
//! wait for themselves. Who does not wait is the culprit; a way that comes back to where it was is
//! a cycle.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::{Blame, Facts, Life, Target, Verdict, Wait};

/// What was found on one way.
#[derive(Clone, Debug)]
struct Found {
    verdict: Verdict,
    culprits: BTreeSet<u32>,
}

impl Found {
    fn new(verdict: Verdict, culprits: impl IntoIterator<Item = u32>) -> Self {
        let culprits = culprits.into_iter().collect();
        Self { verdict, culprits }
    }
}

/// All waits that hold up a process, the oldest one first, and who is to blame for each.
pub fn blame(facts: &Facts) -> Vec<Blame> {
    let waits = Waits::new(facts);
    let mut all: Vec<Blame> = waits
        .groups
        .iter()
        .filter_map(|elements| {
            let found = waits.of_wait(elements, &mut Vec::new())?;
            Some(Blame {
                elements: elements.clone(),
                verdict: found.verdict,
                culprits: found.culprits,
            })
        })
        .collect();
    let age = |blame: &Blame| {
        blame
            .elements
            .iter()
            .map(|&at| facts.waits[at].ago_ns)
            .max()
    };
    all.sort_by_key(|blame| std::cmp::Reverse(age(blame)));
    all
}

/// So far a way is followed. Nobody builds a longer one by accident.
const FAR: usize = 256;

struct Waits<'a> {
    facts: &'a Facts,
    /// The elements of each wait.
    groups: Vec<Vec<usize>>,
    /// The waits of each process, as places in `groups`.
    by_process: BTreeMap<u32, Vec<usize>>,
    /// What holds up a process. One that was found on a way is so from everywhere.
    known: RefCell<BTreeMap<u32, Found>>,
}

impl<'a> Waits<'a> {
    fn new(facts: &'a Facts) -> Self {
        let mut groups: BTreeMap<(Option<u64>, u64), Vec<usize>> = BTreeMap::new();
        for (at, wait) in facts.waits.iter().enumerate() {
            if !wait.holds_up() {
                continue;
            }
            // The numbers of waits for a keyed mutex are those of the mutex.
            let is_mutex = facts
                .targets
                .get(&wait.object)
                .is_some_and(|one| one.is_mutex);
            let group = (is_mutex.then_some(wait.object), wait.id);
            groups.entry(group).or_default().push(at);
        }
        let groups: Vec<Vec<usize>> = groups.into_values().collect();
        let mut by_process: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, elements) in groups.iter().enumerate() {
            if let Some(pid) = facts.waits[elements[0]].pid {
                by_process.entry(pid).or_default().push(place);
            }
        }
        let known = RefCell::default();
        Self {
            facts,
            groups,
            by_process,
            known,
        }
    }

    fn wait(&self, at: usize) -> &'a Wait {
        &self.facts.waits[at]
    }

    fn life(&self, pid: u32) -> Life {
        self.facts.lives.get(&pid).copied().unwrap_or(Life::Alive)
    }

    /// The waits of a process.
    fn of(&self, pid: u32) -> impl Iterator<Item = &Vec<usize>> {
        let places = self.by_process.get(&pid).map_or(&[][..], Vec::as_slice);
        places.iter().map(|&place| &self.groups[place])
    }

    fn waits(&self, pid: u32) -> bool {
        self.by_process.contains_key(&pid)
    }

    /// Whether a process waits for this object.
    fn waits_for(&self, pid: u32, object: u64) -> bool {
        let mut elements = self.of(pid).flatten();
        elements.any(|&at| self.wait(at).object == object)
    }

    /// What holds up a wait of one of the processes on the way, which is the last one of `way`
    /// afterwards; `None` if its process is not known.
    fn of_wait(&self, elements: &[usize], way: &mut Vec<u32>) -> Option<Found> {
        let pid = self.wait(elements[0]).pid?;
        way.push(pid);
        let found: Vec<Found> = elements
            .iter()
            .map(|&at| self.of_element(self.wait(at), pid, way))
            .collect();
        way.pop();
        let any = self.wait(elements[0]).any;
        // One that may still come is enough for a wait for any; one that cannot holds up a wait
        // for all.
        let free = |one: &&Found| one.verdict != Verdict::Cycle;
        let chosen: Vec<&Found> = match (any, found.iter().any(|one| free(&one))) {
            (true, true) => found.iter().filter(free).collect(),
            _ => found.iter().collect(),
        };
        merge(chosen)
    }

    fn of_element(&self, wait: &Wait, pid: u32, way: &mut Vec<u32>) -> Found {
        let unseen = Target {
            has_more: true,
            ..Target::default()
        };
        let target = self.facts.targets.get(&wait.object).unwrap_or(&unseen);
        let others: BTreeSet<u32> = target
            .could
            .iter()
            .copied()
            .filter(|&one| one != pid)
            .collect();
        let last = target.last.filter(|&last| last != pid);
        if target.is_mutex {
            return match target.owner {
                Some(owner) => self.follow([owner], Verdict::Owner, way),
                // It is free at a key that nobody wants.
                None => match last {
                    Some(last) if self.life(last) != Life::Gone && !self.waits(last) => {
                        Found::new(Verdict::OtherKey, [last])
                    }
                    Some(last) if others.is_empty() || !others.contains(&last) => {
                        Found::new(Verdict::OtherKey, [last])
                    }
                    _ => self.of_others(&others, Verdict::HasNot, target, pid, way),
                },
            };
        }
        if let Some(last) = last {
            if others.contains(&last) && self.life(last) != Life::Gone {
                return self.follow([last], Verdict::HasNot, way);
            }
            // Others may be to go on, but not those who wait for the same.
            let is_heir = |one: &u32| !self.waits_for(*one, wait.object);
            let heirs: BTreeSet<u32> = others.into_iter().filter(is_heir).collect();
            return match heirs.is_empty() {
                true => Found::new(Verdict::LastWriterGone, [last]),
                false => self.of_others(&heirs, Verdict::HasNot, target, pid, way),
            };
        }
        self.of_others(&others, Verdict::HasNot, target, pid, way)
    }

    /// Nobody is more likely than the others: those who do not wait are.
    fn of_others(
        &self,
        others: &BTreeSet<u32>,
        verdict: Verdict,
        target: &Target,
        pid: u32,
        way: &mut Vec<u32>,
    ) -> Found {
        let free: Vec<u32> = others
            .iter()
            .copied()
            .filter(|&one| !self.waits(one))
            .collect();
        if !free.is_empty() {
            return self.follow(free, verdict, way);
        }
        if !others.is_empty() {
            return self.follow(others.iter().copied(), verdict, way);
        }
        // Its own queues may have to do it, and wait themselves.
        let own: Vec<Found> = self
            .of(pid)
            .filter(|elements| self.wait(elements[0]).receiver == "queue")
            .filter(|elements| elements.iter().all(|&at| !self.is_on(at, target)))
            .filter_map(
                |elements| match way.iter().filter(|&&one| one == pid).count() {
                    // A queue of this process is looked at once.
                    1 => self.of_wait(elements, way),
                    _ => None,
                },
            )
            .collect();
        if let Some(found) = merge(own.iter().collect()) {
            return found;
        }
        match target.has_more && !target.could.contains(&pid) {
            true => Found::new(Verdict::Unseen, []),
            false => Found::new(Verdict::Alone, [pid]),
        }
    }

    /// Whether this element waits for the target itself.
    fn is_on(&self, at: usize, target: &Target) -> bool {
        let own = self.facts.targets.get(&self.wait(at).object);
        own.is_some_and(|own| std::ptr::eq(own, target))
    }

    /// These could end it: who of them does not wait is the culprit, otherwise those that they wait
    /// for.
    fn follow(
        &self,
        likely: impl IntoIterator<Item = u32>,
        verdict: Verdict,
        way: &mut Vec<u32>,
    ) -> Found {
        let mut found = Vec::new();
        for pid in likely {
            if let Some(at) = way.iter().position(|&one| one == pid) {
                return Found::new(Verdict::Cycle, way[at..].iter().copied());
            }
            if !self.waits(pid) || way.len() >= FAR {
                let is_stopped = self.life(pid) == Life::Stopped;
                let verdict = if is_stopped {
                    Verdict::Stopped
                } else {
                    verdict
                };
                found.push(Found::new(verdict, [pid]));
                continue;
            }
            let known = self.known.borrow().get(&pid).cloned();
            let of_process = known.or_else(|| {
                let own: Vec<Found> = self
                    .of(pid)
                    .filter_map(|elements| self.of_wait(elements, way))
                    .collect();
                let of_process = merge(own.iter().collect())?;
                self.known.borrow_mut().insert(pid, of_process.clone());
                Some(of_process)
            });
            match of_process {
                // It says most, whatever else there is.
                Some(cycle) if cycle.verdict == Verdict::Cycle => return cycle,
                other => found.extend(other),
            }
        }
        merge(found.iter().collect()).unwrap_or_else(|| Found::new(Verdict::Unseen, []))
    }
}

/// A cycle says most: it never ends by itself. Otherwise all that was found counts.
fn merge(found: Vec<&Found>) -> Option<Found> {
    let verdict = found.iter().map(|one| one.verdict).min()?;
    let chosen = found
        .iter()
        .filter(|one| verdict != Verdict::Cycle || one.verdict == Verdict::Cycle);
    let culprits = chosen.flat_map(|one| one.culprits.iter().copied());
    Some(Found::new(verdict, culprits))
}
