// SPDX-License-Identifier: MIT OR Apache-2.0

//! A whole run from any bytes: page tables, a program, budgets, and what others do meanwhile.
//!
//! For property tests and for the fuzzer (`tools/fuzz`). Panics if something is done that must not
//! be: memory that is used wrongly, a step that does more than its budget allows.

use std::collections::BTreeMap;

use super::machine::{Event, Machine, BUFFER, DATA};
use super::program::{packet, Program};
use crate::engine::command_processor::Outcome;
use crate::engine::memory::{Physical, Place, PAGE_SIZE};
use crate::engine::page_table::Entry;
use crate::engine::queue::Privilege;
use crate::engine::shell::Record;

/// Pages from [`DATA`] on that programs are told of.
const DATA_PAGES: u64 = 8;

/// Steps of a run at most.
const STEPS: usize = 64;

/// What can be seen of a run.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// How each step ended.
    pub outcomes: Vec<Outcome>,
    /// What was reported.
    pub records: Vec<Record>,
    /// All accesses.
    pub trace: Vec<Event>,
    /// All memory at the end.
    pub contents: BTreeMap<Physical, [u8; PAGE_SIZE as usize]>,
}

/// Bytes that decide. When they are used up, all are 0.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    pub(super) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    pub(super) fn dword(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// A value that is often at an edge.
    pub(super) fn qword(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << 63,
            4 => u64::from(self.byte()),
            _ => (u64::from(self.dword()) << 32) | u64::from(self.dword()),
        }
    }

    /// An address that is mostly one of data, and often aligned.
    fn address(&mut self) -> u64 {
        let offset = (u64::from(self.byte()) << 8) | u64::from(self.byte());

        match self.below(16) {
            0 => self.qword(),
            1 => DATA + offset,
            2 => BUFFER + offset / 4 * 4,
            // Round the borders of pages.
            3..=6 => (DATA + offset / 4 * 4 % (DATA_PAGES * PAGE_SIZE)) | 0xff8,
            _ => DATA + offset / 8 * 8 % (DATA_PAGES * PAGE_SIZE),
        }
    }
}

/// A program of packets that are mostly legal.
fn program(choices: &mut Choices<'_>) -> Vec<u32> {
    let mut program = Program::new();

    while !choices.0.is_empty() && program.0.len() < 4000 {
        let to = choices.address();
        let from = choices.address();
        let value = choices.qword();
        let small = u32::from(choices.byte());

        program = match choices.below(24) {
            0 => program.write(to, &vec![value as u32; small as usize + 1]),
            1 => program.write_fixed(to, &[small, small + 1]),
            2 => program.write64(to, value),
            3 => program.copy(from, to, value as u32 & 0x3_ffff),
            4 => program.copy_with(from, to, small * 4, choices.dword() & 0xf000_0000),
            5 => program.fill(to, value as u32, small * 64),
            6 => program.move_word(from, to, small % 2 == 0),
            7 => program.store_word(value, to, small % 2 == 0),
            8 => program.store_clock(to, small % 2 == 0),
            9 => program.wait(to, small % 8, value as u32, !0, small),
            10 => program.wait64(to, small % 8, value, !0, small),
            11 => program.release(small % 4, small / 4 % 5, to, value),
            12 => program.acquire(),
            13 => program.indirect(BUFFER + u64::from(small) * 16, small, 0),
            14 => program.indirect(from, value as u32 & 0xfffff, (small & 1) << 20),
            15 => program.atomic(
                [0x27, 0x28, 0x2f, 0x30, 0x34, 0x35, 0x36, 0x128][small as usize % 8],
                to,
                value,
                from,
            ),
            16 => program.cond_exec(to, small % 16),
            17 => program.trap(small, value),
            18 => program.delay(small % 4),
            19 => program.table_write(to, small * 8, value, u64::from(small) << 12),
            20 => program.invalidate(value as u16),
            // Anything behind a header, and anything at all.
            21 => program.dwords(&packet(small, &[value as u32, to as u32, from as u32])),
            22 => program.dwords(&[value as u32, to as u32]),
            _ => program.dwords(&[0x8000_0000]),
        };
    }
    program.0
}

