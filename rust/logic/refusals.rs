// SPDX-License-Identifier: GPL-2.0

//! The last calls of a process that were refused, for whoever asks why it does not work.
//!
//! The same call with the same answer is one refusal, which is counted: a program that polls does
//! not push out what else went wrong. There is room for so many of them, and none is taken later.

/// How many different refusals are kept.
pub const KEPT: usize = 16;

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A call, with this NTSTATUS.
    Status(i32),
    /// There is no such call.
    NoCall,
}

/// A refused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the call.
    pub call: u32,
    /// What the caller was told.
    pub answer: Answer,
    /// How often, since it has a place here.
    pub times: u32,
    /// When it was refused last, in nanoseconds of a clock that does not go back.
    pub last_ns: u64,
}

/// The last different refusals.
pub struct Refusals {
    kept: [Option<Refusal>; KEPT],
}

impl Refusals {
    /// Nothing was refused.
    pub const fn new() -> Self {
        Self { kept: [None; KEPT] }
    }

    /// A call was refused. The refusal that has not come for the longest time makes room.
    pub fn record(&mut self, call: u32, answer: Answer, now_ns: u64) {
        let is_same = |kept: &Refusal| kept.call == call && kept.answer == answer;
        let same = self.kept.iter_mut().flatten().find(|kept| is_same(kept));

        if let Some(kept) = same {
            kept.times = kept.times.saturating_add(1);
            kept.last_ns = now_ns;
            return;
        }

        // A free place is older than any other.
        let oldest = self
            .kept
            .iter_mut()
            .min_by_key(|place| place.map(|kept| kept.last_ns));

        if let Some(place) = oldest {
            *place = Some(Refusal {
                call,
                answer,
                times: 1,
                last_ns: now_ns,
            });
        }
    }

    /// Copies of all, in no order.
    pub fn all(&self) -> [Option<Refusal>; KEPT] {
        self.kept
    }
}

impl Default for Refusals {
    fn default() -> Self {
        Self::new()
    }
}
