// SPDX-License-Identifier: GPL-2.0

//! Residency of one allocation: who wants it, and where it is for GPUs (MEM-6, MEM-17, MEM-24 to
//! MEM-26).
//!
//! Each open of a device has a count. While one of them is not 0, the allocation has a *placement*:
//! pages that stay where they are, in a segment or in system memory. Page tables of all address
//! spaces that show it lead there. Without a count there is no placement and no valid entry, and
//! what was in a segment is back in system memory, unless that had no room.
//!
//! An allocation is made ready in two steps. *Prepare* is for the thread that wants it: it takes
//! the pages, which are charged to that thread, or a place in a segment with its pages, and can
//! fail. *Finish* moves the bytes and writes the page tables; the worker may do it.
//!
//! LOCK: `turn` is a mutex; whoever prepares, finishes or takes away holds it. Inside: page tables
//! (`AddressSpace::state`), moves (`Movable::state`), pages. `state` is a mutex and a leaf; it is
//! inside `AddressSpace::state` too. Nothing is dropped under it.

use super::segment::{
    LocalPages,
    Segment, //
};
use crate::{
    ddi::{
        paging::{
            PageEntry,
            PageTableEntry, //
        },
        segments::SYSTEM_MEMORY,
        types::Place, //
    },
    dxgk::memory::storage::{
        PinnedStorage,
        Storage, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::gpu_ranges::Mapping,
    sys::{
        alloc::pin_arc,
        mem::{
            movable::moving::MoveError,
            pages::PageSource, //
        },
        task::sleep,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    }, //
};

/// Pages that stay where they are.
#[derive(Clone)]
pub(super) enum Placement {
    /// Pages of system memory.
    System(Arc<PinnedStorage>),
    /// Pages of a segment, and what keeps the bytes there.
    Local(Arc<LocalPages>, Arc<PinnedStorage>),
}

impl Placement {
    /// The bytes may move from here on, although somebody may still have this.
    fn unpin(&self) {
        match self {
            Self::System(pinned) | Self::Local(_, pinned) => pinned.unpin(),
        }
    }

    /// The entry for the first page that a mapping shows.
    pub(super) fn entry(&self, mapping: &Mapping) -> PageTableEntry {
        // CAST: 64 bits fit a usize.
        let index = mapping.offset as usize;
        let place = match self {
            Self::System(pages) => pages
                .present(index)
                .map(|frame| (SYSTEM_MEMORY, frame.physical())),
            Self::Local(pages, _) => pages.offset(index).map(|offset| (pages.segment(), offset)),
        };

        place.map_or(PageTableEntry::Invalid, |(segment, address)| {
            PageTableEntry::Page(PageEntry {
                segment,
                address,
                read_only: !mapping.write,
                no_execute: !mapping.execute,
                system_use_only: false,
            })
        })
    }
}

/// The address space of an open, as far as residency goes.
pub(crate) trait ResidentIn: Send + Sync {
    /// The allocation of an open has got or lost its placement: writes the entries of the ranges
    /// that show it. On return no engine uses the old ones.
    ///
    /// Context: may sleep; `AllocationMemory::turn` of the allocation.
    fn refresh(&self, opening: u64);

    /// So many bytes more of a budget group are wanted there.
    fn add_usage(&self, group: usize, bytes: u64);

    /// So many bytes less.
    fn sub_usage(&self, group: usize, bytes: u64);
}

/// What an open of a device wants.
struct User {
    opening: u64,
    device: u64,
    /// How often it wants it to be resident.
    count: u32,
    space: Arc<dyn ResidentIn>,
}

/// An open of an allocation, for those who show it.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    /// Its number; not 0.
    pub(super) id: u64,
    /// What it opens.
    pub(super) memory: &'a Arc<AllocationMemory>,
    /// Its ranges were taken out, and there will be no more. Stored under the lock of the address
    /// space.
    pub(super) closed: &'a Atomic<bool>,
}