/// The machine and its program. The rest of the choices is for the run.
pub(super) fn machine(choices: &mut Choices<'_>) -> (Machine, usize) {
    let privilege = if choices.byte() % 4 == 0 {
        Privilege::Paging
    } else {
        Privilege::Normal
    };
    let mut machine = Machine::bare(privilege);

    machine.map_new(BUFFER, 16);
    for page in 0..DATA_PAGES {
        let va = DATA + page * PAGE_SIZE;
        let memory = machine.new_page();
        let table = machine.entry_at(va);
        let entry = match choices.below(16) {
            0 => Entry::INVALID,
            1 => Entry::ZERO,
            2 => Entry::to(memory),
            3 => Entry::to(memory).writable().system_only(),
            4 => Entry::to(Physical::new(Place::Aperture, 0x5000)).writable(),
            5 => Entry::to(machine.find(BUFFER).unwrap()).writable(),
            // The very tables.
            6 => Entry::to(table).writable(),
            7 => Entry::to(machine.root.table).writable(),
            8 => Entry::from_bits(choices.qword()),
            _ => Entry::to(memory).writable(),
        };

        machine.set_entry(table, entry);
    }

    // Half of what is left is the program.
    let (schedule, mut packets) = match choices.0.len() {
        0..=8 => (choices.0, Choices(&[])),
        length => {
            let (schedule, packets) = choices.0.split_at((length / 8).min(3 * STEPS));

            (schedule, Choices(packets))
        }
    };
    let dwords = match packets.below(4) {
        // As they come.
        0 => packets
            .0
            .chunks_exact(4)
            .map(|dword| u32::from_le_bytes(dword.try_into().unwrap()))
            .collect(),
        _ => program(&mut packets),
    };
    let length = dwords.len().min(16 * 1024 - 1);

    machine.load(BUFFER, &dwords[..length]);
    choices.0 = schedule;
    (machine, length)
}

/// One step, and whether it did more than it may.
fn step(machine: &mut Machine, budget: u32, trace: &mut Vec<Event>) -> Outcome {
    let outcome = machine.step(budget);
    let accesses = machine.ram.take_trace();
    // Each unit is at most a dword that is loaded and one that is stored, each with a walk. What
    // is begun with the last unit is a packet's fields at most.
    let most = 12 * budget as usize + 100;

    assert!(
        accesses.len() <= most,
        "{} accesses with a budget of {budget}",
        accesses.len()
    );
    trace.extend(accesses);
    outcome
}

/// A run as the bytes decide.
pub fn play(bytes: &[u8]) -> Seen {
    let mut choices = Choices(bytes);
    let (mut machine, length) = machine(&mut choices);
    let mut trace = Vec::new();
    let mut outcomes = Vec::new();

    machine.submit_at(BUFFER, length as u32 * 4);
    machine.ram.take_trace();
    while outcomes.len() < STEPS {
        let budget = match choices.below(8) {
            0 => 0,
            1 => 1,
            2 => 2,
            3 => 4096,
            _ => u32::from(choices.byte()),
        };
        let outcome = step(&mut machine, budget, &mut trace);

        outcomes.push(outcome);
        machine.clock.0.set(machine.clock.0.get() + 1);
        match outcome {
            Outcome::Ran | Outcome::Invalidate(_) => {}
            // Others change what it waits for.
            Outcome::Blocked { .. } | Outcome::BlockedOnFence(_) => {
                let va = machine.queue.blocked_on().unwrap().va;

                if let Some(at) = machine.find(va & !7) {
                    let _ = machine.ram.write(at, &choices.qword().to_le_bytes());
                }
            }
            Outcome::Done(_) | Outcome::Idle => break,
            Outcome::Faulted(record) => {
                assert_eq!(machine.step(100), Outcome::Faulted(record));
                assert_eq!(machine.ram.take_trace(), []);
                break;
            }
        }
    }
    Seen {
        outcomes,
        records: machine.records.0,
        trace,
        contents: machine.ram.contents(),
    }
}

/// What a program leaves, however it is cut into steps: run with this budget in each, and for a
/// while only.
///
/// `None` if it does not end by then.
pub fn leaves(bytes: &[u8], budget: u32) -> Option<Seen> {
    let (mut machine, length) = machine(&mut Choices(bytes));
    let mut trace = Vec::new();

    machine.submit_at(BUFFER, length as u32 * 4);
    machine.ram.take_trace();
    for _ in 0..200_000 / budget {
        let outcome = step(&mut machine, budget, &mut trace);

        if !matches!(outcome, Outcome::Ran | Outcome::Invalidate(_)) {
            return Some(Seen {
                outcomes: vec![outcome],
                records: machine.records.0,
                trace,
                contents: machine.ram.contents(),
            });
        }
    }
    None
}
