// SPDX-License-Identifier: MIT OR Apache-2.0
//! Situations, and who is to blame for them.

use std::collections::BTreeSet;

use super::{blame, Blame, Facts, Life, Target, Verdict, Wait};

impl Facts {
    fn wait(mut self, pid: u32, object: u64) -> Self {
        let id = self.waits.len() as u64 + 1;
        self.waits.push(Wait {
            object,
            value: 1,
            pid: Some(pid),
            thread: None,
            ago_ns: 1_000_000 - id,
            id,
            receiver: "thread".into(),
            any: false,
        });
        self
    }

    /// Changes the last wait.
    fn with(mut self, change: impl FnOnce(&mut Wait)) -> Self {
        change(self.waits.last_mut().unwrap());
        self
    }

    /// One more element of the wait before.
    fn and(self, object: u64) -> Self {
        let before = self.waits.last().unwrap().clone();
        let (pid, id) = (before.pid.unwrap(), before.id);
        self.wait(pid, object).with(|wait| {
            wait.id = id;
            wait.any = before.any;
        })
    }

    fn fence<const N: usize>(mut self, object: u64, could: [u32; N], last: Option<u32>) -> Self {
        let could = could.into();
        let target = Target {
            could,
            last,
            ..Target::default()
        };
        self.targets.insert(object, target);
        self
    }

    fn mutex(mut self, object: u64, owner: Option<u32>, last: Option<u32>) -> Self {
        let target = Target {
            could: BTreeSet::from([1, 2, 3]),
            owner,
            last,
            is_mutex: true,
            has_more: false,
        };
        self.targets.insert(object, target);
        self
    }

    fn life(mut self, pid: u32, life: Life) -> Self {
        self.lives.insert(pid, life);
        self
    }

    fn first(&self) -> Blame {
        blame(self).into_iter().next().unwrap()
    }

    #[track_caller]
    fn is<const N: usize>(&self, verdict: Verdict, culprits: [u32; N]) {
        let first = self.first();
        assert_eq!((first.verdict, first.culprits), (verdict, culprits.into()));
    }
}

#[test]
fn the_last_signaller_has_not_signalled_again() {
    let facts = Facts::default().wait(1, 7).fence(7, [1, 2, 3], Some(2));
    facts.is(Verdict::HasNot, [2]);
    facts.life(2, Life::Stopped).is(Verdict::Stopped, [2]);
}

#[test]
fn without_a_signal_all_who_do_not_wait_are_named() {
    let facts = Facts::default().wait(1, 7).fence(7, [1, 2, 3], None);
    facts.is(Verdict::HasNot, [2, 3]);
    // The one who waits has signalled last: it waits for an answer.
    let facts = Facts::default().wait(1, 7).fence(7, [1, 2], Some(1));
    facts.is(Verdict::HasNot, [2]);
}

#[test]
fn the_last_writer_is_gone() {
    let facts = Facts::default()
        .wait(1, 7)
        .wait(2, 7)
        .fence(7, [1, 2], Some(9))
        .life(9, Life::Gone);
    facts.is(Verdict::LastWriterGone, [9]);
    // Somebody else may be to go on.
    let facts = facts.fence(7, [1, 2, 3], Some(9));
    facts.is(Verdict::HasNot, [3]);
    // It lives, but has closed the fence.
    let closed = Facts::default().wait(1, 7).fence(7, [1], Some(9));
    closed.is(Verdict::LastWriterGone, [9]);
}

#[test]
fn nobody_else_has_it_open() {
    Facts::default()
        .wait(1, 7)
        .fence(7, [1], None)
        .is(Verdict::Alone, [1]);
    let mut facts = Facts::default().wait(1, 7).fence(7, [], None);
    facts.targets.get_mut(&7).unwrap().has_more = true;
    facts.is(Verdict::Unseen, []);
    Facts::default().wait(1, 7).is(Verdict::Unseen, []);
}

