// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is to blame for waits that do not end.
//!
//! The rules are pure: facts in, verdicts out. What may be signalled by whom is known, and who did
//! it last; what a program means to do is not. So a process that could signal and does not wait
//! itself is named as the one who has not, and the last signaller before all others.

mod facts;
mod rules;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use facts::process_of;
pub use rules::blame;
pub use wait::Wait;

/// A process, as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It can go on.
    Alive,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// There is no such process any more.
    Gone,
}

/// An object that somebody waits for.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Processes that may signal or release it.
    pub could: BTreeSet<u32>,
    /// Who did that last.
    pub last: Option<u32>,
    /// The process that owns a keyed mutex.
    pub owner: Option<u32>,
    /// Whether it is a keyed mutex.
    pub is_mutex: bool,
    /// Whether queued work or a hidden process has a reference, too.
    pub has_more: bool,
}

/// Everything that a verdict depends on.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// One element each.
    pub waits: Vec<Wait>,
    /// By number.
    pub targets: BTreeMap<u64, Target>,
    /// Processes that were asked for; those that are missing are alive.
    pub lives: BTreeMap<u32, Life>,
}

/// Why a wait does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The culprits wait for each other.
    Cycle,
    /// The last signaller is gone, and nobody else could do it who does not wait.
    LastWriterGone,
    /// The culprit could end it and is stopped.
    Stopped,
    /// The culprit owns the keyed mutex.
    Owner,
    /// The culprit has released the keyed mutex with another key.
    OtherKey,
    /// The culprit could end it, and has not.
    HasNot,
    /// Nobody but the process that waits could end it.
    Alone,
    /// Only queued work or a hidden process could end it.
    Unseen,
}

/// A wait and who is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The elements of the wait that are not satisfied, as places in [`Facts::waits`].
    pub elements: Vec<usize>,
    /// Why it does not end.
    pub verdict: Verdict,
    /// Whose fault that is; empty if nobody who is known.
    pub culprits: BTreeSet<u32>,
}
