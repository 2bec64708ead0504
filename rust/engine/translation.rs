// SPDX-License-Identifier: GPL-2.0

//! From GPU virtual to physical addresses: the walker, and the cache in front of it (GPU-63,
//! GPU-65, GPU-66).
//!
//! The cache keeps a valid translation until it is invalidated or another one needs its place. It
//! never looks whether the tables have changed. So a flush that is missing somewhere shows.

use super::{
    fault::{
        Cause,
        PageFault, //
    },
    memory::{
        Memory,
        Physical,
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    page_table::Profile, //
};
use crate::platform::{
    places,
    Places, //
};

/// The root of an address space, as SetRootPageTable has it (MEM-59).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The table of the highest level.
    pub table: Physical,
    /// How many entries it has.
    pub entries: u32,
    /// PASID of the process, by which INVALIDATE_TLBS names it. Not [`ALL_PROCESSES`].
    pub process: u16,
}

/// The PASID that stands for all processes.
pub const ALL_PROCESSES: u16 = 0xffff;

/// Whose translations are invalidated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    All,
    /// Those of the process with this PASID.
    Process(u16),
    /// Those that were found from this root table.
    Root(Physical),
}

/// What an access is to do, and who asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether memory is to be written.
    pub write: bool,
    /// Whether pages for the system only are allowed.
    pub system: bool,
}

/// Where an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// What is at this physical address.
    Memory(Physical),
    /// A zero page: reads as 0, and what is stored is dropped (MEM-42).
    Zero,
}

/// How many translations the cache has. A power of two.
pub const SLOTS: usize = 256;

/// So many pages are looked for one by one when they are invalidated.
const FEW: u64 = 16;

/// A translation that was found.
struct Slot {
    page: u64,
    process: u16,
    root: Physical,
    target: Target,
    writable: bool,
    system_only: bool,
}

impl Slot {
    /// Where an access to the page leads to, `offset` bytes from its start.
    fn allow(&self, offset: u64, access: Access) -> Result<Target, Cause> {
        if self.system_only && !access.system {
            return Err(Cause::SystemUseOnly);
        }
        match self.target {
            // Whatever its rights are: what is stored is dropped.
            Target::Zero => Ok(Target::Zero),
            Target::Memory(_) if access.write && !self.writable => Err(Cause::WriteProtected),
            Target::Memory(page) => Ok(Target::Memory(page.plus(offset))),
        }
    }
}

/// The translations that an engine remembers.
pub struct Tlb {
    slots: Places<Slot, SLOTS>,
    profile: Profile,
}

impl Tlb {
    /// An empty one, for tables of this format; `None` if there is no memory. May sleep.
    pub fn new(profile: Profile) -> Option<Self> {
        Some(Self {
            slots: places()?,
            profile,
        })
    }

    /// Where an access of any number of bytes within one page leads to.
    pub fn translate(
        &mut self,
        memory: &impl Memory,
        root: &Root,
        va: u64,
        access: Access,
    ) -> Result<Target, PageFault> {
        let fault = |level, cause| PageFault {
            va,
            write: access.write,
            level,
            cause,
        };
        let page = va >> PAGE_SHIFT;
        let offset = va & (PAGE_SIZE - 1);
        let place = self.slots.get_mut(slot_of(page, root.process));

        if let Some(Some(slot)) = &place {
            if slot.page == page && slot.process == root.process && slot.root == root.table {
                return slot.allow(offset, access).map_err(|cause| fault(0, cause));
            }
        }

        let slot =
            walk(&self.profile, memory, root, va).map_err(|(level, cause)| fault(level, cause))?;
        let target = slot.allow(offset, access).map_err(|cause| fault(0, cause));

        if let Some(place) = place {
            *place = Some(slot);
        }
        target
    }

    /// Forgets the translations of some pages.
    ///
    /// # Arguments
    ///
    /// * `scope` - whose.
    /// * `first`, `last` - an address in the first page, and one in the last one.
    pub fn invalidate(&mut self, scope: Scope, first: u64, last: u64) {
        let pages = first >> PAGE_SHIFT..=last >> PAGE_SHIFT;
        let count = pages.end().saturating_sub(*pages.start());

        // A few pages of one process can be in a few slots only.
        if let (Scope::Process(process), true) = (scope, count < FEW) {
            for page in pages {
                let place = self.slots.get_mut(slot_of(page, process));

                if let Some(place) = place {
                    place.take_if(|slot| slot.page == page && slot.process == process);
                }
            }
            return;
        }
        for place in self.slots.iter_mut() {
            place.take_if(|slot| {
                pages.contains(&slot.page)
                    && match scope {
                        Scope::All => true,
                        Scope::Process(process) => slot.process == process,
                        Scope::Root(root) => slot.root == root,
                    }
            });
        }
    }
}

/// The slot that a page of a process may have. Neighbours have different ones, and the same page
/// of different processes mostly has, too.
fn slot_of(page: u64, process: u16) -> usize {
    let number = page ^ (page >> 9) ^ u64::from(process).wrapping_mul(0x9d);

    // CAST: the remainder is less than SLOTS.
    (number % SLOTS as u64) as usize
}

/// Goes through the tables. On failure, the level that it came to and why it ended there.
fn walk(
    profile: &Profile,
    memory: &impl Memory,
    root: &Root,
    va: u64,
) -> Result<Slot, (u8, Cause)> {
    let slot = |target, writable, system_only| Slot {
        page: va >> PAGE_SHIFT,
        process: root.process,
        root: root.table,
        target,
        writable,
        system_only,
    };
    let top = profile.levels.saturating_sub(1);

    if !profile.has_address(va) || profile.index(va, top) >= root.entries {
        return Err((top, Cause::Range));
    }

    let mut table = root.table;

    for level in (0..profile.levels).rev() {
        let at = profile.entry_at(table, profile.index(va, level));
        let entry = profile.load(memory, at).ok_or((level, Cause::NoMemory))?;

        if !entry.is_valid() {
            return Err((level, Cause::Invalid));
        }
        if entry.is_zero() {
            return Ok(slot(Target::Zero, true, entry.is_system_only()));
        }
        if level == 0 {
            return Ok(slot(
                Target::Memory(entry.target()),
                entry.is_writable(),
                entry.is_system_only(),
            ));
        }
        table = entry.target();
    }
    // A profile without levels.
    Err((0, Cause::Range))
}
