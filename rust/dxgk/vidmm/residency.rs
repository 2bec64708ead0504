// SPDX-License-Identifier: GPL-2.0

//! Residency of one allocation: who wants it, and where it is for GPUs (MEM-6, MEM-17, MEM-23 to
//! MEM-26).
//!
//! While somebody wants it, the allocation has a *placement*: pages that stay where they are, in a
//! segment or in system memory. Page tables of all address spaces that show it lead there. When
//! nobody wants it any more, it loses its placement, and what was in a segment goes back to system
//! memory, unless that has no room; or it stays as it is until its room is wanted for others
//! (`idle.rs`). What is offered may lose its placement, too, and its bytes (`offers.rs`). Without a
//! placement there is no valid entry.
//!
//! An allocation is made ready in two steps. *Prepare* is for the thread that wants it: it takes
//! the pages, which are charged to that thread, or a place in a segment with its pages, and can
//! fail. *Finish* moves the bytes and writes the page tables; the worker may do it.
//!
//! LOCK: `turn` is a mutex; whoever prepares, finishes or takes away holds it. Inside: page tables
//! (`AddressSpace::state`), moves (`Movable::state`), pages, entries of the KMD for its aperture.
//! While somebody has `turn`, the shrinker frees nothing (`reclaim.rs`). `state` is a mutex; it is
//! inside `AddressSpace::state` too, and only `IdleList::state` is taken
//! inside. Nothing is dropped under it.

use super::{
    all_allocations::Among,
    aperture::ShownRange,
    idle::{
        Idle,
        IdleList,
        IdlePlace,
        Key, //
    },
    mover::Mover,
    pinned_pages::{
        take_pages,
        PinnedPages, //
    },
    placement::Placement,
    resident_in::ResidentIn,
    segment::LocalPages,
    shrinker::{
        ReclaimItem,
        Reclaimable, //
    },
    site::Site, //
};
use crate::{
    ddi::{
        object,
        paging::PageTableEntry,
        types::Place, //
    },
    dxgk::memory::storage::Storage,
    logic::{
        gpu_ranges::Mapping,
        reclaim_rules::Facts,
        users::{
            Usage,
            User,
            Users, //
        }, //
    },
    sys::mem::pages::PageSource, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    }, //
};

pub(super) mod change;
mod elsewhere;
pub(crate) mod live;
pub(in crate::dxgk) mod offers;
mod ready;
mod reclaim;
mod turns;

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
    users: Users<Arc<dyn ResidentIn>>,
    placement: Option<Placement>,
    /// Nobody wants it, and it has stayed where it is.
    is_idle: bool,
    /// It stays where it is, whatever is short (MEM-8).
    unmoveable: bool,
    /// Its place in the list of the placement, while it may give way.
    idle: Option<Key>,
    /// Memory for such a place, once there was one.
    idle_place: Option<IdlePlace>,
    /// Its place in the list of what a process has offered and could go without.
    offered: Option<(Arc<IdleList>, Key)>,
    /// Memory for such a place.
    offered_place: Option<IdlePlace>,
    /// It has no system memory: that was given back.
    is_decommitted: bool,
    /// The bytes in a segment may be others than those that came from system memory.
    is_written: bool,
    /// Its place in the lists of the shrinker, if it can move.
    item: Option<ReclaimItem>,
    /// What the shrinker was told last.
    told: Option<Facts>,
    /// Its place among all of the adapter, until it is gone and nobody has it open any more.
    among: Option<Among>,
}

impl State {
    /// What it needs no more if it is gone and nobody has it open. Dropped without the lock.
    fn take_rest(&mut self) -> (Option<Arc<Storage>>, Option<Among>) {
        match self.ended && self.users.is_empty() {
            true => (self.storage.take(), self.among.take()),
            false => (None, None),
        }
    }

    /// It gives way to nobody any more.
    fn leave_idle(&mut self) {
        self.is_idle = false;
        self.leave_list();
    }