impl Opening<'_> {
    /// Whether ranges may not show it any more.
    ///
    /// Context: the lock of its address space.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Its ranges are taken out, so that from now on there are none.
    ///
    /// Context: as [`Opening::is_closed`].
    pub(super) fn close(&self) {
        self.closed.store(true, Relaxed);
    }
}

struct State {
    /// The bytes; `None` if they have no size yet, and after the end.
    storage: Option<Arc<Storage>>,
    /// The allocation is gone; its bytes go with the last user.
    ended: bool,
    users: KVec<User>,
    /// The sum of the counts.
    wanted: u64,
    placement: Option<Placement>,
}

/// What is held of a segment.
struct Turn {
    /// The place there; the bytes are in it, or about to be.
    local: Option<Arc<LocalPages>>,
    /// The pages of system memory that the bytes were in before, and go back to.
    home: Option<Arc<dyn PageSource>>,
}

/// An allocation, as the memory manager knows it.
#[pin_data]
pub(crate) struct AllocationMemory {
    /// Where it had best be, if that is a segment.
    segment: Option<Arc<Segment>>,
    /// The budget group that it counts in.
    pub(crate) group: usize,
    /// Bytes; 0 as long as they are not known.
    size: Atomic<u64>,
    #[pin]
    turn: Mutex<Turn>,
    #[pin]
    state: Mutex<State>,
}

/// Why an allocation cannot be resident now.
pub(crate) enum Shortage {
    /// A segment lacks so many bytes.
    Segment(u64),
    /// Something else is the matter.
    Failed(DxgError),
}

impl From<DxgError> for Shortage {
    fn from(error: DxgError) -> Self {
        Self::Failed(error)
    }
}

