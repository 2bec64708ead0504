// SPDX-License-Identifier: GPL-2.0

//! What the thread of an engine has to look at: a list through the objects themselves, first in,
//! first out, so that putting something there takes no memory.
//!
//! LOCK: the owner's, around each call; that of an object is taken inside.

use crate::platform::Shared;

/// What can be in a list. It is in one at a time.
pub trait Listed: Sized {
    /// What whoever takes it off the list is told.
    type Told;

    /// This one comes after it.
    fn follow_by(&self, next: &Shared<Self>);

    /// Takes it off its list, of which it is the first one: the next one, and what is told.
    fn unlist(&self) -> (Option<Shared<Self>>, Self::Told);
}

/// Things that wait for their turn, in the order in which they came.
pub struct List<T> {
    first: Option<Shared<T>>,
    last: Option<Shared<T>>,
}

impl<T: Listed> List<T> {
    /// Nothing.
    pub const fn new() -> Self {
        Self {
            first: None,
            last: None,
        }
    }

    /// Puts an object behind all others.
    pub fn push(&mut self, object: &Shared<T>) {
        match self.last.replace(object.clone()) {
            // The list keeps it by another reference.
            Some(last) => last.follow_by(object),
            None => self.first = Some(object.clone()),
        }
    }

    /// Takes the first one out, which may go when the result is dropped.
    pub fn pop(&mut self) -> Option<(Shared<T>, T::Told)> {
        let first = self.first.take()?;
        let (next, told) = first.unlist();

        if next.is_none() {
            // That was `first`, too.
            self.last = None;
        }
        self.first = next;
        Some((first, told))
    }
}
