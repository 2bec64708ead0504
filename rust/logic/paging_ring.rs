// SPDX-License-Identifier: GPL-2.0

//! Where the operation log of an adapter keeps its last records (MEM-103, MEM-104), and what root
//! wants of it.
//!
//! All memory is there before the first record. Who writes one takes the place of the oldest, and
//! what is lost in this way is counted: a reader knows whether he has seen everything.

use super::paging_log::{
    Action,
    Record, //
};
use core::ops::DerefMut;

/// How many records are kept.
pub const KEPT: usize = 4096;

/// How many are kept for a process that reads its own.
pub const KEPT_OF_PROCESS: usize = 1024;

/// Which operation of a queue a thread does.
#[derive(Clone, Copy)]
struct Served {
    thread: u64,
    by: Serving,
}

/// An operation of a paging queue.
#[derive(Clone, Copy)]
pub struct Serving {
    /// The device that it is for.
    pub device: u64,
    /// Which queue it is in.
    pub queue: u64,
    /// The value that its fence shows afterwards.
    pub value: u64,
}

/// The last records, in places that are all there before: none, as long as nobody has asked for
/// the log. Numbers are of records that were written into a place.
pub struct Ring<S> {
    places: S,
    /// The number of the last record.
    last: u64,
    /// The number of the last record before the log was cleared.
    cleared: u64,
    served: Option<Served>,
    /// The number of the batch that the paging node does, and the process that it is for.
    batch: Option<(u64, u64)>,
}

impl<S: DerefMut<Target = [Record]>> Ring<S> {
    /// No records, with these places.
    pub const fn new(places: S) -> Self {
        Self {
            places,
            last: 0,
            cleared: 0,
            served: None,
            batch: None,
        }
    }

    /// Whether it has places.
    pub fn has_places(&self) -> bool {
        !self.places.is_empty()
    }

    /// Gives it places, unless it has some. What is returned is to be dropped without locks.
    pub fn give(&mut self, places: S) -> S {
        match self.has_places() {
            true => places,
            false => core::mem::replace(&mut self.places, places),
        }
    }

    /// From now on a thread does this operation of a queue: its records say so.
    pub fn serve(&mut self, thread: u64, by: Serving) {
        self.served = Some(Served { thread, by });
    }

    /// It does not any more.
    pub fn end_serving(&mut self) {
        self.served = None;
    }

    /// From now on the paging node does the batch with this number, for a process: its records are
    /// for that, whoever writes them.
    pub fn begin_batch(&mut self, number: u64, process: u64) {
        self.batch = Some((number, process));
    }

    /// It does not any more.
    pub fn end_batch(&mut self) {
        self.batch = None;
    }

    fn index(&self, number: u64) -> Option<usize> {
        // CAST: a usize fits 64 bits, and the rest is below the number of places.
        number
            .checked_rem(self.places.len() as u64)
            .map(|index| index as usize)
    }

    /// What a thread does, with the operation and the process that it does it for.
    pub fn complete(&self, thread: u64, mut action: Action) -> Action {
        match self.served {
            Some(Served { thread: of, by }) if of == thread && action.queue == 0 => {
                (action.device, action.queue, action.value) = (by.device, by.queue, by.value);
            }
            _ => {}
        }
        match self.batch {
            Some((number, process)) if number == action.batch && action.reader() == 0 => {
                action.made_for = process;
            }
            _ => {}
        }
        action
    }

    /// Writes a record of what is complete. Takes no memory and waits for nobody.
    pub fn write(&mut self, at_ns: u64, thread: u64, action: Action) {
        // OVERFLOW: 2^64 records take longer than any machine runs.
        let number = self.last.wrapping_add(1);
        let place = self.index(number);

        if let Some(place) = place.and_then(|index| self.places.get_mut(index)) {
            self.last = number;
            *place = Record {
                number,
                at_ns,
                thread,
                action,
            };
        }
    }

    /// The number of the record before the oldest that is kept.
    fn before_oldest(&self) -> u64 {
        // CAST: a usize fits 64 bits.
        let overwritten = self.last.saturating_sub(self.places.len() as u64);

        self.cleared.max(overwritten)
    }

    /// The first record with a number above this one.
    pub fn after(&self, number: u64) -> Option<Record> {
        let next = number.max(self.before_oldest()).saturating_add(1);

        if next > self.last {
            return None;
        }
        self.places.get(self.index(next)?).copied()
    }

    /// How many records since the last clear are not kept.
    pub fn lost(&self) -> u64 {
        self.before_oldest().saturating_sub(self.cleared)
    }

    /// Forgets all records. Numbers go on.
    pub fn clear(&mut self) {
        self.cleared = self.last;
    }
}

/// What root wants of the log, of the worker and of the paging node (MEM-104, MEM-107).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Records are written from now on.
    Start,
    /// They are not any more. Those that there are stay.
    Stop,
    /// All records are forgotten.
    Clear,
    /// The worker begins no operation.
    Hold,
    /// It does again.
    Release,
    /// The scratch area of the paging process has so many pages.
    Scratch(u32),
    /// A paging buffer has so many dwords.
    Buffer(u32),
    /// The next batch of the paging process finds none of its pages.
    Fault,
    /// The KMD fails at this BuildPagingBuffer for the paging node, counted from the next one.
    Fail(u32),
    /// It finds its allocation busy at this one.
    Busy(u32),
    /// Allocations get so many pages of each segment.
    Segment(u32),
    /// All that is in segments moves every so many milliseconds.
    Move(u32),
    /// It does not any more.
    Stay,
    /// What gives way is chosen by chance.
    Random,
    /// What gives way is what has its turn.
    Ordered,
}

impl Command {
    /// The longest one, with a newline.
    pub const MAX: usize = 19;

    /// What a word means, or a word and a number, with a newline or without.
    pub fn parse(words: &[u8]) -> Option<Self> {
        let words = core::str::from_utf8(words).ok()?;
        let words = words.strip_suffix('\n').unwrap_or(words);

        if let Some((word, number)) = words.split_once(' ') {
            // A sign is no digit.
            let number = number
                .as_bytes()
                .first()?
                .is_ascii_digit()
                .then_some(number)?;
            let number = number.parse().ok().filter(|number| *number != 0)?;

            return match word {
                "scratch" => Some(Self::Scratch(number)),
                "buffer" => Some(Self::Buffer(number)),
                "fail" => Some(Self::Fail(number)),
                "busy" => Some(Self::Busy(number)),
                "segment" => Some(Self::Segment(number)),
                "move" => Some(Self::Move(number)),
                _ => None,
            };
        }
        match words {
            "start" => Some(Self::Start),
            "stop" => Some(Self::Stop),
            "clear" => Some(Self::Clear),
            "hold" => Some(Self::Hold),
            "release" => Some(Self::Release),
            "fault" => Some(Self::Fault),
            "stay" => Some(Self::Stay),
            "random" => Some(Self::Random),
            "ordered" => Some(Self::Ordered),
            _ => None,
        }
    }
}
