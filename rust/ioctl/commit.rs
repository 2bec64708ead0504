// SPDX-License-Identifier: GPL-2.0

//! The second step of every change that must not be visible before the answer is copied out
//! (RES-3).
//!
//! A handler returns what it has reserved. If the copy fails, dropping that leaves no trace.

use crate::{
    dxgk::{
        handle::{
            open_allocation::Locked,
            reserved_handles::ReservedHandles,
            Reserved, //
        },
        keyed_mutex::Acquired,
        memory::allocation::NewSize,
        object::ReservedGlobal,
        share::name_table::{
            Named,
            ReservedName, //
        }, //
        vidmm::{
            create::NewPagingQueue,
            offered::ReclaimedList,
            resident_list::{
                Evicted,
                MadeResident, //
            },
            taken::Taken, //
        },
    },
    sys::file::object_file::PendingFd, //
};

/// What was reserved.
pub(super) trait Commit {
    /// Makes it real. Cannot fail.
    fn commit(self);
}

impl Commit for () {
    fn commit(self) {}
}

impl<T: Commit> Commit for Option<T> {
    fn commit(self) {
        if let Some(reserved) = self {
            reserved.commit();
        }
    }
}

/// In this order.
impl<A: Commit, B: Commit> Commit for (A, B) {
    fn commit(self) {
        self.0.commit();
        self.1.commit();
    }
}

impl<T: Named> Commit for ReservedName<'_, T> {
    fn commit(self) {
        ReservedName::commit(self);
    }
}

/// For types that have the method.
macro_rules! commit {
    ($($reserved:ty),* $(,)?) => {
        $(
            impl Commit for $reserved {
                fn commit(self) {
                    <$reserved>::commit(self);
                }
            }
        )*
    };
}

commit!(
    Acquired,
    Evicted,
    Locked,
    MadeResident,
    NewPagingQueue<'_>,
    NewSize,
    PendingFd,
    ReclaimedList,
    Reserved<'_>,
    ReservedGlobal<'_>,
    ReservedHandles<'_>,
    Taken,
);
