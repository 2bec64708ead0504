// SPDX-License-Identifier: GPL-2.0

//! A resource: it holds allocations and counts for all of them (RES-77 to RES-83).
//!
//! A standalone allocation has a resource of its own, without a handle. Allocations do not know
//! their resource. A user of an allocation holds its resource through an
//! [`OpenResource`](super::super::handle::open_resource::OpenResource). So there are no cycles,
//! and nothing is recursive.

use super::allocation::Allocation;
use crate::dxgk::{
    at_once::AT_ONCE,
    object::Header,
    small_vec::InlineVec, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::global_access::OpenPolicy,
    sys::{
        alloc::pin_arc,
        seq,
        task::group::ThreadGroup,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    new_work,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    workqueue::Work, //
};

/// What is fixed at creation.
pub(crate) struct ResourceDescription {
    /// Whether it can be opened elsewhere.
    pub(crate) shared: bool,
    /// Whether it is the resource of one standalone allocation.
    pub(crate) standalone: bool,
    /// Who may open it by global handle.
    pub(crate) open_policy: OpenPolicy,
    /// Whether its creator said that it is a back buffer of a swap chain.
    pub(crate) back_buffer: bool,
    /// The process that made it.
    pub(crate) creator: Option<ThreadGroup>,
    /// Private driver data of the resource itself, if there is any.
    pub(crate) driver_data: Option<KVVec<u8>>,
}

impl ResourceDescription {
    /// Private driver data of the resource itself.
    pub(crate) fn driver_data(&self) -> &[u8] {
        self.driver_data.as_deref().unwrap_or_default()
    }
}

/// How many processes can be admitted to one resource.
const MAX_ADMITTED: usize = 256;

/// A rectangle that presentation code keeps with a resource.
pub(crate) type Rectangle = [u32; 4];

struct State {
    allocations: InlineVec<Arc<Allocation>>,
    /// How many more there is room for, because they are about to be added.
    expected: usize,
    present_rect: Rectangle,
    /// Processes that may open it although access is restricted.
    admitted: KVec<ThreadGroup>,
}

/// What allocations belong to, and what is shared.
#[pin_data]
pub(crate) struct Resource {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
    /// What was fixed at creation.
    pub(crate) description: ResourceDescription,
    /// LOCK: inside, locks of `Allocation` are only tried.
    #[pin]
    state: Mutex<State>,
    /// dma-bufs that are references to it.
    pub(super) exports: Atomic<u32>,
    /// See [`super::retire`].
    #[pin]
    pub(in crate::dxgk) retirement: Work<Resource>,
}

impl Resource {
    /// A resource without allocations.
    pub(crate) fn new(
        header: impl PinInit<Header>,
        description: ResourceDescription,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                header <- header,
                description,
                state <- new_mutex!(
                    State {
                        allocations: InlineVec::new(),
                        expected: 0,
                        present_rect: [0; 4],
                        admitted: KVec::new(),
                    },
                    "Resource::state"
                ),
                exports: Atomic::new(0),
                retirement <- new_work!("Resource::retirement"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Gives a new resource, which nobody knows yet, its allocations.
    pub(super) fn start_with(&self, allocations: InlineVec<Arc<Allocation>>) {
        self.state.lock().allocations = allocations;
    }

    /// Makes room for allocations that are added to an unshared resource (RES-24).
    pub(crate) fn make_room(&self, more: usize) -> DxgResult {
        let mut state = self.state.lock();
        let expected = state.expected.saturating_add(more);

        state.allocations.reserve(expected)?;
        state.expected = expected;
        Ok(())
    }

    /// Adds allocations that were expected, or none of them. Cannot fail.
    pub(crate) fn add(&self, more: &[Arc<Allocation>], expected: usize) {
        let mut state = self.state.lock();

        state.expected = state.expected.saturating_sub(expected);
        for allocation in more {
            // There is room for all of them.
            state.allocations.push(allocation.clone());
        }
    }

    /// The allocations now.
    pub(crate) fn allocations(&self) -> Result<InlineVec<Arc<Allocation>>, AllocError> {
        let state = self.state.lock();
        let mut all = InlineVec::with_capacity(state.allocations.len())?;

        for allocation in &state.allocations {
            all.push(allocation.clone());
        }
        Ok(all)
    }

    /// The allocation at `index`.
    pub(crate) fn allocation(&self, index: u32) -> Option<Arc<Allocation>> {
        // CAST: 32 bits fit a usize.
        self.state.lock().allocations.get(index as usize).cloned()
    }

    /// Drops the dma-bufs of its allocations that nobody has any more; says how many references to
    /// it they have.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn drop_unused_exports(&self) -> u32 {
        let mut left = self.exports.load(Relaxed);
        let mut dropped = 0;

        for index in 0.. {
            if left == 0 {
                break;
            }

            let Some(allocation) = self.allocation(index) else {
                break;
            };
            let count = allocation.drop_unused_exports();

            left = left.saturating_sub(count);
            dropped += count;
        }
        dropped
    }

    /// How many allocations there are, and how many bytes of private driver data they have.
    pub(crate) fn extent(&self) -> (u32, u32) {
        let state = self.state.lock();
        let bytes = state
            .allocations
            .iter()
            .map(|allocation| allocation.description.driver_data.len())
            .fold(0, usize::saturating_add);

        // CAST: at most 4096 allocations.
        (
            state.allocations.len() as u32,
            u32::try_from(bytes).unwrap_or(u32::MAX),
        )
    }

    /// Called when a handle of `allocation` is destroyed: an unshared resource withdraws the
    /// allocation if that was its last handle (RES-82). The handle itself counts until it is
    /// dropped. True if it did; then [`Resource::remove_withdrawn`] lets go of the storage.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn withdraw(&self, allocation: &Allocation) -> bool {
        !self.description.shared && allocation.withdraw()
    }

    /// Removes allocations that were withdrawn, as many as `gone` has room for, and lets go
    /// of their storage. Walks the allocations once.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn remove_withdrawn(&self, gone: &mut KVVec<Arc<Allocation>>) {
        // Without room, another call has withdrawn it and removes it.
        self.state.lock().allocations.retain(|allocation| {
            !allocation.is_withdrawn() || gone.push_within_capacity(allocation.clone()).is_err()
        });
        for allocation in gone.iter() {
            allocation.cleanup();
        }
        gone.clear();
    }

    /// Admits a process to a restricted resource, or stops admitting it (RES-103).
    pub(crate) fn set_access(&self, group: ThreadGroup, allow: bool) -> DxgResult {
        let mut state = self.state.lock();
        let place = state.admitted.iter().position(|known| *known == group);

        match (place, allow) {
            (None, true) if state.admitted.len() >= MAX_ADMITTED => {
                return Err(Status::NO_MEMORY.into())
            }
            (None, true) => state.admitted.push(group, GFP_KERNEL_ACCOUNT)?,
            (Some(place), false) => {
                let gone = state.admitted.remove(place);

                drop(state);
                drop(gone);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a process is the creator or was admitted.
    pub(crate) fn allows(&self, group: &ThreadGroup) -> bool {
        self.description.creator.as_ref() == Some(group)
            || self
                .state
                .lock()
                .admitted
                .iter()
                .any(|known| known == group)
    }

    /// The same for the calling process.
    pub(crate) fn allows_caller(&self) -> bool {
        ThreadGroup::of_caller().is_some_and(|caller| self.allows(&caller))
    }

    /// Keeps a rectangle (RES-68).
    pub(crate) fn set_present_rect(&self, rectangle: Rectangle) {
        self.state.lock().present_rect = rectangle;
    }

    /// Whether what is left to free is little enough to do it at once. Only tries locks.
    pub(in crate::dxgk) fn has_little(&self) -> bool {
        let Some(state) = self.state.try_lock() else {
            return false;
        };
        let mut room = AT_ONCE;

        state.allocations.len() <= AT_ONCE
            && state.allocations.iter().all(|allocation| {
                let pages = allocation.pages_at_most(room);

                room -= pages.unwrap_or(0);
                pages.is_some()
            })
    }

    /// Frees the contents, last created first (RES-81). Called when the resource retires.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn cleanup(&self) {
        let mut allocations = {
            let mut state = self.state.lock();

            core::mem::take(&mut state.allocations)
        };

        while let Some(allocation) = allocations.pop() {
            allocation.cleanup();
            work::breathe();
        }
    }

    /// Prints the state into fdinfo.
    pub(crate) fn show(&self, m: &SeqFile) {
        let (count, _) = self.extent();
        let [left, top, right, bottom] = self.state.lock().present_rect;

        seq_print!(m, "dxg-allocations:\t{count}\n");
        seq_print!(
            m,
            "dxg-back-buffer:\t{}\n",
            u8::from(self.description.back_buffer)
        );
        for (index, allocation) in self.allocations().iter().flatten().enumerate() {
            if !seq::wants_more(m) {
                return;
            }
            seq_print!(m, "dxg-allocation:\t{index}");
            allocation.show(m);
            seq_print!(m, "\n");
        }
        seq_print!(m, "dxg-present-rect:\t{left} {top} {right} {bottom}\n");
    }
}
