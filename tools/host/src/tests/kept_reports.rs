// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which reports of an adapter are kept.

use crate::logic::kept_reports::{place_for, Kept, KEPT};

/// The reports that are left of these, in order: `true` is a fault.
fn left(all: &[bool]) -> Vec<Kept> {
    let mut places = [None; KEPT];

    for (number, &is_fault) in (1..).zip(all) {
        let place = place_for(places.into_iter(), is_fault).unwrap();

        places[place] = Some(Kept { number, is_fault });
    }

    let mut left: Vec<_> = places.into_iter().flatten().collect();

    left.sort_by_key(|one| one.number);
    left
}

fn numbers(all: &[bool]) -> Vec<u64> {
    left(all).iter().map(|one| one.number).collect()
}

#[test]
fn the_last_ones_are_kept() {
    assert_eq!(place_for(core::iter::empty(), true), None);
    for is_fault in [false, true] {
        assert_eq!(numbers(&[is_fault; 3]), [1, 2, 3]);
        assert_eq!(numbers(&[is_fault; 20]), (13..=20).collect::<Vec<_>>());
    }
}

#[test]
fn faults_do_not_push_out_what_is_told_of_hangs() {
    let hangs = [false; 3];
    let many = [&hangs[..], &[true; 100]].concat();

    assert_eq!(numbers(&many), [1, 2, 3, 99, 100, 101, 102, 103]);
    // One place is for a fault.
    let full = [&[false; KEPT][..], &[true; 10]].concat();

    assert_eq!(numbers(&full), [2, 3, 4, 5, 6, 7, 8, 18]);
    // A hang takes the place of whatever is the oldest.
    assert_eq!(
        numbers(&[&[true; KEPT][..], &[false]].concat()),
        [2, 3, 4, 5, 6, 7, 8, 9]
    );
}
