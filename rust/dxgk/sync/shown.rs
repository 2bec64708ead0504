// SPDX-License-Identifier: GPL-2.0

//! The GPU address spaces that show one fence. Most fences have one, which takes no more memory.
//!
//! A space has a number, which goes up, so that who goes through them is not thrown back by others
//! who come and go.

use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// The GPU address spaces that show CurrentValue.
pub(super) enum Shown<W: ?Sized> {
    /// One, as most fences have.
    In(Arc<W>),
    /// As many as are in the list, since there were two; or none.
    List(Option<KBox<Spaces<W>>>),
}

/// A list of GPU address spaces.
pub(super) struct Spaces<W: ?Sized> {
    /// Each has a number, which goes up.
    pub(super) list: KVec<(u64, Arc<W>)>,
    /// What the next one gets.
    next: u64,
    /// All of them know that somebody waits, or are being told.
    know: bool,
}

impl<W: ?Sized> Spaces<W> {
    /// An empty list with room for two.
    pub(super) fn new() -> Result<KBox<Self>, AllocError> {
        KBox::new(
            Self {
                list: KVec::with_capacity(2, GFP_KERNEL_ACCOUNT)?,
                next: 0,
                know: false,
            },
            GFP_KERNEL_ACCOUNT,
        )
    }
}

impl<W: ?Sized> Shown<W> {
    /// The first space whose number is at least this one, and its number.
    pub(super) fn from(&self, number: u64) -> Option<(u64, &Arc<W>)> {
        match self {
            Self::In(space) => Some((0, space)).filter(|_| number == 0),
            Self::List(spaces) => {
                let list = &spaces.as_ref()?.list;
                let place = list.partition_point(|(own, _)| *own < number);

                list.get(place).map(|(own, space)| (*own, space))
            }
        }
    }

    /// The number of the last space.
    pub(super) fn last(&self) -> Option<u64> {
        match self {
            Self::In(_) => Some(0),
            Self::List(spaces) => spaces.as_ref()?.list.last().map(|(number, _)| *number),
        }
    }

    /// Somebody waits: the number of the last space that the caller has to tell, before it has told
    /// the others. `None` if all know. One alone is always told, because no more memory is there to
    /// say that it knows.
    pub(super) fn last_to_tell(&mut self) -> Option<u64> {
        if let Self::List(Some(spaces)) = self {
            if core::mem::replace(&mut spaces.know, true) {
                return None;
            }
        }
        self.last()
    }

    /// One of the spaces does not know that somebody waits.
    pub(super) fn forget(&mut self) {
        if let Self::List(Some(spaces)) = self {
            spaces.know = false;
        }
    }

    /// Adds a space to a list that has room.
    pub(super) fn push(&mut self, space: Arc<W>) {
        if let Self::List(Some(spaces)) = self {
            let number = spaces.next;
            let _room = spaces.list.push_within_capacity((number, space));

            // OVERFLOW: 2^64 openings take longer than any machine runs.
            spaces.next = number.wrapping_add(1);
            spaces.know = false;
        }
    }

    /// Takes a space out.
    pub(super) fn remove(&mut self, is_it: impl Fn(&Arc<W>) -> bool) -> Option<Arc<W>> {
        match self {
            Self::In(space) if is_it(space) => match core::mem::replace(self, Self::List(None)) {
                Self::In(space) => Some(space),
                Self::List(_) => None,
            },
            Self::List(Some(spaces)) => {
                let place = spaces.list.iter().position(|(_, space)| is_it(space))?;

                spaces.list.remove(place).ok().map(|(_, space)| space)
            }
            Self::In(_) | Self::List(None) => None,
        }
    }
}
