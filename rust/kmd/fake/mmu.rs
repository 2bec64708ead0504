// SPDX-License-Identifier: GPL-2.0

//! Page tables of a double that an engine would walk: those of another adapter than the software
//! one, so that tests see what the OS part takes for granted (MEM-52).
//!
//! The double writes entries to memory, and a test goes through them as an engine of a context
//! does, with a cache that forgets only what is flushed. What the OS part promises is checked: see
//! [`Broken`]. An entry that nobody has written leads somewhere: its lowest bit says that it is
//! *not* valid.

use super::journal::{
    Broken,
    Journal, //
};
use crate::{
    ddi::{
        caps::{
            GpuMmuCaps,
            PageTableLevel,
            MAX_PAGE_TABLE_LEVELS, //
        },
        paging::{
            PageSize,
            PageTableEntry,
            RootPageTable,
            TableAddress,
            UpdatePageTable, //
        },
        segments::SYSTEM_MEMORY, //
    },
    engine::{
        memory::{
            Physical,
            Place,
            PAGE_SHIFT,
            PAGE_SIZE, //
        },
        page_table::{
            Entry,
            Profile, //
        }, //
    },
    platform::{
        self,
        Boxed,
        PhysicalMemory,
        Shared,
        ShortLock,
        Word64, //
    }, //
};
use core::array;

/// How many contexts there can be in one test, how many translations are remembered, and how many
/// tables are looked at when they go.
const CONTEXTS: usize = 16;
const CACHED: usize = 256;
const GONE: usize = 64;

/// The bit that says whether an entry is valid, which the double turns round.
const TURNED: u64 = 1;

/// What kind of page tables it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// `doc2`: two levels, of which the root is resizable, and entries of 4 bytes. The size of a
    /// root is rounded up to so many entries.
    Doc2 { rounds_to: u32 },
    /// `uma`: four levels, no memory of its own.
    Uma,
}

/// What it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// `PageTableUpdateRequireAddressSpaceIdle`.
    pub idle: bool,
    /// `InvalidTlbEntriesNotCached`.
    pub invalid_not_cached: bool,
    /// `ExplicitPageTableInvalidation`.
    pub explicit_invalidation: bool,
    /// Tables of pages of 64 KiB.
    pub pages_64kb: bool,
}

/// What a context finds at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A valid entry that leads to this.
    Page(Entry),
    /// No valid entry in a table of this level.
    Fault(u8),
    /// Its context does not run.
    Suspended,
}

#[derive(Clone, Copy)]
struct Context {
    cookie: u64,
    id: u64,
    process: u64,
    root: Option<RootPageTable>,
    suspended: bool,
    /// It has had work, so that its root must not change under it.
    has_run: bool,
}

#[derive(Clone, Copy)]
struct Cached {
    process: u64,
    page: u64,
    found: Found,
}

struct State {
    contexts: [Option<Context>; CONTEXTS],
    cached: Boxed<[Option<Cached>; CACHED]>,
    /// The next place for one.
    next: usize,
    /// Tables that nothing leads to any more, and their process: until the flush.
    gone: [Option<(u64, Physical, u32)>; GONE],
}

/// The page tables of a double. The test and the double share it.
pub struct Mmu {
    journal: Shared<Journal>,
    tables: Tables,
    wishes: Wishes,
    memory: PhysicalMemory,
    state: ShortLock<State>,
}

impl Tables {
    fn profile(self) -> Profile {
        match self {
            Self::Doc2 { .. } => Profile::DOC2,
            Self::Uma => Profile::VRAM4,
        }
    }
}

impl Mmu {
    /// Page tables of the double with this journal, in which calls are only counted from now on;
    /// `None` if there is no memory. May sleep.
    pub fn new(journal: &Shared<Journal>, tables: Tables, wishes: Wishes) -> Option<Self> {
        let state = State {
            contexts: [None; CONTEXTS],
            cached: platform::none_array()?,
            next: 0,
            gone: [None; GONE],
        };

        journal.forget_calls();
        Some(Self {
            journal: journal.clone(),
            tables,
            wishes,
            memory: PhysicalMemory::new(None),
            state: platform::short_lock!(state, "fake::Mmu::state")?,
        })
    }

