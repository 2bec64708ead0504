// SPDX-License-Identifier: GPL-2.0

//! The paging node at work: it fills and moves bytes of allocations, and changes page tables, by
//! the addresses of the paging process (MEM-60, MEM-66 to MEM-71).
//!
//! One batch at a time. Its memory is shown in the scratch area, the KMD writes commands to the
//! paging buffer, a context of the paging process runs them, and the caller waits. What does not
//! fit the scratch area or the buffer takes several turns (`paging_writer.rs`).
//!
//! A reset may hit the context. Then there is a new one, and the batch comes again, once. A page
//! fault in the paging process is never right: it resets the adapter (MEM-102). Whoever asks is
//! told that it is not done, and has the processor do it. Nothing of the batch runs from then on.

use super::{
    mover::PagingNode,
    paging_engine::{
        PagingEngine,
        Turn, //
    },
    paging_scratch::{
        entry,
        Window, //
    },
    paging_taker::Taker,
    paging_writer::{
        NotDone,
        Writer, //
    },
    table_changes::{
        TableAt,
        TableChanges,
        TableWriter, //
    }, //
};
use crate::{
    ddi::{
        object::{
            self,
            context::{
                Change,
                PagingWork, //
            }, //
        },
        paging::{
            Direction,
            PageTableEntry, //
        },
        segments::SYSTEM_MEMORY, //
    },
    logic::{
        context_allocations,
        gpu_ranges::PAGE,
        paging_log::{
            self,
            Action,
            Kind,
            Operation,
            PAGING_PROCESS, //
        },
        paging_scratch::Scratch,
        table_tree::Shows, //
    },
    sys::mem::pages::PageSource, //
};
use core::ops::Range;
use kernel::sync::Arc;

/// How often a batch is run: again after a reset that has hit its context.
const ATTEMPTS: usize = 2;

/// What is to be done with pages.
enum What<'a> {
    /// They are filled with zeros.
    Clear(&'a object::Allocation),
    /// They get the bytes of others: a segment, and the pages there.
    Copy(&'a object::Allocation, (u32, &'a dyn PageSource)),
    /// The KMD changes all pages of a context allocation, with this number, as long as somebody
    /// wants it.
    Change(u64, Change<'a>, &'a dyn Fn() -> bool),
}

impl<'a> What<'a> {
    fn object(&self) -> u64 {
        match self {
            Self::Clear(allocation) | Self::Copy(allocation, _) => allocation.id(),
            Self::Change(object, ..) => *object,
        }
    }

    /// The process that may know of it. Memory of contexts is none of theirs.
    fn made_for(&self) -> u64 {
        match self {
            Self::Clear(allocation) | Self::Copy(allocation, _) => allocation.made_by,
            Self::Change(..) => 0,
        }
    }

    fn source(&self) -> Option<(u32, &'a dyn PageSource)> {
        match self {
            Self::Copy(_, from) => Some(*from),
            Self::Clear(_) | Self::Change(..) => None,
        }
    }

    /// The same for the KMD, where bytes come from `source` to this segment.
    fn change(&self, source: u64, to: u32) -> Change<'a> {
        match self {
            Self::Clear(allocation) => Change::Fill(allocation, 0),
            Self::Copy(allocation, from) => {
                Change::Transfer(allocation, source, direction(from.0, to))
            }
            Self::Change(_, change, _) => *change,
        }
    }

    /// Whether it is done again after a reset.
    fn is_wanted(&self) -> bool {
        match self {
            Self::Clear(_) | Self::Copy(..) => true,
            Self::Change(.., is_wanted) => is_wanted(),
        }
    }
}

