// SPDX-License-Identifier: GPL-2.0

//! A list whose entries are sorted into classes, so that an entry of a class is found without a
//! search, and an entry changes its class in a few steps.
//!
//! The entries of a class are next to each other, in any order. The list itself is the caller's;
//! this knows where the classes end.

/// What a page of fence values has places for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageClass {
    /// Places that may be used.
    Free,
    /// Places that came back since the page was checked.
    Stale,
    /// Neither.
    Rest,
}

/// Where the classes of a list end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// The first index after the free ones.
    free: usize,
    /// The first index after the stale ones.
    stale: usize,
}

impl Classes {
    /// Those of an empty list.
    pub const fn new() -> Self {
        Self { free: 0, stale: 0 }
    }

    /// The class of the entry at `index`.
    pub fn of(&self, index: usize) -> PageClass {
        if index < self.free {
            PageClass::Free
        } else if index < self.stale {
            PageClass::Stale
        } else {
            PageClass::Rest
        }
    }

    /// An entry of a class: the first one. The rest is all that comes after it.
    pub fn first(&self, class: PageClass) -> Option<usize> {
        match class {
            PageClass::Free => (self.free > 0).then_some(0),
            PageClass::Stale => (self.stale > self.free).then_some(self.free),
            PageClass::Rest => Some(self.stale),
        }
    }

    /// Moves the entry at `index` into `class`, and says where it is then. `swap` exchanges two
    /// entries of the list.
    pub fn sort(
        &mut self,
        index: usize,
        class: PageClass,
        mut swap: impl FnMut(usize, usize),
    ) -> usize {
        let mut at = index;
        let mut exchange = |at: &mut usize, other: usize| {
            if *at != other {
                swap(*at, other);
            }
            *at = other;
        };

        // To the left: in the place of the first entry after the boundary.
        if self.of(at) == PageClass::Rest && class < PageClass::Rest {
            exchange(&mut at, self.stale);
            self.stale += 1;
        }
        if self.of(at) == PageClass::Stale && class < PageClass::Stale {
            exchange(&mut at, self.free);
            self.free += 1;
        }
        // To the right: in the place of the last entry before the boundary.
        if self.of(at) == PageClass::Free && class > PageClass::Free {
            self.free -= 1;
            exchange(&mut at, self.free);
        }
        if self.of(at) == PageClass::Stale && class > PageClass::Stale {
            self.stale -= 1;
            exchange(&mut at, self.stale);
        }
        at
    }
}
