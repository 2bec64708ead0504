// SPDX-License-Identifier: GPL-2.0

//! Reports of what went wrong on an adapter, for people who look for the reason: each recovery, and
//! each fault of a queue. The last ones are kept (`logic/kept_reports.rs`), when the queue and its
//! process are gone, too.
//!
//! `collect.rs` makes them, `show.rs` prints them. All memory comes with the adapter: a report is
//! written in place, and nobody who recovers waits for memory.
//!
//! LOCK: `kept` is a mutex, outside of `Queues::listed` and `Queue::state`. Nobody sleeps who has
//! it, so that the adapter's worker may take it.

mod collect;
mod show;

use super::{
    sched::snapshot::Snapshot,
    vidmm::walk::Walk, //
};
use crate::{
    ddi::{
        queue::Fault,
        recovery::DebugInfo, //
    },
    logic::kept_reports::{
        place_for,
        Kept,
        KEPT, //
    },
    sys::{
        alloc::pin_arc,
        time::now_ns, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// How many queues a report has.
const QUEUES: usize = 16;

/// What a report is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::dxgk) enum Kind {
    /// The work of a queue has taken too long.
    QueueHang,
    /// An engine did not yield.
    EngineHang,
    /// Somebody wanted a reset.
    Requested,
    /// The paging node could not do its work.
    Paging,
    /// A queue has stopped at a packet.
    Fault,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::dxgk) enum Done {
    /// It is not over yet.
    InProgress,
    /// An engine was reset.
    EngineReset,
    /// The adapter was reset.
    AdapterReset,
    /// The adapter was stopped.
    Stopped,
    /// Nothing: a fault ends its device alone, and an adapter that is removed runs nothing.
    Nothing,
}

/// How engines come to the address of a page fault.
enum Found {
    /// Nobody has asked.
    NotAsked,
    /// The page tables are being changed, and the adapter's worker waits for nobody.
    Busy,
    /// This way.
    Walk(Walk),
}

/// What went wrong once.
struct Report {
    /// Its number, from 1 on; 0 if there is none in this place.
    number: u64,
    /// When it was, by CLOCK_MONOTONIC.
    at_ns: u64,
    kind: Kind,
    done: Done,
    /// Of the engine, unless it is about the whole adapter.
    node: Option<u32>,
    /// The queue that is the reason.
    guilty: Option<u64>,
    /// What the KMD has said of the engine.
    info: DebugInfo,
    fault: Option<Fault>,
    found: Found,
    /// Queues with work, that which is the reason first. INVARIANT: has room for [`QUEUES`].
    queues: KVec<Snapshot>,
    /// How many more there were.
    more: u64,
}

impl Report {
    /// A place for one.
    fn none() -> Result<Self, AllocError> {
        Ok(Self {
            number: 0,
            at_ns: 0,
            kind: Kind::Fault,
            done: Done::Nothing,
            node: None,
            guilty: None,
            info: DebugInfo::default(),
            fault: None,
            found: Found::NotAsked,
            queues: KVec::with_capacity(QUEUES, GFP_KERNEL)?,
            more: 0,
        })
    }

    fn kept(&self) -> Option<Kept> {
        (self.number != 0).then_some(Kept {
            number: self.number,
            is_fault: self.kind == Kind::Fault,
        })
    }

    /// Adds a queue that has work, or is the reason.
    fn add(&mut self, queue: Snapshot) {
        let is_guilty = self.guilty == Some(queue.id);

        if !is_guilty && !queue.has_work() {
            return;
        }
        if self.queues.len() < QUEUES {
            // There is room.
            let _room = self.queues.push_within_capacity(queue);
        } else {
            self.more = self.more.saturating_add(1);
            if is_guilty {
                if let Some(last) = self.queues.last_mut() {
                    *last = queue;
                }
            }
        }
        if is_guilty {
            // The reason comes first.
            self.queues.rotate_right(1);
        }
    }
}

/// What `kept` protects.
struct State {
    reports: KVec<Report>,
    /// The number of the last one.
    last: u64,
}

impl State {
    fn of_number(&mut self, number: u64) -> Option<&mut Report> {
        self.reports.iter_mut().find(|one| one.number == number)
    }
}

/// The reports of an adapter that are kept.
#[pin_data]
pub(in crate::dxgk) struct Reports {
    #[pin]
    kept: Mutex<State>,
}

impl Reports {
    /// None, with room for as many as are kept.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new() -> Result<Arc<Self>, AllocError> {
        let mut reports = KVec::with_capacity(KEPT, GFP_KERNEL)?;

        for _ in 0..KEPT {
            reports.push(Report::none()?, GFP_KERNEL)?;
        }
        pin_arc(
            pin_init!(Self {
                kept <- new_mutex!(State { reports, last: 0 }, "Reports::kept"),
            }),
            GFP_KERNEL,
        )
    }

    /// Writes a new report, with what `fill` adds. Its number.
    ///
    /// Context: may sleep, but for nobody who sleeps; no locks held.
    fn write(&self, kind: Kind, fill: impl FnOnce(&mut Report)) -> u64 {
        let mut kept = self.kept.lock();
        // OVERFLOW: 2^64 reports take longer than any machine runs.
        let number = kept.last.wrapping_add(1);
        let places = kept.reports.iter().map(Report::kept);
        let place = place_for(places, kind == Kind::Fault);

        kept.last = number;
        if let Some(report) = place.and_then(|place| kept.reports.get_mut(place)) {
            // The room stays.
            report.queues.clear();
            report.number = number;
            report.at_ns = now_ns();
            report.kind = kind;
            report.done = Done::InProgress;
            report.node = None;
            report.guilty = None;
            report.info = DebugInfo::default();
            report.fault = None;
            report.found = Found::NotAsked;
            report.more = 0;
            fill(report);
        }
        number
    }

    /// What the report of this number is about is over.
    ///
    /// Context: as above.
    pub(in crate::dxgk) fn end(&self, number: u64, done: Done) {
        if let Some(report) = self.kept.lock().of_number(number) {
            report.done = done;
        }
    }
}
