// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whose turn it is where not all fits: MEM-18.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::logic::rotation_rules::{next_back, slice, time_left, Turn, LONGEST, SHORTEST};

/// Pages of the segment.
const SEGMENT: u64 = 100;

/// A process, as the module has it.
struct Process {
    wants: u64,
    has: u64,
    turn: Turn,
    ran: u64,
}

/// The module's way: the first of those that are suspended comes back, and others go for it.
struct Machine {
    processes: Vec<Process>,
    now: u64,
    moving: u64,
    change: u64,
    page: u64,
}

impl Machine {
    fn free(&self) -> u64 {
        SEGMENT - self.processes.iter().map(|one| one.has).sum::<u64>()
    }

    /// Room for the process at `place`: how long to wait for it, or how long it took.
    fn make_room(&mut self, place: usize) -> Result<u64, u64> {
        let mut moved = 0;
        while self.free() < self.processes[place].wants - self.processes[place].has {
            let others = || (0..self.processes.len()).filter(|other| *other != place);
            let leaves = others().find(|other| {
                self.processes[*other].turn.is_suspended && self.processes[*other].has > 0
            });
            if let Some(other) = leaves {
                self.processes[other].has -= 1;
                moved += 1;
                continue;
            }
            let runs = others()
                .filter(|other| self.processes[*other].has > 0)
                .min_by_key(|other| self.processes[*other].turn.since)
                .expect("each fits alone");
            match time_left(
                self.processes[runs].turn.since,
                self.now,
                slice(self.change),
            ) {
                0 => {
                    self.processes[runs].turn = Turn {
                        is_suspended: true,
                        since: self.now,
                    }
                }
                left => return Err(left),
            }
        }
        moved += self.processes[place].wants - self.processes[place].has;
        self.processes[place].has = self.processes[place].wants;
        Ok(moved * self.page)
    }

    fn pass(&mut self, time: u64) {
        for one in self
            .processes
            .iter_mut()
            .filter(|one| !one.turn.is_suspended)
        {
            one.ran += time;
        }
        self.now += time;
    }

    /// The worker, once.
    fn step(&mut self) {
        let Some(place) = next_back(self.processes.iter().map(|one| one.turn)) else {
            self.pass(SHORTEST);
            return;
        };
        match self.make_room(place) {
            Ok(change) => {
                self.now += change;
                self.moving += change;
                self.change = change;
                self.processes[place].turn = Turn {
                    is_suspended: false,
                    since: self.now,
                };
                self.pass(slice(change));
            }
            Err(left) => self.pass(left),
        }
    }
}

proptest! {
    /// MEM-18: nobody starves, and most of the time somebody runs.
    #[test]
    fn mem_18_all_make_progress(wants in vec(1..=SEGMENT, 2..9), page in 1_000u64..2_000_000) {
        let processes: Vec<Process> = wants
            .iter()
            .map(|wants| Process {
                wants: *wants,
                has: 0,
                turn: Turn { is_suspended: true, since: 0 },
                ran: 0,
            })
            .collect();
        let count = processes.len();
        let mut machine = Machine { processes, now: 1, moving: 0, change: 0, page };
        for _ in 0..count * 12 {
            machine.step();
            prop_assert!(machine.processes.iter().all(|one| one.turn.is_suspended || one.has == one.wants));
        }
        for one in &machine.processes {
            prop_assert!(one.ran >= SHORTEST * 2, "{} of {}", one.ran, machine.now);
        }
        // A change is of 200 pages at most: no more than the longest slice has room for.
        if page * 2 * SEGMENT * 4 <= LONGEST {
            prop_assert!(machine.moving * 3 <= machine.now, "{} of {}", machine.moving, machine.now);
        }
    }

    /// Who was suspended first comes back first.
    #[test]
    fn mem_18_the_first_comes_back_first(turns in vec((any::<bool>(), 0u64..50), 0..10)) {
        let turns: Vec<_> = turns
            .iter()
            .map(|(is_suspended, since)| Turn { is_suspended: *is_suspended, since: *since })
            .collect();
        let next = next_back(turns.iter().copied());
        prop_assert_eq!(next.is_some(), turns.iter().any(|turn| turn.is_suspended));
        if let Some(next) = next {
            prop_assert!(turns[next].is_suspended);
            let earlier = |turn: &&Turn| turn.is_suspended && turn.since < turns[next].since;
            prop_assert!(!turns.iter().any(|turn| earlier(&turn)));
        }
    }
}

/// A slice is long against the change before it, and has an end.
#[test]
fn mem_18_slices() {
    assert_eq!(slice(0), SHORTEST);
    assert_eq!(slice(SHORTEST), 4 * SHORTEST);
    assert_eq!(slice(u64::MAX), LONGEST);
    // Who was never suspended has no claim, however early it is.
    assert_eq!(time_left(0, SHORTEST, SHORTEST), 0);
    assert_eq!(time_left(10, 12, 5), 3);
    assert_eq!(time_left(u64::MAX, 0, 5), u64::MAX);
}
