// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: calls one after the other.

use selftests::rounds::Dice;

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

/// One of so many, of which there has to be one.
fn below(dice: &mut Dice, count: usize) -> usize {
    dice.below(count as u32) as usize
}

/// What a new call chooses from.
fn bytes(dice: &mut Dice) -> Vec<u8> {
    (0..CHOICES).map(|_| below(dice, 256) as u8).collect()
}

impl Step {
    fn new(lang: &Lang, dice: &mut Dice) -> Self {
        Self {
            call: below(dice, lang.calls.len()),
            bytes: bytes(dice),
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
    fn change(&mut self, dice: &mut Dice) {
        if self.bytes.is_empty() {
            self.bytes = vec![0; CHOICES];
        }
        for _ in 0..=below(dice, 4) {
            let place = below(dice, self.bytes.len());
            self.bytes[place] = below(dice, 256) as u8;
        }
    }
}

impl Program {
    /// A new one.
    pub(crate) fn new(lang: &Lang, dice: &mut Dice) -> Self {
        let first = FIRST.iter().filter_map(|name| lang.call_named(name).ok());
        let first = first.take(1 + below(dice, FIRST.len()));
        let mut steps: Vec<_> = first.map(Step::plain).collect();
        steps.extend((0..=below(dice, 12)).map(|_| Step::new(lang, dice)));
        Self {
            steps,
            is_double: below(dice, 8) == 0,
            leaves: below(dice, 4) == 0,
        }
    }

    /// This one, changed.
    pub(crate) fn changed(&self, lang: &Lang, dice: &mut Dice, other: &Self) -> Self {
        let mut program = self.clone();
        for _ in 0..=below(dice, 3) {
            program.change(lang, dice, other);
        }
        program.steps.truncate(LENGTH);
        program
    }

    fn change(&mut self, lang: &Lang, dice: &mut Dice, other: &Self) {
        let steps = &mut self.steps;
        let place = below(dice, steps.len() + 1);
        match below(dice, 10) {
            0..=3 => steps.insert(place, Step::new(lang, dice)),
            4..=6 if place < steps.len() => steps[place].change(dice),
            7 if steps.len() > 1 && place < steps.len() => drop(steps.remove(place)),
            8 => {
                let from = below(dice, other.steps.len() + 1);
                steps.truncate(place);
                steps.extend_from_slice(&other.steps[from..]);
                if steps.is_empty() {
                    steps.push(Step::new(lang, dice));
                }
            }
            9 if place < steps.len() => {
                let again = steps[place].clone();
                steps.push(again);
            }
            _ => {
                self.is_double = below(dice, 8) == 0;
                self.leaves = below(dice, 4) == 0;
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
            text += &format!("\n#   {} ", lang.calls[step.call].name);
            for byte in &step.bytes {
                text += &format!("{byte:02x}");
            }
        }
        text
    }
}
