// SPDX-License-Identifier: GPL-2.0

//! The order in which a queue does what was queued (FEN-39 to FEN-41, GPU-9).
//!
//! A queue is a context of packets or a HW queue. Its items are taken strictly in the order in
//! which they came: an item begins when the one before it has begun, and when its own condition
//! below holds. Submissions are handed to the KMD and complete there, also in order. Everything
//! else is done by the OS part, and is over when it has begun, except a wait.
//!
//! ```text
//! item                         begins
//! submission                   when fewer than the most are in flight
//! signal                       when nothing is in flight
//! signal at fetch              when all that is in flight has been fetched
//! signal at submission         at once
//! wait                         when nothing is in flight
//! ```
//!
//! So items also end in order. What is in flight when a wait is looked at could still take back
//! what it waits for (FEN-42). And a mutex that a wait acquires early would be missing to those for
//! whom the commands before it wait.
//!
//! A TopOfPipeline fence is signalled when the commands before it were fetched. A KMD may tell when
//! that was; what has completed has been fetched.

/// When a signal takes effect: when the commands before it have got so far (FEN-41).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Submitted,
    /// They have been read, and some of them may still be carried out.
    Fetched,
    Completed,
}

/// What an item is, as far as the order is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Commands for the KMD.
    Submission,
    /// Values or an event.
    Signal(Moment),
    /// Holds everything behind it until its condition is met.
    Wait,
}

/// How far the submissions of a queue are. Numbers begin at 1.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionOrder {
    /// How many may be in flight.
    most: u32,
    /// The last one that was handed to the KMD.
    submitted: u64,
    /// The last one whose commands have been fetched, or an earlier one than has completed.
    fetched: u64,
    /// The last one that has completed.
    completed: u64,
}

impl SubmissionOrder {
    /// Nothing was submitted. At most `most` submissions, but at least one, are in flight at a
    /// time.
    pub const fn new(most: u32) -> Self {
        Self {
            most: if most == 0 { 1 } else { most },
            submitted: 0,
            fetched: 0,
            completed: 0,
        }
    }

    /// How many submissions the KMD has that have not completed.
    pub fn in_flight(&self) -> u64 {
        self.submitted.saturating_sub(self.completed)
    }

    /// The last submission that the KMD got; 0 if it got none.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// The last submission that has completed; 0 if none has.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Whether the next item may begin.
    pub fn may_begin(&self, kind: ItemKind) -> bool {
        match kind {
            ItemKind::Submission => self.in_flight() < u64::from(self.most),
            ItemKind::Signal(Moment::Completed) | ItemKind::Wait => self.in_flight() == 0,
            ItemKind::Signal(Moment::Fetched) => self.fetched.max(self.completed) >= self.submitted,
            ItemKind::Signal(Moment::Submitted) => true,
        }
    }

    /// A submission begins: its number.
    pub fn submit(&mut self) -> u64 {
        // OVERFLOW: 2^64 submissions take longer than any machine runs.
        self.submitted = self.submitted.wrapping_add(1);
        self.submitted
    }

    /// The KMD says that everything up to `number` has been fetched. It cannot have fetched what
    /// it did not get.
    pub fn fetch(&mut self, number: u64) {
        self.fetched = number.min(self.submitted).max(self.fetched);
    }

    /// The KMD says that everything up to `number` has completed. It cannot have completed what it
    /// did not get, and nothing becomes unfinished again.
    pub fn complete(&mut self, number: u64) {
        self.completed = number.min(self.submitted).max(self.completed);
    }
}
