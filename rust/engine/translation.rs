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
    page_table::{
        Entry,
        Profile, //
    }, //
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

/// How many lines the cache has. A power of two.
pub const LINES: usize = 256;

/// So many lines are looked for one by one when their pages are invalidated: those of a batch of
/// the paging node.
const FEW: u64 = 80;

/// Bits of an address in the memory that a line is for: as much as one large page.
const LINE_SHIFT: u32 = LARGE_PAGE_SHIFT;

/// Bytes of that memory.
const LINE_SIZE: u64 = 1 << LINE_SHIFT;

/// Pages of it, if they are small.
const PAGES: usize = 1 << (LINE_SHIFT - PAGE_SHIFT);

/// Neighbours, whose entries are read together: those of small pages, or that of a large one.
enum Entries {
    /// What is not valid is not known.
    Small([Entry; PAGES]),
    Large(Entry),
}

impl Entries {
    /// The entry of an address, of which the bits within the line count, and the number of bits of
    /// an address in its page; `None` if it is not valid.
    fn get(&self, va: u64) -> Option<(Entry, u32)> {
        let (entry, shift) = match self {
            // CAST: the remainder is small.
            Self::Small(all) => (*all.get((va >> PAGE_SHIFT) as usize % PAGES)?, PAGE_SHIFT),
            Self::Large(entry) => (*entry, LARGE_PAGE_SHIFT),
        };

        entry.is_valid().then_some((entry, shift))
    }

    /// How many bytes follow each other in memory from an address on, whose entry is valid, by
    /// entries that allow the same: up to the end of the line.
    fn run(&self, va: u64) -> u32 {
        let at = va % LINE_SIZE;
        let end = match self {
            Self::Small(all) => {
                // CAST: the remainder is small.
                let first = (at >> PAGE_SHIFT) as usize;
                let pages = Entry::following(all.get(first..).unwrap_or_default());

                // CAST: a few.
                // OVERFLOW: at most all of the line.
                ((first + pages) as u64) << PAGE_SHIFT
            }
            Self::Large(_) => LINE_SIZE,
        };

        // CAST: at most all of the line.
        end.saturating_sub(at) as u32
    }

    /// What was known before stays.
    fn keep(&mut self, known: &Self) {
        if let (Self::Small(all), Self::Small(known)) = (self, known) {
            for (entry, known) in all.iter_mut().zip(known) {
                if known.is_valid() {
                    *entry = *known;
                }
            }
        }
    }
}

/// How many tables of level 0 are remembered.
const TABLES: usize = 4;

/// A table of level 0 that a walk has come to.
#[derive(Clone, Copy)]
struct Table {
    /// Which one.
    number: u64,
    process: u16,
    root: Physical,
    at: Physical,
    /// It has pages of 64 KiB.
    has_large: bool,
}

impl Table {
    /// Whether it is the one with this number from a root.
    fn is_of(&self, number: u64, root: &Root) -> bool {
        self.number == number && self.process == root.process && self.root == root.table
    }
}

/// The translations of neighbours.
struct Line {
    /// Which ones.
    number: u64,
    process: u16,
    root: Physical,
    entries: Entries,
}

impl Line {
    /// Whether it is the one with this number from a root.
    fn is_of(&self, number: u64, root: &Root) -> bool {
        self.number == number && self.process == root.process && self.root == root.table
    }

    /// Whether it is in a scope.
    fn is_in(&self, scope: Scope) -> bool {
        match scope {
            Scope::All => true,
            Scope::Process(process) => self.process == process,
            Scope::Root(root) => self.root == root,
        }
    }

    /// Forgets the pages that have an address of the range from `first` to `last`. Whether that
    /// is all.
    fn forget(&mut self, first: u64, last: u64) -> bool {
        let start = self.number << LINE_SHIFT;
        let end = start | !(u64::MAX << LINE_SHIFT);

        if first > last || end < first || last < start {
            return false;
        }
        match &mut self.entries {
            Entries::Small(all) if start < first || last < end => {
                let first = first.max(start) >> PAGE_SHIFT;
                let last = last.min(end) >> PAGE_SHIFT;

                for number in first..=last {
                    // CAST: the remainder is small.
                    if let Some(entry) = all.get_mut(number as usize % PAGES) {
                        *entry = Entry::INVALID;
                    }
                }
                false
            }
            _ => true,
        }
    }
}

