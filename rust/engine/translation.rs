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
        LARGE_PAGE_SHIFT,
        PAGE_SHIFT, //
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

/// A page as the cache numbers it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Page {
    number: u64,
    /// Whether it is one of 64 KiB, which are counted by themselves.
    is_large: bool,
}

impl Page {
    fn small(va: u64) -> Self {
        Self {
            number: va >> PAGE_SHIFT,
            is_large: false,
        }
    }

    fn large(va: u64) -> Self {
        Self {
            number: va >> LARGE_PAGE_SHIFT,
            is_large: true,
        }
    }

    fn shift(self) -> u32 {
        if self.is_large {
            LARGE_PAGE_SHIFT
        } else {
            PAGE_SHIFT
        }
    }

    /// Where the page is whose entry leads to `target`, rounded down to pages of 4 KiB.
    fn start(self, target: Physical) -> Physical {
        Physical::new(target.place, target.address & (u64::MAX << self.shift()))
    }

    /// Whether it has an address of the range from `first` to `last`.
    fn meets(self, first: u64, last: u64) -> bool {
        let pages = first >> self.shift()..=last >> self.shift();

        pages.contains(&self.number)
    }

    /// The slot that this page of a process may have. Neighbours have different ones, and the same
    /// page of different processes mostly has, too.
    fn slot(self, process: u16) -> usize {
        let of_process = u64::from(process).wrapping_mul(0x9d);
        let number = self.number ^ (self.number >> 9) ^ of_process;

        // CAST: the remainder is less than SLOTS.
        (number % SLOTS as u64) as usize
    }
}

/// A translation that was found.
struct Slot {
    page: Page,
    process: u16,
    root: Physical,
    target: Target,
    writable: bool,
    system_only: bool,
}

impl Slot {
    /// Whether it is the translation of a page from a root.
    fn is_of(&self, page: Page, root: &Root) -> bool {
        self.page == page && self.process == root.process && self.root == root.table
    }

    /// Where an access to an address in the page leads to.
    fn allow(&self, va: u64, access: Access) -> Result<Target, Cause> {
        if self.system_only && !access.system {
            return Err(Cause::SystemUseOnly);
        }
        match self.target {
            // Whatever its rights are: what is stored is dropped.
            Target::Zero => Ok(Target::Zero),
            Target::Memory(_) if access.write && !self.writable => Err(Cause::WriteProtected),
            Target::Memory(page) => {
                let offset = va & !(u64::MAX << self.page.shift());

                Ok(Target::Memory(page.plus(offset)))
            }
        }
    }
}

/// The translations that an engine remembers.
pub struct Tlb {
    slots: Places<Slot, SLOTS>,
    /// Whether one may be of a large page.
    has_large: bool,
    profile: Profile,
}

impl Tlb {
    /// An empty one, for tables of this format; `None` if there is no memory. May sleep.
    pub fn new(profile: Profile) -> Option<Self> {
        Some(Self {
            slots: places()?,
            has_large: false,
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
        let known = self.known(Page::small(va), root).or_else(|| {
            self.has_large
                .then(|| self.known(Page::large(va), root))
                .flatten()
        });

        if let Some(slot) = known {
            return slot.allow(va, access).map_err(|cause| fault(0, cause));
        }

        let slot =
            walk(&self.profile, memory, root, va).map_err(|(level, cause)| fault(level, cause))?;
        let target = slot.allow(va, access).map_err(|cause| fault(0, cause));

        self.has_large |= slot.page.is_large;
        if let Some(place) = self.slots.get_mut(slot.page.slot(root.process)) {
            *place = Some(slot);
        }
        target
    }

    /// The translation of a page, if it is remembered.
    fn known(&self, page: Page, root: &Root) -> Option<&Slot> {
        self.slots
            .get(page.slot(root.process))?
            .as_ref()
            .filter(|slot| slot.is_of(page, root))
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
            for number in pages {
                let va = number << PAGE_SHIFT;

                for page in [Page::small(va), Page::large(va)] {
                    if let Some(place) = self.slots.get_mut(page.slot(process)) {
                        place.take_if(|slot| slot.page == page && slot.process == process);
                    }
                }
            }
            return;
        }
        for place in self.slots.iter_mut() {
            place.take_if(|slot| {
                slot.page.meets(first, last)
                    && match scope {
                        Scope::All => true,
                        Scope::Process(process) => slot.process == process,
                        Scope::Root(root) => slot.root == root,
                    }
            });
        }
    }
}

/// Goes through the tables. On failure, the level that it came to and why it ended there.
fn walk(
    profile: &Profile,
    memory: &impl Memory,
    root: &Root,
    va: u64,
) -> Result<Slot, (u8, Cause)> {
    let slot = |page, target, writable, system_only| Slot {
        page,
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
    let mut page = Page::small(va);

    for level in (0..profile.levels).rev() {
        let index = match (level, page.is_large) {
            (0, true) => profile.large_index(va),
            _ => profile.index(va, level),
        };
        let at = profile.entry_at(table, index);
        let entry = profile.load(memory, at).ok_or((level, Cause::NoMemory))?;

        if !entry.is_valid() {
            return Err((level, Cause::Invalid));
        }
        if entry.is_zero() {
            return Ok(slot(page, Target::Zero, true, entry.is_system_only()));
        }
        if level == 0 {
            return Ok(slot(
                page,
                Target::Memory(page.start(entry.target())),
                entry.is_writable(),
                entry.is_system_only(),
            ));
        }
        table = entry.target();
        if level == 1 && entry.leads_to_large_pages() {
            page = Page::large(va);
        }
    }
    // A profile without levels.
    Err((0, Cause::Range))
}
