// SPDX-License-Identifier: GPL-2.0

//! A move of memory from one backing to another, in steps, while processes use it (MEM-97, MEM-99).
//!
//! Before each step nobody sees the pages of the step, and a page fault waits until it is over. A
//! page has its bytes in one of the two backings at any time: first in the old one, after its step
//! in the new one. A page that the old backing never had is zeros in both. If it is touched during
//! the move, the new backing gets it, so that the old one has no more pages than were prepared for.

use core::ops::Range;

/// Pages of one step: what one page table shows.
pub const STEP: usize = 512;

/// Which backing has the bytes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the memory moves from.
    Old,
    /// Where it moves to.
    New,
}

/// How far a move is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    done: usize,
    count: usize,
}

impl Progress {
    /// The start of a move of so many pages.
    pub const fn new(count: usize) -> Self {
        Self { done: 0, count }
    }

    /// The pages of the next step; `None` after the last one.
    pub fn next(&self) -> Option<Range<usize>> {
        let end = self.done.saturating_add(STEP).min(self.count);

        (self.done < end).then_some(self.done..end)
    }

    /// The pages of a step have been copied.
    pub fn advance(&mut self, step: Range<usize>) {
        self.done = step.end;
    }

    /// Where the bytes of a page are; `present` says whether the old backing has the page.
    pub fn side(&self, index: usize, present: bool) -> Side {
        if present && index >= self.done {
            Side::Old
        } else {
            Side::New
        }
    }
}
