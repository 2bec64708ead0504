// SPDX-License-Identifier: GPL-2.0

//! The fences that one GPU address space shows, so that the engines of its adapter can store to
//! them.
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
//! LOCK: `state` is a leaf.

use super::fence::{
    Fence,
    StoreWatch, //
};
use crate::sys::alloc::{
    pin_arc,
    tree_node, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// How many fences one step looks at.
const STEP: usize = 64;

/// A fence, and how many mappings show it.
struct Entry {
    fence: Arc<Fence>,
    mappings: usize,
}

/// Fences by id.
type Fences = RBTree<u64, Entry>;

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
        match self.waited.get_mut(&id) {
            None => self.idle.get_mut(&id),
            found => found,
        }
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

    /// The value of `fence` is mapped in the address space, until the result is dropped.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn show(
        self: &Arc<Self>,
        fence: &Arc<Fence>,
    ) -> Result<ShownFence, AllocError> {
        let id = fence.header.id();
        let mut node = Some(tree_node(
            id,
            Entry {
                fence: fence.clone(),
                mappings: 1,
            },
        )?);
        let mut state = self.state.lock();

        match state.entry(id) {
            // OVERFLOW: each is a mapping in memory.
            Some(entry) => entry.mappings += 1,
            None => {
                if let Some(node) = node.take() {
                    let _nothing = state.idle.insert(node);
                }
            }
        }
        drop(state);

        let is_new = node.is_none();
        let shown = ShownFence {
            fences: self.clone(),
            fence: fence.clone(),
        };

        if is_new {
            fence.shown_in(self.clone())?;
            // Somebody may wait for it already.
            self.wait_for(fence);
        }
        Ok(shown)
    }

    /// Ends one mapping of a fence.
    fn hide(self: &Arc<Self>, fence: &Fence) {
        let id = fence.header.id();
        let mut state = self.state.lock();
        let is_last = state.entry(id).is_some_and(|entry| {
            entry.mappings -= 1;
            entry.mappings == 0
        });
        let node = is_last
            .then(|| match state.waited.remove_node(&id) {
                None => state.idle.remove_node(&id),
                found => found,
            })
            .flatten();

        drop(state);
        if node.is_some() {
            fence.hidden_in(self);
        }
        drop(node);
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
        for _ in 0..STEP {
            let next = {
                let mut state = self.state.lock();

                match state.next() {
                    None => return state.at.is_some(),
                    Some(fence) => fence,
                }
            };

            if next.waiting() != 0 {
                next.sample();
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

/// One mapping of a fence in an address space.
pub(crate) struct ShownFence {
    fences: Arc<GpuFences>,
    fence: Arc<Fence>,
}

impl Drop for ShownFence {
    /// Context: may sleep, no locks held. No engine has the mapping any more.
    fn drop(&mut self) {
        // What was stored at last is looked at here, because the worker does not find it any more.
        self.fence.sample();
        self.fences.hide(&self.fence);
    }
}
