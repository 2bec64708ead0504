// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of who gives room back and of who looks for some (MEM-18).

use loom::{
    sync::{
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
        Arc,
    },
    thread::spawn,
};

use super::interleavings::explore_within;
use crate::{
    logic::freed_room::{FreedRoom, News},
    platform::{mutation::without, Part},
};

/// What is done in the wrong order, or not at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// It is not said that room is about to come back.
    Leaves,
    /// Room is given back after that was said.
    GivesBack,
    /// The room is looked at before the look.
    Look,
}

/// Room for one. That it leaves is said before, and `said` after that.
struct Scene {
    freed: FreedRoom,
    free: AtomicU32,
    said: AtomicBool,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            freed: FreedRoom::new(),
            free: AtomicU32::new(0),
            said: AtomicBool::new(false),
        })
    }

    fn give_back(&self, wrong: Wrong) {
        if wrong != Wrong::Leaves {
            self.freed.leaves();
        }
        // That others know of it is what the test is about, and not how.
        self.said.store(true, loom::sync::atomic::Ordering::Release);
        if wrong == Wrong::GivesBack {
            self.freed.came_back(true);
        }
        self.free.store(1, Relaxed);
        if wrong != Wrong::GivesBack {
            self.freed.came_back(wrong != Wrong::Leaves);
        }
    }

    fn take(&self) -> bool {
        self.free.load(Relaxed) != 0
    }

    /// Who looks for room after it was said that some leaves gets it, or is not refused.
    fn find(&self, wrong: Wrong) {
        if !self.said.load(loom::sync::atomic::Ordering::Acquire) {
            return;
        }
        let early = wrong == Wrong::Look && self.take();
        let look = self.freed.look();

        if early || wrong != Wrong::Look && self.take() {
            return;
        }
        assert_ne!(self.freed.since(look), News::None, "refused");
    }
}

fn runs(wrong: Wrong) {
    explore_within(Some(3), move || {
        let scene = Scene::new();
        let giver = {
            let scene = scene.clone();

            spawn(move || scene.give_back(wrong))
        };

        scene.find(wrong);
        giver.join().unwrap();
        // All is over: nothing is left to wait for.
        let look = scene.freed.look();

        assert_eq!(scene.freed.since(look), News::None);
        assert!(scene.take());
    });
}

#[test]
fn mem_18_nobody_is_refused_while_room_comes_back() {
    runs(Wrong::Nothing);
}

#[test]
#[should_panic(expected = "refused")]
fn mutant_it_is_not_said_that_room_leaves() {
    runs(Wrong::Leaves);
}

#[test]
#[should_panic(expected = "refused")]
fn mutant_room_is_given_back_too_late() {
    runs(Wrong::GivesBack);
}

#[test]
#[should_panic(expected = "refused")]
fn mutant_the_room_is_looked_at_first() {
    runs(Wrong::Look);
}

#[test]
#[should_panic(expected = "refused")]
fn mutant_coming_back_publishes_nothing() {
    without(Part::FullAdd, || runs(Wrong::Nothing));
}

#[test]
#[should_panic(expected = "refused")]
fn mutant_a_look_sees_no_room() {
    without(Part::Acquire32, || runs(Wrong::Nothing));
}
