// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of engines that sleep until a moment, and of the CMP that wakes them (GPU-43).
//! There is no time under loom: all moments have come, so that nobody sleeps for ever.

use std::{thread::sleep, time::Duration};

use loom::thread::spawn;

use super::interleavings::explore_within;
use crate::{
    kmd::soft::{
        cmp::{Cmp, ENGINES},
        polls::Polls,
    },
    platform::{now_ns, shared, wakeup, BoxedWakeup, Run, Shared, Wakeup},
};

/// An engine whose queue waits for a word, and has to look at it so many times.
struct Engine {
    polls: Shared<Polls>,
    number: usize,
    looks: u64,
    wakeup: BoxedWakeup,
}

impl Run for Engine {
    fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    fn run(&self) {
        for moment in 0..self.looks {
            self.polls.set(self.number, Some(moment));
            assert!(self.wakeup.wait(None), "nobody stops it");
        }
        self.polls.set(self.number, None);
    }
}

/// Engines with so many looks each. Some of them also get work at any time, which wakes them, too.
fn engines<const N: usize>(bound: Option<usize>, looks: [u64; N], gets_work: bool) {
    // The moments have come.
    while now_ns() < 1_000_000 {
        sleep(Duration::from_millis(1));
    }
    explore_within(bound, move || {
        let polls = shared(Polls::new().unwrap()).unwrap();
        let mut all = [const { None }; ENGINES];

        for (number, looks) in looks.into_iter().enumerate() {
            all[number] = shared(Engine {
                polls: polls.clone(),
                number,
                looks,
                wakeup: wakeup().unwrap(),
            });
        }

        let cmp = shared(Cmp::new(polls, all.clone())).unwrap();
        let threads: Vec<_> = all
            .iter()
            .flatten()
            .cloned()
            .map(|engine| spawn(move || engine.run()))
            .collect();
        let waker = {
            let cmp = cmp.clone();

            spawn(move || cmp.run())
        };

        if let (true, Some(first)) = (gets_work, &all[0]) {
            first.wakeup().ring();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        cmp.wakeup().stop();
        waker.join().unwrap();
    });
}

#[test]
fn gpu_43_an_engine_that_sleeps_is_woken_for_each_moment() {
    engines(None, [2], false);
}

#[test]
fn gpu_43_two_engines_that_sleep_are_woken() {
    engines(Some(3), [1, 1], false);
}

#[test]
fn gpu_43_work_that_comes_meanwhile_takes_no_wakeup_away() {
    engines(Some(3), [2], true);
}