    fn leave_list(&mut self) {
        if let Some(key) = self.idle.take() {
            let list = self.placement.as_ref().and_then(Placement::idle);

            self.idle_place = list.and_then(|list| list.remove(key));
        }
    }

    /// It has no placement any more, and gives way to nobody.
    fn take_placement(&mut self) -> Option<Placement> {
        self.leave_idle();
        self.placement.take()
    }
}

/// What is held for a placement.
struct Turn {
    site: Site,
    /// The place in a segment; the bytes are in it, or about to be.
    local: Option<Arc<LocalPages>>,
    /// The pages of system memory that the bytes were in before, and go back to.
    home: Option<Arc<dyn PageSource>>,
    /// The part of the aperture that shows it, or is about to.
    shown: Option<Arc<ShownRange>>,
    /// Pages of system memory that are about to be the placement.
    pinned: Option<Arc<PinnedPages>>,
}

impl Turn {
    /// The segment that the bytes are in, or about to be; `None` if they are in none.
    fn segment(&self) -> Option<u32> {
        self.local.as_ref().map(|local| local.segment())
    }

    /// The place in the segment is not needed any more. What this returns is dropped without locks.
    fn leave_segment(&mut self) -> Option<Arc<LocalPages>> {
        self.local.take().inspect(|local| local.leave())
    }
}

/// What was held, to be dropped without locks.
#[derive(Default)]
struct Left {
    _placement: Option<Placement>,
    _storage: Option<Arc<Storage>>,
    _local: Option<Arc<LocalPages>>,
    _home: Option<Arc<dyn PageSource>>,
    _shown: Option<Arc<ShownRange>>,
    _pinned: Option<Arc<PinnedPages>>,
}

/// An allocation, as the memory manager knows it.
#[pin_data]
pub(crate) struct AllocationMemory {
    /// The allocation as the KMD of its adapter has it.
    pub(in crate::dxgk) kmd: Arc<object::Allocation>,
    /// The budget group that it counts in. Changed under `turn` and `state`.
    group: Atomic<usize>,
    /// Whether engines use physical addresses of it. Changed as the group.
    is_physical: Atomic<bool>,
    /// Whether it is to be in a segment with pages of 64 KiB. Changed as the group.
    wants_64kb: Atomic<bool>,
    /// Bytes; 0 as long as they are not known.
    size: Atomic<u64>,
    /// Its priority: how late it gives way (MEM-9).
    priority: Atomic<u32>,
    mover: Mover,
    /// Whether the KMD was told last that it is resident. Changed under `turn`.
    is_notified: AtomicFlag,
    /// As the shrinker knows it, if it can move. INVARIANT: told when a turn begins and ends.
    victim: Option<Arc<Reclaimable>>,
    #[pin]
    turn: Mutex<Turn>,
    #[pin]
    state: Mutex<State>,
}

