// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lists sorted into classes.

use proptest::prelude::*;

use crate::logic::classes::{Classes, PageClass};

const CLASSES: [PageClass; 3] = [PageClass::Free, PageClass::Stale, PageClass::Rest];

proptest! {
    /// Against the classes that the entries were last put into: the list stays sorted, an entry
    /// moves with at most two exchanges, and the first of each class is one of it.
    #[test]
    fn entries_are_found_in_their_class(
        steps in proptest::collection::vec((any::<prop::sample::Index>(), 0..3usize), 0..200),
        size in 1..40usize,
    ) {
        let mut list: Vec<(usize, PageClass)> = (0..size).map(|id| (id, PageClass::Rest)).collect();
        let mut classes = Classes::new();

        for (which, class) in steps {
            let index = which.index(size);
            let class = CLASSES[class];
            let (id, _) = list[index];
            let mut exchanges = 0;

            list[index].1 = class;

            let at = classes.sort(index, class, |one, other| {
                exchanges += 1;
                list.swap(one, other);
            });

            prop_assert!(exchanges <= 2);
            prop_assert_eq!(list[at].0, id);
            prop_assert!(list.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            for (index, (_, class)) in list.iter().enumerate() {
                prop_assert_eq!(classes.of(index), *class);
            }
            for class in CLASSES {
                let first = list.iter().position(|entry| entry.1 == class);
                // Where the rest would begin if there were any.
                let expected = first.or((class == PageClass::Rest).then_some(size));

                prop_assert_eq!(classes.first(class), expected);
            }
        }
    }
}
