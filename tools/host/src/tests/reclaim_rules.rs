// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a shrinker frees, and in which order: MEM-111.

use proptest::prelude::*;

use crate::logic::reclaim_rules::{shares, Class, Facts, Placed};

const PLACES: [Placed; 3] = [Placed::No, Placed::System, Placed::Segment];

/// All that can be said of an allocation.
fn all() -> impl Iterator<Item = Facts> {
    (0..24).map(|bits| Facts {
        is_droppable: bits & 1 != 0,
        is_wanted: bits & 2 != 0,
        is_unmoveable: bits & 4 != 0,
        placed: PLACES[bits >> 3],
    })
}

/// MEM-111: bytes are lost only if they are offered, and what is used loses nothing.
#[test]
fn mem_111_only_what_nobody_needs_is_freed() {
    for facts in all() {
        let class = facts.class();
        assert_eq!(
            class == Some(Class::Offered),
            facts.is_droppable && !(facts.is_unmoveable && facts.is_placed()),
            "{facts:?}"
        );
        if facts.is_wanted && !facts.is_droppable {
            assert_eq!(class, None, "{facts:?}");
        }
        if facts.is_unmoveable && facts.is_placed() {
            assert_eq!(class, None, "{facts:?}");
        }
    }
}

/// MEM-108, MEM-111: what nobody wants can be swapped, wherever in system memory it is.
#[test]
fn mem_108_what_nobody_wants_can_be_swapped() {
    let nobody = |placed| Facts {
        is_droppable: false,
        is_wanted: false,
        is_unmoveable: false,
        placed,
    };
    assert_eq!(nobody(Placed::No).class(), Some(Class::Unwanted));
    assert_eq!(nobody(Placed::System).class(), Some(Class::Idle));
    assert_eq!(nobody(Placed::Segment).class(), None);
}

/// MEM-111: offered content first, then count-zero pages, then those whose placement has to go.
#[test]
fn mem_111_classes_are_in_order() {
    assert_eq!(
        Class::ALL,
        [Class::Offered, Class::Unwanted, Class::Idle],
        "the order of the specification"
    );
    // Each is the number of its list.
    for (list, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, list);
    }
}

proptest! {
    /// MEM-111: a later class is looked at only when the earlier ones are through.
    #[test]
    fn mem_111_shares_are_in_order(
        counts in prop::array::uniform3(prop_oneof![0..9usize, Just(usize::MAX)]),
        most in 0..20usize,
    ) {
        let shares = shares(counts, most);
        let total: usize = shares.iter().sum();
        let all = counts.iter().fold(0usize, |sum, count| sum.saturating_add(*count));
        prop_assert_eq!(total, most.min(all));
        for later in 1..shares.len() {
            if shares[later] != 0 {
                prop_assert_eq!(&shares[..later], &counts[..later]);
            }
        }
    }
}
