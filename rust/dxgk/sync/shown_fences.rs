// SPDX-License-Identifier: GPL-2.0

//! The pages of the fences that one GPU address space shows, and which of these fences the
//! adapter's worker looks at: what is under the lock of
//! [`GpuFences`](super::gpu_fences::GpuFences).
//!
//! A page of a fence that may be shared is its own. Private fences of a process have pages in
//! common, and all openings of a private fence have the same rights. So a page is shown once for
//! the fences that began with a right to signal, and once for those that began without. A
//! cross-adapter fence may be opened as a native fence and as a monitored fence: its page is shown
//! once for each.
//!
//! A page goes with its last fence, except a common one of monitored fences: the last of those that
//! lost its fences *rests*. It stays shown, as it stays mapped in its process (see
//! `fence_storage.rs`), so that a process whose only fence comes and goes changes no page tables.

use super::fence::Fence;
use crate::{
    dxgk::vidmm::{
        address_space::AddressSpace,
        fence_pages::ShownPage, //
    },
    logic::fence_slots::SLOTS, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::Arc, //
};

/// Names a page: where it is described in memory, in the lowest bit whether it is one of private
/// fences that may not be signalled, and in the next one whether the fences are native there.
type Key = usize;

/// How an opening sees a fence.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    /// Engines may store.
    pub(super) stores: bool,
    /// It is native there.
    pub(super) is_native: bool,
}

/// A page in its tree.
pub(super) type Node = RBTreeNode<Key, Page>;

/// The same without contents.
pub(super) type SpareNode = RBTreeNodeReservation<Key, Page>;

/// A fence that has a place in a page.
pub(super) struct ShownFence {
    fence: Arc<Fence>,
    /// For how many openings.
    opens: u32,
}

/// The fences of a page.
pub(super) enum Places {
    /// That of a fence that may be shared.
    Own(Option<ShownFence>),
    /// Private ones by their slots, as far as these were used.
    Common(List),
}

/// The first slots of a page.
type List = KVec<Option<ShownFence>>;

/// Room for a slot, and for those that will come next.
fn room_for(slot: usize) -> usize {
    slot.saturating_add(1).next_power_of_two().max(4)
}

/// What a new opening needs first.
pub(super) enum Missing {
    /// The page is not shown. There may be a node for it.
    Page(Option<SpareNode>),
    /// A list with room for so many fences.
    Room(usize),
}

/// Makes a list so long that it has this slot.
#[cold]
fn lengthen(
    list: &mut List,
    slot: usize,
    more: &mut Option<List>,
) -> core::result::Result<(), Missing> {
    if slot >= list.capacity() {
        let Some(more) = more.as_mut().filter(|more| slot < more.capacity()) else {
            return Err(Missing::Room(room_for(slot)));
        };

        core::mem::swap(list, more);
        for place in more.drain_all() {
            // There is more room than before.
            let _room = list.push_within_capacity(place);
        }
    }
    while list.len() <= slot {
        // There is room, as above.
        let _room = list.push_within_capacity(None);
    }
    Ok(())
}

impl Places {
    /// None, of a page with `fence`, for which there is room.
    pub(super) fn for_page_of(fence: &Fence) -> Result<Self, AllocError> {
        Ok(match fence.storage().is_common() {
            false => Self::Own(None),
            true => {
                // CAST: 32 bits fit a usize.
                let room = room_for(fence.storage().slot() as usize);

                Self::Common(KVec::with_capacity(room, GFP_KERNEL_ACCOUNT)?)
            }
        })
    }

    /// What is at the place of `fence`, if that was ever used.
    fn of(&mut self, fence: &Fence) -> Option<&mut Option<ShownFence>> {
        match self {
            Self::Own(only) => Some(only),
            // CAST: 32 bits fit a usize.
            Self::Common(list) => list.get_mut(fence.storage().slot() as usize),
        }
    }

