// SPDX-License-Identifier: GPL-2.0

//! Memory that processes have reserved: a part of their budgets that others do not get (MEM-36,
//! MEM-37).
//!
//! An adapter has the sum of each group. A process has its own parts, by adapter, and gives them
//! back when it is emptied.
//!
//! LOCK: `Reservations::state` is a mutex, and `ReservedMemory::sums` a leaf inside it.

use super::notice::Notices;
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::paging_rules::{
        self,
        GROUPS, //
    },
    sys::alloc::pin_arc, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    }, //
};

/// Bytes of each group.
type Bytes = [u64; GROUPS];

/// What all processes have reserved of an adapter.
#[pin_data]
pub(crate) struct ReservedMemory {
    /// Who is told when it changes.
    notices: Arc<Notices>,
    #[pin]
    sums: SpinLock<Bytes>,
}

impl ReservedMemory {
    /// Nothing.
    pub(super) fn new(notices: &Arc<Notices>) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                notices: notices.clone(),
                sums <- new_spinlock!([0; GROUPS], "ReservedMemory::sums"),
            }),
            GFP_KERNEL,
        )
    }

    /// How much of a group others than a process have that has reserved `own`.
    fn of_others(&self, group: usize, own: u64) -> u64 {
        let sums = self.sums.lock();

        sums.get(group).map_or(0, |sum| sum.saturating_sub(own))
    }

    /// A process reserves `new` bytes instead of `own`, of a group of `size` bytes.
    /// INVALID_PARAMETER if that is more than it may (MEM-37).
    fn change(&self, group: usize, size: u64, own: u64, new: u64) -> DxgResult {
        let mut sums = self.sums.lock();
        let sum = sums.get_mut(group).ok_or(Status::INVALID_PARAMETER)?;
        let others = sum.saturating_sub(own);

        paging_rules::check_reservation(new, paging_rules::budget(size, others))?;
        // It is at most the budget, so that the sum is at most the size of the group.
        *sum = others.saturating_add(new);
        drop(sums);
        self.notices.changed();
        Ok(())
    }

    fn give_back(&self, own: &Bytes) {
        let mut sums = self.sums.lock();

        for (sum, own) in sums.iter_mut().zip(own) {
            *sum = sum.saturating_sub(*own);
        }
        drop(sums);
        self.notices.changed();
    }
}

/// What one process has reserved of one adapter, until this is dropped.
struct Reserved {
    /// The id of the adapter.
    adapter: u64,
    memory: Arc<ReservedMemory>,
    own: Bytes,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.memory.give_back(&self.own);
    }
}

struct State {
    list: KVec<Reserved>,
    /// The process has been emptied.
    closed: bool,
}

/// What a process has reserved.
#[pin_data]
pub(crate) struct Reservations {
    #[pin]
    state: Mutex<State>,
}

/// What a process and others have reserved of a group.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) own: u64,
    pub(crate) of_others: u64,
}

impl Reservations {
    /// Nothing.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_mutex!(
                State {
                    list: KVec::new(),
                    closed: false,
                },
                "Reservations::state"
            ),
        })
    }

    /// What is reserved of a group of the adapter with the number `adapter`, whose memory this is.
    pub(super) fn of_group(&self, adapter: u64, memory: &ReservedMemory, group: usize) -> Parts {
        let state = self.state.lock();
        let reserved = state.list.iter().find(|one| one.adapter == adapter);
        let own = reserved
            .and_then(|one| one.own.get(group))
            .map_or(0, |own| *own);

        Parts {
            own,
            of_others: memory.of_others(group, own),
        }
    }

    /// Reserves so many bytes of a group of `size` bytes instead of what was reserved before.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn change(
        &self,
        adapter: u64,
        memory: &Arc<ReservedMemory>,
        (group, size): (usize, u64),
        bytes: u64,
    ) -> DxgResult {
        let mut state = self.state.lock();

        if state.closed {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let place = match state.list.iter().position(|one| one.adapter == adapter) {
            Some(place) => place,
            None => {
                let none = Reserved {
                    adapter,
                    memory: memory.clone(),
                    own: [0; GROUPS],
                };

                state.list.push(none, GFP_KERNEL_ACCOUNT)?;
                state.list.len().saturating_sub(1)
            }
        };
        let own = state
            .list
            .get_mut(place)
            .and_then(|reserved| reserved.own.get_mut(group))
            .ok_or(Status::INVALID_PARAMETER)?;

        memory.change(group, size, *own, bytes)?;
        *own = bytes;
        Ok(())
    }

    /// Gives all of it back; there will be no more.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn close(&self) {
        let mut state = self.state.lock();
        let ended = core::mem::take(&mut state.list);

        state.closed = true;
        drop(state);
        drop(ended);
    }
}
