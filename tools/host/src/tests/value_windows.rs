// SPDX-License-Identifier: MIT OR Apache-2.0

//! FEN-12: windows that show the pages of shareable fences.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::logic::value_windows::{Place, Window, Windows, PLACES};

/// The windows of a process, which are numbered as they are mapped.
struct Process {
    list: Vec<Window<u32>>,
    windows: Windows,
    mapped: u32,
}

impl Process {
    fn new() -> Self {
        Self {
            list: Vec::new(),
            windows: Windows::new(),
            mapped: 0,
        }
    }

    /// A place, of a new window if there is none.
    fn take(&mut self) -> (Place, u32) {
        if let Some(found) = self.windows.take(&mut self.list) {
            return found;
        }

        let at = self.mapped;

        self.mapped += 1;
        if !self.windows.has_vacant() {
            self.list.push(Window::none());
            self.windows.add(&mut self.list);
        }

        let place = self.windows.open(&mut self.list, at);

        (place.expect("an entry is vacant"), at)
    }

    fn give_back(&mut self, place: Place) -> Option<u32> {
        self.windows.give_back(&mut self.list, place)
    }

    fn spoil(&mut self, place: Place) -> Option<u32> {
        self.windows.spoil(&mut self.list, place)
    }
}

#[test]
fn fen_12_a_window_has_a_place_for_each_of_64_pages() {
    let mut process = Process::new();
    let places: Vec<_> = (0..PLACES).map(|_| process.take()).collect();

    for (number, (place, at)) in (0..).zip(&places) {
        assert_eq!((place.slot, *at), (number, 0));
    }

    let (next, at) = process.take();

    assert_eq!((next.slot, at), (0, 1), "the first one is full");
    assert_eq!(process.give_back(places[5].0), None);
    assert_eq!(process.take(), places[5], "it has room again");
    assert_eq!(process.take().1, 1);
}

#[test]
fn fen_12_one_fence_after_the_other_stays_in_one_place() {
    let mut process = Process::new();
    let first = process.take();

    for _ in 0..1000 {
        assert_eq!(process.give_back(first.0), None, "the window stays");
        assert_eq!(process.take(), first);
    }
}

/// Nothing is shown in a window whose mapping the process has changed; it goes with its last page,
/// and its entry is used again.
#[test]
fn fen_12_a_spoiled_window_shows_nothing_new() {
    let mut process = Process::new();
    let (one, other) = (process.take().0, process.take().0);

    assert_eq!(process.spoil(one), None, "a page is left");

    let (next, at) = process.take();

    assert_eq!(at, 1);
    assert_eq!(process.give_back(other), Some(0), "nothing is left of it");
    assert_eq!(process.spoil(next), Some(1));
    assert_eq!(process.take().1, 2);
    assert_eq!(process.list.len(), 2, "no entry is lost");
}

/// A full window, and one between others, leave the chain of those with room.
#[test]
fn fen_12_any_window_can_be_spoiled() {
    let mut process = Process::new();
    let places: Vec<_> = (0..4 * PLACES).map(|_| process.take().0).collect();
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|window| window * PLACES as usize);

    assert_eq!(process.spoil(places[fourth]), None);
    for place in [first, second, third] {
        process.give_back(places[place]);
    }
    // The second is between the third and the first.
    assert_eq!(process.spoil(places[second + 1]), None);
    assert_eq!(process.take().1, 2);
    assert_eq!(process.take().1, 0);
    assert_eq!(process.take().1, 4);
}

proptest! {
    /// Against a list of what is taken: no place has two pages, no page comes into a spoiled
    /// window, a window goes with its last page if it is spoiled and only then, and there is no new
    /// window as long as one has room.
    #[test]
    fn fen_12_windows_and_places(
        steps in proptest::collection::vec((0..10u8, any::<prop::sample::Index>()), 0..600),
    ) {
        let mut process = Process::new();
        let mut shown: Vec<(Place, u32)> = Vec::new();
        let mut present = BTreeMap::<u32, u32>::new();
        let mut spoiled = BTreeSet::new();

        for (step, which) in steps {
            // More are taken than come back, so that windows fill up.
            if step < 6 || shown.is_empty() {
                let has_room = present
                    .iter()
                    .any(|(at, taken)| *taken < PLACES && !spoiled.contains(at));
                let before = process.mapped;
                let (place, at) = process.take();

                prop_assert_eq!(process.mapped == before, has_room);
                prop_assert!(!spoiled.contains(&at));
                prop_assert!(place.slot < PLACES);
                prop_assert!(!shown.contains(&(place, at)));
                shown.push((place, at));
                *present.entry(at).or_default() += 1;
                continue;
            }

            let (place, at) = shown.swap_remove(which.index(shown.len()));
            let gone = if step == 9 {
                spoiled.insert(at);
                process.spoil(place)
            } else {
                process.give_back(place)
            };
            let left = present.get_mut(&at).expect("it has a page");

            *left -= 1;

            let ends = *left == 0 && spoiled.contains(&at);

            prop_assert_eq!(gone, ends.then_some(at));
            if ends {
                present.remove(&at);
            }
        }

        // Each entry has a window, or had one when there were as many windows as entries.
        let left = process.list.into_iter().filter_map(Window::into_place);

        prop_assert_eq!(left.collect::<BTreeSet<_>>(), present.into_keys().collect());
    }
}