    /// The place of `fence`, for which `more` may be a longer list than the present one. What is
    /// not needed is left in `more`, to be dropped without the lock.
    fn make(
        &mut self,
        fence: &Fence,
        more: &mut Option<List>,
    ) -> core::result::Result<&mut Option<ShownFence>, Missing> {
        let list = match self {
            Self::Own(only) => return Ok(only),
            Self::Common(list) => list,
        };
        // CAST: 32 bits fit a usize.
        let slot = fence.storage().slot() as usize;

        if slot >= list.len() {
            lengthen(list, slot, more)?;
        }
        list.get_mut(slot).ok_or(Missing::Room(room_for(slot)))
    }

    /// The fence in a slot.
    fn get(&self, slot: u32) -> Option<&Arc<Fence>> {
        let place = match self {
            Self::Own(only) => only,
            // CAST: 32 bits fit a usize.
            Self::Common(list) => list.get(slot as usize)?,
        };

        place.as_ref().map(|shown| &shown.fence)
    }
}

/// A page that is shown.
pub(super) struct Page {
    shown: ShownPage,
    /// The page of MonitoredValue, if these are native fences.
    monitored: Option<ShownPage>,
    places: Places,
    /// How many places are taken.
    taken: u32,
    /// The slots of fences that somebody may wait for.
    waited: u64,
    /// How many openings let engines store.
    writers: u32,
    /// The address space was told so.
    is_writable: bool,
}

impl Page {
    /// A page with the first opening of one fence.
    pub(super) fn new(
        shown: ShownPage,
        monitored: Option<ShownPage>,
        mut places: Places,
        fence: &Arc<Fence>,
        stores: bool,
    ) -> Self {
        // There is room, so that nothing more is needed.
        if let Ok(place) = places.make(fence, &mut None) {
            *place = Some(ShownFence {
                fence: fence.clone(),
                opens: 1,
            });
        }
        Self {
            shown,
            monitored,
            places,
            taken: 1,
            waited: 0,
            writers: stores.into(),
            is_writable: stores,
        }
    }
}

/// A fence has one more opening.
pub(super) struct Entered {
    pub(super) shown: ShownPage,
    pub(super) monitored: Option<ShownPage>,
    /// The address space has to be told that engines may store.
    pub(super) tell: bool,
    /// It is the first one.
    pub(super) is_new: bool,
}

/// A fence has one opening less.
pub(super) struct Left {
    /// The fence, if it was the last one of that.
    gone: Option<ShownFence>,
    /// The pages that are not shown any more.
    hidden: Option<Hidden>,
    /// The page, if it was the last one there that let engines store.
    quiet: Option<ShownPage>,
}

/// Pages that an address space need not show any more.
struct Hidden {
    shown: ShownPage,
    monitored: Option<ShownPage>,
    /// To be dropped.
    _node: Option<Node>,
}

impl Left {
    /// Whether the fence is not shown any more.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// Tells the address space what it does not show any more, and where engines do not store any
    /// more. The result is to be dropped.
    ///
    /// Context: may sleep, no locks held.
    #[inline(always)]
    pub(super) fn finish(self, space: &AddressSpace) -> impl Sized {
        if let Some(hidden) = self.hidden {
            space.hide_page(hidden.shown);
            if let Some(monitored) = hidden.monitored {
                space.hide_page(monitored);
            }
        }
        if let Some(quiet) = self.quiet {
            space.forbid_stores(quiet);
        }
        self.gone
    }
}

/// A set of pages.
type Tree = RBTree<Key, Page>;

/// The pages of an address space.
pub(super) struct Pages {
    /// Those that the worker does not look at.
    idle: Tree,
    /// Those with fences that somebody may wait for.
    waited: Tree,
    /// The page of `idle` that rests.
    resting: Option<Key>,
    /// A node for the next page, so that fences that come and go one after the other take none.
    spare: Option<SpareNode>,
    /// Where the worker goes on, if it looks at them now: a page, and a slot.
    at: Option<(Key, u32)>,
    /// It has to begin again, because something was stored since it began.
    again: bool,
}