/// The place that a line of a process may have. Neighbours have different ones. The same line of
/// different processes mostly has, too, and so do the two sides of a copy, which are often a power
/// of two apart.
fn place(number: u64, process: u16) -> usize {
    let of_process = u64::from(process).wrapping_mul(0x9d);
    let number = number ^ (number >> 8) ^ (number >> 16) ^ (number >> 24) ^ of_process;

    // CAST: the remainder is less than LINES.
    (number % LINES as u64) as usize
}

/// Where an access by a valid entry of a page with so many bits leads to.
fn allow(entry: Entry, shift: u32, va: u64, access: Access) -> Result<Target, Cause> {
    if entry.is_system_only() && !access.system {
        return Err(Cause::SystemUseOnly);
    }
    // Whatever its rights are: what is stored is dropped.
    if entry.is_zero() {
        return Ok(Target::Zero);
    }
    if access.write && !entry.is_writable() {
        return Err(Cause::WriteProtected);
    }

    let page = entry.target();
    let in_page = !(u64::MAX << shift);

    Ok(Target::Memory(Physical::new(
        page.place,
        (page.address & !in_page) | (va & in_page),
    )))
}

/// The translations that an engine remembers.
pub struct Tlb {
    lines: Places<Line, LINES>,
    tables: [Option<Table>; TABLES],
    profile: Profile,
}

