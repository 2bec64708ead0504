// SPDX-License-Identifier: GPL-2.0

//! An address space, as far as it takes turns with others of its adapter (`rotation.rs`).

use super::contexts::{
    Contexts,
    Why, //
};
use crate::{
    logic::rotation_rules::Turn,
    sys::{
        task::memory_group::MemoryGroup,
        time::now_ns, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// Whether an address space may run.
pub(crate) struct Seat {
    contexts: Arc<Contexts>,
    /// Whom it is charged to what is needed to bring it back.
    group: MemoryGroup,
    /// Its contexts are off their engines. Changed under `Rotation::hand`.
    is_suspended: AtomicFlag,
    /// Since when, or since when they are not; 0 if they were never.
    since: Atomic<u64>,
    /// Its process has ended.
    has_ended: AtomicFlag,
}

impl Seat {
    /// That of a new address space, which runs. It is charged to the caller.
    pub(super) fn new(contexts: &Arc<Contexts>) -> Result<Arc<Self>, AllocError> {
        Arc::new(
            Self {
                contexts: contexts.clone(),
                group: MemoryGroup::of_caller(),
                is_suspended: AtomicFlag::new(false),
                since: Atomic::new(0),
                has_ended: AtomicFlag::new(false),
            },
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether its contexts are off their engines for want of room.
    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Relaxed)
    }

    pub(super) fn turn(&self) -> Turn {
        Turn {
            is_suspended: self.is_suspended(),
            since: self.since.load(Relaxed),
        }
    }

    /// It stays for a slice from now on, or goes behind the others that are suspended.
    pub(super) fn begin_turn(&self) {
        self.since.store(now_ns(), Relaxed);
    }

    /// On return no context of it runs, and what it wants need not be there.
    ///
    /// Context: may sleep; `Rotation::hand`.
    pub(super) fn suspend(&self) {
        self.contexts.suspend(Why::Room);
        self.is_suspended.store(true, Relaxed);
        self.begin_turn();
    }

    /// All that it wants is there.
    ///
    /// Context: as [`Seat::suspend`].
    pub(super) fn resume(&self) {
        self.begin_turn();
        self.is_suspended.store(false, Relaxed);
        self.contexts.resume(Why::Room);
    }

    /// Its process has ended: nothing has to come back for it.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Relaxed);
    }

    /// Whether its process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    /// Runs `work`, which is charged to the process.
    pub(super) fn charge<T>(&self, work: impl FnOnce() -> T) -> T {
        self.group.charge(work)
    }
}
