// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves from the driver's own counters that nothing changed.
//!
//! A program that has an adapter for itself looks at the counters of this adapter, and at those of
//! the own process: others may run beside it. What belongs to no adapter (process objects, keyed
//! mutexes, the waits and pages of children), and the handles of children, the runner checks when
//! none of them runs any more.

use std::time::{Duration, Instant};

use opendxg::{Counters, Dxg};

use crate::time::scaled;
use crate::{fixture, TestResult};

/// How long things may take to end after the call that ended them.
pub(crate) const SETTLE: Duration = Duration::from_secs(10);

/// The counter of what the driver's worker has still to end.
const RETIRING: &str = "retiring";

/// Its line in the totals when there is nothing.
const NOTHING_RETIRES: &str = "retiring:\t0\n";

/// What this program can change, at one moment.
fn counters(dxg: &Dxg) -> TestResult<Counters> {
    let mut all = dxg.counters()?;
    let Some(own) = fixture::own_adapter()? else {
        return Ok(all);
    };
    let mut counts = Counters::of_adapter(own)?;
    let mut take = |name: &str| counts.remove(name).ok_or(format!("no counter {name}"));
    all.total_objects = take("objects")?;
    all.total_shares = take("shares")?;
    // A process that enumerates adapters has a handle of each of them for a moment.
    take("handles")?;
    all.total_handles = all.process_handles;
    all.total_waiters = all.process_waiters;
    (all.total_processes, all.total_pages) = (0, 0);
    all.other_totals = counts;
    Ok(all)
}

/// The counters at one moment, to compare with a later one.
pub struct Watch {
    dxg: Dxg,
    start: Counters,
    descriptors: usize,
}

impl Watch {
    /// Reads the counters. Holds the node open, so that this process stays known to the driver.
    pub fn start() -> TestResult<Self> {
        let dxg = Dxg::open()?;
        let start = counters(&dxg)?;
        let descriptors = open_descriptors()?;
        Ok(Self {
            dxg,
            start,
            descriptors,
        })
    }

    /// What is alive now, once the driver's worker has ended what nobody can use any more.
    pub fn now(&self) -> TestResult<Counters> {
        let end = Instant::now() + scaled(SETTLE);
        loop {
            // The totals first: when the worker has nothing to do for anybody, the rest is final.
            let totals = self.dxg.counters()?.other_totals;
            let now = counters(&self.dxg)?;
            if totals.get(RETIRING).is_none_or(|&number| number == 0) {
                return Ok(now);
            }
            if Instant::now() > end {
                return Err(difference(&self.start, &now).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The totals as the driver shows them, once its worker has ended what nobody can use any
    /// more. Much cheaper to read and to compare than [`Watch::now`], for programs that do so
    /// thousands of times and run beside no other.
    pub fn totals(&self) -> TestResult<String> {
        let end = Instant::now() + scaled(SETTLE);
        loop {
            let totals = std::fs::read_to_string(Counters::TOTALS)?;
            if totals.contains(NOTHING_RETIRES) || !totals.contains(RETIRING) {
                return Ok(totals);
            }
            if Instant::now() > end {
                return Err(format!("the worker does not end: {totals}").into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What was alive when the watch began.
    pub fn at_start(&self) -> Counters {
        self.start.clone()
    }

    /// Demands that the counters are the same as at the start, now that nothing is on its way out
    /// any more.
    #[track_caller]
    pub fn unchanged(&self) -> TestResult {
        let now = self.now()?;
        if now != self.start {
            return Err(difference(&self.start, &now).into());
        }
        Ok(())
    }

    /// Demands that the counters and the number of descriptors come back to what they were. Some
    /// things end a moment after the call that ended them (the last close of a file, the exit of a
    /// process).
    pub fn ends_clean(&self) -> TestResult {
        self.ends_clean_within(scaled(SETTLE))
    }

    /// The same with a time limit of its own.
    pub(crate) fn ends_clean_within(&self, limit: Duration) -> TestResult {
        let end = Instant::now() + limit;
        loop {
            let now = counters(&self.dxg)?;
            let descriptors = open_descriptors()?;
            if now == self.start && descriptors == self.descriptors {
                return Ok(());
            }
            if Instant::now() > end {
                let counters = difference(&self.start, &now);
                let text = format!(
                    "left behind: {counters} descriptors {} -> {descriptors}",
                    self.descriptors
                );
                return Err(text.into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// How many descriptors this process has open.
pub fn open_descriptors() -> TestResult<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

fn difference(before: &Counters, after: &Counters) -> String {
    let pairs = [
        (
            "process handles",
            before.process_handles,
            after.process_handles,
        ),
        (
            "process waiters",
            before.process_waiters,
            after.process_waiters,
        ),
        ("processes", before.total_processes, after.total_processes),
        ("objects", before.total_objects, after.total_objects),
        ("handles", before.total_handles, after.total_handles),
        ("waiters", before.total_waiters, after.total_waiters),
        ("pages", before.total_pages, after.total_pages),
        ("shares", before.total_shares, after.total_shares),
    ];
    let others = before.other_totals.iter().map(|(name, &before)| {
        let after = after.other_totals.get(name).copied().unwrap_or_default();
        (name.as_str(), before, after)
    });
    let changed = pairs.into_iter().chain(others);
    let changed = changed.filter(|(_, before, after)| before != after);
    changed
        .map(|(name, before, after)| format!("{name} {before} -> {after};"))
        .collect::<Vec<_>>()
        .join(" ")
}
