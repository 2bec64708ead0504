// SPDX-License-Identifier: GPL-2.0

//! What a shrinker frees, and in which order (MEM-111).

/// Why memory of an allocation may be freed, in the order in which that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// All who have it open offer it: its bytes are dropped.
    Offered,
    /// No GPU uses it: the kernel may swap its pages.
    Unwanted,
    /// The same, but its placement is still there, and goes first.
    Idle,
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Offered, Self::Unwanted, Self::Idle];
}

/// Where an allocation is for GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Nowhere.
    No,
    /// In system memory.
    System,
    /// In a segment.
    Segment,
}

/// What decides about an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// All who have it open offer it, and nothing uses it that was begun before.
    pub is_droppable: bool,
    /// Somebody wants it to be resident.
    pub is_wanted: bool,
    /// It stays where it is, whatever is short.
    pub is_unmoveable: bool,
    /// Where it is now.
    pub placed: Placed,
}

impl Facts {
    /// Why its memory may be freed; `None` if it may not.
    pub fn class(&self) -> Option<Class> {
        let may_go = self.placed == Placed::No || !self.is_unmoveable;

        match self.placed {
            _ if !may_go => None,
            _ if self.is_droppable => Some(Class::Offered),
            _ if self.is_wanted => None,
            Placed::No => Some(Class::Unwanted),
            Placed::System => Some(Class::Idle),
            // It would need more system memory to leave.
            Placed::Segment => None,
        }
    }

    /// Whether it has to lose its placement first, which takes the GPU.
    pub fn is_placed(&self) -> bool {
        self.placed != Placed::No
    }
}

/// How many of each class are looked at, if there are so many of each, and `most` may be.
pub fn shares(counts: [usize; Class::ALL.len()], most: usize) -> [usize; Class::ALL.len()] {
    let mut left = most;

    counts.map(|count| {
        let share = count.min(left);

        left -= share;
        share
    })
}
