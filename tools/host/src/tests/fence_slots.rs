// SPDX-License-Identifier: MIT OR Apache-2.0

//! FEN-12: places of fence values in common pages.

use proptest::prelude::*;

use crate::logic::fence_slots::{FenceSlots, SLOTS};

#[test]
fn fen_12_a_place_is_used_again_after_a_check() {
    let mut slots = FenceSlots::with_first_taken(SLOTS);
    let all: Vec<_> = std::iter::from_fn(|| slots.take(0)).collect();

    assert_eq!(all, (1..SLOTS).collect::<Vec<_>>());
    assert!(!slots.has_free());
    slots.put(0);
    slots.put(63);
    assert_eq!(slots.take(0), None, "nobody has checked");
    assert!(!slots.has_free());

    let check = slots.begin_check(0);

    assert!(!slots.has_stale());
    assert_eq!(slots.take(0), None, "a check runs");
    // Given back after the check began: a child that was forked in between may have it.
    slots.put(7);
    slots.end_check(check, true);
    assert!(slots.has_stale() && slots.has_free());
    assert_eq!(
        [slots.take(0), slots.take(0), slots.take(0)],
        [Some(0), Some(63), None]
    );

    let check = slots.begin_check(0);

    slots.end_check(check, false);
    assert_eq!(slots.take(0), None, "there is a child");

    let check = slots.begin_check(0);

    slots.end_check(check, true);
    assert_eq!([slots.take(0), slots.take(0)], [Some(7), None]);
}

/// A check that takes long says nothing of a place that was used and came back meanwhile.
#[test]
fn fen_12_two_checks_share_no_place() {
    let mut slots = FenceSlots::with_first_taken(SLOTS);

    slots.put(0);

    let (slow, fast) = (slots.begin_check(0), slots.begin_check(0));

    slots.end_check(fast, true);
    assert_eq!(
        slots.take(0),
        Some(1),
        "the first place belongs to the other check"
    );
    slots.end_check(slow, true);
    assert_eq!(slots.take(0), Some(0));
}

/// A place that is free waits for a check once the mapping has been copied.
#[test]
fn fen_12_a_copy_makes_free_places_stale() {
    let mut slots = FenceSlots::with_first_taken(SLOTS);

    assert_eq!(slots.take(1), None);

    // A copy between the beginning and the end of a check, which another check has seen.
    let slow = slots.begin_check(1);

    assert!(!slots.has_stale());
    slots.put(0);

    let fast = slots.begin_check(2);

    slots.end_check(fast, false);
    slots.end_check(slow, true);
    assert_eq!(slots.take(2), None, "the first check is too old");

    let check = slots.begin_check(2);

    slots.end_check(check, true);
    assert_eq!(slots.take(2), Some(0));
    assert_eq!(slots.take(3), None);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take,
    Put(u32),
    Begin(usize),
    End(usize, bool),
    Copy,
}

/// Checks that run at the same time.
const CHECKS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Take),
        6 => (0..SLOTS).prop_map(Step::Put),
        2 => (0..CHECKS).prop_map(Step::Begin),
        2 => (0..CHECKS, any::<bool>()).prop_map(|(check, alone)| Step::End(check, alone)),
        1 => Just(Step::Copy),
    ];

    proptest::collection::vec(step, 0..400)
}

/// What a place is, as the model has it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Found to be free when there had been so many copies.
    Free(u64),
    Taken,
    Stale,
    Checked(usize),
}

proptest! {
    /// Against a list: what is taken was free, no copy was made since, and a place that had a
    /// fence becomes free only by a check that began after the fence went.
    #[test]
    fn fen_12_a_place_has_one_fence_and_rests(steps in steps()) {
        let mut slots = FenceSlots::with_first_taken(SLOTS);
        let mut places = [Place::Free(0); SLOTS as usize];
        let mut checks = [None; CHECKS];
        let mut copies = 0;

        places[0] = Place::Taken;
        for step in steps {
            match step {
                Step::Take => {
                    let free = places.iter().position(|place| *place == Place::Free(copies));

                    prop_assert_eq!(slots.take(copies), free.map(|at| at as u32));
                    if let Some(at) = free {
                        places[at] = Place::Taken;
                    }
                }
                Step::Put(slot) if places[slot as usize] == Place::Taken => {
                    slots.put(slot);
                    places[slot as usize] = Place::Stale;
                }
                Step::Begin(check) if checks[check].is_none() => {
                    checks[check] = Some((slots.begin_check(copies), copies));
                    for place in &mut places {
                        match *place {
                            Place::Stale => *place = Place::Checked(check),
                            Place::Free(then) if then != copies => *place = Place::Checked(check),
                            _ => {}
                        }
                    }
                }
                Step::End(check, alone) => {
                    let Some((begun, then)) = checks[check].take() else {
                        continue;
                    };

                    slots.end_check(begun, alone);
                    for place in places.iter_mut().filter(|place| **place == Place::Checked(check)) {
                        *place = if alone { Place::Free(then) } else { Place::Stale };
                    }
                }
                Step::Copy => copies += 1,
                Step::Put(_) | Step::Begin(_) => {}
            }
        }
    }
}

/// FEN-61: a page has as many places as fit at the distance of its fences.
#[test]
fn fen_61_a_page_with_fewer_places() {
    for places in [1, 2, 32, 63, SLOTS] {
        let mut slots = FenceSlots::with_first_taken(places);
        let all: Vec<_> = std::iter::from_fn(|| slots.take(0)).collect();

        assert_eq!(all, (1..places).collect::<Vec<_>>());
        assert!(!slots.has_free() && !slots.has_stale());
        slots.put(places - 1);

        let check = slots.begin_check(0);

        slots.end_check(check, true);
        assert_eq!([slots.take(0), slots.take(0)], [Some(places - 1), None]);
        // The mapping has changed.
        assert_eq!(slots.take(1), None);
        assert!(!slots.has_stale());
    }
}
