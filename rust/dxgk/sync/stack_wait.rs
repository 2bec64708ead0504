// SPDX-License-Identifier: GPL-2.0

//! The wait of a thread that sleeps in its call, in the memory of its own stack: such a wait takes
//! no memory.
//!
//! The thread leaves every fence before it returns. A fence that was seen satisfied has let go of
//! its place, so that nothing is left to do if all were. If the thread has to run a signal handler,
//! and its call is restarted afterwards, nodes take the places of its stack, see
//! [`Sleeping::move_to`].
//!
//! LOCK: places are used under the lock of their fence, see `logic::sleepers`. The thread is woken
//! with no lock of the module held (FEN-90).

use super::{
    element::Element,
    fence::NewNode,
    stack_sleeper::StackWait,
    waiter::Waiter,
    wake::WakeThread, //
};
use crate::dxgk::small_vec::InlineVec;
use crate::{
    logic::{
        sleepers::News,
        wait_set::WaitEnd,
        waiters::{
            SleepResult,
            WaitKey, //
        }, //
    },
    sys::{
        stack_list::{
            OnStack,
            Sleeps, //
        },
        task::stamp::Stamp, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A wait on a stack, and where it is queued.
pub(super) struct Sleeping<'a, const N: usize> {
    wait: Pin<&'a OnStack<StackWait, N>>,
    elements: &'a [&'a Element],
    keys: [Option<WaitKey>; N],
}

impl<'a, const N: usize> Sleeping<'a, N> {
    /// A wait for these elements, which is queued nowhere.
    pub(super) fn new(wait: Pin<&'a OnStack<StackWait, N>>, elements: &'a [&'a Element]) -> Self {
        Self {
            wait,
            elements,
            keys: [None; N],
        }
    }

    /// Queues it on one fence after the other, until it has ended. False if too many threads sleep
    /// so for one of them.
    ///
    /// Context: may sleep, no locks held. Takes no memory.
    pub(super) fn begin(&mut self) -> bool {
        let wait = self.wait.what();
        let elements = self.elements.iter().zip(&mut self.keys);

        for (number, (element, queued)) in elements.enumerate() {
            let Some(place) = self.wait.place(number) else {
                return false;
            };
            let ended = match element.fence.enqueue_sleeper(element.value, place, wait.id) {
                SleepResult::Queued(key) => {
                    *queued = Some(key);
                    None
                }
                SleepResult::Satisfied => wait.tell(News::Satisfied),
                SleepResult::Orphaned => wait.tell(News::Orphaned),
                SleepResult::Full => return false,
            };

            if let Some(ended) = ended {
                ended.wake();
            }
            if wait.set.outcome().is_some() {
                break;
            }
        }
        true
    }

    /// The id of the wait.
    pub(super) fn id(&self) -> u64 {
        self.wait.what().id
    }

    /// Who has begun it, and when.
    pub(super) fn begun(&self) -> Stamp {
        self.wait.what().begun
    }

    /// How many elements it has.
    pub(super) fn elements(&self) -> usize {
        self.elements.len()
    }

    /// The elements that were queued, and where.
    fn queued(&self) -> impl Iterator<Item = (&Element, &WaitKey)> {
        let elements = self.elements.iter().zip(&self.keys);

        elements.filter_map(|(element, key)| Some((*element, key.as_ref()?)))
    }

    /// Takes it out of every fence, and ends it if nobody else has.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn leave(&self) -> Option<WaitEnd> {
        let wait = self.wait.what();

        if !wait.set.all_satisfied() {
            for (element, key) in self.queued() {
                element.fence.cancel_sleeper(key);
            }
            wait.cancel();
        }
        wait.set.outcome()
    }

    /// Goes on as `waiter`, whose nodes take the places of the stack. It has as many elements, and
    /// nodes for all of them. What this wait has seen counts (FEN-16), and it misses nothing
    /// (FEN-34). If this wait has ended meanwhile, how: then `waiter` is not told, and cancelled.
    ///
    /// Context: may sleep, no locks held. Takes no memory.
    pub(super) fn move_to(
        &self,
        waiter: &Arc<Waiter<WakeThread>>,
        mut new_nodes: InlineVec<NewNode>,
    ) -> Option<WaitEnd> {
        let set = &self.wait.what().set;
        let mut told = 0_u32;

        for (element, key) in self.elements.iter().zip(&self.keys) {
            let new_node = new_nodes.pop();
            let is_moved = key.zip(new_node).is_some_and(|(key, new_node)| {
                let replaced = element.fence.replace_sleeper(&key, new_node);

                if replaced.is_ok() {
                    waiter.queued(element.fence.clone(), key);
                }
                replaced.is_ok()
            });

            // OVERFLOW: at most `N`.
            told = told.saturating_add((!is_moved).into());
        }

        let outcome = set.outcome();

        match outcome {
            Some(_) => {
                waiter.set.cancel();
            }
            // From here on nobody tells this wait anything.
            None => waiter.go_on_for(set, told),
        }
        outcome
    }
}
