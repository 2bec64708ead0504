// SPDX-License-Identifier: MIT OR Apache-2.0

//! Moves of memory against a model: MEM-97 and MEM-99 want no byte lost, whatever is read, written
//! and revoked between the steps.

use proptest::prelude::*;

use crate::logic::moving::{Progress, Side, STEP};

/// A memory that moves, as `sys::mem::movable` has it: two backings, and one mapping.
struct Memory {
    old: Vec<Option<u64>>,
    new: Vec<Option<u64>>,
    /// What the page table of the process leads to.
    entries: Vec<Option<Side>>,
    progress: Progress,
}

impl Memory {
    fn new(count: usize, present: &[usize]) -> Self {
        let mut old = vec![None; count];
        for page in present {
            old[page % count] = Some(0);
        }
        Self {
            // What the old backing has was prepared.
            new: old.clone(),
            old,
            entries: vec![None; count],
            progress: Progress::new(count),
        }
    }

    /// The bytes of a page, as the process reaches them: by its entry, or by a fault.
    fn bytes(&mut self, page: usize) -> &mut u64 {
        let side = *self.entries[page]
            .get_or_insert_with(|| self.progress.side(page, self.old[page].is_some()));
        match side {
            Side::Old => self.old[page].get_or_insert(0),
            Side::New => self.new[page].get_or_insert(0),
        }
    }

    fn step(&mut self) -> bool {
        let Some(step) = self.progress.next() else {
            return false;
        };
        for page in step.clone() {
            self.entries[page] = None;
            if self.old[page].is_some() {
                assert!(self.new[page].is_some(), "page {page} has no new page");
                self.new[page] = self.old[page];
            }
        }
        self.progress.advance(step);
        true
    }
}

#[derive(Clone, Debug)]
enum Act {
    Write(usize, u64),
    Read(usize),
    Step,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (any::<usize>(), 1..u64::MAX).prop_map(|(page, value)| Act::Write(page, value)),
        any::<usize>().prop_map(Act::Read),
        Just(Act::Step),
    ]
}

proptest! {
    /// MEM-99.
    #[test]
    fn no_write_is_lost(
        count in 1..3 * STEP,
        present in prop::collection::vec(any::<usize>(), 0..40),
        acts in prop::collection::vec(act(), 0..200),
    ) {
        // Few pages, so that acts meet.
        let place = |page: usize| (page % 8) * count.div_ceil(8) % count;
        let present: Vec<_> = present.into_iter().map(place).collect();
        let mut memory = Memory::new(count, &present);
        let mut model = vec![0; count];

        for act in acts {
            match act {
                Act::Write(page, value) => {
                    *memory.bytes(place(page)) = value;
                    model[place(page)] = value;
                }
                Act::Read(page) => prop_assert_eq!(*memory.bytes(place(page)), model[place(page)]),
                Act::Step => {
                    memory.step();
                }
            }
        }
        let had: Vec<_> = memory.old.iter().map(Option::is_some).collect();
        while memory.step() {}

        // Nothing leads to the old backing, which has no page that was not prepared for.
        prop_assert!(memory.entries.iter().all(|entry| *entry != Some(Side::Old)));
        for page in 0..count {
            prop_assert_eq!(had[page], present.contains(&page));
            prop_assert_eq!(memory.new[page].unwrap_or(0), model[page]);
        }
    }
}

/// MEM-97: every page is in one step, and no step is longer than others may wait.
#[test]
fn steps_cover_everything_once() {
    for count in [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP + 5] {
        let mut progress = Progress::new(count);
        let mut covered = 0;

        while let Some(step) = progress.next() {
            assert_eq!(step.start, covered);
            assert!(!step.is_empty() && step.len() <= STEP);
            assert_eq!(progress.side(step.start, true), Side::Old);
            covered = step.end;
            progress.advance(step);
            assert_eq!(progress.side(covered - 1, true), Side::New);
        }
        assert_eq!(covered, count);
    }
}

/// MEM-97: no memory has so many pages, but a sum must not wrap.
#[test]
fn the_last_step_of_the_largest_memory_ends() {
    let mut progress = Progress::new(usize::MAX);

    progress.advance(0..usize::MAX - 3);
    assert_eq!(progress.next(), Some(usize::MAX - 3..usize::MAX));
}
