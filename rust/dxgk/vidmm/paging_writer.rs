// SPDX-License-Identifier: GPL-2.0

//! One batch of the paging node: the KMD writes commands to the paging buffer, and the buffer is
//! submitted when it is full, and at the end.

use super::{
    paging_engine::PagingEngine,
    paging_scratch::Window,
    paging_taker::{
        Taker,
        Told, //
    },
    table_changes, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        object::{
            context::{
                Change,
                PagingWork, //
            },
            TableUpdate, //
        },
        paging::{
            Built,
            PageSize,
            PageTableEntry,
            PagingBuffer,
            TableAddress,
            MAX_ENTRIES, //
        },
        queue::Submission, //
    },
    logic::{
        gpu_ranges::PAGE,
        paging_log::{
            Action,
            Kind,
            Operation,
            PAGING_PROCESS, //
        },
        table_tree::{
            entries_of,
            Update, //
        }, //
    },
    platform::store_release,
    sys::time::now_ns, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// Why a batch is not done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NotDone {
    /// A reset has hit the context: it may be done once more.
    Lost,
    /// The adapter is in error, or removed.
    Failed,
}

/// One batch, while it is written.
pub(super) struct Writer<'a> {
    pub(super) engine: &'a Arc<PagingEngine>,
    pub(super) taker: &'a mut Taker,
    pub(super) buffer: &'a mut PagingBuffer,
    /// The number of its records.
    pub(super) number: u64,
}