/// Before all pages.
const FIRST: (Key, u32) = (0, 0);

/// The bit of a fence among those of its page.
fn bit_of(fence: &Fence) -> u64 {
    1u64.checked_shl(fence.storage().slot()).unwrap_or(0)
}

/// Moves a page from one to the other, if it is there.
fn transfer(from: &mut Tree, to: &mut Tree, key: &Key) {
    if let Some(node) = from.remove_node(key) {
        // A page is in one of them, so that nothing is replaced.
        let _nothing = to.insert(node);
    }
}

impl Pages {
    /// None.
    pub(super) fn new() -> Self {
        Self {
            idle: RBTree::new(),
            waited: RBTree::new(),
            resting: None,
            spare: None,
            at: None,
            again: false,
        }
    }

    /// The name of the page that shows `fence` to such an opening.
    pub(super) fn key(fence: &Fence, sight: Sight) -> Key {
        let page = Arc::as_ptr(fence.storage().home()).addr();
        let is_quiet = fence.storage().is_common() && !sight.stores;

        // A pointer to words has bits for that.
        page | usize::from(is_quiet) | usize::from(sight.is_native) << 1
    }

    fn get(&mut self, key: Key) -> Option<&mut Page> {
        match self.idle.get_mut(&key) {
            None => self.waited.get_mut(&key),
            found => found,
        }
    }

    /// Adds a page, or gives it back if another thread has been faster.
    pub(super) fn add(&mut self, key: Key, node: Node) -> Option<Node> {
        if self.get(key).is_some() {
            return Some(node);
        }

        let _nothing = self.idle.insert(node);

        None
    }

    /// One more opening of a fence. `more` is as in [`Places::make`].
    pub(super) fn enter(
        &mut self,
        fence: &Arc<Fence>,
        sight: Sight,
        more: &mut Option<List>,
    ) -> core::result::Result<Entered, Missing> {
        let key = Self::key(fence, sight);
        let Some(page) = self.get(key) else {
            return Err(Missing::Page(self.spare.take()));
        };
        let place = page.places.make(fence, more)?;
        let is_new = place.is_none();
        let shown = place.get_or_insert_with(|| ShownFence {
            fence: fence.clone(),
            opens: 0,
        });
        let has_rested = page.taken == 0;

        // OVERFLOW: each is a handle of the process.
        shown.opens += 1;
        page.taken += u32::from(is_new);
        page.writers += u32::from(sight.stores);

        let entered = Entered {
            shown: page.shown,
            monitored: page.monitored,
            tell: sight.stores && !page.is_writable,
            is_new,
        };

        if has_rested {
            self.resting = None;
        }
        Ok(entered)
    }

    /// The address space was told that engines may store to the page of a fence, for an opening
    /// that there still is. True if somebody else has told it.
    pub(super) fn told(&mut self, fence: &Fence, sight: Sight) -> bool {
        let key = Self::key(fence, sight);

        self.get(key)
            .is_some_and(|page| core::mem::replace(&mut page.is_writable, true))
    }

    /// One opening less; `None` if nothing else is left to do.
    #[inline(always)]
    pub(super) fn leave(&mut self, fence: &Fence, sight: Sight) -> Option<Left> {
        let key = Self::key(fence, sight);
        let page = self.get(key)?;
        let place = page.places.of(fence)?;
        let shown = place.as_mut()?;

        shown.opens -= 1;

        let gone = match shown.opens {
            0 => place.take(),
            _ => None,
        };

        page.taken -= u32::from(gone.is_some());
        page.writers -= u32::from(sight.stores);

        let is_empty = page.taken == 0;
        let is_quiet = !is_empty && page.writers == 0 && core::mem::take(&mut page.is_writable);
        let quiet = is_quiet.then_some(page.shown);
        let was_waited = page.waited & bit_of(fence) != 0;

        if gone.is_none() && quiet.is_none() {
            return None;
        }
        if gone.is_some() && was_waited {
            self.set_mark(key, fence, false);
        }

        let hidden = match is_empty {
            true => self.end(key, fence.storage().is_common() && !sight.is_native),
            false => None,
        };

        Some(Left {
            gone,
            hidden,
            quiet,
        })
    }

