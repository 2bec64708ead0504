// SPDX-License-Identifier: GPL-2.0

//! Reading the log of a HW queue: which values it has signalled, or waited for, and when (gpu.md
//! section 7).
//!
//! A log is memory that an engine writes and the OS part reads, and that the process of the queue
//! may write to as well. Nobody waits for anybody: the engine writes over what was not read.
//! Nothing of it is believed but for what a process may say of its own fences (GPU-84). How many
//! entries it has is what its reader was told when it was made, and is never read back.
//!
//! | word | who writes it |
//! |---|---|
//! | header, index and wraparounds | the engine, behind each entry; the process |
//! | header, the rest | the OS part, before anybody else; nobody reads it back |
//! | entries | the engine; the process |
//!
//! An entry has a *sequence number*: how many there were before it, modulo what the header can
//! count. Those that the reader has not read are between its own and that of the header.

/// How many 64-bit words there are in 4 KiB.
const PAGE_WORDS: u32 = 512;
/// Words before the first entry, and of an entry.
const HEADER_WORDS: u32 = 5;
const ENTRY_WORDS: u32 = 6;

/// How large a log is: a power of two of pages (GPU-81).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogSize(u8);

impl LogSize {
    /// That of a new log: a page (GPU-71).
    pub const FIRST: Self = Self(0);
    /// That of a log whose entries somebody traces, at first (GPU-80): 4 pages.
    pub const TRACED: Self = Self(2);
    /// No log is larger: 16 pages.
    pub const LAST: Self = Self(4);

    /// How many pages a log has, as a power of two.
    pub fn order(self) -> u8 {
        self.0
    }

    /// How many pages a log has.
    pub fn pages(self) -> u32 {
        // OVERFLOW: by 4 at most.
        1 << self.0
    }

    /// Entries of a log: as many as fit (GPU-73). It is 84 for a page, and 1364 at most.
    pub fn entries(self) -> u32 {
        // OVERFLOW: 16 pages have 8192 words.
        (self.pages() * PAGE_WORDS - HEADER_WORDS) / ENTRY_WORDS
    }

    /// The next larger one, if there is one.
    pub fn larger(self) -> Self {
        match self < Self::LAST {
            true => Self(self.0.saturating_add(1)),
            false => self,
        }
    }
}

/// A log as its reader sees it.
pub trait LogWords {
    /// One 64-bit load with acquire ordering.
    fn load(&self, word: usize) -> u64;
}

/// What a log is of (`DXGK_NATIVE_FENCE_LOG_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum LogType {
    /// Waits that are over.
    Waits = 1,
    /// Values that were stored.
    Signals = 2,
}

impl LogType {
    /// The words of a new log of this kind that are not 0, with their numbers.
    pub fn header(self, size: LogSize) -> [(usize, u64); 2] {
        // CAST: what it is declared to be.
        [(1, self as u64), (2, size.entries().into())]
    }

    /// `OperationType` of its entries.
    fn operation(self) -> u32 {
        match self {
            Self::Signals => 0,
            Self::Waits => 1,
        }
    }
}

/// What a queue has done with a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was stored, or waited for.
    pub value: u64,
    /// The fence, as the process of the queue calls it.
    pub handle: u32,
    /// When a wait was first tried, in ticks of the GPU clock; 0 for a signal.
    pub observed: u64,
    /// When it was done. 0 if nothing was done.
    pub end: u64,
}

/// How a look at a log has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// How many entries nobody has read, because others were written over them, or because the
    /// header says what cannot be.
    pub lost: u64,
    /// How many were not of the kind that the log is of.
    pub bad: u64,
    /// How many had an earlier time than the one before (GPU-82).
    pub backwards: u64,
}

/// How far a log has been read.
#[derive(Clone, Debug)]
pub struct Reader {
    ty: LogType,
    /// How many entries the log has.
    entries: u64,
    /// The sequence number of the first entry that was not read.
    next: u64,
    /// The header that it was read by.
    header: u64,
    /// The last time of an entry.
    last_end: u64,
}

impl Reader {
    /// Nothing has been read of a log of this kind, with so many entries, at least one.
    pub fn new(ty: LogType, entries: u32) -> Self {
        Self {
            ty,
            entries: entries.max(1).into(),
            next: 0,
            header: 0,
            last_end: 0,
        }
    }

    /// How many sequence numbers there are.
    fn numbers(&self) -> u64 {
        // OVERFLOW: 1364 entries at most.
        self.entries << 32
    }

