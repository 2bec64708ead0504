// SPDX-License-Identifier: MIT OR Apache-2.0

//! A run of a ring from any bytes: its contents, both pointers, and a process that rewrites them
//! between steps and after each access of the engine (GPU-15, GPU-16).
//!
//! As [`super::play`], for property tests and for the fuzzer.

use super::machine::{Machine, Ram, BUFFER, DATA};
use super::play::{machine, Choices};
use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::memory::{Physical, PAGE_SIZE};
use crate::engine::page_table::Entry;
use crate::engine::ring::Ring;

/// The control page, which programs reach too.
const CONTROL: u64 = DATA + 7 * PAGE_SIZE;
/// The read pointer there.
const READ_POINTER: u64 = 64;

/// Steps of a run at most.
const STEPS: usize = 64;

/// How the steps of a run ended.
#[derive(Debug, Default, PartialEq)]
pub struct Ends {
    pub idle: u32,
    pub ran: u32,
    pub blocked: u32,
    pub faulted: u32,
}

/// What another thread of the process writes to ring and control page.
#[derive(Clone, Copy)]
struct Writer {
    ring: Physical,
    control: Option<Physical>,
    dwords: u64,
}

impl Writer {
    fn write(&self, ram: &Ram, what: u8, value: u32) {
        let value = u64::from(value);
        let control = |offset: u64, value: u64| {
            if let Some(control) = self.control {
                let _ = ram.write(control.plus(offset), &value.to_le_bytes());
            }
        };

        match what % 8 {
            0 => control(0, value % (2 * self.dwords)),
            1 => control(0, value),
            2 => control(READ_POINTER, value),
            3..=5 => {
                let at = self.ring.plus(value / 64 % (PAGE_SIZE / 4) * 4);
                let _ = ram.write(at, &(value as u32).to_le_bytes());
            }
            _ => {}
        }
    }

    fn write_pointer(&self, machine: &Machine, value: u64) {
        if let Some(control) = self.control {
            let _ = machine.ram.write(control, &value.to_le_bytes());
        }
    }
}

/// One step, which does no more than it may.
fn step(machine: &mut Machine, budget: u32, ends: &mut Ends) -> Outcome {
    machine.ram.take_trace();

    let outcome = machine.step(budget);
    let accesses = machine.ram.take_trace().len();

    assert!(
        accesses <= 12 * budget as usize + 100,
        "{accesses} accesses with a budget of {budget}"
    );
    match outcome {
        Outcome::Idle => ends.idle += 1,
        Outcome::Blocked { .. } | Outcome::BlockedOnFence(_) => ends.blocked += 1,
        Outcome::Faulted(_) => ends.faulted += 1,
        Outcome::Ran | Outcome::Invalidate(_) | Outcome::Done(_) => ends.ran += 1,
    }
    outcome
}

/// Whether the engine says that there is something to do. Looking changes nothing.
fn has_work(machine: &mut Machine) -> bool {
    machine.ram.take_trace();

    let Machine {
        engine, queue, ram, ..
    } = machine;
    let has_work = engine.has_work(queue, ram);

    assert_eq!(has_work, engine.has_work(queue, ram));
    assert!(ram.take_trace().iter().all(|event| event.is_load()));
    has_work
}

/// A run as the bytes decide.
pub fn play_ring(bytes: &[u8]) -> Ends {
    let mut choices = Choices(bytes);
    let is_rewritten = choices.below(2) == 1;
    let pages = 1 << choices.below(3);
    let (mut machine, length) = machine(&mut choices);
    let ring = Ring::new(BUFFER, pages * PAGE_SIZE, CONTROL);
    let dwords = pages * PAGE_SIZE / 4;
    let mut written = 0;
    let mut ends = Ends::default();

    // Mostly a page that is there and can be written.
    if choices.below(8) != 0 {
        let page = machine.new_page();

        machine.map(CONTROL, Entry::to(page).writable());
    }

    // Found before the run: a program may point the tables above it anywhere.
    let entry_of_control = machine.entry_at(CONTROL);
    let writer = Writer {
        ring: machine.find(BUFFER).unwrap(),
        control: machine.find(CONTROL),
        dwords,
    };

    machine.queue.set_ring(ring);
    if is_rewritten {
        let schedule = choices.0.to_vec();
        let mut turn = 0;

        machine.ram.with_others(move |ram, _| {
            let at = |turn: usize| schedule.get(turn % schedule.len().max(1)).copied();
            let [what, low, high] = [turn, turn + 1, turn + 2].map(|turn| at(turn).unwrap_or(6));

            turn += 1;
            writer.write(ram, what, u32::from_le_bytes([low, high, what, low]));
        });
    }
    for _ in 0..STEPS {
        let budget = [0, 1, 7, 100, SLICE][usize::from(choices.below(5))];

        match choices.below(16) {
            // As a process should: what it has written, a part at a time.
            0..=9 => {
                written += u64::from(choices.byte()) % (length as u64 + 1);
                writer.write_pointer(&machine, written);
            }
            10 => writer.write_pointer(&machine, choices.qword()),
            11 => {
                let (what, value) = (choices.byte(), choices.dword());

                writer.write(&machine.ram, what, value);
            }
            12 => {
                let entry = Entry::from_bits(choices.qword());

                machine.set_entry(entry_of_control, entry);
            }
            13 => {
                machine.queue.set_ring(ring);
                written = 0;
            }
            _ => {}
        }
        machine.clock.0.set(machine.clock.0.get() + 1);

        match step(&mut machine, budget, &mut ends) {
            Outcome::Faulted(record) => {
                assert_eq!(machine.step(100), Outcome::Faulted(record));
                assert!(!has_work(&mut machine));
                break;
            }
            Outcome::Idle if !is_rewritten => assert!(!has_work(&mut machine)),
            Outcome::Blocked { .. } => assert!(has_work(&mut machine)),
            _ => {}
        }
        // Loads are followed by the other thread, too.
        if !is_rewritten {
            let _ = has_work(&mut machine);
        }
    }
    ends
}