impl AllocationMemory {
    /// An allocation of these bytes, which had best be in `segment`, if that is given.
    pub(crate) fn new(
        storage: Option<Arc<Storage>>,
        segment: Option<Arc<Segment>>,
        size: u64,
    ) -> Result<Arc<Self>, AllocError> {
        let is_local = segment
            .as_ref()
            .is_some_and(|segment| segment.is_local_group);

        pin_arc(
            pin_init!(Self {
                segment,
                group: usize::from(!is_local),
                size: Atomic::new(size),
                turn <- new_mutex!(
                    Turn {
                        local: None,
                        home: None,
                    },
                    "AllocationMemory::turn"
                ),
                state <- new_mutex!(
                    State {
                        storage,
                        ended: false,
                        users: KVec::new(),
                        wanted: 0,
                        placement: None,
                    },
                    "AllocationMemory::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Acquire)
    }

    /// Gives an allocation without a size its bytes. It was not ended meanwhile, because somebody
    /// has it open.
    pub(crate) fn set_storage(&self, storage: Arc<Storage>) {
        let size = storage.size();

        self.state.lock().storage = Some(storage);
        self.size.store(size, Release);
    }

    /// The placement now.
    pub(super) fn placement(&self) -> Option<Placement> {
        self.state.lock().placement.clone()
    }

    /// Whether GPUs can use it, and the segment that it is in then; 0 is system memory.
    pub(crate) fn resident_in(&self) -> Option<u32> {
        match self.state.lock().placement.as_ref()? {
            Placement::System(_) => Some(SYSTEM_MEMORY),
            Placement::Local(pages, _) => Some(pages.segment()),
        }
    }

    /// Adds the open with the number `opening`, of `device` in `space`.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn enter(
        &self,
        opening: u64,
        device: u64,
        space: Arc<dyn ResidentIn>,
    ) -> Result<(), AllocError> {
        self.state.lock().users.push(
            User {
                opening,
                device,
                count: 0,
                space,
            },
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Removes an open, with its counts.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn leave(&self, opening: u64) {
        let mut state = self.state.lock();
        let place = state.users.iter().position(|user| user.opening == opening);
        let left = place.and_then(|place| state.users.remove(place).ok());

        if let Some(left) = &left {
            state.wanted -= u64::from(left.count);
            if left.count != 0 {
                left.space.sub_usage(self.group, self.size());
            }
        }

        let is_unwanted = state.wanted == 0;
        let storage = match state.ended && state.users.is_empty() {
            true => state.storage.take(),
            false => None,
        };

        drop(state);
        drop(left);
        if is_unwanted {
            self.take_away(storage.is_none());
        }
        drop(storage);
    }

    /// The allocation is gone. Its bytes go when the last open has ended.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();

        state.ended = true;

        let storage = match state.users.is_empty() {
            true => state.storage.take(),
            false => None,
        };

        drop(state);
        if storage.is_some() {
            let mut turn = self.turn.lock();
            let held = (turn.local.take(), turn.home.take());

            drop(turn);
            drop(held);
        }
        drop(storage);
    }

    /// The open wants it to be resident, once more. False if the open has ended.
    pub(crate) fn want(&self, opening: u64) -> bool {
        let mut state = self.state.lock();
        let State { users, wanted, .. } = &mut *state;
        let Some(user) = users.iter_mut().find(|user| user.opening == opening) else {
            return false;
        };
        let Some(count) = user.count.checked_add(1) else {
            return false;
        };

        if user.count == 0 {
            user.space.add_usage(self.group, self.size());
        }
        user.count = count;
        *wanted += 1;
        true
    }

    /// How many more bytes a device would want with this allocation.
    pub(crate) fn more_wanted(&self, opening: u64) -> u64 {
        let state = self.state.lock();
        let is_wanted = state
            .users
            .iter()
            .any(|user| user.opening == opening && user.count != 0);

        match is_wanted {
            true => 0,
            false => self.size(),
        }
    }

    /// The device wants it once less; false if it did not want it. The caller calls
    /// [`AllocationMemory::trim`] afterwards.
    pub(crate) fn unwant(&self, opening: u64, device: u64) -> bool {
        let mut state = self.state.lock();
        let State { users, wanted, .. } = &mut *state;
        let own = users
            .iter()
            .position(|user| user.opening == opening && user.count != 0);
        // Another handle of the device will do: the device has one list (MEM-17).
        let place = own.or_else(|| {
            users
                .iter()
                .position(|user| user.device == device && user.count != 0)
        });
        let Some(user) = place.and_then(|place| users.get_mut(place)) else {
            return false;
        };

        user.count -= 1;
        if user.count == 0 {
            user.space.sub_usage(self.group, self.size());
        }
        *wanted -= 1;
        true
    }

    /// Takes the placement away if nobody wants it any more. On return no engine uses it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn trim(&self) {
        if self.state.lock().wanted == 0 {
            self.take_away(true);
        }
    }

    /// Writes the page tables of all who may show it. The last user first: those that come later
    /// know the placement, and those before them move down.
    fn refresh(&self) {
        let mut place = self.state.lock().users.len();

        while let Some(next) = place.checked_sub(1) {
            let user = {
                let state = self.state.lock();

                state
                    .users
                    .get(next)
                    .map(|user| (user.space.clone(), user.opening))
            };

            if let Some((space, opening)) = user {
                space.refresh(opening);
            }
            place = next;
        }
    }

    /// Takes the placement away, if nobody wants it. `keep`: the bytes are still needed.
    fn take_away(&self, keep: bool) {
        // Dropped after the lock, like all that is dropped here.
        let (placement, storage);
        let mut turn = self.turn.lock();

        {
            let mut state = self.state.lock();

            if state.wanted != 0 {
                return;
            }
            storage = state.storage.clone();
            placement = state.placement.take();
        }
        if let Some(placement) = &placement {
            self.refresh();
            placement.unpin();
        }
        if let (true, Some(storage), Some(home)) = (keep, &storage, &turn.home) {
            // What has no room at home stays where it is, and is used again from there.
            if storage.move_to(Place::SystemMemory, home.clone()).is_err() {
                return;
            }
        }

        let held = (turn.local.take(), turn.home.take());

        drop(turn);
        drop(held);
    }

    /// Takes what residency needs: pages of system memory, or a place in the segment.
    ///
    /// Context: a system call that is charged, no locks held.
    pub(crate) fn prepare(&self) -> Result<(), Shortage> {
        // Dropped after the lock.
        let storage;
        let mut turn = self.turn.lock();

        {
            let state = self.state.lock();

            if state.placement.is_some() {
                return Ok(());
            }
            storage = state.storage.clone();
        }

        let storage = storage
            .as_ref()
            .ok_or(DxgError::from(Status::INVALID_PARAMETER))?;

        if let (Some(segment), None, true) = (&self.segment, &turn.local, storage.may_move()) {
            let local = segment.take(storage.count()).map_err(|error| {
                if error == ENOSPC {
                    let missing = self.size().saturating_sub(segment.available());

                    return Shortage::Segment(missing.max(1));
                }
                Shortage::Failed(DxgError::from_errno(error))
            })?;

            take_all(&*local)?;
            turn.local = Some(local);
            return Ok(());
        }
        if turn.local.is_none() {
            take_pages(storage)?;
        }
        Ok(())
    }

    /// Gives it its placement, after [`AllocationMemory::prepare`]. Nothing happens if it has one,
    /// or if nobody wants it any more.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn finish(&self) -> DxgResult {
        // Dropped after the lock.
        let storage;
        let mut turn = self.turn.lock();

        {
            let state = self.state.lock();

            if state.wanted == 0 || state.placement.is_some() {
                return Ok(());
            }
            storage = state.storage.clone();
        }

        let storage = storage.as_ref().ok_or(Status::INVALID_PARAMETER)?;
        let local = match turn.local.clone() {
            Some(local) => moved(&mut turn, storage, local)?,
            None => None,
        };
        let placement = match local {
            Some((local, pinned)) => Placement::Local(local, pinned),
            None => {
                take_pages(storage)?;
                Placement::System(pinned(storage)?)
            }
        };

        // Nobody wanted it before, or somebody who waits for this does.
        self.state.lock().placement = Some(placement);
        self.refresh();
        Ok(())
    }
}

/// A place in a segment, and what keeps the bytes there.
type InSegment = (Arc<LocalPages>, Arc<PinnedStorage>);

/// Moves the bytes into a segment. `None`: they stay where they are, because something else holds
/// them there.
fn moved(
    turn: &mut Turn,
    storage: &Arc<Storage>,
    local: Arc<LocalPages>,
) -> DxgResult<Option<InSegment>> {
    let place = Place::Segment(local.segment());

    if storage.place() != place {
        let home = storage.pages();

        local.clear().map_err(DxgError::from_errno)?;
        match storage.move_to(place, local.clone()) {
            Ok(()) => turn.home = Some(home),
            Err(MoveError::Failed(error)) => return Err(DxgError::from_errno(error)),
            Err(_) => {
                turn.local = None;
                return Ok(None);
            }
        }
    }
    Ok(Some((local, pinned(storage)?)))
}

/// Keeps the bytes where they are.
fn pinned(storage: &Arc<Storage>) -> DxgResult<Arc<PinnedStorage>> {
    Ok(Arc::new(storage.pin()?, GFP_KERNEL_ACCOUNT)?)
}

/// Takes all pages of system memory. They stay (MEM-108).
fn take_pages(storage: &Arc<Storage>) -> DxgResult {
    take_all(&*storage.pages())
}

/// Takes all pages of a memory. That of a segment takes them of the machine at their first use, and
/// keeps them (MEM-110).
fn take_all(pages: &dyn PageSource) -> DxgResult {
    for index in 0..pages.count() {
        if index % 512 == 0 {
            if sleep::is_killed() {
                return Err(DxgError::Interrupted);
            }
            work::breathe();
        }
        pages.page(index).map_err(DxgError::from_errno)?;
    }
    Ok(())
}