    /// A page has no fence any more, and no mark: it rests if it `may_rest`. What is not shown any
    /// more.
    #[inline(never)]
    fn end(&mut self, key: Key, may_rest: bool) -> Option<Hidden> {
        let gone = match may_rest {
            true => self.resting.replace(key)?,
            false => key,
        };
        let page = self.idle.get(&gone)?;
        let (shown, monitored) = (page.shown, page.monitored);
        // A list is to be dropped without the lock.
        let is_spare = self.spare.is_none() && matches!(page.places, Places::Own(_));
        let node = self.idle.remove_node(&gone)?;
        let node = match is_spare {
            true => {
                self.spare = Some(node.into_reservation());
                None
            }
            false => Some(node),
        };

        Some(Hidden {
            shown,
            monitored,
            _node: node,
        })
    }

    /// Somebody may wait for a fence, or nobody does: the worker looks at it, or does not. Whether
    /// it did before.
    pub(super) fn mark(&mut self, fence: &Arc<Fence>, is_waited: bool) -> bool {
        for stores in [true, false] {
            // Native fences say by themselves what is stored.
            let is_native = false;
            let key = Self::key(fence, Sight { stores, is_native });
            let Some(page) = self.get(key) else {
                continue;
            };
            let was_waited = page.waited & bit_of(fence) != 0;
            let shown = page.places.of(fence).and_then(|place| place.as_ref());

            if !shown.is_some_and(|shown| Arc::ptr_eq(&shown.fence, fence)) {
                continue;
            }
            // A mark stays until the worker finds that nobody waits.
            if was_waited != is_waited {
                self.set_mark(key, fence, is_waited);
            }
            return was_waited;
        }
        false
    }

    /// The same for a fence of this page.
    fn set_mark(&mut self, key: Key, fence: &Fence, is_waited: bool) {
        let Some(page) = self.get(key) else {
            return;
        };
        let bit = bit_of(fence);
        let before = page.waited;

        page.waited = match is_waited {
            true => before | bit,
            false => before & !bit,
        };

        let Self { idle, waited, .. } = self;

        match (before == 0, is_waited) {
            (true, true) => transfer(idle, waited, &key),
            (false, false) if before == bit => transfer(waited, idle, &key),
            _ => {}
        }
    }

    /// The worker has to look at all that is marked.
    pub(super) fn begin(&mut self) {
        match self.at {
            Some(_) => self.again = true,
            None => self.at = Some(FIRST),
        }
    }

    /// The next fence that the worker looks at; `None` when it is through.
    pub(super) fn next(&mut self) -> Option<Arc<Fence>> {
        while let Some((from, first)) = self.at {
            let Some(cursor) = self.waited.cursor_lower_bound(&from) else {
                break;
            };
            let (key, page) = cursor.current();
            let passed = match *key == from {
                true => 1u64.checked_shl(first).map_or(u64::MAX, |bit| bit - 1),
                false => 0,
            };
            let slot = (page.waited & !passed).trailing_zeros();
            let found = page.places.get(slot).cloned();

            self.at = Some(match (slot, *key) {
                (0..SLOTS, key) => (key, slot + 1),
                (_, key) => (key.saturating_add(1), 0),
            });
            if slot < SLOTS && found.is_some() {
                return found;
            }
        }
        self.at = core::mem::take(&mut self.again).then_some(FIRST);
        None
    }

    /// Whether the worker is not through.
    pub(super) fn goes_on(&self) -> bool {
        self.at.is_some()
    }
}