    /// What an engine finds that does an access for the context with this id.
    pub fn access(&self, id: u64, address: u64) -> Found {
        let page = address >> PAGE_SHIFT;
        let (process, root) = {
            let mut state = self.state.lock();
            let context = state
                .contexts
                .iter_mut()
                .flatten()
                .find(|context| context.id == id);
            let Some((context, root)) =
                context.and_then(|context| context.root.map(|root| (context, root)))
            else {
                return Found::Suspended;
            };

            if context.suspended {
                return Found::Suspended;
            }
            context.has_run = true;

            let process = context.process;
            let known = state
                .cached
                .iter()
                .flatten()
                .find(|cached| (cached.process, cached.page) == (process, page));

            if let Some(known) = known {
                return known.found;
            }
            (process, root)
        };
        let found = self.walk(&root, page);

        if !self.wishes.invalid_not_cached || matches!(found, Found::Page(_)) {
            self.remember(Cached {
                process,
                page,
                found,
            });
        }
        found
    }

    /// The context with this id does not run any more, of which the test tells the OS part.
    pub fn suspended(&self, id: u64) {
        let mut state = self.state.lock();

        for context in state.contexts.iter_mut().flatten() {
            if context.id == id {
                context.suspended = true;
            }
        }
    }

    /// How many entries the root of the context with this id has.
    pub fn root_entries(&self, id: u64) -> u32 {
        let state = self.state.lock();
        let context = state
            .contexts
            .iter()
            .flatten()
            .find(|context| context.id == id);

        context
            .and_then(|context| context.root)
            .map_or(0, |root| root.entries)
    }

    fn remember(&self, cached: Cached) {
        let mut state = self.state.lock();
        let place = state.next;

        // OVERFLOW: a test makes few accesses.
        state.next = place.wrapping_add(1) % CACHED;
        if let Some(place) = state.cached.get_mut(place) {
            *place = Some(cached);
        }
    }

    /// Goes through the tables.
    fn walk(&self, root: &RootPageTable, page: u64) -> Found {
        let profile = self.tables.profile();
        let top = profile.levels.saturating_sub(1);
        let address = page << PAGE_SHIFT;
        let mut table = Physical::new(Place::System, root.address);
        let mut is_64kb = false;

        if !profile.has_address(address) || profile.index(address, top) >= root.entries {
            return Found::Fault(top);
        }
        for level in (0..profile.levels).rev() {
            let index = match level == 0 && is_64kb {
                true => profile.large_index(address),
                false => profile.index(address, level),
            };

            match self.load(table, index) {
                Some(entry) if entry.is_valid() && level == 0 => {
                    return Found::Page(part_of(entry, is_64kb, page));
                }
                Some(entry) if entry.is_valid() && !entry.is_zero() => {
                    table = entry.target();
                    is_64kb = level == 1 && entry.leads_to_large_pages();
                }
                _ => return Found::Fault(level),
            }
        }
        Found::Fault(0)
    }

    /// The entry of a table with this index.
    fn load(&self, table: Physical, index: u32) -> Option<Entry> {
        let profile = self.tables.profile();
        let turned = profile.load(&self.memory, profile.entry_at(table, index))?;

        Some(Entry::from_bits(turned.bits() ^ TURNED))
    }

