// SPDX-License-Identifier: MIT OR Apache-2.0

//! An engine of its own in loom, with memory of which others see a few words.
//!
//! Only the shared words are loom's; all else is memory that does not change, or that nobody else
//! has. Accesses are relaxed. So what orders the words is what the engine does, and nothing in its
//! surroundings.

use std::cell::RefCell;
use std::collections::BTreeMap;

use loom::sync::atomic::Ordering::{Relaxed, Release};
use loom::sync::Arc;

use super::program::Program;
use crate::engine::command_processor::{Engine, Outcome};
use crate::engine::fences::Fences;
use crate::engine::log::{Log, LogType};
use crate::engine::memory::{Memory, Physical, Place, PAGE_SIZE};
use crate::engine::page_table::{Entry, Profile};
use crate::engine::queue::{Privilege, Progress, Queue, Submission};
use crate::engine::ring::Ring;
use crate::engine::shell::{Clock, Interrupts};
use crate::engine::translation::Root;
use crate::platform::Word64;

/// GPU virtual addresses. A page table that leads to itself translates all of them: each page is
/// at the address of its number.
pub(super) const SHARED: u64 = 0x1000;
const BUFFER: u64 = 0x2000;
/// From here on all words that are not shared are the engine's.
pub(super) const OWN: u64 = 0x3000;
/// Pages for a log, and for the control page of a ring.
pub(super) const LOG: u64 = 0x4000;
pub(super) const CONTROL: u64 = 0x5000;

const TABLE: Physical = Physical::new(Place::Local, 0);

/// Words that several threads have, by their GPU virtual addresses.
pub(super) trait SharedWords {
    fn word(&self, va: u64) -> Option<&Word64>;
}

impl<const N: usize> SharedWords for [Word64; N] {
    /// From [`SHARED`] on.
    fn word(&self, va: u64) -> Option<&Word64> {
        let index = va.checked_sub(SHARED)? / 8;

        self.get(index as usize)
    }
}

/// The memory of one engine.
struct Parts<S> {
    shared: Arc<S>,
    program: Vec<u32>,
    own: RefCell<BTreeMap<u64, u64>>,
}

impl<S: SharedWords> Memory for Parts<S> {
    fn load32(&self, at: Physical) -> Option<u32> {
        let index = at.address.checked_sub(BUFFER)? / 4;

        self.program.get(index as usize).copied()
    }

    fn load64(&self, at: Physical) -> Option<u64> {
        if at.place == Place::Local {
            // All levels are one table.
            return Some(match at.address / 8 {
                0 => Entry::to(TABLE).bits(),
                page => Entry::to(Physical::new(Place::System, page * PAGE_SIZE))
                    .writable()
                    .bits(),
            });
        }
        if let Some(word) = self.shared.word(at.address) {
            return Some(word.load(Relaxed));
        }
        self.own.borrow().get(&at.address).copied().or(Some(0))
    }

    fn store32(&self, _: Physical, _: u32) -> Option<()> {
        None
    }

    fn store64(&self, at: Physical, value: u64) -> Option<()> {
        match self.shared.word(at.address) {
            Some(word) => word.store(value, Relaxed),
            None => drop(self.own.borrow_mut().insert(at.address, value)),
        }
        Some(())
    }

    fn store64_release(&self, at: Physical, value: u64) -> Option<()> {
        match self.shared.word(at.address) {
            Some(word) => word.store(value, Release),
            None => drop(self.own.borrow_mut().insert(at.address, value)),
        }
        Some(())
    }

    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64> {
        let exchanged = self
            .shared
            .word(at.address)?
            .compare_exchange(old, new, Relaxed, Relaxed);

        Some(exchanged.unwrap_or_else(|found| found))
    }

    /// Of one word.
    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<u32> {
        assert_eq!(bytes, 8);
        self.store64(to, self.load64(from)?)?;
        Some(bytes)
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<u32> {
        assert_eq!(bytes, 8);
        self.store64(to, u64::from(pattern) << 32 | u64::from(pattern))?;
        Some(bytes)
    }
}

struct NoClock;

impl Clock for NoClock {
    fn ticks(&self) -> u64 {
        1
    }
}

/// An engine that has one program to run.
pub(super) struct Runner<S> {
    memory: Parts<S>,
    engine: Engine,
    queue: Queue,
}

impl<S: SharedWords> Runner<S> {
    fn with(shared: &Arc<S>, process: u16, program: &Program) -> Self {
        Self {
            memory: Parts {
                shared: shared.clone(),
                program: program.0.clone(),
                own: RefCell::default(),
            },
            engine: Engine::new(Profile::VRAM4).unwrap(),
            queue: Queue::new(
                Root {
                    table: TABLE,
                    entries: 512,
                    process,
                },
                Privilege::Normal,
            ),
        }
    }

    /// In a command buffer of the process with this PASID.
    pub(super) fn new(
        shared: &Arc<S>,
        process: u16,
        program: &Program,
        progress: Option<Progress>,
    ) -> Self {
        let mut runner = Self::with(shared, process, program);

        runner
            .queue
            .submit(Submission {
                va: BUFFER,
                length: program.0.len() as u32 * 4,
                progress,
            })
            .unwrap();
        runner
    }

    /// In a ring, whose process says how much of it there is.
    pub(super) fn of_ring(shared: &Arc<S>, program: &Program) -> Self {
        let mut runner = Self::with(shared, 1, program);

        runner.queue.set_ring(Ring::new(BUFFER, PAGE_SIZE, CONTROL));
        runner
    }

    /// With a log of signals.
    pub(super) fn logged(mut self, entries: u32) -> Self {
        let log = Log { va: LOG, entries };

        self.queue.set_log(LogType::Signals, Some(log));
        self
    }

    pub(super) fn step(
        &mut self,
        fences: &impl Fences,
        interrupts: &mut impl Interrupts,
    ) -> Outcome {
        self.engine.step(
            &mut self.queue,
            &self.memory,
            fences,
            interrupts,
            &NoClock,
            4096,
        )
    }

    /// Whether what the queue waits for is there.
    pub(super) fn is_reached(&mut self, fences: &impl Fences) -> bool {
        self.engine.is_reached(&self.queue, &self.memory, fences)
    }

    /// What the program has left in a word of its own.
    pub(super) fn own(&self, va: u64) -> u64 {
        self.memory.own.borrow().get(&va).copied().unwrap_or(0)
    }
}
