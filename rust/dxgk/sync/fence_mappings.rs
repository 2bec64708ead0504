// SPDX-License-Identifier: GPL-2.0

//! The mappings of pages of fence values in one process.
//!
//! A common page of private fences has a mapping of its own. The page of a shareable fence is shown
//! in a place of a window as long as the process has the fence open. So making such a fence makes
//! no mapping, and how many there are is not limited by how many mappings a process may have
//! (FEN-12). The windows stay until the process closes the device.

use crate::error::{
    DxgError,
    DxgResult,
    Status, //
};
use crate::logic::value_windows::{
    Place,
    Window,
    Windows,
    PLACES, //
};
use crate::sys::alloc::tree_place;
use crate::sys::{
    mem::{
        mapping::{
            Mapped,
            Mapper, //
        },
        value_page::ValuePage,
        value_window::ValueWindow, //
    },
    task::caller::Identity, //
};
use core::mem;
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A place in a window of the process.
#[derive(Clone, Copy)]
struct Shown {
    window: ValueWindow,
    place: Place,
}

impl Shown {
    fn addr(self) -> usize {
        self.window.addr(self.place.slot)
    }
}

/// Where a shared fence is shown, for every open handle in the process.
struct SharedFence {
    shown: Shown,
    opens: u32,
}

/// A node of the tree of shared fences, without contents.
type SpareNode = RBTreeNodeReservation<u64, SharedFence>;

/// What shows shared fences.
struct Shared {
    /// By object id.
    fences: RBTree<u64, SharedFence>,
    /// A node for the next one, so that fences that come and go one after the other take no memory.
    spare: Option<SpareNode>,
    list: KVVec<Window<ValueWindow>>,
    windows: Windows,
}

impl Shared {
    /// One more open handle of a fence that is shown: where.
    fn open_again(&mut self, id: u64) -> Option<usize> {
        let fence = self.fences.get_mut(&id)?;

        // OVERFLOW: bounded by the handles of the process.
        fence.opens += 1;
        Some(fence.shown.addr())
    }

    /// One open handle of a fence less. After the last one, where it is shown, and a node that
    /// nobody needs, to be dropped without the lock.
    fn close(&mut self, id: u64) -> Option<(Shown, Option<SpareNode>)> {
        let fence = self.fences.get_mut(&id)?;

        if fence.opens > 1 {
            fence.opens -= 1;
            return None;
        }

        let shown = fence.shown;
        let node = self.fences.remove_node(&id);

        Some((
            shown,
            mem::replace(&mut self.spare, node.map(RBTreeNode::into_reservation)),
        ))
    }

    fn take(&mut self) -> Option<Shown> {
        let (place, window) = self.windows.take(&mut self.list)?;

        Some(Shown { window, place })
    }

    /// Adds a window and takes a place in it, if the list has room, for which `more` may be a
    /// longer list than the present one. What is not needed is left in `more`, to be dropped
    /// without the lock.
    fn add(&mut self, window: ValueWindow, more: &mut KVVec<Window<ValueWindow>>) -> Option<Shown> {
        if self.list.len() == self.list.capacity() && more.capacity() > self.list.len() {
            mem::swap(&mut self.list, more);
            for entry in more.drain_all() {
                // There is more room than before.
                let _room = self.list.push_within_capacity(entry);
            }
        }
        if !self.windows.has_vacant() && self.list.push_within_capacity(Window::none()).is_ok() {
            self.windows.add(&mut self.list);
        }

        let place = self.windows.open(&mut self.list, window)?;

        Some(Shown { window, place })
    }
}

/// The mappings of one process.
#[pin_data]
pub(crate) struct FenceMappings {
    /// The process and its address space.
    pub(crate) identity: Identity,
    mapper: Mapper,
    /// LOCK: nothing is mapped or unmapped under it.
    #[pin]
    shared: Mutex<Shared>,
}

