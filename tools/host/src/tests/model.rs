// SPDX-License-Identifier: MIT OR Apache-2.0

//! Random sequences of waits, signals, cancels and destroys against a model without any data
//! structure: fences are counters, waits are a list.

use std::sync::Arc;

use proptest::prelude::*;

use super::harness::{Fence, Wait};
use crate::logic::{
    fence_value::NOBODY_WAITS,
    wait_set::{
        Mode::{self, All, Any},
        WaitEnd::{self, Cancelled, Orphaned, Satisfied},
    },
};

const FENCES: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Wait {
        mode: Mode,
        elements: Vec<(usize, u64)>,
        /// By a thread that sleeps in memory of its own.
        on_stack: bool,
    },
    /// Such a thread runs a signal handler and comes back.
    Interrupt(prop::sample::Index),
    Signal {
        fence: usize,
        value: u64,
        rewind: bool,
    },
    Cancel(prop::sample::Index),
    /// The last handle of a fence goes; a new fence takes its place.
    Destroy(usize),
}

/// Small values, so that they meet, and the edges.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..6, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)]
}

fn op() -> impl Strategy<Value = Op> {
    let element = (0..FENCES, value());
    let mode = prop_oneof![Just(Any), Just(All)];

    prop_oneof![
        4 => (mode, prop::collection::vec(element, 1..5), any::<bool>())
            .prop_map(|(mode, elements, on_stack)| Op::Wait { mode, elements, on_stack }),
        1 => any::<prop::sample::Index>().prop_map(Op::Interrupt),
        6 => (0..FENCES, value(), any::<bool>())
            .prop_map(|(fence, value, rewind)| Op::Signal { fence, value, rewind }),
        1 => any::<prop::sample::Index>().prop_map(Op::Cancel),
        1 => (0..FENCES).prop_map(Op::Destroy),
    ]
}

/// What the model knows of an element.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Waiting,
    Reached,
    Hopeless,
}

struct ModelWait {
    mode: Mode,
    elements: Vec<(usize, u64, Element)>,
    outcome: Option<WaitEnd>,
}

impl ModelWait {
    /// Applies `change` to every element that still waits, then decides.
    fn update(&mut self, change: impl Fn(usize, u64) -> Element) {
        if self.outcome.is_some() {
            return;
        }
        for (fence, value, element) in &mut self.elements {
            if *element == Element::Waiting {
                *element = change(*fence, *value);
            }
        }

        let all = |wanted| {
            self.elements
                .iter()
                .all(|(_, _, element)| *element == wanted)
        };
        let one = |wanted| {
            self.elements
                .iter()
                .any(|(_, _, element)| *element == wanted)
        };
        let (met, hopeless) = match self.mode {
            Any => (one(Element::Reached), all(Element::Hopeless)),
            All => (all(Element::Reached), one(Element::Hopeless)),
        };

        if met {
            self.outcome = Some(Satisfied);
        } else if hopeless {
            self.outcome = Some(Orphaned);
        }
    }
}

/// The specification without any data structure: fences are counters, waits are a list.
#[derive(Default)]
struct Model {
    /// Value of a fence, and whether somebody can still signal it.
    fences: Vec<u64>,
    waits: Vec<ModelWait>,
}

impl Model {
    /// The values that pending waits still need of `fence`.
    fn wanted(&self, fence: usize) -> Vec<u64> {
        self.waits
            .iter()
            .filter(|wait| wait.outcome.is_none())
            .flat_map(|wait| &wait.elements)
            .filter(|(on, _, element)| *on == fence && *element == Element::Waiting)
            .map(|(_, value, _)| *value)
            .collect()
    }
}

/// The real thing and the model, side by side. Fences are numbered as they are created; `slots`
/// says which of them the operations mean at present.
struct Pair {
    fences: Vec<Arc<Fence>>,
    waits: Vec<Arc<Wait>>,
    slots: [usize; FENCES],
    model: Model,
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self {
            fences: Vec::new(),
            waits: Vec::new(),
            slots: [0; FENCES],
            model: Model::default(),
        };

