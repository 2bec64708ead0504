// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who wants an allocation to be resident, against a list of all wishes (MEM-17, MEM-23, MEM-30,
//! MEM-47).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;

use crate::logic::offer_rules::{Offer, Request};
use crate::logic::users::{Space, Usage, Users};

const BYTES: u64 = 0x3000;
const USAGE: Usage = Usage {
    group: 1,
    bytes: BYTES,
};
const ELSEWHERE: Usage = Usage {
    group: 0,
    bytes: BYTES,
};

/// The address space of a process: what it uses of each group.
#[derive(Clone, Default)]
struct Process(Rc<RefCell<[u64; 2]>>);

impl Process {
    fn used(&self) -> [u64; 2] {
        *self.0.borrow()
    }
}

impl Space for Process {
    fn add_usage(&self, usage: Usage) {
        self.0.borrow_mut()[usage.group] += usage.bytes;
    }

    fn sub_usage(&self, usage: Usage) {
        self.0.borrow_mut()[usage.group] -= usage.bytes;
    }

    fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

fn offer(call: u64) -> Offer {
    Request::new(1, 0).expect("good arguments").offer(0, call)
}

#[test]
fn mem_17_mem_117_each_mention_counts_and_another_open_of_the_device_will_do() {
    let process = Process::default();
    let mut users = Users::new();

    for (opening, device) in [(1, 7), (2, 7), (3, 8)] {
        assert!(users.enter(opening, device, process.clone()).is_some());
    }
    assert!(!users.are_wanted() && users.are_of_one_process());
    assert!(!users.want(4, USAGE) && !users.were_wanted());
    assert!(users.want(1, USAGE) && users.want(1, USAGE) && users.want(3, USAGE));
    assert!(!users.want(4, USAGE), "no such open");
    assert_eq!(process.used(), [0, 2 * BYTES]);

    // The device has one list, whichever of its opens is named (MEM-23).
    assert_eq!(users.wanting().count(), 2);
    assert!(users.unwant(2, 7, USAGE) && users.wants(1));
    assert!(users.unwant(1, 7, USAGE) && !users.wants(1));
    assert!(!users.unwant(1, 7, USAGE) && !users.unwant(2, 7, USAGE));
    assert_eq!(process.used(), [0, BYTES]);
    assert!(users.are_wanted());

    // An open takes with it what it wanted.
    let (was_listed, _) = users.leave(3, USAGE).expect("it is there");

    assert!(was_listed && !users.are_wanted() && users.were_wanted());
    assert_eq!(process.used(), [0, 0]);
}

#[test]
fn mem_30_mem_117_what_a_device_has_offered_its_next_open_has_offered() {
    let mut users = Users::new();

    assert!(users.enter(1, 7, Process::default()).is_some());
    assert_eq!(users.set_offer(8, Some(offer(5))), (false, None));
    assert_eq!(users.set_offer(7, Some(offer(5))), (true, None));
    assert!(users.enter(2, 7, Process::default()).is_some());
    assert!(users.enter(3, 8, Process::default()).is_some());
    assert!(users.is_offered_by(7) && !users.is_offered_by(8) && users.are_offering());
    assert!(!users.are_of_one_process());

    // Nothing is dropped before all offer it, and before the work of their calls is done.
    assert_eq!(users.droppable(), None);
    users.set_offer(8, Some(offer(6)));
    users.take_effect(7, 5);
    assert_eq!(users.droppable(), None);
    users.take_effect(8, 5);
    assert_eq!(users.droppable(), None, "another call");
    users.take_effect(8, 6);
    assert!(users.droppable().is_some());
    users.count_other(true);
    assert_eq!(users.droppable(), None, "a handle besides");
    users.count_other(false);

    users.discard();
    assert!(users.are_all_discarded());
    users.tell_discarded(7);
    assert!(!users.is_discarded(7) && users.is_discarded(8));
}

#[derive(Clone, Debug)]
enum Action {
    Enter(u64),
    Leave(u64),
    Want(u64),
    Unwant(u64),
    Keep(u64),
    LetGo(u64),
    Offer(u64, bool),
    Move,
}

const DEVICES: u64 = 3;

/// Opens go round the devices, and devices round two processes.
fn device_of(opening: u64) -> u64 {
    opening % DEVICES
}

fn action() -> impl Strategy<Value = Action> {
    let opening = 0..6u64;

    prop_oneof![
        2 => opening.clone().prop_map(Action::Enter),
        1 => opening.clone().prop_map(Action::Leave),
        4 => opening.clone().prop_map(Action::Want),
        4 => opening.clone().prop_map(Action::Unwant),
        2 => opening.clone().prop_map(Action::Keep),
        2 => opening.prop_map(Action::LetGo),
        1 => (0..DEVICES, any::<bool>()).prop_map(|(device, on)| Action::Offer(device, on)),
        1 => Just(Action::Move),
    ]
}

/// Every wish by itself.
#[derive(Default)]
struct Model {
    /// The opens, each with its wishes: those of MakeResident, and those of queued work.
    opens: BTreeMap<u64, (u32, u32)>,
    offered: [bool; DEVICES as usize],
    group: usize,
}

impl Model {
    fn is_listed(&self, opening: u64) -> bool {
        self.opens
            .get(&opening)
            .is_some_and(|wishes| *wishes != (0, 0))
    }

