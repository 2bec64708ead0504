// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: calls one after the other.

use super::choices::Random;
use super::lang::Lang;

/// Bytes that a new call has to choose from. Long structs end with what is 0.
const CHOICES: usize = 96;

/// How many calls a program has at most.
const LENGTH: usize = 24;

/// One call and the bytes that its values are made of.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) call: usize,
    pub(crate) bytes: Vec<u8>,
}

/// Calls, and how they are made.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    /// Two threads make them all at the same time.
    pub(crate) is_double: bool,
    /// The process ends with everything open.
    pub(crate) leaves: bool,
}

/// What programs begin with, mostly: without it there is hardly anything to do.
const FIRST: [&str; 5] = [
    "ENUMADAPTERS2",
    "CREATEDEVICE",
    "CREATEPAGINGQUEUE",
    "CREATECONTEXTVIRTUAL",
    "CREATEALLOCATION",
];

impl Step {
    fn new(lang: &Lang, random: &mut Random) -> Self {
        Self {
            call: random.below(lang.calls.len()),
            bytes: random.bytes(CHOICES),
        }
    }

    /// The plainest form of a call.
    fn plain(call: usize) -> Self {
        Self {
            call,
            bytes: Vec::new(),
        }
    }

    /// Changes what the values are made of.
    fn change(&mut self, random: &mut Random) {
        if self.bytes.is_empty() {
            self.bytes = vec![0; CHOICES];
        }
        for _ in 0..=random.below(4) {
            let place = random.below(self.bytes.len());
            self.bytes[place] = random.next() as u8;
        }
    }
}

impl Program {
    /// A new one.
    pub(crate) fn new(lang: &Lang, random: &mut Random) -> Self {
        let first = FIRST.iter().filter_map(|name| lang.call_named(name).ok());
        let first = first.take(1 + random.below(FIRST.len()));
        let mut steps: Vec<_> = first.map(Step::plain).collect();
        steps.extend((0..=random.below(12)).map(|_| Step::new(lang, random)));
        Self {
            steps,
            is_double: random.one_in(8),
            leaves: random.one_in(4),
        }
    }

    /// This one, changed.
    pub(crate) fn changed(&self, lang: &Lang, random: &mut Random, other: &Self) -> Self {
        let mut program = self.clone();
        for _ in 0..=random.below(3) {
            program.change(lang, random, other);
        }
        program.steps.truncate(LENGTH);
        program
    }

    fn change(&mut self, lang: &Lang, random: &mut Random, other: &Self) {
        let steps = &mut self.steps;
        let place = random.below(steps.len() + 1);
        match random.below(10) {
            0..=3 => steps.insert(place, Step::new(lang, random)),
            4..=6 if place < steps.len() => steps[place].change(random),
            7 if steps.len() > 1 && place < steps.len() => drop(steps.remove(place)),
            8 => {
                let from = random.below(other.steps.len() + 1);
                steps.truncate(place);
                steps.extend_from_slice(&other.steps[from..]);
                if steps.is_empty() {
                    steps.push(Step::new(lang, random));
                }
            }
            9 if place < steps.len() => {
                let again = steps[place].clone();
                steps.push(again);
            }
            _ => {
                self.is_double = random.one_in(8);
                self.leaves = random.one_in(4);
            }
        }
    }

    /// The calls by name, for whoever looks for what went wrong.
    pub(crate) fn show(&self, lang: &Lang) -> String {
        let mut text = match (self.is_double, self.leaves) {
            (true, _) => String::from("two threads:"),
            (false, true) => String::from("left open:"),
            (false, false) => String::from("calls:"),
        };
        for step in &self.steps {
            let bytes: String = step
                .bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            text += &format!("\n#   {} {bytes}", lang.calls[step.call].name);
        }
        text
    }
}
