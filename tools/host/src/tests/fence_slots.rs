// SPDX-License-Identifier: MIT OR Apache-2.0

//! FEN-12: places of fence values in common pages.

use proptest::prelude::*;

use crate::logic::fence_slots::{Slots, SLOTS};

#[test]
fn fen_12_a_place_is_used_again_after_a_check() {
    let mut slots = Slots::with_first_taken();
    let all: Vec<_> = std::iter::from_fn(|| slots.take()).collect();

    assert_eq!(all, (1..SLOTS).collect::<Vec<_>>());
    slots.put(0);
    slots.put(63);
    assert_eq!(slots.take(), None, "nobody has checked");

    let checked = slots.begin_check();

    assert_eq!(checked, 1 | (1 << 63));
    assert_eq!(slots.take(), None, "a check runs");
    // Given back after the check began: a child that was forked in between may have it.
    slots.put(7);
    slots.end_check(checked, true);
    assert!(slots.has_stale());
    assert_eq!(
        [slots.take(), slots.take(), slots.take()],
        [Some(0), Some(63), None]
    );

    let checked = slots.begin_check();

    slots.end_check(checked, false);
    assert_eq!(slots.take(), None, "there is a child");

    let checked = slots.begin_check();

    slots.end_check(checked, true);
    assert_eq!([slots.take(), slots.take()], [Some(7), None]);
}

/// A check that takes long says nothing of a place that was used and came back meanwhile.
#[test]
fn fen_12_two_checks_share_no_place() {
    let mut slots = Slots::with_first_taken();

    slots.put(0);

    let (slow, fast) = (slots.begin_check(), slots.begin_check());

    assert_eq!((slow, fast), (1, 0));
    slots.end_check(fast, true);
    assert_eq!(
        slots.take(),
        Some(1),
        "the first place belongs to the other check"
    );
    slots.end_check(slow, true);
    assert_eq!(slots.take(), Some(0));
}

/// A place that is free waits for a check once a child has been forked.
#[test]
fn fen_12_free_places_rest() {
    let mut slots = Slots::with_first_taken();

    slots.rest();
    assert_eq!(slots.take(), None);

    let checked = slots.begin_check();

    assert_eq!(checked, !1);
    slots.end_check(checked, true);
    assert_eq!(slots.take(), Some(1));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take,
    Put(u32),
    Begin(usize),
    End(usize, bool),
    Rest,
}

/// Checks that run at the same time.
const CHECKS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Take),
        6 => (0..SLOTS).prop_map(Step::Put),
        2 => (0..CHECKS).prop_map(Step::Begin),
        2 => (0..CHECKS, any::<bool>()).prop_map(|(check, alone)| Step::End(check, alone)),
        1 => Just(Step::Rest),
    ];

    proptest::collection::vec(step, 0..400)
}

/// What a place is, as the model has it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Free,
    Taken,
    Stale,
    Checked(usize),
}

proptest! {
    /// Against a list: what is taken was free, and a place that had a fence becomes free only by a
    /// check that began after the fence went.
    #[test]
    fn fen_12_a_place_has_one_fence_and_rests(steps in steps()) {
        let mut slots = Slots::with_first_taken();
        let mut places = [Place::Free; SLOTS as usize];
        let mut checks = [None; CHECKS];

        places[0] = Place::Taken;
        for step in steps {
            match step {
                Step::Take => {
                    let free = places.iter().position(|place| *place == Place::Free);

                    prop_assert_eq!(slots.take(), free.map(|at| at as u32));
                    if let Some(at) = free {
                        places[at] = Place::Taken;
                    }
                }
                Step::Put(slot) if places[slot as usize] == Place::Taken => {
                    slots.put(slot);
                    places[slot as usize] = Place::Stale;
                }
                Step::Begin(check) if checks[check].is_none() => {
                    checks[check] = Some(slots.begin_check());
                    for place in places.iter_mut().filter(|place| **place == Place::Stale) {
                        *place = Place::Checked(check);
                    }
                }
                Step::End(check, alone) => {
                    if let Some(checked) = checks[check].take() {
                        slots.end_check(checked, alone);
                    }

                    let after = if alone { Place::Free } else { Place::Stale };

                    for place in places.iter_mut().filter(|place| **place == Place::Checked(check)) {
                        *place = after;
                    }
                }
                Step::Rest => {
                    slots.rest();
                    for place in places.iter_mut().filter(|place| **place == Place::Free) {
                        *place = Place::Stale;
                    }
                }
                Step::Put(_) | Step::Begin(_) => {}
            }
        }
    }
}
