// SPDX-License-Identifier: GPL-2.0

//! What engines do with a fence: where they see CurrentValue, who looks for what they store, and
//! what becomes of their interrupts and logs.

use super::{
    Fence,
    FenceGuard,
    StoreWatch, //
};
use crate::{
    dxgk::sync::{
        fence_binding::{
            BoundFence,
            CrossAdapterFence,
            LoggedFence, //
        },
        native_fence::NativeFence,
        shown::{
            Shown,
            Spaces, //
        }, //
    },
    logic::waiters::BATCHES,
    sys::trace, //
};
use core::ptr;
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Who looks for what engines store.
impl Fence {
    /// Those who look for stores of engines look at this fence.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::sync) fn look_for_engines(self: &Arc<Self>) {
        let last = self.waiters.lock().shown.last();

        if let Some(last) = last {
            self.wait_for_engines(last);
        }
    }

    /// There is a wait: those who look for stores of engines have to look at this fence, up to the
    /// last one that there was. Those who come later look for waits by themselves, so that nobody
    /// can keep this busy.
    #[inline(always)]
    pub(super) fn wait_for_engines(self: &Arc<Self>, last: u64) {
        let mut number = 0;

        while number <= last {
            let space = {
                let waiters = self.waiters.lock();
                let Some((found, space)) = waiters.shown.from(number) else {
                    return;
                };

                // OVERFLOW: numbers never reach the last one.
                number = found.saturating_add(1);
                space.clone()
            };

            space.wait_for(self);
        }
    }

    /// A space that shows it does not know of waits any more, or may have missed one: the next wait
    /// tells all of them.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::sync) fn forget_waits(&self) {
        self.waiters.lock().shown.forget();
    }

    /// Engines see CurrentValue in the address space of `space`, until [`Fence::hidden_in`]. True
    /// if somebody waits already, or may.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::sync) fn shown_in(
        &self,
        space: Arc<dyn StoreWatch>,
    ) -> Result<bool, AllocError> {
        {
            let mut state = self.waiters.lock();

            if let Shown::List(None) = state.shown {
                state.shown = Shown::In(space);
                return Ok(self.has_natives() || state.queued() != 0);
            }
        }
        self.shown_in_another(space)
    }

    /// The same for one that may not be the first.
    #[cold]
    fn shown_in_another(&self, space: Arc<dyn StoreWatch>) -> Result<bool, AllocError> {
        let mut new = None;
        let mut more = KVec::new();

        loop {
            // What is not used is declared before the lock, to be dropped after it.
            let mut state = self.waiters.lock();
            let spaces = match &mut state.shown {
                Shown::List(Some(spaces)) => spaces,
                shown @ Shown::List(None) => {
                    *shown = Shown::In(space);
                    return Ok(self.has_natives() || state.queued() != 0);
                }
                shown @ Shown::In(_) => {
                    let Some(list) = new.take() else {
                        drop(state);
                        new = Some(Spaces::new()?);
                        continue;
                    };

                    if let Shown::In(first) = core::mem::replace(shown, Shown::List(Some(list))) {
                        shown.push(first);
                    }
                    continue;
                }
            };
            let length = spaces.list.len();

            if length == spaces.list.capacity() {
                if more.capacity() <= length {
                    drop(state);
                    more = KVec::with_capacity(length.saturating_mul(2), GFP_KERNEL_ACCOUNT)?;
                    continue;
                }
                core::mem::swap(&mut spaces.list, &mut more);
                for space in more.drain_all() {
                    // There is more room than before.
                    let _room = spaces.list.push_within_capacity(space);
                }
            }
            state.shown.push(space);
            return Ok(self.has_natives() || state.queued() != 0);
        }
    }

    /// Ends what [`Fence::shown_in`] began: looks at CurrentValue for the last time, as
    /// [`Fence::look`].
    ///
    /// Context: as [`Fence::signal`].
    pub(in crate::dxgk::sync) fn hidden_in<W: StoreWatch>(self: &Arc<Self>, space: &Arc<W>) {
        let is_own = |own: &Arc<dyn StoreWatch>| ptr::addr_eq(&raw const **own, &raw const **space);
        let mut waiters = self.waiters.lock();
        let gone = waiters.shown.remove(is_own);

        match self.cross_adapter() {
            None => {
                self.sample_with(waiters, &mut { BATCHES });
            }
            Some(_) => {
                drop(waiters);
                self.look(space.adapter(), &mut { BATCHES });
            }
        }
        drop(gone);
    }

    /// Looks at CurrentValue, which an engine may have stored, and releases the waiters that it
    /// satisfies (FEN-48).
    ///
    /// Context: as [`Fence::signal`].
    pub(in crate::dxgk) fn sample(self: &Arc<Self>) {
        self.sample_with(self.waiters.lock(), &mut { BATCHES });
    }

    /// The same with the fence lock held; drops it. Whether anybody is released.
    pub(super) fn sample_with<'a>(
        self: &'a Arc<Self>,
        mut waiters: FenceGuard<'a>,
        batches: &mut u32,
    ) -> bool {
        let Some(sweep) = waiters.sample(&self.words) else {
            return false;
        };

        trace::signal(self.header.id(), self.value());
        self.release(waiters, sweep, batches);
        true
    }
}

impl BoundFence for Fence {
    fn adapter_removed(self: Arc<Self>) {
        self.always_signal();
    }

    fn native_signaled(self: Arc<Self>) {
        self.look_at_value();
    }
}

impl LoggedFence for Fence {
    fn id(&self) -> u64 {
        self.header.id()
    }

    fn logged(self: Arc<Self>, value: u64, end_ns: u64, adapter: u64) {
        self.tell_others(adapter);

        let mut waiters = self.waiters.lock();
        let is_for_all = |native: &NativeFence| native.all_waited_at(end_ns);

        if !self.words.native().is_some_and(is_for_all) {
            self.sample_with(waiters, &mut { BATCHES });
        } else if let Some(sweep) = waiters.sample_beside(&self.words, value) {
            trace::signal(self.header.id(), value);
            self.release(waiters, sweep, &mut { BATCHES });
        }
    }
}

/// What engines have done with a native fence.
impl Fence {
    /// Whether engines signal it by themselves and log that.
    pub(in crate::dxgk) fn is_logged(&self) -> bool {
        self.words.native().is_some() || self.cross_adapter().is_some()
    }

    /// Engines of the adapter with this id may have stored a value that somebody waits for; nothing
    /// happens to a monitored fence.
    ///
    /// Context: as [`Fence::signal`].
    pub(in crate::dxgk) fn look_on(self: Arc<Self>, adapter: u64) {
        match self.cross_adapter() {
            Some(_) => {
                self.signaled_on(adapter);
            }
            None => self.look_at_value(),
        }
    }

    /// The same for a fence of one adapter.
    fn look_at_value(self: Arc<Self>) {
        let Some(native) = self.words.native() else {
            return;
        };
        let is_due = native.begin_look();

        if !self.sample_with(self.waiters.lock(), &mut { BATCHES }) && is_due {
            native.was_spurious();
        }
    }
}