#[test]
fn cycles() {
    let two = Facts::default()
        .wait(1, 7)
        .wait(2, 8)
        .fence(7, [1, 2], None)
        .fence(8, [1, 2], Some(1));
    two.is(Verdict::Cycle, [1, 2]);
    // Somebody who has all fences open, and does not wait, does not hide it if the last signaller
    // is known.
    let broker = two
        .fence(7, [1, 2, 5], Some(2))
        .fence(8, [1, 2, 5], Some(1));
    broker.is(Verdict::Cycle, [1, 2]);
    let three = Facts::default()
        .wait(1, 7)
        .wait(2, 8)
        .wait(3, 9)
        .fence(7, [1, 2], None)
        .fence(8, [2, 3], None)
        .fence(9, [3, 1], None);
    three.is(Verdict::Cycle, [1, 2, 3]);
    // Who waits for somebody in a cycle is no part of it, and stopping them changes nothing.
    let outside = three
        .wait(4, 6)
        .with(|wait| wait.ago_ns = 5_000_000)
        .fence(6, [2, 4], None)
        .life(1, Life::Stopped)
        .life(2, Life::Stopped);
    outside.is(Verdict::Cycle, [1, 2, 3]);
    // One fence is enough.
    let one = Facts::default()
        .wait(1, 7)
        .wait(2, 7)
        .fence(7, [1, 2], Some(2));
    one.is(Verdict::Cycle, [1, 2]);
}

#[test]
fn a_chain_leads_to_its_end() {
    let chain = Facts::default()
        .wait(1, 7)
        .wait(2, 8)
        .fence(7, [1, 2], Some(2))
        .fence(8, [2, 3], Some(3));
    chain.is(Verdict::HasNot, [3]);
    chain.life(3, Life::Stopped).is(Verdict::Stopped, [3]);
}

#[test]
fn several_elements() {
    let all = Facts::default()
        .wait(1, 7)
        .and(8)
        .fence(7, [1, 2], Some(2))
        .fence(8, [1, 3], Some(3));
    assert_eq!(all.first().elements, [0, 1]);
    all.is(Verdict::HasNot, [2, 3]);
    // A wait for any goes on by the way that is free, one for all does not.
    let way = |any| {
        Facts::default()
            .wait(1, 7)
            .with(|wait| wait.any = any)
            .and(8)
            .wait(2, 9)
            .fence(7, [1, 2], None)
            .fence(8, [1, 3], None)
            .fence(9, [1, 2], None)
    };
    way(true).is(Verdict::HasNot, [3]);
    way(false).is(Verdict::Cycle, [1, 2]);
}

#[test]
fn keyed_mutexes() {
    let wait = || Facts::default().wait(1, 7);
    wait().mutex(7, Some(2), Some(2)).is(Verdict::Owner, [2]);
    wait()
        .mutex(7, Some(2), Some(2))
        .life(2, Life::Stopped)
        .is(Verdict::Stopped, [2]);
    wait().mutex(7, None, Some(2)).is(Verdict::OtherKey, [2]);
    wait().mutex(7, None, Some(9)).is(Verdict::OtherKey, [9]);
    // It has released itself, for the others.
    wait().mutex(7, None, Some(1)).is(Verdict::HasNot, [2, 3]);
    // The owner waits for what the other one has to signal.
    let both = wait().wait(2, 8).mutex(7, Some(2), Some(2));
    both.fence(8, [1, 2], None).is(Verdict::Cycle, [1, 2]);
    // Numbers of waits for different mutexes are different numbers.
    let two = wait().wait(2, 8).with(|wait| wait.id = 1);
    let two = two.mutex(7, Some(3), None).mutex(8, Some(3), None);
    assert_eq!(blame(&two).len(), 2);
}

#[test]
fn a_queue_waits_for_its_process_and_the_process_for_the_queue() {
    let queue = |facts: Facts| facts.with(|wait| wait.receiver = "queue".into());
    let facts = Facts::default().wait(1, 7).fence(7, [1], None);
    let facts = queue(facts.wait(1, 8)).fence(8, [1, 2], Some(2));
    facts.is(Verdict::HasNot, [2]);
    // Nobody but the process could signal what its queue waits for.
    facts.fence(8, [1], None).is(Verdict::Alone, [1]);
}

#[test]
fn streams_hold_up_nobody() {
    let stream = |facts: Facts| facts.with(|wait| wait.receiver = "stream".into());
    let facts = stream(Facts::default().wait(1, 7)).fence(7, [1, 2], None);
    assert_eq!(blame(&facts), []);
    // So its process is free.
    let facts = facts.wait(2, 8).fence(8, [1, 2], None);
    facts.is(Verdict::HasNot, [1]);
}

#[test]
fn very_many_come_to_an_end() {
    let mut facts = Facts::default();
    for pid in 1..600 {
        facts = facts.wait(pid, 7);
    }
    let could = (1..600).collect();
    facts = facts.fence(7, [], None);
    facts.targets.get_mut(&7).unwrap().could = could;
    assert_eq!(blame(&facts).len(), 599);
}