impl FenceMappings {
    /// The address space of `identity`, with nothing in it.
    pub(crate) fn new(identity: Identity) -> Result<Arc<Self>> {
        let mapper = Mapper::new()?;

        Arc::pin_init(
            pin_init!(Self {
                identity,
                mapper,
                shared <- new_mutex!(
                    Shared {
                        fences: RBTree::new(),
                        spare: None,
                        list: KVVec::new(),
                        windows: Windows::new(),
                    },
                    "FenceMappings::shared"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Maps `page` read-only.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn map(&self, page: &Arc<ValuePage>) -> DxgResult<Mapped> {
        self.mapper.map(page).map_err(DxgError::from_errno)
    }

    /// Whether only the process sees `page`, where it was mapped.
    ///
    /// Context: as [`FenceMappings::map`].
    pub(crate) fn is_alone(&self, mapped: Mapped, page: &ValuePage) -> bool {
        self.mapper.is_alone(mapped, page)
    }

    /// Removes a mapping that no handle of the process needs any more. Handles are destroyed in
    /// calls of their process, or all together when the process is emptied. If the worker empties
    /// it, the mapping is left to the end of the address space.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap(&self, mapped: Mapped) {
        if self.identity.is_caller() {
            self.mapper.unmap(mapped);
        }
    }

    /// Shows the page of the shared object `id`, or adds a user to the place that shows it.
    ///
    /// Context: as [`FenceMappings::map`].
    pub(crate) fn map_shared(&self, id: u64, page: &ValuePage) -> DxgResult<usize> {
        let spare = {
            let mut shared = self.shared.lock();

            if let Some(addr) = shared.open_again(id) {
                return Ok(addr);
            }
            shared.spare.take()
        };
        let node = match spare {
            Some(spare) => spare,
            None => tree_place()?,
        };
        let shown = self.show(page)?;
        let node = node.into_node(id, SharedFence { shown, opens: 1 });
        let mut shared = self.shared.lock();

        // Another thread may have opened the same object meanwhile; one place is enough.
        if let Some(addr) = shared.open_again(id) {
            drop(shared);
            self.hide(shown);
            return Ok(addr);
        }
        shared.fences.insert(node);
        Ok(shown.addr())
    }

    /// Removes a user of the place of the shared object `id`. After the last one it shows nothing
    /// (FEN-12).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap_shared(&self, id: u64) {
        let last = self.shared.lock().close(id);

        if let Some((shown, _node)) = last {
            self.hide(shown);
        }
    }

    /// Shows `page` in a free place, in a new window if no window has one.
    fn show(&self, page: &ValuePage) -> DxgResult<Shown> {
        loop {
            let taken = self.shared.lock().take();
            let is_new = taken.is_none();
            let shown = match taken {
                Some(shown) => shown,
                None => self.grow()?,
            };

            match self.mapper.show(shown.window, shown.place.slot, page) {
                Ok(true) => return Ok(shown),
                Ok(false) => self.spoil(shown),
                Err(errno) => {
                    self.give_back(shown);
                    return Err(DxgError::from_errno(errno));
                }
            }
            // The process changes its mappings in this very moment, or it is being killed.
            if is_new {
                return Err(Status::NO_MEMORY.into());
            }
        }
    }

    /// Takes the page out of a place. If somebody else than the process empties it, the page is
    /// left to the end of the address space.
    fn hide(&self, shown: Shown) {
        if !self.identity.is_caller() {
            return;
        }
        if self.mapper.hide(shown.window, shown.place.slot) {
            self.give_back(shown);
        } else {
            self.spoil(shown);
        }
    }

    /// Maps a window and takes a place in it.
    fn grow(&self) -> DxgResult<Shown> {
        let window = self
            .mapper
            .map_window(PLACES)
            .map_err(DxgError::from_errno)?;

        Ok(self
            .add(window)
            .inspect_err(|_| self.mapper.unmap_window(window, PLACES))?)
    }

    fn add(&self, window: ValueWindow) -> Result<Shown, AllocError> {
        let mut more = KVVec::new();

        loop {
            let room = {
                let mut shared = self.shared.lock();

                if let Some(shown) = shared.add(window, &mut more) {
                    return Ok(shown);
                }
                shared.list.capacity()
            };

            more = KVVec::with_capacity(room.saturating_mul(2).max(4), GFP_KERNEL_ACCOUNT)?;
        }
    }

    /// Gives a place back that shows nothing.
    fn give_back(&self, Shown { place, .. }: Shown) {
        let gone = {
            let shared = &mut *self.shared.lock();

            shared.windows.give_back(&mut shared.list, place)
        };

        self.remove(gone);
    }

    /// Gives a place back that the process has changed.
    fn spoil(&self, Shown { place, .. }: Shown) {
        let gone = {
            let shared = &mut *self.shared.lock();

            shared.windows.spoil(&mut shared.list, place)
        };

        self.remove(gone);
    }

    /// Removes what is left of a window that shows nothing any more.
    fn remove(&self, window: Option<ValueWindow>) {
        if let Some(window) = window {
            self.mapper.unmap_window(window, PLACES);
        }
    }

    /// Removes all windows: the process has closed the device. What ends later finds nothing.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        let list = {
            let mut shared = self.shared.lock();

            shared.windows = Windows::new();
            mem::replace(&mut shared.list, KVVec::new())
        };

        if self.identity.is_caller() {
            for window in list.into_iter().filter_map(Window::into_place) {
                self.mapper.unmap_window(window, PLACES);
            }
        }
    }
}
