// SPDX-License-Identifier: GPL-2.0

//! A signal in one or more queues: it takes effect once, when it has been the turn of it in all of
//! them (FEN-43). If one of them discards it, it never does (FEN-46).

use super::export::Wanted;
use crate::dxgk::object::{
    Object,
    Strong, //
};
use crate::{
    logic::{
        fence_value,
        submission_order::Moment,
        waiters::BATCHES, //
    },
    sys::{
        file::eventfd::EventFd,
        task::stamp::Stamp, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc, //
    }, //
};

/// One object that is signalled, and its value, if it has one. The reference keeps those waiting
/// who wait for it: somebody will signal it (FEN-28).
pub(crate) struct SignalElement {
    pub(crate) strong: Strong,
    pub(crate) value: u64,
}

/// What a signal does.
pub(crate) enum Effect {
    /// Signals each of these.
    Objects(KVVec<SignalElement>),
    /// Adds 1 to an event.
    Event(EventFd),
}

/// A signal in one or more queues.
pub(crate) struct QueuedSignal {
    effect: Effect,
    /// Who has queued it, and when.
    queued: Stamp,
    /// In how many queues it still has to be its turn.
    missing: Atomic<u32>,
    /// When it takes effect.
    pub(super) moment: Moment,
}

impl Effect {
    /// A signal that does this, in so many queues.
    pub(crate) fn into_signal(
        self,
        moment: Moment,
        queues: u32,
    ) -> Result<Arc<QueuedSignal>, AllocError> {
        QueuedSignal::new(self, moment, queues)
    }
}

impl QueuedSignal {
    /// A signal in so many queues, at least one.
    fn new(effect: Effect, moment: Moment, queues: u32) -> Result<Arc<Self>, AllocError> {
        Arc::new(
            Self {
                effect,
                queued: Stamp::of_caller(),
                missing: Atomic::new(queues),
                moment,
            },
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// How many objects it signals.
    pub(crate) fn elements(&self) -> usize {
        match &self.effect {
            Effect::Objects(elements) => elements.len(),
            Effect::Event(_) => 1,
        }
    }

    /// Whether it has been its turn in all queues but one. Seen in a queue in which it has not
    /// been, that is this one.
    pub(super) fn is_last_part(&self) -> bool {
        self.missing.load(Acquire) == 1
    }

    /// Whether it gives a fence at least this value.
    pub(super) fn reaches(&self, wanted: Wanted) -> bool {
        let reaches = |element: &SignalElement| match element.strong.object() {
            Object::Fence(fence) => {
                fence.header.id() == wanted.fence
                    && fence_value::satisfies(element.value, wanted.value)
            }
            _ => false,
        };

        match &self.effect {
            Effect::Objects(elements) => elements.iter().any(reaches),
            Effect::Event(_) => false,
        }
    }

    /// Its fences, and the values that they get.
    pub(super) fn fences(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let elements: &[SignalElement] = match &self.effect {
            Effect::Objects(elements) => elements,
            Effect::Event(_) => &[],
        };

        elements
            .iter()
            .filter_map(|element| match element.strong.object() {
                Object::Fence(fence) => Some((fence.header.id(), element.value)),
                _ => None,
            })
    }

    /// It is its turn in one of the queues, which are of the adapter with this id.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn reached(&self, adapter: u64) {
        // ORDERING: full: the last one has seen what all the queues have done before.
        if self.missing.fetch_sub(1, Full) != 1 {
            return;
        }
        match &self.effect {
            Effect::Objects(elements) => {
                let mut batches = BATCHES;
                let by = self.queued.again();

                for element in elements {
                    element.signal(by, adapter, &mut batches);
                }
            }
            Effect::Event(event) => event.signal(),
        }
    }
}

impl SignalElement {
    /// Signals it for a queue of this adapter and of the process in `by`, and releases so many
    /// batches of waits, together with others.
    fn signal(&self, by: Stamp, adapter: u64, batches: &mut u32) {
        match self.strong.object() {
            Object::Fence(fence) => {
                // It may go down (FEN-42), so that it is never refused.
                let _done = fence.signal_within(by, Some(adapter), self.value, true, batches);
            }
            Object::Legacy(object) => object.signal(self.value),
            Object::Resource(_) | Object::KeyedMutex(_) => {}
        }
    }
}