    /// Says what it has.
    pub(super) fn change_caps(&self, caps: &mut GpuMmuCaps) {
        let profile = self.tables.profile();
        let level = PageTableLevel {
            index_bits: profile.index_bits.into(),
            // CAST: a page.
            table_bytes: profile.table_bytes() as u32,
            segment: SYSTEM_MEMORY,
            paging_process_segment: SYSTEM_MEMORY,
        };

        *caps = GpuMmuCaps {
            address_bits: profile.va_bits(),
            read_only: true,
            cache_coherent: true,
            page_table_update_require_address_space_idle: self.wishes.idle,
            invalid_tlb_entries_not_cached: self.wishes.invalid_not_cached,
            explicit_page_table_invalidation: self.wishes.explicit_invalidation,
            leaf_table_bytes_64kb: match self.wishes.pages_64kb {
                // OVERFLOW: less than a page.
                true => profile
                    .large_entries()
                    .wrapping_mul(profile.entry_bytes.into()),
                false => 0,
            },
            page_table_levels: profile.levels.into(),
            levels: array::from_fn::<_, MAX_PAGE_TABLE_LEVELS, _>(|number| {
                if number < usize::from(profile.levels) {
                    level
                } else {
                    PageTableLevel::default()
                }
            }),
            ..GpuMmuCaps::default()
        };
    }

    /// GetRootPageTableSize.
    pub(super) fn root_size(&self, entries: &mut u32) -> u32 {
        if let Tables::Doc2 { rounds_to } = self.tables {
            *entries = entries.checked_next_multiple_of(rounds_to).unwrap_or(0);
        }
        // OVERFLOW: what is too large is for the OS part to see.
        entries.wrapping_mul(self.tables.profile().entry_bytes.into())
    }

    pub(super) fn add(&self, cookie: u64, id: u64, process: u64) {
        let mut state = self.state.lock();

        match state.contexts.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(Context {
                    cookie,
                    id,
                    process,
                    root: None,
                    suspended: false,
                    has_run: false,
                });
            }
            None => self.journal.too_many(),
        }
    }

    pub(super) fn remove(&self, cookie: u64) {
        for place in &mut self.state.lock().contexts {
            place.take_if(|context| context.cookie == cookie);
        }
    }

    /// The context does not run, or runs again.
    pub(super) fn set_suspended(&self, cookie: u64, suspended: bool) {
        let mut state = self.state.lock();

        for context in state.contexts.iter_mut().flatten() {
            if context.cookie == cookie {
                context.suspended = suspended;
            }
        }
    }

    /// SetRootPageTable.
    pub(super) fn set_root(&self, cookie: u64, root: &RootPageTable) {
        let mut state = self.state.lock();

        for context in state.contexts.iter_mut().flatten() {
            if context.cookie == cookie {
                if context.has_run && !context.suspended {
                    self.journal.break_rule(Broken::NotIdle);
                }
                context.root = Some(*root);
            }
        }
    }

    /// Entries are to be written, or translations flushed: nobody runs, if that is wanted.
    fn check_idle(&self, process: u64) {
        if self.wishes.idle && self.runs(process) {
            self.journal.break_rule(Broken::NotIdle);
        }
    }

    /// Whether a context of a process runs, or may: one without a root cannot.
    fn runs(&self, process: u64) -> bool {
        let state = self.state.lock();
        let runs = |context: &Context| {
            context.process == process && context.root.is_some() && !context.suspended
        };

        state.contexts.iter().flatten().any(runs)
    }

    /// UpdatePageTable.
    pub(super) fn update(&self, update: &UpdatePageTable<'_>) {
        let profile = self.tables.profile();
        let TableAddress::CpuVirtual(table) = update.table else {
            self.journal.bad_value();
            return;
        };

        self.check_idle(update.process.0);
        for (index, entry) in (update.start..).zip(update.entries.iter()) {
            let bits = encode(&entry).bits();

            if profile.entry_bytes == 4 && u32::try_from(bits).is_err() {
                self.journal.bad_value();
            }

            let old = write(&profile, table, index, bits ^ TURNED);
            let Some(old) = old else {
                self.journal.bad_value();
                return;
            };
            let old = Entry::from_bits(old ^ TURNED);

            if update.level != 0 && !update.initial_update {
                self.check_table(update, old, encode(&entry));
            }
        }
    }

    /// An entry of a higher level changes: what it leads to now says nothing wrong.
    fn check_table(&self, update: &UpdatePageTable<'_>, old: Entry, new: Entry) {
        let profile = self.tables.profile();
        let entries = match new.is_valid() && new.leads_to_large_pages() {
            true => profile.large_entries(),
            false => profile.entries(),
        };
        let first = |table: Physical, index| {
            self.load(table, index)
                .is_none_or(|entry| entry.is_valid() && entry.target().address == 0)
        };

        // MEM-53: frame 0 is what a table leads to that nobody has initialised.
        if new.is_valid() && (0..entries).any(|index| first(new.target(), index)) {
            self.journal.break_rule(Broken::Uninitialised);
        }
        // MEM-57: who may look at a table finds it as its entry says.
        if old.is_valid()
            && new.is_valid()
            && old.leads_to_large_pages() != new.leads_to_large_pages()
            && (new.leads_to_large_pages() || self.runs(update.process.0))
        {
            self.journal.break_rule(Broken::NotIdle);
        }
        // When a root moves, its tables stay.
        if old.is_valid() && !new.is_valid() && !update.notify_eviction {
            let mut state = self.state.lock();
            let entries = match old.leads_to_large_pages() {
                true => profile.large_entries(),
                false => entries,
            };
            let gone = Some((update.process.0, old.target(), entries));

            if let Some(place) = state.gone.iter_mut().find(|place| place.is_none()) {
                *place = gone;
            }
        }
    }

    /// FlushTlb.
    pub(super) fn flush(&self, process: u64, first: u64, last: u64) {
        let all = first == 0 && last == 0;
        let pages = first >> PAGE_SHIFT..last.div_ceil(PAGE_SIZE);
        let gone = {
            let mut state = self.state.lock();
            let mut gone = [None; GONE];

            for place in state.cached.iter_mut() {
                place.take_if(|cached| {
                    cached.process == process && (all || pages.contains(&cached.page))
                });
            }
            for (place, gone) in state.gone.iter_mut().zip(&mut gone) {
                *gone = place.take_if(|(owner, _, _)| *owner == process);
            }
            gone
        };

        self.check_idle(process);
        for (_, table, entries) in gone.into_iter().flatten() {
            let valid = |index| self.load(table, index).is_none_or(Entry::is_valid);

            // Who may still look at a table that is gone is told of all of them.
            if !all || self.wishes.explicit_invalidation && (0..entries).any(valid) {
                self.journal.break_rule(Broken::TableInUse);
            }
        }
    }
}