impl Writer<'_> {
    /// BuildPagingBuffer of one operation, which has this record. Submits what is in the buffer if
    /// there is no room.
    pub(super) fn build(
        &mut self,
        work: &PagingWork<'_>,
        action: &dyn Fn() -> Action,
    ) -> Result<(), NotDone> {
        self.buffer.multipass_offset = 0;
        loop {
            let room = self.buffer.room();
            let built = self.build_once(work, action)?;
            let is_empty = self.buffer.room() == room;

            match built {
                // There may be nothing to initialise.
                Built::All if !is_empty || matches!(work.change, Change::Init(..)) => {
                    return Ok(());
                }
                Built::InsufficientDmaBuffer if !self.buffer.written().is_empty() => {
                    self.submit()?;
                }
                // It would come again for ever, or has failed.
                _ => return Err(self.fails()),
            }
        }
    }

    fn build_once(
        &mut self,
        work: &PagingWork<'_>,
        action: &dyn Fn() -> Action,
    ) -> Result<Built, NotDone> {
        let class = Passive::here();
        let engine = self.engine;
        let mut attempt = || {
            engine.worker.log.write(|| Action {
                batch: self.number,
                ..action()
            });
            if let Some(built) = engine.worker.switches.take_build() {
                return Ok(built);
            }
            self.taker
                .context
                .build(&class, work, self.buffer)
                .map_err(|_| NotDone::Failed)
        };
        let built = attempt()?;

        if built != Built::AllocationBusy {
            return Ok(built);
        }
        // No engine uses anything meanwhile.
        engine.contexts.suspend();
        let again = attempt();
        engine.contexts.resume();
        again
    }

    /// Has the paging process show this memory, by entries that the paging node writes to its page
    /// tables.
    pub(super) fn show(&mut self, windows: &[Window<'_>]) -> Result<(), NotDone> {
        let engine = self.engine;
        let end = |window: &Window<'_>| window.first.saturating_add(window.count);
        let (first, last) = (
            windows.first().map_or(0, |window| window.first),
            windows.last().map_or(0, end),
        );

        for window in windows {
            let mut done = 0;

            while done < window.count {
                let page = window.first.saturating_add(done);
                let (table, start) = engine.scratch_table(page);
                // CAST: at most as many as a table has.
                let left = u64::from(engine.table_entries().saturating_sub(start));
                let mut each = [PageTableEntry::Invalid; MAX_ENTRIES];
                // CAST: at most as many as a table has.
                let count = window.count.saturating_sub(done).min(left) as u32;
                let entries = entries_of(&mut each, (done, count), PageSize::Kib4, window.entry);
                let update = Update {
                    page_size: PageSize::Kib4,
                    start,
                    entries,
                    address: page.saturating_mul(PAGE),
                    initial: false,
                    evicted: false,
                    driver_protection: 0,
                    shows: window.shows.further(done),
                };

                self.write_table(&engine.process.kmd, 0, table, &update, PAGING_PROCESS)?;
                // CAST: a usize fits 64 bits.
                done = done.saturating_add(entries.count() as u64);
            }
        }
        self.flush(
            &engine.process.kmd,
            (first.saturating_mul(PAGE), last.saturating_mul(PAGE)),
            PAGING_PROCESS,
        )
    }

    /// UpdatePageTable of a table of this level, which the paging process has at `table`.
    pub(super) fn write_table(
        &mut self,
        process: &crate::ddi::object::Process,
        level: u32,
        table: u64,
        update: &Update<'_>,
        id: u64,
    ) -> Result<(), NotDone> {
        let written = TableUpdate {
            level,
            table: TableAddress::GpuVirtual(table),
            page_size: update.page_size,
            start: update.start,
            entries: update.entries,
            initial_update: update.initial,
            notify_eviction: update.evicted,
            driver_protection: update.driver_protection,
            address: update.address,
        };
        let work = PagingWork {
            change: Change::Table(process, &written),
            ..PagingWork::default()
        };

        self.build(&work, &|| Action {
            process: id,
            from: table,
            ..table_changes::recorded(level, update)
        })
    }

    /// FlushTlb of these addresses, or of all if both are 0.
    pub(super) fn flush(
        &mut self,
        process: &crate::ddi::object::Process,
        (first, last): (u64, u64),
        id: u64,
    ) -> Result<(), NotDone> {
        let work = PagingWork {
            change: Change::Flush(process, first, last),
            ..PagingWork::default()
        };

        self.build(&work, &|| Action {
            operation: Operation::FlushTlb,
            process: id,
            address: first,
            size: last.saturating_sub(first),
            ..Action::default()
        })
    }

    /// The paging node runs what is in the buffer, which is empty afterwards. Returns when it has.
    pub(super) fn submit(&mut self) -> Result<(), NotDone> {
        let engine = self.engine;
        let commands = self.buffer.written();

        if commands.is_empty() {
            return Ok(());
        }
        for (word, pair) in engine.page.words().iter().zip(commands.chunks(2)) {
            let half = |at: usize| u64::from(pair.get(at).copied().unwrap_or(0));

            store_release(word, half(0) | (half(1) << 32));
        }
        // OVERFLOW: 2^64 submissions take longer than any machine runs.
        self.taker.number = self.taker.number.wrapping_add(1);

        let submission = Submission {
            number: self.taker.number,
            commands: engine.buffer_address(),
            // CAST: at most a page.
            length: (commands.len() as u32).saturating_mul(4),
            progress: None,
        };

        self.log_submission(Kind::Submit, &submission);
        engine.since_ns.store(now_ns().max(1), Relaxed);
        engine.watch();

        let submitted = Dispatch::below(&mut Passive::here(), |class| {
            self.taker.context.submit(class, &submission)
        });
        let done = match submitted {
            Ok(()) => {
                engine.wake_for_work();
                self.wait()
            }
            // The adapter is removed.
            Err(_) => Err(NotDone::Failed),
        };

        engine.since_ns.store(0, Relaxed);
        if done.is_ok() {
            self.log_submission(Kind::Complete, &submission);
        }
        self.buffer.begin(engine.buffer_dwords());
        done
    }

    /// Waits until the last submission has completed, or never will.
    fn wait(&self) -> Result<(), NotDone> {
        let engine = self.engine;

        loop {
            // Before anything is looked at: what comes later is waited for.
            let arrived = engine.arrivals.count();

            match self.taker.look() {
                Told::Completed => return Ok(()),
                Told::Lost => return Err(NotDone::Lost),
                Told::Faulted(address, flags) => {
                    self.faulted(address, flags);
                    return Err(self.fails());
                }
                Told::Nothing => {}
            }
            if engine.has_ended.load(Acquire) {
                return Err(NotDone::Failed);
            }
            engine.arrivals.wait_until(arrived.wrapping_add(1));
        }
    }

    /// The KMD or the OS part has a bug.
    fn fails(&self) -> NotDone {
        self.engine.fails();
        NotDone::Failed
    }

    /// A batch has faulted, which is never right (MEM-102).
    #[cold]
    fn faulted(&self, address: u64, flags: u32) {
        pr_err!("a batch of the paging process has faulted at {address:#x}\n");
        self.engine.worker.log.write(|| Action {
            kind: Kind::Fault,
            batch: self.number,
            object: self.taker.id,
            address,
            flags,
            ..Action::default()
        });
    }

    fn log_submission(&self, kind: Kind, submission: &Submission) {
        self.engine.worker.log.write(|| Action {
            kind,
            batch: self.number,
            object: self.taker.id,
            value: submission.number,
            address: submission.commands,
            size: submission.length.into(),
            ..Action::default()
        });
    }
}
