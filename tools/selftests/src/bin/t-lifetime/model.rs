// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the driver should do, in the fewest words: lists of who holds what.

use selftests::sharing::{Shape, What};

/// A local handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) process: usize,
    pub(crate) object: usize,
    pub(crate) what: What,
    pub(crate) handle: u32,
    /// One of its allocations, for an open resource.
    pub(crate) part: u32,
}

/// A descriptor of an NT handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nt {
    pub(crate) process: usize,
    pub(crate) share: usize,
    pub(crate) fd: u32,
}

/// The reference model. Objects and shares are never removed from it; who is not held is dead.
#[derive(Default)]
pub(crate) struct Model {
    /// The kind of each object.
    pub(crate) objects: Vec<Shape>,
    /// The object of each share.
    pub(crate) shares: Vec<usize>,
    pub(crate) held: Vec<Held>,
    pub(crate) nts: Vec<Nt>,
}

impl Model {
    /// Whether any descriptor of the share is open, which is also whether its name is found.
    pub(crate) fn is_open(&self, share: usize) -> bool {
        self.nts.iter().any(|nt| nt.share == share)
    }

    /// Strong references: one for each local handle, one for each share.
    pub(crate) fn references(&self, object: usize) -> u32 {
        let held = self.held.iter().filter(|held| held.object == object);
        let shares = (0..self.shares.len()).filter(|share| self.shares[*share] == object);
        (held.count() + shares.filter(|share| self.is_open(*share)).count()) as u32
    }

    /// The process and all that it holds are gone.
    pub(crate) fn killed(&mut self, process: usize) {
        self.held.retain(|held| held.process != process);
        self.nts.retain(|nt| nt.process != process);
    }
}
