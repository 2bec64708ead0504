// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calls that fail after they have changed ranges of GPU addresses (MEM-41, MEM-43, RES-4).

use proptest::prelude::*;

use crate::logic::gpu_ranges::{cost, parts, Mapping, Owner, Reservation, Stretch, What, FIRST};
use crate::logic::range_undo::Change;

use super::gpu_ranges::{action, Both, PAGES};

/// A reservation that no action makes.
const NEW: Reservation = Reservation {
    id: 1 << 32,
    zero: true,
    owner: Owner::Client,
};

fn change() -> impl Strategy<Value = Change> {
    let what = prop_oneof![
        Just(What::NoAccess),
        Just(What::Zero),
        (0..3u64, 0..4u64).prop_map(|(opening, offset)| What::Mapped(Mapping {
            opening,
            offset,
            write: true,
            execute: false,
            driver_protection: 0,
        })),
    ];
    (FIRST..PAGES, 1..40u64, what).prop_map(|(first, pages, what)| Change {
        first,
        end: (first + pages).min(PAGES),
        reservation: None,
        what,
    })
}

/// Makes the change; returns what was there, and what taking it back may take.
fn apply(both: &mut Both, change: &Change) -> (Vec<Stretch>, usize) {
    let before = parts(&both.map, change.first, change.end).collect();
    let places = change.undo_places(&both.map);
    both.edit(change.first, change.end, true, |old, further| {
        Some(change.made(old, further))
    });
    (before, places)
}

/// Takes it back; returns how many places that took.
fn undo(both: &mut Both, change: &Change, before: &[Stretch]) -> usize {
    let (mut at, mut taken) = (change.first, 0);
    while let Some(run) = change.next_run(&both.map, before, at) {
        assert!(run.first >= at && run.first < run.end && run.end <= change.end);
        taken += cost(&both.map, run.first, run.end, true).places;
        both.edit(run.first, run.end, true, |_, further| {
            run.old.map(|old| old.at(further))
        });
        at = run.end;
    }
    taken
}

proptest! {
    /// MEM-43, RES-4: a map whose call fails leaves what was there, with the memory that it kept.
    #[test]
    fn mem_43_a_change_is_taken_back(
        actions in proptest::collection::vec(action(), 0..40),
        change in change(),
    ) {
        let mut both = Both::new();
        for action in actions {
            both.run(action);
        }
        let model = both.model.clone();
        let (before, places) = apply(&mut both, &change);
        both.check();
        let taken = undo(&mut both, &change, &before);
        assert!(taken <= places, "{taken} places, and {places} were kept");
        assert_eq!(both.model, model);
        both.check();
    }

    /// MEM-41, RES-4: the same of a reservation, which takes no memory.
    #[test]
    fn mem_41_a_reservation_is_taken_back(
        actions in proptest::collection::vec(action(), 0..40),
        change in change(),
    ) {
        let change = Change { reservation: Some(NEW), what: NEW.bare(), ..change };
        let mut both = Both::new();
        for action in actions {
            both.run(action);
        }
        prop_assume!(both.model.0[change.first as usize..change.end as usize]
            .iter()
            .all(Option::is_none));
        let model = both.model.clone();
        let (before, places) = apply(&mut both, &change);
        assert_eq!((before.len(), places), (0, 0));
        assert_eq!(undo(&mut both, &change, &before), 0);
        assert_eq!(both.model, model);
    }

    /// MEM-43: what another thread has made of some of the pages since stays.
    #[test]
    fn mem_43_what_others_have_changed_since_stays(
        actions in proptest::collection::vec(action(), 0..40),
        change in change(),
        others in proptest::collection::vec(action(), 1..5),
    ) {
        let mut both = Both::new();
        for action in actions {
            both.run(action);
        }
        let model = both.model.clone();
        let (before, _) = apply(&mut both, &change);
        let made = both.model.clone();
        for action in others {
            both.run(action);
        }
        let now = both.model.clone();
        undo(&mut both, &change, &before);
        both.check();
        for page in 0..PAGES as usize {
            let is_own = (change.first..change.end).contains(&(page as u64));
            let expected = match is_own && now.0[page] == made.0[page] {
                true => model.0[page],
                false => now.0[page],
            };
            assert_eq!(both.model.0[page], expected, "page {page}");
        }
    }
}
