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
    cpu_wait::Element,
    fence::NewNode,
    waiter::{
        number,
        Waiter, //
    },
    wake::WakeThread, //
};
use crate::dxgk::{
    inline_vec::InlineVec,
    stats::next_id, //
};
use crate::{
    logic::{
        sleepers::{
            News,
            SleeperList, //
        },
        wait_set::{
            Mode,
            WaitEnd,
            WaitSet, //
        },
        waiters::{
            SleepResult,
            WaitKey, //
        }, //
    },
    sys::{
        stack_list::{
            NewPlace,
            OnStack,
            StackList, //
        },
        task::sleep,
        trace, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
    task::Task, //
};

/// A wait on the stack of its thread.
pub(crate) struct StackWait {
    /// Never used for another wait.
    pub(super) id: u64,
    /// The any-or-all state.
    pub(super) set: WaitSet,
    task: ARef<Task>,
}

/// A wait on a stack that has ended. Its thread may be gone already.
pub(crate) struct Ended {
    id: u64,
    outcome: WaitEnd,
    task: ARef<Task>,
}

impl Ended {
    /// Wakes the thread. True if it has got what it was waiting for.
    ///
    /// Context: no locks held.
    pub(super) fn wake(self) -> bool {
        trace::wake(self.id, number(self.outcome));
        sleep::wake(&self.task);
        self.outcome == WaitEnd::Satisfied
    }
}

impl StackWait {
    /// A wait of the calling thread for so many elements.
    pub(super) fn of_caller(mode: Mode, elements: u32) -> Self {
        Self {
            id: next_id(),
            set: WaitSet::new(mode, elements),
            task: sleep::me(),
        }
    }

    /// The news about one element. If that ends the wait it says how.
    fn tell(&self, news: News) -> Option<Ended> {
        let (is_last, outcome) = match news {
            News::Satisfied => (self.set.satisfy(), WaitEnd::Satisfied),
            News::Orphaned => (self.set.orphan(), WaitEnd::Orphaned),
        };

        is_last.then(|| Ended {
            id: self.id,
            outcome,
            task: self.task.clone(),
        })
    }

    /// The owner gives up, and is in no fence any more.
    pub(super) fn cancel(&self) {
        if self.set.cancel() {
            trace::wake(self.id, number(WaitEnd::Cancelled));
        }
    }
}

impl SleeperList for StackList<StackWait> {
    type Place<'a> = NewPlace<'a, StackWait>;
    type Wake = Ended;

    fn first(&self) -> Option<WaitKey> {
        self.first()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        self.next(key)
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }

    fn put(&mut self, key: WaitKey, place: Self::Place<'_>) -> bool {
        self.put(key, place)
    }

    fn tell(&mut self, key: &WaitKey, news: News) -> Option<Option<Ended>> {
        self.take(key, |wait| wait.tell(news))
    }

    fn take(&mut self, key: &WaitKey) -> bool {
        self.take(key, |_| ()).is_some()
    }
}

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