        for slot in 0..FENCES {
            pair.create(slot);
        }
        pair
    }

    fn create(&mut self, slot: usize) {
        self.slots[slot] = self.fences.len();
        self.fences.push(Fence::new(0));
        self.model.fences.push(0);
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Wait {
                mode,
                elements,
                on_stack,
            } => self.wait(*mode, elements, *on_stack),
            Op::Interrupt(which) => {
                if !self.waits.is_empty() {
                    let wait = which.get_mut(&mut self.waits);

                    if let Some(moved) = wait.interrupt() {
                        *wait = moved;
                    }
                }
            }
            Op::Signal {
                fence,
                value,
                rewind,
            } => self.signal(self.slots[*fence], *value, *rewind),
            Op::Cancel(which) => {
                if !self.waits.is_empty() {
                    self.cancel(which.index(self.waits.len()));
                }
            }
            Op::Destroy(slot) => self.destroy(*slot),
        }
    }

    fn wait(&mut self, mode: Mode, elements: &[(usize, u64)], on_stack: bool) {
        let elements: Vec<_> = elements
            .iter()
            .map(|(slot, value)| (self.slots[*slot], *value))
            .collect();
        let arguments: Vec<_> = elements
            .iter()
            .map(|(fence, value)| (&self.fences[*fence], *value))
            .collect();

        self.waits.push(match on_stack {
            true => Wait::start_on_stack(mode, &arguments),
            false => Wait::start(mode, &arguments),
        });

        let values = &self.model.fences;
        let mut wait = ModelWait {
            mode,
            elements: elements
                .into_iter()
                .map(|(fence, value)| (fence, value, Element::Waiting))
                .collect(),
            outcome: None,
        };

        wait.update(|fence, value| match values[fence] >= value {
            true => Element::Reached,
            false => Element::Waiting,
        });
        self.model.waits.push(wait);
    }

    fn signal(&mut self, fence: usize, value: u64, rewind: bool) {
        let result = self.fences[fence].signal(value, rewind);
        let allowed = value >= self.model.fences[fence] || rewind;

        assert_eq!(result.is_ok(), allowed, "FEN-32");
        if allowed {
            self.model.fences[fence] = value;
            for wait in &mut self.model.waits {
                wait.update(|on, wanted| match on == fence && value >= wanted {
                    true => Element::Reached,
                    false => Element::Waiting,
                });
            }
        }
    }

    fn cancel(&mut self, index: usize) {
        let wait = &mut self.model.waits[index];

        assert_eq!(self.waits[index].cancel(), wait.outcome.is_none(), "FEN-85");
        wait.outcome.get_or_insert(Cancelled);
    }

    fn destroy(&mut self, slot: usize) {
        let fence = self.slots[slot];

        self.fences[fence].orphan();
        for wait in &mut self.model.waits {
            wait.update(|on, _| match on == fence {
                true => Element::Hopeless,
                false => Element::Waiting,
            });
        }
        self.create(slot);
    }

    fn check(&self) {
        for wait in &self.waits {
            wait.leave_if_ended();
        }
        for (wait, expected) in self.waits.iter().zip(&self.model.waits) {
            let told = matches!(expected.outcome, Some(Satisfied | Orphaned));

            assert_eq!(wait.outcome(), expected.outcome);
            assert_eq!(wait.deliveries(), u32::from(told), "told exactly once");
        }
        for (index, fence) in self.fences.iter().enumerate() {
            let wanted = self.model.wanted(index);
            let lowest = wanted.iter().min();

            assert_eq!(fence.current(), self.model.fences[index]);
            assert_eq!(fence.queued() as usize, wanted.len(), "FEN-86");
            assert_eq!(
                fence.monitored(),
                lowest.map_or(NOBODY_WAITS, |value| value - 1),
                "FEN-55"
            );
        }
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    /// FEN-14 to 18, 22 to 24, 28, 30 to 34, 85, 86: after every operation each wait has the
    /// outcome of the model, was told at most once, and each fence has exactly the waiters that
    /// still need it.
    #[test]
    fn any_sequence_matches_the_model(ops in prop::collection::vec(op(), 0..60)) {
        let mut pair = Pair::new();

        for op in &ops {
            pair.apply(op);
            pair.check();
        }
    }
}
