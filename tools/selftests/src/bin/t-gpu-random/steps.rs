// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a program: each one calls, and does the same to the model.

use opendxg::pm4::Pm4;
use opendxg::EvictFlags;
use selftests::gpu::PAGE;
use selftests::TestResult;

use super::memory::{Memory, WORDS};
use super::program::Program;

/// Allocations, contexts and paging queues at a time.
const MOST: usize = 8;
/// Pages of an allocation.
const PAGES: u64 = 4;
/// Most words of one packet that carries them.
const MOST_WORDS: u64 = 32;

impl Program {
    pub(crate) fn steps(&mut self, count: u32) -> TestResult {
        for step in 0..count {
            let kind = self.below(24);
            self.step(kind)
                .map_err(|error| format!("step {step}, kind {kind}: {error}"))?;
        }
        Ok(())
    }

    fn step(&mut self, kind: u64) -> TestResult {
        match kind {
            0..=2 => self.create(),
            3 => self.destroy(),
            4 | 5 => self.map(),
            6 => self.unmap(),
            7 | 8 => self.make_resident(),
            9 => self.evict(),
            10..=12 => self.fill(),
            13..=15 => self.copy(),
            16 => self.write(),
            17 => self.write_by_cpu(),
            18 => self.check(),
            19 => self.change_contexts(),
            20 => self.change_queues(),
            21 => self.close_gate(),
            22 => self.open_gate(),
            _ => self.refused(),
        }
    }

    /// One of the allocations.
    fn any(&mut self) -> Option<usize> {
        match self.memories.len() {
            0 => None,
            count => Some(self.pick(count)),
        }
    }

    /// An allocation that the GPU may use, with one of its views.
    fn usable(&mut self) -> Option<(usize, usize)> {
        let number = self.any()?;
        if !self.memories[number].is_usable() {
            return None;
        }
        let view = self.pick(self.memories[number].views.len());
        Some((number, view))
    }

    fn create(&mut self) -> TestResult {
        if self.memories.len() < MOST {
            let pages = 1 + self.below(PAGES);
            let allocation = self.allocate(pages)?;
            self.memories.push(Memory::new(allocation, pages));
            // Most can be used at once.
            if self.below(4) != 0 {
                let number = self.memories.len() - 1;
                let queue = self.pick(self.queues.len());
                let memory = &mut self.memories[number];
                let value = memory.map(&self.queues[queue], 0..pages)?;
                self.paged(queue, value)?;
                let value = self.memories[number].make_resident(&self.queues[queue], 1)?;
                self.paged(queue, value)?;
            }
        }
        self.count()
    }

    /// Work that uses it may still be queued: it ends behind that.
    fn destroy(&mut self) -> TestResult {
        if let Some(number) = self.any() {
            self.memories.swap_remove(number).allocation.destroy()?;
        }
        self.count()
    }

    fn map(&mut self) -> TestResult {
        let Some(number) = self.any() else {
            return Ok(());
        };
        let pages = self.memories[number].pages;
        let first = self.below(pages);
        let end = first + 1 + self.below(pages - first);
        let queue = self.pick(self.queues.len());
        let value = self.memories[number].map(&self.queues[queue], first..end)?;
        self.paged(queue, value)
    }

    fn unmap(&mut self) -> TestResult {
        let Some(number) = self.any() else {
            return Ok(());
        };
        if self.memories[number].views.is_empty() {
            return Ok(());
        }
        self.settle()?;
        let view = self.pick(self.memories[number].views.len());
        let view = self.memories[number].views.swap_remove(view);
        let adapter = self.gpu.device().adapter();
        Ok(adapter.free_gpu_range(view.address, view.pages * PAGE)?)
    }

    fn make_resident(&mut self) -> TestResult {
        let Some(number) = self.any() else {
            return Ok(());
        };
        let times = 1 + self.dice.below(3);
        let queue = self.pick(self.queues.len());
        let value = self.memories[number].make_resident(&self.queues[queue], times)?;
        self.paged(queue, value)
    }

