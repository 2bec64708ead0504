// SPDX-License-Identifier: GPL-2.0

//! The signal of one fence by the call of a process, while the table of handles is locked: most
//! signals release nobody, and the others almost always one.
//!
//! LOCK: `Fence::waiters` inside `HandleTable::state`. Few are taken out under both; they are told
//! and woken, and their memory is freed, without a lock.

use super::{
    Fence,
    FenceGuard,
    FenceWaiter,
    State, //
};
use crate::{
    dxgk::sync::{
        native_fence::Words,
        queue::Node,
        stack_sleeper::Ended, //
    },
    logic::waiters::{
        Sweep,
        Taken,
        WouldRewind,
        BATCHES,
        FEW, //
    },
    sys::{
        array_vec::ArrayVec,
        task::stamp::Stamp,
        trace, //
    }, //
};
use kernel::sync::Arc;

/// What has become of a signal under the lock of a handle table.
pub(crate) enum Signalled<'a> {
    /// It is done, and releases nobody.
    Alone,
    /// It is done, and releases somebody.
    Releasing(Releasing<'a>),
    /// Nothing was done.
    Not,
}

/// A signal that releases somebody, and holds the fence lock.
pub(crate) struct Releasing<'a> {
    waiters: FenceGuard<'a>,
    sweep: Sweep,
}

impl Signalled<'_> {
    /// Takes out whom it releases, as many as may be under two locks, and gives up the fence lock.
    #[inline(always)]
    pub(crate) fn take_few(self, few: &mut Few) {
        if let Self::Releasing(mut releasing) = self {
            few.take(&mut releasing.waiters, releasing.sweep);
        }
    }
}

/// One whom such a signal has taken out.
enum Told {
    /// A waiter, which is to be told.
    Waiter(Node<dyn FenceWaiter>),
    /// A thread, which is to be woken.
    Thread(Ended),
}

/// Those whom such a signal has taken out.
pub(crate) struct Few {
    /// They, in order.
    told: ArrayVec<Option<Told>, { FEW as usize }>,
    /// There are more.
    rest: Option<Sweep>,
}

impl Few {
    /// Nobody.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            told: ArrayVec::new(),
            rest: None,
        }
    }

    /// Takes them out.
    #[inline(never)]
    fn take(&mut self, waiters: &mut State, sweep: Sweep) {
        self.rest = waiters.sweep_few(sweep, |taken| {
            let told = match taken {
                Taken::Node(node) => Told::Waiter(node),
                Taken::Sleeper(_, Some(ended)) => Told::Thread(ended),
                Taken::Sleeper(_, None) => return,
            };
            // There is room for all of them.
            let _room = self.told.push(Some(told));
        });
    }

    /// Whether there are others.
    pub(crate) fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Releases those who were taken out, and then the others, for which the fence is needed.
    ///
    /// Context: may sleep, no locks held.
    #[inline(never)]
    pub(crate) fn release(&mut self, fence: Option<Arc<Fence>>) {
        for told in self.told.as_mut_slice() {
            match told.take() {
                Some(Told::Waiter(node)) => {
                    node.to_key_value().1.satisfied();
                }
                Some(Told::Thread(ended)) => {
                    ended.wake();
                }
                None => {}
            }
        }
        if let Some((fence, rest)) = fence.zip(self.rest) {
            fence.release(fence.waiters.lock(), rest, &mut { BATCHES });
        }
    }
}

impl Fence {
    /// As [`Fence::signal`] without a rewind; `by` says whose signal it is. Nothing is done if
    /// somebody waits, and the fence is native somewhere.
    ///
    /// Context: no lock but that of a handle table. Allocates and frees nothing, wakes nobody.
    #[inline(always)]
    pub(crate) fn signal_one(
        &self,
        by: Stamp,
        value: u64,
    ) -> core::result::Result<Signalled<'_>, WouldRewind> {
        let Words::Monitored(place) = &self.words else {
            return Ok(match self.signal_alone(by, value, false)? {
                true => Signalled::Alone,
                false => Signalled::Not,
            });
        };
        let mut waiters = self.waiters.lock();
        let due = waiters.signal(place.word(), value, false)?;

        waiters.signalled = by;
        // Under the lock, as in `signal_within`.
        trace::signal(self.header.id(), value);
        Ok(match due {
            None => Signalled::Alone,
            Some(sweep) => Signalled::Releasing(Releasing { waiters, sweep }),
        })
    }
}
