// SPDX-License-Identifier: GPL-2.0

//! Signals of a cross-adapter fence. Others are told when the lock of the fence is given up, and
//! before anybody is woken (fences.md section 3.4, step S4).

use super::{
    Due,
    Fence,
    FenceGuard, //
};
use crate::{
    dxgk::sync::{
        cross_adapter::CrossAdapter,
        fence_binding::CrossAdapterFence,
        native_fence::StoredBy, //
    },
    logic::{
        propagation::Signaller,
        waiters::{
            Sweep,
            WouldRewind,
            BATCHES, //
        }, //
    },
    sys::{
        task::stamp::Stamp,
        trace, //
    }, //
};
use kernel::sync::Arc;

impl Fence {
    /// Whether somebody waits for it, or may: then stores of engines that tell nobody are looked
    /// for.
    pub(in crate::dxgk::sync) fn is_looked_for(&self) -> bool {
        self.has_natives() || self.waiting() != 0
    }

    /// Whether it is native on an adapter where others know of no wait.
    pub(super) fn has_natives(&self) -> bool {
        self.cross_adapter().is_some_and(CrossAdapter::has_natives)
    }

    /// [`Fence::signal_within`]. The KMD of the adapter stores the value, if the fence is native
    /// there.
    #[inline(never)]
    pub(super) fn signal_across(
        self: &Arc<Self>,
        cross: &CrossAdapter,
        by: Stamp,
        adapter: Option<u64>,
        value: u64,
        allow_rewind: bool,
        batches: &mut u32,
    ) -> core::result::Result<(), WouldRewind> {
        let made_on = || self.header.adapter.as_ref().map_or(0, |adapter| adapter.id);
        let adapter = adapter.unwrap_or_else(made_on);
        // Dropped after the lock.
        let part = cross.native_on(adapter);
        let words = &self.words;
        let mut waiters = self.waiters.lock();
        let due = match &part {
            Some(part) => waiters.signal(&StoredBy { words, part }, value, allow_rewind),
            None => waiters.signal(words, value, allow_rewind),
        }?;

        waiters.signalled = by;
        // Under the lock, as in `signal_within`.
        trace::signal(self.header.id(), value);
        self.release_and_tell(waiters, due, batches, || {
            cross.propagate(self.header.id(), Signaller::Adapter(adapter));
        });
        Ok(())
    }

    /// As [`Fence::release`], if anybody is due; others are told before anybody is woken, when the
    /// lock is given up.
    fn release_and_tell<'a>(
        self: &'a Arc<Self>,
        mut waiters: FenceGuard<'a>,
        due: Option<Sweep>,
        batches: &mut u32,
        tell: impl FnOnce(),
    ) {
        let mut first = Due::new();
        let mut rest = due;

        if let (Some(sweep), Some(fewer)) = (due, batches.checked_sub(1)) {
            rest = waiters.sweep(sweep, &mut first.queue, &mut first.woken);
            if rest.is_none() {
                rest = self.settle(&mut waiters);
            }
            *batches = fewer;
        }
        drop(waiters);
        tell();
        first.release();
        if let Some(rest) = rest {
            self.release(self.waiters.lock(), rest, batches);
        }
    }

    /// The end of [`Fence::always_signal`] (FEN-143).
    #[cold]
    pub(super) fn always_signal_across<'a>(
        self: &'a Arc<Self>,
        cross: &CrossAdapter,
        waiters: FenceGuard<'a>,
        due: Option<Sweep>,
    ) {
        self.release_and_tell(waiters, due, &mut { BATCHES }, || cross.always_signal());
    }

    /// Looks at CurrentValue, which an engine of the adapter with this id may have stored, without
    /// a word about that: tells the native fences, and releases waiters (FEN-48, FEN-157).
    ///
    /// Context: as [`Fence::signal`].
    pub(in crate::dxgk) fn look(self: &Arc<Self>, adapter: u64, batches: &mut u32) {
        if let Some(cross) = self.cross_adapter().filter(|cross| cross.has_natives()) {
            cross.propagate(self.header.id(), Signaller::Unaware(adapter));
        }
        self.sample_with(self.waiters.lock(), batches);
    }

    /// An engine of the adapter with this id has stored a value: tells the other adapters. True if
    /// there are any.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn tell_others(&self, adapter: u64) -> bool {
        self.cross_adapter().is_some_and(|cross| {
            let from = match cross.rings_on(adapter) {
                true => Signaller::Rings(adapter),
                false => Signaller::Adapter(adapter),
            };

            cross.propagate(self.header.id(), from)
        })
    }
}

impl CrossAdapterFence for Fence {
    fn id(&self) -> u64 {
        self.header.id()
    }

    fn signaled_on(self: Arc<Self>, adapter: u64) -> bool {
        let is_told = self.tell_others(adapter);

        self.sample_with(self.waiters.lock(), &mut { BATCHES }) || is_told
    }

    fn adapters_changed(self: Arc<Self>) {
        self.settle_with(self.waiters.lock());
    }

    fn silence(self: Arc<Self>, adapter: u64) {
        if let Some(cross) = self.cross_adapter() {
            cross.silence(adapter);
        }
    }

    fn became_native(self: Arc<Self>) {
        self.look_for_engines();
    }
}
