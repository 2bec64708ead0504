// SPDX-License-Identifier: GPL-2.0

//! How a call that has changed what pages are takes that back, if it fails after all: its pages
//! become what they were, and those that somebody else has changed since stay as they are.

use super::gpu_ranges::{
    parts,
    Range,
    Ranges,
    Reservation,
    Stretch,
    What, //
};

/// What a call has made of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first page.
    pub first: u64,
    /// The page after the last one.
    pub end: u64,
    /// The reservation that they were put in; `None` if each stayed in its own.
    pub reservation: Option<Reservation>,
    /// What the first page was made.
    pub what: What,
}

/// Pages to take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where they begin.
    pub first: u64,
    /// The page after them.
    pub end: u64,
    /// What the page at `first` was; `None` if it was free.
    pub old: Option<Range>,
}

impl Change {
    /// What it makes of a page that was `old`, so many pages after the first one.
    pub fn made(&self, old: Option<Range>, further: u64) -> Range {
        let reservation = self.reservation.or(old.and_then(|old| old.reservation));

        Range {
            reservation,
            what: self.what,
        }
        .at(further)
    }

    /// How many places it takes at most to take it back if nobody else changes these pages, or
    /// those beside them, in between. Asked before the change.
    pub fn undo_places(&self, map: &impl Ranges) -> usize {
        let Self { first, end, .. } = *self;
        let mut runs = 0usize;
        let mut at = first;
        let (mut first_old, mut last_old) = (None, None);

        for part in parts(map, first, end) {
            // A part, and the free pages before it.
            runs = runs.saturating_add(1 + usize::from(part.first != at));
            at = part.end();
            if part.first == first {
                first_old = Some(part.range);
            }
            if at == end {
                last_old = Some(part.range);
            }
        }
        runs = runs.saturating_add(usize::from(at != end));

        let last = end.saturating_sub(first);
        let joins_before = first
            .checked_sub(1)
            .and_then(|before| map.at_or_before(before))
            .is_some_and(|before| {
                before.end() >= first
                    && before.range.at(first.saturating_sub(before.first))
                        == self.made(first_old, 0)
            });
        let joins_after = parts(map, end, end.saturating_add(1))
            .next()
            .is_some_and(|after| after.range == self.made(last_old, last));

        runs.saturating_sub(1)
            .saturating_add(usize::from(joins_before))
            .saturating_add(usize::from(joins_after))
    }

    /// The next pages from `at` on that are still what this change made of them. `before`: what
    /// they were, in order.
    pub fn next_run(&self, map: &impl Ranges, before: &[Stretch], at: u64) -> Option<Run> {
        let mut at = at;

        while at < self.end {
            let next = before.partition_point(|stretch| stretch.end() <= at);
            let (old, old_end) = match before.get(next) {
                Some(stretch) => match at.checked_sub(stretch.first) {
                    Some(further) => (Some(stretch.range.at(further)), stretch.end()),
                    None => (None, stretch.first),
                },
                None => (None, self.end),
            };
            let made = self.made(old, at.saturating_sub(self.first));

            match parts(map, at, old_end).next() {
                None => at = old_end,
                Some(part) if part.first != at => at = part.first,
                Some(part) => {
                    if part.range == made && old != Some(made) {
                        return Some(Run {
                            first: at,
                            end: part.end(),
                            old,
                        });
                    }
                    at = part.end();
                }
            }
        }
        None
    }
}
