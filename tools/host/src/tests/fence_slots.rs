// SPDX-License-Identifier: MIT OR Apache-2.0

//! FEN-12: places of fence values in common pages.

use proptest::prelude::*;

use crate::logic::fence_slots::{Slots, SLOTS};

#[test]
fn fen_12_a_place_is_used_again_after_a_look() {
    let mut slots = Slots::with_first_taken();
    let all: Vec<_> = std::iter::from_fn(|| slots.take()).collect();

    assert_eq!(all, (1..SLOTS).collect::<Vec<_>>());
    slots.put(0);
    slots.put(63);
    assert_eq!(slots.take(), None, "nobody has looked");
    assert_eq!(slots.stale(), 1 | (1 << 63));

    let seen = slots.stale();

    // Given back after the look: a child that was forked in between may have it.
    slots.put(7);
    slots.refresh(seen);
    assert_eq!(slots.stale(), 1 << 7);
    assert_eq!(
        [slots.take(), slots.take(), slots.take()],
        [Some(0), Some(63), None]
    );
    slots.refresh(slots.stale());
    assert_eq!([slots.take(), slots.take()], [Some(7), None]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take,
    Put(u32),
    Look,
    Refresh,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Take),
        4 => (0..SLOTS).prop_map(Step::Put),
        1 => Just(Step::Look),
        1 => Just(Step::Refresh),
    ];

    proptest::collection::vec(step, 0..400)
}

proptest! {
    /// Against a list: what is taken was free, and whoever had it gave it back before the look
    /// that let it be used again.
    #[test]
    fn fen_12_a_place_has_one_fence_and_rests(steps in steps()) {
        let mut slots = Slots::with_first_taken();
        let mut taken = vec![false; SLOTS as usize];
        let mut stale = vec![false; SLOTS as usize];
        let mut seen = 0;

        taken[0] = true;
        for step in steps {
            match step {
                Step::Take => {
                    let free = (0..SLOTS as usize).find(|at| !taken[*at] && !stale[*at]);

                    prop_assert_eq!(slots.take(), free.map(|at| at as u32));
                    if let Some(at) = free {
                        taken[at] = true;
                    }
                }
                Step::Put(slot) => {
                    let at = slot as usize;

                    if taken[at] {
                        slots.put(slot);
                        taken[at] = false;
                        stale[at] = true;
                        seen &= !(1 << slot);
                    }
                }
                Step::Look => seen = slots.stale(),
                Step::Refresh => {
                    slots.refresh(seen);
                    for (at, stale) in stale.iter_mut().enumerate() {
                        *stale &= (seen >> at) & 1 == 0;
                    }
                    seen = 0;
                }
            }
        }
    }
}