    fn of_device(&self, device: u64) -> impl Iterator<Item = u64> + '_ {
        let opens = self.opens.keys().copied();

        opens.filter(move |opening| device_of(*opening) == device)
    }

    /// Takes a wish of MakeResident away: of this open, or of the first other one of its device.
    fn unwant(&mut self, opening: u64) -> bool {
        let others = self.of_device(device_of(opening));
        let wanted = |opening: &u64| self.opens.get(opening).is_some_and(|wishes| wishes.0 != 0);
        let found = [opening].into_iter().chain(others).find(wanted);

        found.is_some_and(|opening| {
            self.opens.entry(opening).and_modify(|wishes| wishes.0 -= 1);
            true
        })
    }

    fn keep(&mut self, opening: u64) -> bool {
        let device = device_of(opening);
        let may = self.of_device(device).any(|open| self.is_listed(open))
            && self.opens.contains_key(&opening)
            && !self.offered[device as usize];

        if may {
            self.opens.entry(opening).and_modify(|wishes| wishes.1 += 1);
        }
        may
    }
}

proptest! {
    /// MEM-17, MEM-47: any program of opens, mentions, evictions, queued work and offers.
    #[test]
    fn mem_17_mem_117_any_program_against_a_list_of_wishes(
        actions in proptest::collection::vec(action(), 1..80),
    ) {
        let processes = [Process::default(), Process::default()];
        let mut users = Users::new();
        let mut model = Model::default();
        let usage = |group| if group == 1 { USAGE } else { ELSEWHERE };

        for action in actions {
            let now = usage(model.group);

            match action {
                Action::Enter(opening) => {
                    // The first of two opens of a device is the one that came first.
                    if model.opens.keys().next_back().is_none_or(|last| *last < opening) {
                        let process = &processes[device_of(opening) as usize % 2];
                        let is_first = model.of_device(device_of(opening)).next().is_none();

                        prop_assert!(users
                            .enter(opening, device_of(opening), process.clone())
                            .is_some());
                        if is_first {
                            model.offered[device_of(opening) as usize] = false;
                        }
                        model.opens.insert(opening, (0, 0));
                    }
                }
                Action::Leave(opening) => {
                    let was_listed = model.is_listed(opening);
                    let left = users.leave(opening, now).map(|(listed, _)| listed);

                    prop_assert_eq!(left, model.opens.remove(&opening).map(|_| was_listed));
                }
                Action::Want(opening) => {
                    let is_open = model.opens.contains_key(&opening);

                    prop_assert_eq!(users.want(opening, now), is_open);
                    model.opens.entry(opening).and_modify(|wishes| wishes.0 += 1);
                }
                Action::Unwant(opening) => {
                    let did = users.unwant(opening, device_of(opening), now);

                    prop_assert_eq!(did, model.unwant(opening));
                }
                Action::Keep(opening) => {
                    let did = users.keep(opening, device_of(opening), now);

                    prop_assert_eq!(did, model.keep(opening));
                }
                Action::LetGo(opening) => {
                    users.let_go(opening, now);
                    model
                        .opens
                        .entry(opening)
                        .and_modify(|wishes| wishes.1 = wishes.1.saturating_sub(1));
                }
                Action::Offer(device, on) => {
                    let is_open = model.of_device(device).next().is_some();
                    let (did, before) = users.set_offer(device, on.then(|| offer(1)));

                    prop_assert_eq!(did, is_open);
                    prop_assert_eq!(before.is_some(), is_open && model.offered[device as usize]);
                    model.offered[device as usize] = on && is_open;
                }
                Action::Move => {
                    model.group = 1 - model.group;
                    users.move_usage(now, usage(model.group));
                }
            }

            let listed = |process: usize| {
                let of = |opening: &&u64| device_of(**opening) as usize % 2 == process;

                model.opens.keys().filter(of).filter(|open| model.is_listed(**open)).count() as u64
            };

            for (number, process) in processes.iter().enumerate() {
                let mut used = [0, 0];

                used[model.group] = listed(number) * BYTES;
                prop_assert_eq!(process.used(), used);
            }
            prop_assert_eq!(users.are_wanted(), listed(0) + listed(1) != 0);
            prop_assert_eq!(users.len(), model.opens.len());
            for opening in 0..6 {
                prop_assert_eq!(users.wants(opening), model.is_listed(opening));
            }
            for device in 0..DEVICES {
                let is_open = model.of_device(device).next().is_some();

                prop_assert_eq!(users.is_open_by(device), is_open);
                prop_assert_eq!(
                    users.is_offered_by(device),
                    is_open && model.offered[device as usize]
                );
            }
        }
    }
}