    /// The sequence number that comes next by a header; `None` if there is no such header.
    fn number_of(&self, header: u64) -> Option<u64> {
        // CAST: the lower half.
        let index = u64::from(header as u32);

        // OVERFLOW: below `numbers`.
        (index < self.entries).then(|| (header >> 32) * self.entries + index)
    }

    /// A sequence number so many further on.
    fn further(&self, number: u64, by: u64) -> u64 {
        // OVERFLOW: both are at most `numbers`, which twice fits 64 bits.
        (number + by) % self.numbers()
    }

    /// How many numbers `later` is behind `earlier`.
    fn distance(&self, earlier: u64, later: u64) -> u64 {
        // OVERFLOW: below `numbers`.
        self.further(later, self.numbers() - earlier)
    }

    /// The header as it is now, if it has moved. Before [`Reader::read`] the producer has to be
    /// asked to make visible what belongs to it (GPU-77).
    pub fn moved(&self, log: &impl LogWords) -> Option<u64> {
        let header = log.load(0);

        (header != self.header).then_some(header)
    }

    /// Reads the entries up to a header, at most as many as there are in a log, and tells each.
    pub fn read(&mut self, log: &impl LogWords, header: u64, mut each: impl FnMut(&Entry)) -> Read {
        let mut read = Read::default();

        self.header = header;

        let Some(end) = self.number_of(header) else {
            read.lost = 1;
            return read;
        };
        let unread = self.distance(self.next, end);
        let fresh = unread.min(self.entries);

        read.lost = unread.saturating_sub(fresh);
        // OVERFLOW: there are more numbers than entries.
        self.next = self.further(end, self.numbers() - fresh);
        while self.next != end {
            match self.take(log) {
                Some(entry) => self.tell(&entry, &mut read, &mut each),
                None => read.lost = read.lost.saturating_add(1),
            }
            self.next = self.further(self.next, 1);
        }
        read
    }

    /// The next entry and its operation; `None` if it may have been written over (GPU-79).
    fn take(&self, log: &impl LogWords) -> Option<(Entry, u32)> {
        // CAST: below the number of entries.
        let index = (self.next % self.entries) as usize;
        // OVERFLOW: 16 pages have 8192 words. CAST: small.
        let first = HEADER_WORDS as usize + index * ENTRY_WORDS as usize;
        let named = log.load(first + 1);
        let entry = Entry {
            value: log.load(first),
            // CAST: two halves.
            handle: named as u32,
            observed: log.load(first + 3),
            end: log.load(first + 5),
        };
        // ORDERING: acquire loads: this one comes after those of the entry. The engine has a full
        // barrier between this header and what it writes over an entry next (GPU-76).
        let ahead = self.distance(self.next, self.number_of(log.load(0))?);

        (ahead < self.entries).then_some((entry, (named >> 32) as u32))
    }

    fn tell(
        &mut self,
        (entry, operation): &(Entry, u32),
        read: &mut Read,
        each: &mut impl FnMut(&Entry),
    ) {
        if *operation != self.ty.operation() {
            read.bad = read.bad.saturating_add(1);
            return;
        }
        if entry.end != 0 {
            if entry.end < self.last_end {
                read.backwards = read.backwards.saturating_add(1);
            }
            self.last_end = entry.end;
        }
        each(entry);
    }
}

/// Both clocks at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Ticks of the GPU clock in a second.
    pub gpu_frequency: u64,
    /// The GPU clock.
    pub gpu: u64,
    /// Nanoseconds of the CPU clock.
    pub cpu_ns: u64,
}

impl Clocks {
    /// Nanoseconds of the CPU clock at a tick of the GPU clock; 0 for 0 (GPU-83).
    pub fn cpu_ns(&self, ticks: u64) -> u64 {
        const NS: u64 = 1_000_000_000;

        if ticks == 0 || self.gpu_frequency == 0 {
            return 0;
        }

        let apart = self.gpu.abs_diff(ticks);
        let (seconds, rest) = (apart / self.gpu_frequency, apart % self.gpu_frequency);
        // The rest is less than a second. A clock of more than 18 GHz loses digits.
        let rest_ns = rest.saturating_mul(NS) / self.gpu_frequency;
        let apart_ns = seconds.saturating_mul(NS).saturating_add(rest_ns);

        match ticks <= self.gpu {
            true => self.cpu_ns.saturating_sub(apart_ns),
            false => self.cpu_ns.saturating_add(apart_ns),
        }
    }
}
