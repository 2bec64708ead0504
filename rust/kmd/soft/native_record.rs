// SPDX-License-Identifier: GPL-2.0

//! How the interrupts of native fences are raised: one record after the other, in the form that the
//! adapter is made for (GPU-59, GPU-61).

use super::{
    config::NativeInterruptMode,
    native_fences::NativeFences, //
};
use crate::{
    ddi::{
        class::DeviceInterrupt,
        queue::{
            NativeFenceSignaled,
            QueueCallbacks, //
        }, //
    },
    engine::fences::FenceIndex, //
};

/// How many fences one record names (GPU-59).
const NAMES: usize = 64;

/// The queue that has signalled.
pub(super) struct Signaller<'a> {
    pub(super) callbacks: &'a dyn QueueCallbacks,
    /// It has logs, see GPU-71.
    pub(super) has_logs: bool,
}

/// What an engine has to raise at the end of a slice, which is one of one queue. All other forms
/// than the merged one are raised at once.
pub(super) struct NativeRecord {
    mode: NativeInterruptMode,
    fences: [FenceIndex; NAMES],
    count: usize,
    /// There were more than can be named.
    is_lost: bool,
}

impl NativeRecord {
    /// Nothing.
    pub(super) fn new(mode: NativeInterruptMode) -> Self {
        Self {
            mode,
            fences: [FenceIndex(0); NAMES],
            count: 0,
            is_lost: false,
        }
    }

    /// What is reported of native fences cannot be told from monitored ones.
    pub(super) fn is_legacy(&self) -> bool {
        self.mode == NativeInterruptMode::Legacy
    }

    /// A queue has signalled a fence, for which somebody may wait.
    pub(super) fn signaled(
        &mut self,
        class: &DeviceInterrupt,
        fence: FenceIndex,
        fences: &NativeFences,
        queue: &Signaller<'_>,
    ) {
        match self.mode {
            NativeInterruptMode::Exact => fences.signaled(class, fence),
            NativeInterruptMode::Merged => self.add(fence),
            NativeInterruptMode::Null
            | NativeInterruptMode::Legacy
            | NativeInterruptMode::Queue
            | NativeInterruptMode::Engine => queue
                .callbacks
                .native_fence_signaled(class, self.nameless(queue)),
        }
    }

    /// A record that names no fence. A queue without logs is always named, because nothing else
    /// tells what it did.
    pub(super) fn nameless(&self, queue: &Signaller<'_>) -> NativeFenceSignaled {
        NativeFenceSignaled {
            names_queue: match self.mode {
                NativeInterruptMode::Queue => true,
                NativeInterruptMode::Engine => !queue.has_logs,
                _ => false,
            },
            evaluate_legacy_monitored_fences: self.is_legacy(),
        }
    }

    /// Whether something is left to be raised.
    pub(super) fn has_more(&self) -> bool {
        self.count != 0 || self.is_lost
    }

    fn add(&mut self, fence: FenceIndex) {
        let known = self.fences.iter().take(self.count);

        if known.copied().any(|known| known == fence) {
            return;
        }
        match self.fences.get_mut(self.count) {
            Some(place) => {
                *place = fence;
                // OVERFLOW: there is a place.
                self.count = self.count.wrapping_add(1);
            }
            None => self.is_lost = true,
        }
    }

    /// The slice of a queue has ended: raises what is left.
    pub(super) fn raise(
        &mut self,
        class: &DeviceInterrupt,
        fences: &NativeFences,
        queue: &Signaller<'_>,
    ) {
        let count = core::mem::take(&mut self.count);

        if core::mem::take(&mut self.is_lost) {
            queue
                .callbacks
                .native_fence_signaled(class, self.nameless(queue));
            return;
        }
        for fence in self.fences.iter().take(count) {
            fences.signaled(class, *fence);
        }
    }
}
