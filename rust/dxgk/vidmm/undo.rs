// SPDX-License-Identifier: GPL-2.0

//! What it takes to take a change of ranges back, if its call fails after all (RES-4). The memory
//! for that is there before the change is made.

use super::ranges::{
    places,
    Place,
    RangeTree, //
};
use crate::{
    error::DxgResult,
    logic::{
        gpu_ranges::{
            self,
            Range,
            Stretch, //
        },
        range_undo::{
            Change,
            Run, //
        }, //
    }, //
};
use kernel::prelude::*;

/// A change, and what was there before it.
pub(crate) struct Undo {
    change: Change,
    before: KVVec<Stretch>,
    places: KVVec<Place>,
}

impl Undo {
    /// Of a change that is about to be made.
    pub(super) fn new(ranges: &RangeTree, change: Change) -> DxgResult<Self> {
        let mut before = KVVec::new();

        for part in gpu_ranges::parts(ranges, change.first, change.end) {
            before.push(part, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Self {
            change,
            before,
            places: places(change.undo_places(ranges))?,
        })
    }

    /// The pages that were changed: the first and the end.
    pub(super) fn pages(&self) -> (u64, u64) {
        (self.change.first, self.change.end)
    }

    /// The next pages from `at` on that nobody else has changed since.
    pub(super) fn next_run(&self, ranges: &RangeTree, at: u64) -> Option<Run> {
        self.change.next_run(ranges, &self.before, at)
    }

    /// What such pages are now.
    pub(super) fn made(&self, run: &Run) -> Range {
        let further = run.first.saturating_sub(self.change.first);

        self.change.made(run.old, further)
    }

    /// Places that it lacks for so many: what was kept is enough, unless others have joined more
    /// with the pages since.
    pub(super) fn missing_places(&self, count: usize) -> DxgResult<KVVec<Place>> {
        Ok(places(count.saturating_sub(self.places.len()))?)
    }

    /// A place that was kept.
    pub(super) fn take_place(&mut self) -> Option<Place> {
        self.places.pop()
    }
}