impl Tlb {
    /// An empty one, for tables of this format; `None` if there is no memory. May sleep.
    pub fn new(profile: Profile) -> Option<Self> {
        Some(Self {
            lines: places()?,
            tables: [None; TABLES],
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
        let (entry, shift) = match self.known(root, va) {
            Some(known) => known,
            None => self
                .learn(memory, root, va)
                .map_err(|(level, cause)| fault(level, cause))?,
        };

        allow(entry, shift, va, access).map_err(|cause| fault(0, cause))
    }

    /// The same for an access of more bytes, and how many of them follow each other in memory: at
    /// least those in the first page, at most those of one line.
    pub fn translate_run(
        &mut self,
        memory: &impl Memory,
        root: &Root,
        va: u64,
        bytes: u32,
        access: Access,
    ) -> Result<(Target, u32), PageFault> {
        let fault = |(level, cause)| PageFault {
            va,
            write: access.write,
            level,
            cause,
        };
        let known = |tlb: &Self| {
            let entries = tlb.line(root, va)?;
            let (entry, shift) = entries.get(va)?;

            Some((entry, shift, entries.run(va)))
        };
        let (entry, shift, run) = match known(self) {
            Some(known) => known,
            None => {
                let _found = self.learn(memory, root, va).map_err(fault)?;

                // It is known now.
                known(self).ok_or_else(|| fault((0, Cause::Invalid)))?
            }
        };
        let target = allow(entry, shift, va, access).map_err(|cause| fault((0, cause)))?;

        Ok((target, bytes.min(run)))
    }

    /// What is remembered of an address and of its neighbours.
    fn line(&self, root: &Root, va: u64) -> Option<&Entries> {
        let number = va >> LINE_SHIFT;
        let line = self.lines.get(place(number, root.process))?.as_ref()?;

        line.is_of(number, root).then_some(&line.entries)
    }

    /// The entry of an address, if it is remembered, and the bits of its page.
    fn known(&self, root: &Root, va: u64) -> Option<(Entry, u32)> {
        self.line(root, va)?.get(va)
    }

    /// Looks at the tables, and remembers what they say of an address and of its neighbours.
    #[cold]
    fn learn(
        &mut self,
        memory: &impl Memory,
        root: &Root,
        va: u64,
    ) -> Result<(Entry, u32), (u8, Cause)> {
        let number = va >> LINE_SHIFT;
        let mut entries = match self.table(memory, root, va)? {
            Some(table) => read(&self.profile, memory, &table, va).ok_or((0, Cause::NoMemory))?,
            None => Entries::Small([Entry::ZERO; PAGES]),
        };
        let found = entries.get(va).ok_or((0, Cause::Invalid))?;

        if let Some(place) = self.lines.get_mut(place(number, root.process)) {
            if let Some(line) = place.as_ref().filter(|line| line.is_of(number, root)) {
                entries.keep(&line.entries);
            }
            *place = Some(Line {
                number,
                process: root.process,
                root: root.table,
                entries,
            });
        }
        Ok(found)
    }

    /// The table of level 0 of an address, if it is remembered, or that the tables above lead to;
    /// `None` if they say that there are zero pages. On failure, the level that the walk came to
    /// and why it ended there.
    fn table(
        &mut self,
        memory: &impl Memory,
        root: &Root,
        va: u64,
    ) -> Result<Option<Table>, (u8, Cause)> {
        let number = va >> self.profile.shift(1);
        // CAST: the remainder is small.
        let place = number as usize % TABLES;
        let known = self.tables.get(place).copied().flatten();

        if let Some(known) = known.filter(|known| known.is_of(number, root)) {
            return Ok(Some(known));
        }

        let found = walk(&self.profile, memory, root, va)?;

        if let (Some(place), Some(found)) = (self.tables.get_mut(place), found) {
            *place = Some(found);
        }
        Ok(found)
    }

    /// Forgets the translations of some pages.
    ///
    /// # Arguments
    ///
    /// * `scope` - whose.
    /// * `first`, `last` - an address in the first page, and one in the last one.
    pub fn invalidate(&mut self, scope: Scope, first: u64, last: u64) {
        // All of each page.
        let first = first & (u64::MAX << PAGE_SHIFT);
        let last = last | !(u64::MAX << PAGE_SHIFT);
        let forget = |line: &mut Line| line.is_in(scope) && line.forget(first, last);
        let numbers = first >> LINE_SHIFT..=last >> LINE_SHIFT;

        // A table may have been taken out.
        self.tables = [None; TABLES];

        let count = numbers.end().saturating_sub(*numbers.start());

        // A few lines of one process can be in a few places only.
        if let (Scope::Process(process), true) = (scope, count < FEW) {
            for number in numbers {
                if let Some(place) = self.lines.get_mut(place(number, process)) {
                    place.take_if(forget);
                }
            }
            return;
        }
        for place in self.lines.iter_mut() {
            place.take_if(forget);
        }
    }
}

/// Goes through the tables to that of level 0; `None` if they say that there are zero pages. On
/// failure, the level that it came to and why it ended there.
fn walk(
    profile: &Profile,
    memory: &impl Memory,
    root: &Root,
    va: u64,
) -> Result<Option<Table>, (u8, Cause)> {
    let top = profile.levels.saturating_sub(1);

    if !profile.has_address(va) || profile.index(va, top) >= root.entries {
        return Err((top, Cause::Range));
    }

    let mut table = Table {
        number: va >> profile.shift(1),
        process: root.process,
        root: root.table,
        at: root.table,
        has_large: false,
    };

    for level in (1..profile.levels).rev() {
        let at = profile.entry_at(table.at, profile.index(va, level));
        let entry = profile.load(memory, at).ok_or((level, Cause::NoMemory))?;

        if !entry.is_valid() {
            return Err((level, Cause::Invalid));
        }
        if entry.is_zero() {
            return Ok(None);
        }
        table.at = entry.target();
        table.has_large = level == 1 && entry.leads_to_large_pages();
    }
    Ok(Some(table))
}

/// Reads the entries of the line of an address, which need not be valid; `None` if there is no
/// memory.
fn read(profile: &Profile, memory: &impl Memory, table: &Table, va: u64) -> Option<Entries> {
    if table.has_large {
        let at = profile.entry_at(table.at, profile.large_index(va));

        return profile.load(memory, at).map(Entries::Large);
    }

    // The first page of the line.
    let first = profile.index(va & (u64::MAX << LINE_SHIFT), 0);

    profile
        .load_all(memory, profile.entry_at(table.at, first))
        .map(Entries::Small)
}
