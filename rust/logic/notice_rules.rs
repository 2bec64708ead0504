// SPDX-License-Identifier: GPL-2.0

//! What a process is told about memory: that it should use less of it, and what its budget is
//! (MEM-38, MEM-39). A record is a number of 64 bits. What was not read is replaced by what comes
//! later, so that a process that does not read loses nothing but old records.
//!
//! Times are in nanoseconds.

use super::Invalid;

/// Bits of a record about memory to be given up; above them are whole pages to be given up.
pub mod record {
    /// Memory is short, and was when this was told last.
    pub const PERIODIC: u64 = 1 << 0;
    /// Memory has become short.
    pub const RESTART: u64 = 1 << 1;
    /// The process uses more than its budget.
    pub const TO_BUDGET: u64 = 1 << 2;
    /// What is not bytes.
    pub const FLAGS: u64 = 0xfff;
}

/// How long it is at least between two records with bytes.
pub const BUDGET_INTERVAL: u64 = 10_000_000;

/// How long it is between two records while memory is short.
pub const PERIOD: u64 = 10_000_000_000;

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// That memory should be given up.
    Trim,
    /// What the budget is.
    Budget,
}

impl Kind {
    /// What a caller asks for.
    pub fn new(value: u32) -> Result<Self, Invalid> {
        match value {
            1 => Ok(Self::Trim),
            2 => Ok(Self::Budget),
            _ => Err(Invalid),
        }
    }
}

/// How things are for a process on an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// When.
    pub now: u64,
    /// Bytes above its budgets.
    pub over: u64,
    /// The budget of the memory that the GPU uses first.
    pub budget: u64,
    /// When somebody lacked room last; `None` if nobody ever did.
    pub pressed: Option<u64>,
}

impl Sight {
    fn is_short(&self) -> bool {
        self.pressed
            .is_some_and(|pressed| self.now.saturating_sub(pressed) < PERIOD)
    }
}

/// What one reader has not been told yet.
#[derive(Clone, Copy, Debug)]
pub struct News {
    kind: Kind,
    /// The last bytes above the budgets, or the last budget, that were seen.
    seen: u64,
    /// What has to be told of that.
    untold: Option<u64>,
    /// When bytes may be told again.
    not_before: u64,
    /// When the next record is due because memory is short.
    period: Option<u64>,
    /// Flags of such a record.
    short: u64,
    /// What was read last.
    last: Option<u64>,
}

impl News {
    /// None, for one who knows the budget.
    pub fn new(kind: Kind, budget: u64) -> Self {
        Self {
            kind,
            seen: match kind {
                Kind::Trim => 0,
                Kind::Budget => budget,
            },
            untold: None,
            not_before: 0,
            period: None,
            short: 0,
            last: None,
        }
    }

    /// What the stream tells.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Things may have changed.
    pub fn look(&mut self, sight: &Sight) {
        if self.kind == Kind::Budget {
            if self.seen != sight.budget {
                self.seen = sight.budget;
                self.untold = Some(sight.budget);
            }
            return;
        }

        let over = whole_pages(sight.over);

        if self.seen != over {
            self.seen = over;
            self.untold = (over != 0).then_some(over);
        }
        match self.period {
            None if sight.is_short() => {
                self.short = record::RESTART;
                self.period = Some(sight.now.saturating_add(PERIOD));
            }
            Some(due) if sight.now >= due && sight.is_short() => {
                // Who has not read that it has begun is told that first.
                if self.short == 0 {
                    self.short = record::PERIODIC;
                }
                self.period = Some(sight.now.saturating_add(PERIOD));
            }
            Some(due) if sight.now >= due => self.period = None,
            _ => {}
        }
    }

    /// What a read would return now.
    pub fn peek(&self, now: u64) -> Option<u64> {
        match self.kind {
            Kind::Budget => self.untold,
            Kind::Trim => {
                let bytes = self.untold.filter(|_| now >= self.not_before);
                let told = bytes.map_or(0, |bytes| bytes | record::TO_BUDGET);

                Some(told | self.short).filter(|record| *record != 0)
            }
        }
    }

    /// Reads.
    pub fn take(&mut self, now: u64) -> Option<u64> {
        let record = self.peek(now)?;

        self.short = 0;
        if self.kind == Kind::Budget || record & record::TO_BUDGET != 0 {
            self.untold = None;
            self.not_before = now.saturating_add(BUDGET_INTERVAL);
        }
        self.last = Some(record);
        Some(record)
    }

    /// What was read last did not reach the reader. What came later counts more.
    pub fn put_back(&mut self) {
        let Some(record) = self.last.take() else {
            return;
        };

        match self.kind {
            Kind::Budget => {
                self.untold.get_or_insert(record);
            }
            Kind::Trim => {
                let bytes = record & !record::FLAGS;

                self.not_before = 0;
                if bytes != 0 && self.seen == bytes {
                    self.untold.get_or_insert(bytes);
                }
                if self.short == 0 {
                    self.short = record & (record::PERIODIC | record::RESTART);
                }
            }
        }
    }

    /// How long it is until what is held back may be told.
    pub fn held_back(&self, now: u64) -> Option<u64> {
        self.untold
            .filter(|_| self.kind == Kind::Trim)
            .and_then(|_| self.not_before.checked_sub(now))
            .filter(|after| *after != 0)
    }

    /// How long it is until it has to be looked whether memory is short still.
    pub fn next_period(&self, now: u64) -> Option<u64> {
        self.period.map(|due| due.saturating_sub(now))
    }
}

/// Bytes in whole pages.
fn whole_pages(bytes: u64) -> u64 {
    bytes.saturating_add(record::FLAGS) & !record::FLAGS
}
