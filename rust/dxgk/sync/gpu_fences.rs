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
//! No wake-up is lost. A wait is queued on its fence first, which it looks at under the fence lock.
//! The first one marks the fence, and moves its page into `waited`. Then the value is looked at
//! again, unless the mark was there: a store from before is seen by that, and for a later one the
//! worker, which comes after it, finds the mark. A fence without waits loses its mark when the
//! worker comes across it, which then looks for waits again. A fence that several address spaces
//! show knows whether all have marked it, so that most waits need not ask them. It forgets that
//! after a mark is gone and before the worker looks again, so no wait relies on a mark that nobody
//! puts back.
//!
//! A native fence has an interrupt of its own, which says which one it was: the worker does not
//! look at it. Its page of MonitoredValue comes and goes with that of CurrentValue.
//!
//! LOCK: `state` is a leaf. Nothing is mapped, unmapped or dropped under it.

use super::{
    fence::{
        Fence,
        StoreWatch, //
    },
    shown_fences::{
        Entered,
        Missing,
        Page,
        Pages,
        Places,
        Sight,
        SpareNode, //
    }, //
};
use crate::{
    dxgk::vidmm::{
        address_space::AddressSpace,
        fence_page::FencePage,
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
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// The page of a fence that is shown, and that of MonitoredValue of a native one.
type ShownPages = (ShownPage, Option<ShownPage>);

/// How many fences one step looks at.
const STEP: usize = 64;

/// The fences of one GPU address space.
#[pin_data]
pub(crate) struct GpuFences {
    /// The id of its adapter.
    adapter: u64,
    #[pin]
    state: SpinLock<Pages>,
}

impl GpuFences {
    /// It shows none, to the engines of the adapter with this id.
    pub(in crate::dxgk) fn new(adapter: u64) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                adapter,
                state <- new_spinlock!(Pages::new(), "GpuFences::state"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Shows `fence` in `space`, which is always the same, for one more opening; engines may store
    /// if that `stores`. One that is native here has this page of MonitoredValue. Returns the GPU
    /// address of its value, and of MonitoredValue.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn open(
        self: &Arc<Self>,
        space: &AddressSpace,
        fence: &Arc<Fence>,
        stores: bool,
        monitored: Option<&FencePage>,
    ) -> DxgResult<(u64, u64)> {
        let sight = Sight {
            stores,
            is_native: monitored.is_some(),
        };
        let mut more = None;
        let (shown, monitored) = loop {
            let entered = self.state.lock().enter(fence, sight, &mut more);

            match entered {
                Ok(entered) => break self.entered(space, fence, sight, entered)?,
                Err(Missing::Room(room)) => {
                    more = Some(KVec::with_capacity(room, GFP_KERNEL_ACCOUNT)?);
                }
                Err(Missing::Page(spare)) => {
                    if let Some(shown) = self.open_page(space, fence, sight, monitored, spare)? {
                        break shown;
                    }
                }
            }
        };

        let offset = fence.storage().offset();

        Ok((
            shown.address(offset),
            monitored.map_or(0, |monitored| monitored.address(offset)),
        ))
    }

    /// What is left to do when a fence has one more opening.
    fn entered(
        self: &Arc<Self>,
        space: &AddressSpace,
        fence: &Arc<Fence>,
        sight: Sight,
        entered: Entered,
    ) -> DxgResult<ShownPages> {
        let Entered {
            shown,
            monitored,
            tell,
            is_new,
        } = entered;

        if tell {
            self.tell(space, fence, sight, shown);
        }
        if is_new && !sight.is_native {
            match fence.shown_in(self.clone()) {
                // Who waits for it already has not seen that it is shown.
                Ok(is_waited) if is_waited => self.wait_if_looked_for(fence),
                Ok(_) => {}
                Err(error) => {
                    self.undo(space, fence, sight);
                    return Err(error.into());
                }
            }
        }
        Ok((shown, monitored))
    }

    /// An opening was entered that there will not be.
    #[cold]
    #[inline(never)]
    fn undo(&self, space: &AddressSpace, fence: &Fence, sight: Sight) {
        let left = self.state.lock().leave(fence, sight);

        drop(left.map(|left| left.finish(space)));
    }

    /// Tells the address space that engines may store, for an opening. When this returns they may:
    /// who finds it told does not wait for it.
    #[cold]
    fn tell(&self, space: &AddressSpace, fence: &Fence, sight: Sight, shown: ShownPage) {
        space.allow_stores(shown);
        if self.state.lock().told(fence, sight) {
            space.forbid_stores(shown);
        }
    }

    /// Shows the page of `fence`, because it is not shown, maybe with a node that was there; `None`
    /// if it was meanwhile.
    #[cold]
    #[inline(never)]
    fn open_page(
        self: &Arc<Self>,
        space: &AddressSpace,
        fence: &Arc<Fence>,
        sight: Sight,
        monitored: Option<&FencePage>,
        spare: Option<SpareNode>,
    ) -> DxgResult<Option<ShownPages>> {
        let place = match spare {
            Some(spare) => spare,
            None => tree_place()?,
        };
        let places = Places::for_page_of(fence)?;
        // Nobody but the OS part and the KMD stores to it (FEN-59).
        let monitored = monitored
            .map(|page| space.show_page(page, false))
            .transpose()?;
        let hide_monitored = || {
            if let Some(monitored) = monitored {
                space.hide_page(monitored);
            }
        };
        let shown = space
            .show_page(&fence.storage().page(), sight.stores)
            .inspect_err(|_| hide_monitored())?;
        let hide = || {
            space.hide_page(shown);
            hide_monitored();
        };

        // Before others find the page, because it may fail.
        if !sight.is_native {
            fence.shown_in(self.clone()).inspect_err(|_| hide())?;
        }

        let page = Page::new(shown, monitored, places, fence, sight.stores);
        let key = Pages::key(fence, sight);
        let refused = self.state.lock().add(key, place.into_node(key, page));

        if refused.is_none() {
            // Somebody may wait for it already, and has not found the page.
            if !sight.is_native {
                fence.forget_waits();
                self.wait_if_looked_for(fence);
            }
            return Ok(Some((shown, monitored)));
        }
        // Another thread has been faster.
        if !sight.is_native {
            fence.hidden_in(self);
        }
        hide();
        Ok(None)
    }

    /// Ends what [`GpuFences::open`] began. If it was the last opening, what engines have stored is
    /// looked at for the last time; they store no more, if the page has no other fence.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn close(self: &Arc<Self>, space: &AddressSpace, fence: &Arc<Fence>, sight: Sight) {
        let left = self.state.lock().leave(fence, sight);
        let Some(left) = left else {
            return;
        };
        let is_gone = left.is_gone();
        let rest = left.finish(space);

        if is_gone && !sight.is_native {
            // The worker does not find it any more.
            fence.hidden_in(self);
        }
        drop(rest);
    }

    /// As [`GpuFences::wait_for`], if somebody waits now.
    fn wait_if_looked_for(&self, fence: &Arc<Fence>) {
        if fence.is_looked_for() {
            self.wait_for(fence);
        }
    }

    /// An engine has stored something, or may have.
    pub(in crate::dxgk) fn stored(&self) {
        self.state.lock().begin();
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
                    None => return state.goes_on(),
                    Some(fence) => fence,
                }
            };

            if next.is_looked_for() {
                next.look(self.adapter, &mut batches);
                continue;
            }
            self.state.lock().mark(&next, false);
            next.forget_waits();
            // A wait that was queued meanwhile may have found it marked.
            self.wait_if_looked_for(&next);
        }
        true
    }
}

impl StoreWatch for GpuFences {
    fn wait_for(&self, fence: &Arc<Fence>) {
        // A wait has looked at the value before it was queued. Whatever was stored since, the
        // worker finds a mark that has been there for longer.
        if !self.state.lock().mark(fence, true) {
            fence.sample();
        }
    }

    fn adapter(&self) -> u64 {
        self.adapter
    }
}
