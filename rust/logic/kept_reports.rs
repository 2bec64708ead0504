// SPDX-License-Identifier: GPL-2.0

//! Which reports of an adapter are kept: the last ones.
//!
//! Any process can have faults, as many as it likes. So a fault takes the place of another fault as
//! long as there is one, and does not push out what is told of a hang.

/// How many reports of an adapter are kept.
pub const KEPT: usize = 8;

/// A report that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its number; the next one has a larger one.
    pub number: u64,
    /// It is about a fault.
    pub is_fault: bool,
}

/// The place that a new report takes, among those that there are: `None` is free. `None` if there
/// is no place at all.
pub fn place_for(kept: impl Iterator<Item = Option<Kept>>, is_fault: bool) -> Option<usize> {
    let rank = |one: Option<Kept>| match one {
        None => (0, 0),
        Some(old) if is_fault && old.is_fault => (1, old.number),
        Some(old) => (2, old.number),
    };
    let places = kept.map(rank).enumerate();

    places.min_by_key(|(_, rank)| *rank).map(|(place, _)| place)
}