/// The entry that a table of pages of 4 KiB would have for `page`, instead of one of 64 KiB.
fn part_of(entry: Entry, is_64kb: bool, page: u64) -> Entry {
    if !is_64kb || entry.is_zero() {
        return entry;
    }

    let offset = (page % PageSize::Kib64.pages()) << PAGE_SHIFT;
    let part = Entry::to(entry.target().plus(offset));

    match entry.is_writable() {
        true => part.writable(),
        false => part,
    }
}

/// The format of an entry.
fn encode(entry: &PageTableEntry) -> Entry {
    match entry {
        PageTableEntry::Invalid => Entry::INVALID,
        PageTableEntry::Zero => Entry::ZERO,
        PageTableEntry::Page(page) => {
            let entry = Entry::to(Physical::new(Place::System, page.address));
            let entry = match page.read_only {
                true => entry,
                false => entry.writable(),
            };

            match page.page_size {
                PageSize::Kib4 => entry,
                PageSize::Kib64 => entry.to_large_pages(),
            }
        }
    }
}

/// Writes an entry, and returns what was there; `None` if the table has no such one.
fn write(profile: &Profile, table: &[Word64], index: u32, bits: u64) -> Option<u64> {
    // CAST: 32 bits fit a usize.
    let index = index as usize;

    if profile.entry_bytes != 4 {
        let word = table.get(index)?;
        let old = platform::load_acquire(word);

        platform::store_release(word, bits);
        return Some(old);
    }

    // Nobody else writes to the table at the same time.
    let word = table.get(index / 2)?;
    let old = platform::load_acquire(word);
    let shift = if index % 2 == 0 { 0 } else { 32 };
    let mask = u64::from(u32::MAX) << shift;

    platform::store_release(word, (old & !mask) | (bits << shift));
    Some((old & mask) >> shift)
}
