// SPDX-License-Identifier: GPL-2.0

//! The address space of an open of an allocation, as far as residency goes.

use super::{
    idle::IdleList,
    seat::Seat, //
};
use crate::logic::users::{
    Space,
    Usage, //
};
use kernel::sync::Arc;

/// The address space of an open.
pub(crate) trait ResidentIn: Send + Sync {
    /// The allocation of an open has got or lost its placement: writes the entries of the ranges
    /// that show it. On return no engine uses the old ones.
    ///
    /// Context: may sleep; `AllocationMemory::turn` of the allocation.
    fn refresh(&self, opening: u64);

    /// All contexts there are off their engines, until they need not be any more. One at a time
    /// asks for it.
    ///
    /// Context: as [`ResidentIn::refresh`].
    fn hold_contexts(&self, are_held: bool);

    /// Whether it may run now.
    fn seat(&self) -> &Arc<Seat>;

    /// So many bytes more of a budget group are wanted there.
    fn add_usage(&self, group: usize, bytes: u64);

    /// So many bytes less.
    fn sub_usage(&self, group: usize, bytes: u64);

    /// What its process has offered and could go without.
    fn offered(&self) -> &Arc<IdleList>;
}

impl Space for Arc<dyn ResidentIn> {
    fn add_usage(&self, usage: Usage) {
        ResidentIn::add_usage(&**self, usage.group, usage.bytes);
    }

    fn sub_usage(&self, usage: Usage) {
        ResidentIn::sub_usage(&**self, usage.group, usage.bytes);
    }

    fn is(&self, other: &Self) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(self), Arc::as_ptr(other))
    }
}