impl AllocationMemory {
    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Acquire)
    }

    /// The budget group that it counts in.
    pub(crate) fn group(&self) -> usize {
        self.group.load(Relaxed)
    }

    /// Whether engines use physical addresses of it (`AccessedPhysically`).
    pub(crate) fn is_accessed_physically(&self) -> bool {
        self.is_physical.load(Relaxed)
    }

    /// Whether it is worth while to have page tables for pages of 64 KiB. Its placement decides.
    pub(super) fn wants_64kb_pages(&self) -> bool {
        self.wants_64kb.load(Relaxed)
    }

    fn usage(&self) -> Usage {
        Usage {
            group: self.group(),
            bytes: self.size(),
        }
    }

    /// Its priority (MEM-9).
    pub(crate) fn priority(&self) -> u32 {
        self.priority.load(Relaxed)
    }

    /// Changes it. What waits to give way does so as late as it says now.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set_priority(self: &Arc<Self>, priority: u32) {
        let mut state = self.state.lock();

        self.priority.store(priority, Relaxed);
        self.relist(&mut state);
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

    /// The entry for the first page that a mapping shows; `None` if the placement is being changed.
    ///
    /// Context: waits for nobody.
    pub(super) fn try_entry(&self, mapping: &Mapping) -> Option<PageTableEntry> {
        let state = self.state.try_lock()?;

        Some(match &state.placement {
            Some(placement) => placement.entry(mapping),
            None => PageTableEntry::Invalid,
        })
    }

    /// Whether GPUs can use it, and the segment that it is in then; 0 is system memory.
    pub(crate) fn resident_in(&self) -> Option<u32> {
        self.state.lock().placement.as_ref().map(Placement::segment)
    }

    /// Adds the open with the number `opening`, of `device` in `space`.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn enter(
        self: &Arc<Self>,
        opening: u64,
        device: u64,
        space: Arc<dyn ResidentIn>,
    ) -> Result<(), AllocError> {
        let mut is_first = false;

        self.enter_with(|users| {
            users.enter(opening, device, space).ok_or(AllocError)?;
            is_first = users.len() == 1;
            Ok(())
        })?;
        if is_first {
            self.show_to_shrinker();
        }
        Ok(())
    }

    /// Removes an open, with its counts.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn leave(self: &Arc<Self>, opening: u64) {
        let mut state = self.state.lock();
        let left: Option<(bool, User<_>)> = state.users.leave(opening, self.usage());

        if matches!(left, Some((true, _))) {
            state.is_written = true;
        }

        self.relist(&mut state);

        // Nothing is held for a placement that nobody has wanted yet.
        let is_unwanted = state.users.were_wanted() && !state.users.are_wanted();
        let is_unused = state.users.is_empty();
        let (storage, among) = state.take_rest();

        drop(state);
        drop(left);
        if is_unwanted {
            self.take_away(storage.is_none());
        }
        if is_unused {
            drop(self.hide_from_shrinker());
        }
        drop(storage);
        drop(among);
    }

    /// The allocation is gone. Its bytes go when the last open has ended. It may end again.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();

        state.ended = true;

        let (storage, among) = state.take_rest();
        let has_placement = storage.is_some() && state.users.were_wanted();

        drop(state);
        if has_placement {
            self.take_away(false);
        }
        drop(storage);
        drop(among);
    }

    /// The open wants it to be resident, once more. False if the open has ended.
    pub(crate) fn want(self: &Arc<Self>, opening: u64) -> bool {
        let mut state = self.state.lock();
        let is_open = state.users.want(opening, self.usage());

        if is_open {
            state.is_idle = false;
            self.relist(&mut state);
        }
        is_open
    }

    /// How many more bytes a device would want with this allocation.
    pub(crate) fn more_wanted(&self, opening: u64) -> u64 {
        match self.state.lock().users.wants(opening) {
            true => 0,
            false => self.size(),
        }
    }

    /// The device wants it once less; false if it did not want it. The caller calls
    /// [`AllocationMemory::trim`] afterwards. `not_written`: says that the bytes are those that
    /// were there before it was wanted. That counts if nobody else can lose anything by it.
    pub(crate) fn unwant(&self, opening: u64, device: u64, not_written: bool) -> bool {
        let mut state = self.state.lock();

        if !not_written || !state.users.are_of_one_process() {
            state.is_written = true;
        }
        state.users.unwant(opening, device, self.usage())
    }

    /// It stays on the list of the device, if it is there, until [`AllocationMemory::let_go`].
    /// False if it is not there.
    pub(super) fn keep(self: &Arc<Self>, opening: u64, device: u64) -> bool {
        let mut state = self.state.lock();
        let is_kept = state.users.keep(opening, device, self.usage());

        self.relist(&mut state);
        is_kept
    }

    /// Takes one [`AllocationMemory::keep`] back.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn let_go(self: &Arc<Self>, opening: u64) {
        {
            let mut state = self.state.lock();

            state.users.let_go(opening, self.usage());
            self.relist(&mut state);
        }
        self.trim(false);
    }

    /// Takes the placement away if nobody wants it any more; on return no engine uses it. With
    /// `if_necessary` it stays until its room is wanted.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn trim(self: &Arc<Self>, if_necessary: bool) {
        if self.state.lock().users.are_wanted() || if_necessary && self.become_idle() {
            return;
        }
        self.take_away(true);
    }

    /// It stays where it is until its room is wanted; false if it cannot. What takes its bytes then
    /// is there from now on, so that it is charged to the caller, and nobody else has to find it.
    fn become_idle(self: &Arc<Self>) -> bool {
        let Ok(place) = IdlePlace::new() else {
            return false;
        };
        // Dropped after the locks if it is not used.
        let mut place = Some(place);
        let turn = self.lock_turn();

        if let Some(home) = &turn.home {
            if take_pages(&**home).is_err() {
                return false;
            }
        }

        let mut state = self.state.lock();

        if state.users.are_wanted() || state.is_idle {
            return true;
        }
        if state.placement.is_none() {
            return false;
        }
        if state.idle.is_none() && state.idle_place.is_none() {
            state.idle_place = place.take();
        }
        state.is_idle = true;
        self.relist(&mut state);
        true
    }

    /// Writes the page tables of all who may show it. The last user first: those that come later
    /// know the placement, and those before them move down.
    fn refresh(&self) {
        let mut place = self.state.lock().users.len();

        while let Some(next) = place.checked_sub(1) {
            let shown = self.state.lock().users.shown_in(next);

            if let Some((space, opening)) = shown {
                space.refresh(opening);
            }
            place = next;
        }
    }

    /// Takes the placement away, if nobody wants it. `keep`: the bytes are still needed.
    fn take_away(&self, keep: bool) {
        // Dropped after the lock, like all that is dropped here.
        let _left: Left;
        let mut turn = self.lock_turn();
        let mut state = self.state.lock();

        if state.users.are_wanted() {
            return;
        }

        let (placement, storage) = (state.take_placement(), state.storage.clone());

        drop(state);
        _left = self.give_up(&mut turn, placement, storage, |turn, storage| {
            !keep || self.go_home(turn, storage)
        });
    }

    /// Gives up what was the placement, and where it was. On return no engine uses it.
    ///
    /// # Arguments
    ///
    /// * `leave` - brings the bytes to where they are to be from now on; if it says false they stay
    ///   where they are, and are used again from there.
    fn give_up(
        &self,
        turn: &mut Turn,
        placement: Option<Placement>,
        storage: Option<Arc<Storage>>,
        leave: impl FnOnce(&Turn, Option<&Arc<Storage>>) -> bool,
    ) -> Left {
        if let Some(placement) = &placement {
            self.refresh();
            self.notify(None);
            placement.release();
        }

        let pinned = turn.pinned.take();

        if !leave(turn, storage.as_ref()) {
            return Left {
                _placement: placement,
                _storage: storage,
                _pinned: pinned,
                ..Left::default()
            };
        }
        Left {
            _placement: placement,
            _storage: storage,
            _local: turn.leave_segment(),
            _home: turn.home.take(),
            _shown: turn.shown.take(),
            _pinned: pinned,
        }
    }

    /// The bytes go back to system memory, if they are in a segment; false if they cannot. What was
    /// not written to is there already.
    fn go_home(&self, turn: &Turn, storage: Option<&Arc<Storage>>) -> bool {
        let (Some(storage), Some(home)) = (storage, &turn.home) else {
            return true;
        };
        let is_written = self.state.lock().is_written;

        match is_written {
            true => self
                .mover
                .move_to(storage, Place::SystemMemory, home.clone()),
            false => storage.replace_by(Place::SystemMemory, home.clone()),
        }
        .is_ok()
    }
}

impl Idle for AllocationMemory {
    fn give_way(&self) {
        self.leave_if(|state| state.idle.is_some());
    }

    fn decommit(&self, only_discarded: bool) -> Option<u64> {
        self.give_back(only_discarded)
    }
}
