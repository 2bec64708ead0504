// SPDX-License-Identifier: GPL-2.0

//! Memory as a queue sees it: every access goes through its page tables (GPU-65).

use super::{
    fault::{
        Cause,
        PageFault, //
    },
    memory::{
        Memory,
        Physical,
        PAGE_SIZE, //
    },
    translation::{
        Access,
        Root,
        Target,
        Tlb, //
    },
};

/// The address space of a queue, with its rights. Words are at addresses aligned to their size.
pub(super) struct Space<'a, M> {
    pub(super) memory: &'a M,
    pub(super) tlb: &'a mut Tlb,
    pub(super) root: Root,
    /// Whether pages for the system only may be used.
    pub(super) system: bool,
}

/// The fault of an access to a page that leads to where no memory is.
fn no_memory(va: u64, write: bool) -> PageFault {
    PageFault {
        va,
        write,
        level: 0,
        cause: Cause::NoMemory,
    }
}

/// How many of some bytes are in the page of an address.
pub(super) fn within_page(va: u64, bytes: u32) -> u32 {
    // CAST: at most the size of a page.
    bytes.min((PAGE_SIZE - va % PAGE_SIZE) as u32)
}

impl<M: Memory> Space<'_, M> {
    /// The same space with the rights of the system.
    pub(super) fn as_system(&mut self) -> Space<'_, M> {
        Space {
            memory: self.memory,
            tlb: self.tlb,
            root: self.root,
            system: true,
        }
    }

    /// Where an address leads to.
    fn find(&mut self, va: u64, write: bool) -> Result<Target, PageFault> {
        let access = Access {
            write,
            system: self.system,
        };

        self.tlb.translate(self.memory, &self.root, va, access)
    }

    /// The same for more bytes, and how many of them follow each other there.
    fn find_run(&mut self, va: u64, bytes: u32, write: bool) -> Result<(Target, u32), PageFault> {
        let access = Access {
            write,
            system: self.system,
        };

        self.tlb
            .translate_run(self.memory, &self.root, va, bytes, access)
    }

    /// Loads by `load`, or a 0 of a zero page.
    fn load<T: Default>(
        &mut self,
        va: u64,
        load: impl FnOnce(&M, Physical) -> Option<T>,
    ) -> Result<T, PageFault> {
        match self.find(va, false)? {
            Target::Memory(at) => load(self.memory, at).ok_or(no_memory(va, false)),
            Target::Zero => Ok(T::default()),
        }
    }

    /// Writes by `write`, or drops what would go to a zero page.
    fn write(
        &mut self,
        va: u64,
        write: impl FnOnce(&M, Physical) -> Option<()>,
    ) -> Result<(), PageFault> {
        match self.find(va, true)? {
            Target::Memory(at) => write(self.memory, at).ok_or(no_memory(va, true)),
            Target::Zero => Ok(()),
        }
    }

    pub(super) fn load32(&mut self, va: u64) -> Result<u32, PageFault> {
        self.load(va, M::load32)
    }

    /// Loads dwords that are in one page.
    pub(super) fn load32s(&mut self, va: u64, to: &mut [u32]) -> Result<(), PageFault> {
        match self.find(va, false)? {
            Target::Memory(at) => self.memory.load32s(at, to).ok_or(no_memory(va, false)),
            Target::Zero => {
                to.fill(0);
                Ok(())
            }
        }
    }

    pub(super) fn load64(&mut self, va: u64) -> Result<u64, PageFault> {
        self.load(va, M::load64)
    }

    pub(super) fn store32(&mut self, va: u64, value: u32) -> Result<(), PageFault> {
        self.write(va, |memory, at| memory.store32(at, value))
    }

    pub(super) fn store64(&mut self, va: u64, value: u64) -> Result<(), PageFault> {
        self.write(va, |memory, at| memory.store64(at, value))
    }

    /// Stores words that are in one page, each more by `increment` than the one before.
    pub(super) fn store64s(
        &mut self,
        va: u64,
        first: u64,
        increment: u64,
        count: u32,
    ) -> Result<(), PageFault> {
        self.write(va, |memory, at| {
            memory.store64s(at, first, increment, count)
        })
    }

    /// A store that nobody sees before those that came before it.
    pub(super) fn store64_release(&mut self, va: u64, value: u64) -> Result<(), PageFault> {
        self.write(va, |memory, at| memory.store64_release(at, value))
    }

    /// A store of which others may hear late, see [`Memory::store64_late`].
    pub(super) fn store64_late(&mut self, va: u64, value: u64) -> Result<(), PageFault> {
        self.write(va, |memory, at| memory.store64_late(at, value))
    }

    /// Replaces `old` by `new` in one access. What was there before.
    pub(super) fn compare_exchange64(
        &mut self,
        va: u64,
        old: u64,
        new: u64,
    ) -> Result<u64, PageFault> {
        match self.find(va, true)? {
            Target::Memory(at) => self
                .memory
                .compare_exchange64(at, old, new)
                .ok_or(no_memory(va, true)),
            Target::Zero => Ok(0),
        }
    }

    /// Copies as many of some bytes as follow each other in memory on both sides, and says how many
    /// that were.
    ///
    /// Both sides are looked at before the first byte is moved.
    pub(super) fn copy_some(&mut self, from: u64, to: u64, bytes: u32) -> Result<u32, PageFault> {
        let (source, some) = self.find_run(from, bytes, false)?;
        let (target, some) = self.find_run(to, some, true)?;
        let moved = match (source, target) {
            (_, Target::Zero) => Some(some),
            (Target::Memory(source), Target::Memory(target)) => {
                self.memory.copy(source, target, some)
            }
            (Target::Zero, Target::Memory(target)) => self.memory.fill(target, 0, some),
        };

        // Which side has no memory is for the memory to know. The source can be asked.
        moved.ok_or_else(|| match source {
            Target::Memory(at) if self.memory.load32(aligned(at)).is_none() => {
                no_memory(from, false)
            }
            _ => no_memory(to, true),
        })
    }

    /// Fills as many of some bytes as follow each other in memory, and says how many that were.
    pub(super) fn fill_some(
        &mut self,
        to: u64,
        pattern: u32,
        bytes: u32,
    ) -> Result<u32, PageFault> {
        match self.find_run(to, bytes, true)? {
            (Target::Memory(at), some) => self
                .memory
                .fill(at, pattern, some)
                .ok_or(no_memory(to, true)),
            (Target::Zero, some) => Ok(some),
        }
    }
}

/// The word that a byte is in.
fn aligned(at: Physical) -> Physical {
    Physical::new(at.place, at.address & !3)
}