    fn evict(&mut self) -> TestResult {
        let Some(number) = self.any() else {
            return Ok(());
        };
        let count = self.memories[number].resident;
        if count == 0 {
            return Ok(());
        }
        let times = 1 + self.dice.below(count);
        if times == count {
            self.settle()?;
        }
        let flags = match self.below(2) {
            0 => EvictFlags::empty(),
            _ => EvictFlags::ONLY_IF_NECESSARY,
        };
        self.memories[number].evict(times, flags)
    }

    fn fill(&mut self) -> TestResult {
        let Some((number, view)) = self.usable() else {
            return Ok(());
        };
        let view = self.memories[number].views[view];
        let first = self.below(view.pages * WORDS);
        let count = self.below(view.pages * WORDS - first + 1);
        let value = self.dice.below(u32::MAX);
        let commands = Pm4::new().fill(view.address + 4 * first, value, 4 * count);
        let start = (view.first_page * WORDS + first) as usize;
        self.memories[number].words[start..start + count as usize].fill(value);
        match self.below(8) {
            0 => self.in_hw_queue(&commands),
            _ => self.submit(&commands),
        }
    }

    fn copy(&mut self) -> TestResult {
        let (Some(source), Some(target)) = (self.usable(), self.usable()) else {
            return Ok(());
        };
        // What an overlap holds is not specified.
        if source.0 == target.0 {
            return Ok(());
        }
        let from = self.memories[source.0].views[source.1];
        let to = self.memories[target.0].views[target.1];
        let most = from.pages.min(to.pages) * WORDS;
        let count = self.below(most + 1);
        let first = self.below(from.pages * WORDS - count + 1);
        let second = self.below(to.pages * WORDS - count + 1);
        let commands =
            Pm4::new().copy(to.address + 4 * second, from.address + 4 * first, 4 * count);
        let start = (from.first_page * WORDS + first) as usize;
        let words = self.memories[source.0].words[start..start + count as usize].to_vec();
        let start = (to.first_page * WORDS + second) as usize;
        self.memories[target.0].words[start..start + words.len()].copy_from_slice(&words);
        self.submit(&commands)
    }

    fn write(&mut self) -> TestResult {
        let Some((number, view)) = self.usable() else {
            return Ok(());
        };
        let view = self.memories[number].views[view];
        let count = 1 + self.below(MOST_WORDS);
        let first = self.below(view.pages * WORDS - count + 1);
        let words: Vec<u32> = (0..count).map(|_| self.dice.below(u32::MAX)).collect();
        let commands = Pm4::new().write(view.address + 4 * first, &words);
        let start = (view.first_page * WORDS + first) as usize;
        self.memories[number].words[start..start + words.len()].copy_from_slice(&words);
        self.submit(&commands)
    }

    fn write_by_cpu(&mut self) -> TestResult {
        self.settle()?;
        let Some(number) = self.any() else {
            return Ok(());
        };
        let word = self.dice.below(u32::MAX);
        let pages = self.memories[number].pages;
        let at = self.below(pages * WORDS) as usize;
        let memory = &mut self.memories[number];
        memory
            .allocation
            .lock_write()?
            .write(4 * at, &word.to_le_bytes());
        memory.words[at] = word;
        Ok(())
    }

    fn check(&mut self) -> TestResult {
        self.settle()?;
        self.memories.iter().try_for_each(Memory::check)?;
        self.count()
    }

    fn change_contexts(&mut self) -> TestResult {
        if self.contexts.len() < MOST && self.below(3) != 0 {
            let node = self.dice.below(3);
            let context = self.gpu.device().create_context(node)?;
            self.contexts.push(context);
        } else if self.contexts.len() > 1 {
            // What waits for another queue would be discarded.
            self.settle()?;
            let number = self.pick(self.contexts.len());
            self.contexts.swap_remove(number).destroy()?;
        }
        self.count()
    }

    fn change_queues(&mut self) -> TestResult {
        if self.queues.len() < MOST && self.below(3) != 0 {
            let queue = self.gpu.device().create_paging_queue()?;
            self.queues.push(queue);
        } else if self.queues.len() > 1 {
            self.settle()?;
            let number = self.pick(self.queues.len());
            self.queues.swap_remove(number).destroy()?;
        }
        self.count()
    }
}
