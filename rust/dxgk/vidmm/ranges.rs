// SPDX-License-Identifier: GPL-2.0

//! The ranges of an address space in the kernel's trees: by page, and by the open of the allocation
//! that they show.

use crate::{
    logic::gpu_ranges::{
        Range,
        Ranges,
        Stretch,
        What, //
    },
    sys::alloc::tree_place, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

/// Which open a stretch shows, and its first page. Opens count from 1.
type ByOpening = (u64, u64);

/// Memory for one stretch.
pub(super) struct Place {
    stretch: RBTreeNodeReservation<u64, (u64, Range)>,
    shown: RBTreeNodeReservation<ByOpening, ()>,
}

impl Place {
    fn new() -> Result<Self, AllocError> {
        Ok(Self {
            stretch: tree_place()?,
            shown: tree_place()?,
        })
    }
}

/// Memory for so many stretches.
pub(super) fn places(count: usize) -> Result<KVVec<Place>, AllocError> {
    let mut places = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    for _ in 0..count {
        places.push(Place::new()?, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(places)
}

/// The stretches of an address space.
///
/// # Invariants
///
/// `shown` has one element for each of `stretches`: its open, or 0, and its first page.
pub(super) struct RangeTree {
    stretches: RBTree<u64, (u64, Range)>,
    shown: RBTree<ByOpening, ()>,
    count: u32,
}

fn opening(range: Range) -> u64 {
    match range.what {
        What::Mapped(mapping) => mapping.opening,
        What::NoAccess | What::Zero => 0,
    }
}

fn stretch((first, (pages, range)): (&u64, &(u64, Range))) -> Stretch {
    Stretch {
        first: *first,
        pages: *pages,
        range: *range,
    }
}

impl RangeTree {
    /// Nothing.
    pub(super) fn new() -> Self {
        Self {
            stretches: RBTree::new(),
            shown: RBTree::new(),
            count: 0,
        }
    }

    /// How many stretches there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The first stretch at or after `page` that shows this open.
    pub(super) fn shown_by(&self, opening: u64, page: u64) -> Option<Stretch> {
        let cursor = self.shown.cursor_lower_bound(&(opening, page))?;
        let (own, first) = *cursor.current().0;

        (own == opening)
            .then(|| self.at_or_before(first))
            .flatten()
            .filter(|found| found.first == first)
    }
}

impl Ranges for RangeTree {
    type Place = Place;

    fn at_or_before(&self, page: u64) -> Option<Stretch> {
        // Pages never reach the last number.
        match self.stretches.cursor_lower_bound(&page.saturating_add(1)) {
            Some(after) => after.peek_prev().map(stretch),
            None => self
                .stretches
                .cursor_back()
                .map(|last| stretch(last.current())),
        }
    }

    fn at_or_after(&self, page: u64) -> Option<Stretch> {
        self.stretches
            .cursor_lower_bound(&page)
            .map(|next| stretch(next.current()))
    }

    fn insert(&mut self, place: Place, new: Stretch) {
        let Stretch {
            first,
            pages,
            range,
        } = new;
        let shown = place.shown.into_node((opening(range), first), ());

        // None begins there.
        let _nothing = self
            .stretches
            .insert(place.stretch.into_node(first, (pages, range)));
        let _nothing = self.shown.insert(shown);

        self.count = self.count.saturating_add(1);
    }

    fn replace(&mut self, new: Stretch) {
        let Some(known) = self.stretches.get_mut(&new.first) else {
            return;
        };
        let before = opening(known.1);
        let after = opening(new.range);

        *known = (new.pages, new.range);
        if before != after {
            if let Some(node) = self.shown.remove_node(&(before, new.first)) {
                let node = node.into_reservation().into_node((after, new.first), ());
                let _nothing = self.shown.insert(node);
            }
        }
    }

    fn remove(&mut self, first: u64) {
        if let Some((_, range)) = self.stretches.remove(&first) {
            self.shown.remove(&(opening(range), first));
            self.count = self.count.saturating_sub(1);
        }
    }
}
