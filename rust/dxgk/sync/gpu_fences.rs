// SPDX-License-Identifier: GPL-2.0

//! The fences that one GPU address space shows, so that the engines of its adapter can read them
//! and store to them (FEN-1, FEN-12). Each has one address, for all openings of the process on that
//! adapter. Engines may store while one of these openings may signal (FEN-133).
//!
//! A store of an engine to a monitored fence is noticed late: when the engine says that it has
//! stored something, or when its commands have completed (FEN-48). Neither says which fence it was.
//! So the adapter's worker looks at the values of the fences that the address space of the queue
//! shows. It looks at those that somebody waits for, and no others, and at a few in one step, so
//! that no process can keep it busy with another one's fences, or for long with its own (GPU-60).
//!
//! No wake-up is lost. A wait is queued on its fence first. The first one moves the fence into
//! `waited`. Then the value is looked at again: a store from before is seen by that, and for a
//! later one the worker, which comes after it, finds the fence in `waited`. A fence without waits
//! leaves `waited` when the worker comes across it, which then looks for waits again.
//!
//! LOCK: `state` is a leaf. Nothing is mapped, unmapped or dropped under it.

use super::fence::{
    Fence,
    StoreWatch, //
};
use crate::{
    dxgk::vidmm::{
        address_space::AddressSpace,
        fence_pages::ShownPage, //
    },
    error::DxgResult,
    logic::waiters::BATCHES,
    sys::alloc::{
        pin_arc,
        tree_place, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// How many fences one step looks at.
const STEP: usize = 64;

/// A fence that is shown.
struct Entry {
    fence: Arc<Fence>,
    /// How many openings it is shown for.
    opens: u32,
    page: ShownPage,
}

/// Fences by id.
type Fences = RBTree<u64, Entry>;
type Node = RBTreeNode<u64, Entry>;

struct State {
    /// Those that the worker does not look at.
    idle: Fences,
    /// Those that somebody may wait for.
    waited: Fences,
    /// Where the worker goes on, if it looks at them now.
    at: Option<u64>,
    /// It has to begin again, because something was stored since it began.
    again: bool,
}

/// Moves a fence from one to the other, if it is there.
fn transfer(from: &mut Fences, to: &mut Fences, id: u64) {
    if let Some(node) = from.remove_node(&id) {
        // Ids are unique, so that nothing is replaced.
        let _nothing = to.insert(node);
    }
}

impl State {
    fn entry(&mut self, id: u64) -> Option<&mut Entry> {
        match self.idle.get_mut(&id) {
            None => self.waited.get_mut(&id),
            found => found,
        }
    }

    /// One more opening of a fence, if it is shown.
    fn reopen(&mut self, id: u64) -> Option<ShownPage> {
        let entry = self.entry(id)?;

        // OVERFLOW: each is a handle of the process.
        entry.opens += 1;
        Some(entry.page)
    }

    /// One opening less; takes the fence out with the last one.
    fn close(&mut self, id: u64) -> Option<(ShownPage, Option<Node>)> {
        let entry = self.entry(id)?;
        let page = entry.page;

        entry.opens -= 1;
        if entry.opens != 0 {
            return Some((page, None));
        }

        let node = match self.idle.remove_node(&id) {
            None => self.waited.remove_node(&id),
            found => found,
        };

        Some((page, node))
    }

    /// The next fence that the worker looks at; `None` when it is through.
    fn next(&mut self) -> Option<Arc<Fence>> {
        let at = self.at?;
        let next = self.waited.cursor_lower_bound(&at).map(|cursor| {
            let (id, entry) = cursor.current();

            (*id, entry.fence.clone())
        });

        if let Some((id, fence)) = next {
            // OVERFLOW: ids never reach the last number.
            self.at = Some(id.saturating_add(1));
            return Some(fence);
        }
        self.at = core::mem::take(&mut self.again).then_some(0);
        None
    }
}

/// The fences of one GPU address space.
#[pin_data]
pub(crate) struct GpuFences {
    #[pin]
    state: SpinLock<State>,
}

impl GpuFences {
    /// It shows none.
    pub(in crate::dxgk) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_spinlock!(
                    State {
                        idle: RBTree::new(),
                        waited: RBTree::new(),
                        at: None,
                        again: false,
                    },
                    "GpuFences::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Shows `fence` in `space`, which is always the same, for one more opening; engines may store
    /// if that `stores`. Returns the GPU address of its value.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn open(
        self: &Arc<Self>,
        space: &AddressSpace,
        fence: &Arc<Fence>,
        stores: bool,
    ) -> DxgResult<u64> {
        let id = fence.header.id();
        let (page, offset) = fence.storage().place();

        if let Some(shown) = self.reopen(id) {
            if stores {
                space.allow_stores(shown);
            }
            return Ok(shown.address(offset));
        }

        let place = tree_place()?;
        let shown = space.show_page(page, stores)?;

        if let Err(error) = fence.shown_in(self.clone()) {
            space.hide_page(shown, stores);
            return Err(error.into());
        }

        let known = {
            let mut state = self.state.lock();

            match state.reopen(id) {
                Some(known) => Some(known),
                None => {
                    let entry = Entry {
                        fence: fence.clone(),
                        opens: 1,
                        page: shown,
                    };
                    let _nothing = state.idle.insert(place.into_node(id, entry));

                    None
                }
            }
        };

        if let Some(known) = known {
            // Another thread has been faster.
            if stores {
                space.allow_stores(known);
            }
            fence.hidden_in(self);
            space.hide_page(shown, stores);
            return Ok(known.address(offset));
        }
        // Somebody may wait for it already.
        self.wait_for(fence);
        Ok(shown.address(offset))
    }

    /// One more opening of a fence that is shown.
    fn reopen(&self, id: u64) -> Option<ShownPage> {
        self.state.lock().reopen(id)
    }

    /// Ends what [`GpuFences::open`] began. If it was the last opening, engines do not store to the
    /// fence any more on return.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn close(self: &Arc<Self>, space: &AddressSpace, fence: &Arc<Fence>, stores: bool) {
        let id = fence.header.id();
        let closed = {
            let mut state = self.state.lock();

            state.close(id)
        };

        match closed {
            Some((shown, Some(node))) => {
                space.hide_page(shown, stores);
                // What was stored at last: the worker does not find the fence any more.
                fence.sample();
                fence.hidden_in(self);
                drop(node);
            }
            Some((shown, None)) if stores => space.forbid_stores(shown),
            Some((_, None)) | None => {}
        }
    }

    /// An engine has stored something, or may have.
    pub(in crate::dxgk) fn stored(&self) {
        let mut state = self.state.lock();

        match state.at {
            Some(_) => state.again = true,
            None => state.at = Some(0),
        }
    }

    /// Looks at the next fences after [`GpuFences::stored`]; true if that was not all. Called by
    /// the adapter's worker only, which is one thread.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn look(&self) -> bool {
        let mut batches = BATCHES;

        for _ in 0..STEP {
            let next = {
                let mut state = self.state.lock();

                match state.next() {
                    None => return state.at.is_some(),
                    Some(fence) => fence,
                }
            };

            if next.waiting() != 0 {
                next.sample_within(&mut batches);
                continue;
            }
            {
                let State { idle, waited, .. } = &mut *self.state.lock();

                transfer(waited, idle, next.header.id());
            }
            // A wait that was queued meanwhile may have found it in its place.
            self.wait_for(&next);
        }
        true
    }
}

impl StoreWatch for GpuFences {
    fn wait_for(&self, fence: &Arc<Fence>) {
        let id = fence.header.id();

        if fence.waiting() == 0 {
            return;
        }
        {
            let State { idle, waited, .. } = &mut *self.state.lock();

            transfer(idle, waited, id);
        }
        fence.sample();
    }
}