impl PagingEngine {
    /// Has the KMD change a context allocation, whose pages are in a segment. The records have this
    /// number. It is done once more after a reset if `is_wanted` then. False if the adapter is in
    /// error, or about to end.
    ///
    /// Context: may sleep, not inside of the KMD. No lock of contexts or page tables that is not of
    /// the paging process is held.
    pub(super) fn change(
        self: &Arc<Self>,
        number: u64,
        object: u64,
        to: (u32, &dyn PageSource),
        (change, is_wanted): (Change<'_>, &dyn Fn() -> bool),
    ) -> bool {
        let area = self.area();
        // CAST: a usize fits 64 bits.
        let count = to.1.count() as u64;

        let what = What::Change(object, change, is_wanted);

        self.run(number, &what, area, (0, count), to)
    }

    /// Runs a batch: `count` pages from the page `at` of the allocation on.
    fn run(
        self: &Arc<Self>,
        number: u64,
        what: &What<'_>,
        area: u64,
        (at, count): (u64, u64),
        to: (u32, &dyn PageSource),
    ) -> bool {
        let mut turn = self.turn.lock();
        let _batch = self.worker.log.begin_batch(number, what.made_for());
        let from = what.source();
        let parts: u64 = if from.is_some() { 2 } else { 1 };
        // OVERFLOW: the scratch area is small.
        let first = self
            .at
            .scratch
            .first
            .wrapping_add(turn.scratch.take(area, parts.wrapping_mul(count)));
        let destination = first.wrapping_add((parts - 1).wrapping_mul(count));
        let is_broken = self.worker.switches.take_fault();
        let shows = Shows {
            allocation: what.object(),
            offset: at.saturating_mul(PAGE),
        };
        let entry_of = |(segment, pages): (u32, &dyn PageSource), read_only: bool, further: u64| {
            let left = count.saturating_sub(further);

            match device_run(pages, at.saturating_add(further), left) {
                Some((address, pages)) if !is_broken => (entry(segment, address, read_only), pages),
                _ => (PageTableEntry::Invalid, 1),
            }
        };
        let writes = |further| entry_of(to, false, further);
        let reads = |further| match from {
            Some(from) => entry_of(from, true, further),
            None => (PageTableEntry::Invalid, 1),
        };
        let window = |first, entry| Window {
            first,
            count,
            shows,
            entry,
        };
        let windows = [window(first, &reads), window(destination, &writes)];
        // Without a source there is no window for it.
        let windows = windows.get(2 - parts as usize..).unwrap_or_default();

        for window in windows {
            self.log_window(Kind::VaAlloc, number, window);
        }
        if !self.at.by_node {
            self.process.space.show_scratch(number, windows);
        }

        let work = PagingWork {
            offset: shows.offset,
            size: count.saturating_mul(PAGE),
            destination: destination.saturating_mul(PAGE),
            change: what.change(first.saturating_mul(PAGE), to.0),
        };
        let is_done = self.attempt(
            &mut turn,
            number,
            || what.is_wanted(),
            |writer| {
                if self.at.by_node {
                    writer.show(windows)?;
                }
                writer.build(&work, &|| recorded(what.object(), &work))?;
                writer.submit()
            },
        );

        for window in windows {
            self.log_window(Kind::VaFree, number, window);
        }
        is_done
    }

    /// Does a batch, and once more if a reset has hit its context. If it is not done, nothing of it
    /// is done later.
    fn attempt(
        self: &Arc<Self>,
        turn: &mut Turn,
        number: u64,
        is_wanted: impl Fn() -> bool,
        mut body: impl FnMut(&mut Writer<'_>) -> Result<(), NotDone>,
    ) -> bool {
        for _ in 0..ATTEMPTS {
            let Turn { taker, buffer, .. } = turn;

            if taker.as_ref().is_some_and(Taker::is_lost) {
                *taker = None;
            }

            let ready = match taker {
                Some(taker) => taker,
                None => match self.taker() {
                    Ok(new) => taker.insert(new),
                    Err(_) => return false,
                },
            };

            buffer.address = self.buffer_address();
            buffer.begin(self.buffer_dwords());

            let done = body(&mut Writer {
                engine: self,
                taker: ready,
                buffer,
                number,
            });

            match done {
                Ok(()) => return true,
                Err(why) => {
                    *taker = None;
                    if why == NotDone::Failed || !is_wanted() {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Where the paging process shows page tables of the process with this number.
    fn log_tables(&self, kind: Kind, (id, batch): (u64, u64), first: u64, tables: &[TableAt]) {
        for (table, page) in tables.iter().zip(first..) {
            self.worker.log.write(|| Action {
                kind,
                batch,
                process: PAGING_PROCESS,
                object: id,
                level: table.key.level,
                start: table.key.number,
                segment: table.segment,
                offset: table.offset,
                address: page.saturating_mul(PAGE),
                size: PAGE,
                ..Action::default()
            });
        }
    }

    fn log_window(&self, kind: Kind, batch: u64, window: &Window<'_>) {
        self.worker.log.write(|| Action {
            kind,
            batch,
            process: PAGING_PROCESS,
            object: window.shows.allocation,
            source: window.shows.offset,
            address: window.first.saturating_mul(PAGE),
            size: window.count.saturating_mul(PAGE),
            ..Action::default()
        });
    }
}

impl PagingNode for PagingEngine {
    fn clear(
        self: Arc<Self>,
        allocation: &object::Allocation,
        (segment, to): (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool {
        let area = self.area();
        let (mut at, end) = bounds(&pages);

        while at < end {
            let count = Scratch::chunk(area, 1, end.saturating_sub(at));

            let number = self.worker.log.batch();
            let what = What::Clear(allocation);

            if !self.run(number, &what, area, (at, count), (segment, to)) {
                return false;
            }
            at = at.saturating_add(count);
        }
        true
    }

    fn copy(
        self: Arc<Self>,
        allocation: &object::Allocation,
        from: (u32, &dyn PageSource),
        to: (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool {
        let area = self.area();
        let (mut at, end) = bounds(&pages);

        while at < end {
            let most = Scratch::chunk(area, 2, end.saturating_sub(at));
            let count = there(to.1, at, there(from.1, at, most));
            let what = What::Copy(allocation, from);

            if count != 0 && !self.run(self.worker.log.batch(), &what, area, (at, count), to) {
                return false;
            }
            // Without a page that is in both, the next one.
            at = at.saturating_add(count.max(1));
        }
        true
    }
}

impl TableWriter for PagingEngine {
    fn change_tables(
        self: Arc<Self>,
        process: &object::Process,
        (id, number): (u64, u64),
        tables: &[TableAt],
        changes: &TableChanges,
        flush: Option<(u64, u64)>,
    ) -> bool {
        let mut turn = self.turn.lock();
        let _batch = self.worker.log.begin_batch(number, id);
        // CAST: a few.
        let count = tables.len() as u64;
        // OVERFLOW: the scratch area is small.
        let scratch = self.at.scratch;
        let room = scratch.end.saturating_sub(scratch.first);
        let first = scratch.first.wrapping_add(turn.scratch.take(room, count));
        let entry_of = |further: u64| {
            // CAST: it was a usize.
            let table = tables.get(further as usize);

            let entry = table.map_or(PageTableEntry::Invalid, |table| {
                entry(table.segment, table.offset, false)
            });

            (entry, 1)
        };
        let windows = [Window {
            first,
            count,
            shows: Shows::default(),
            entry: &entry_of,
        }];

        self.log_tables(Kind::VaAlloc, (id, number), first, tables);

        let is_done = self.attempt(
            &mut turn,
            number,
            || true,
            |writer| {
                if !tables.is_empty() {
                    writer.show(&windows)?;
                }
                for (key, update) in changes.iter() {
                    let at = tables.iter().position(|table| table.key == key);

                    // It is gone already otherwise.
                    if let Some(at) = at {
                        // CAST: a few.
                        let at = first.saturating_add(at as u64).saturating_mul(PAGE);

                        writer.write_table(process, key.level, at, &update, id)?;
                    }
                }
                if let Some(range) = flush {
                    writer.flush(process, range, id)?;
                }
                writer.submit()
            },
        );

        self.log_tables(Kind::VaFree, (id, number), first, tables);
        is_done
    }
}

/// As [`PageSource::device_run`].
fn device_run(pages: &dyn PageSource, at: u64, most: u64) -> Option<(u64, u64)> {
    // CAST: both were a usize.
    let (address, count) = pages.device_run(at as usize, most as usize)?;

    Some((address, count as u64))
}

/// How many pages are there from one on: at most `most`.
fn there(pages: &dyn PageSource, at: u64, most: u64) -> u64 {
    let mut count = 0u64;

    if pages.is_complete() {
        return most;
    }
    while count < most {
        let left = most.saturating_sub(count);

        match device_run(pages, at.saturating_add(count), left) {
            Some((_, more)) => count = count.saturating_add(more),
            None => break,
        }
    }
    count
}

/// Pages, as numbers.
fn bounds(pages: &Range<usize>) -> (u64, u64) {
    // CAST: a usize fits 64 bits.
    (pages.start as u64, pages.end as u64)
}

fn direction(from: u32, to: u32) -> Direction {
    match (from, to) {
        (SYSTEM_MEMORY, _) => Direction::SystemToLocal,
        (_, SYSTEM_MEMORY) => Direction::LocalToSystem,
        _ => Direction::LocalToLocal,
    }
}

/// What the log says of a direction.
fn flags(direction: Direction) -> u32 {
    match direction {
        Direction::LocalToSystem => paging_log::FROM_SEGMENT,
        Direction::SystemToLocal => paging_log::TO_SEGMENT,
        Direction::LocalToLocal => paging_log::FROM_SEGMENT | paging_log::TO_SEGMENT,
    }
}

/// What a record says of work with bytes.
fn recorded(object: u64, work: &PagingWork<'_>) -> Action {
    let action = Action {
        object,
        source: work.offset,
        address: work.destination,
        size: work.size,
        ..Action::default()
    };

    match work.change {
        Change::Transfer(_, from, direction) => Action {
            operation: Operation::TransferVirtual,
            from,
            flags: flags(direction),
            ..action
        },
        Change::Fill(_, pattern) => Action {
            operation: Operation::FillVirtual,
            pattern,
            ..action
        },
        Change::Init(_, (segment, offset)) => Action {
            operation: Operation::InitContextResource,
            segment,
            offset,
            ..action
        },
        Change::Update(data) => Action {
            operation: Operation::UpdateContextAllocation,
            // CAST: a usize fits 64 bits.
            count: data.len() as u64,
            pattern: context_allocations::checksum(data),
            ..action
        },
        // Page tables have records of their own.
        Change::Nothing | Change::Table(..) | Change::Flush(..) => action,
    }
}
