// SPDX-License-Identifier: GPL-2.0

//! A thread that sleeps for fences in the memory of its own stack, as fences know it.
//!
//! LOCK: places are used under the lock of their fence, see `logic::sleepers`. The thread is woken
//! with no lock of the module held (FEN-90).

use super::{
    about::About,
    wake::THREAD, //
};
use crate::dxgk::stats::next_id;
use crate::{
    logic::{
        sleepers::News,
        wait_set::{
            Mode,
            WaitEnd,
            WaitSet, //
        }, //
    },
    sys::{
        stack_list::Sleeps,
        task::{
            sleep,
            stamp::Stamp, //
        },
        trace, //
    }, //
};
use kernel::{
    sync::aref::ARef,
    task::Task, //
};

/// A wait on the stack of its thread.
pub(crate) struct StackWait {
    /// Never used for another wait.
    pub(super) id: u64,
    /// By whom, and when.
    pub(super) begun: Stamp,
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
            begun: Stamp::of_caller(),
            set: WaitSet::new(mode, elements),
            task: sleep::me(),
        }
    }

    /// What fdinfo shows of it.
    pub(super) fn about(&self) -> About {
        About {
            id: self.id,
            begun: self.begun,
            receiver: THREAD,
            thread: sleep::number(&self.task),
            mode: self.set.mode(),
        }
    }

    /// The owner gives up, and is in no fence any more.
    pub(super) fn cancel(&self) {
        if self.set.cancel() {
            trace::wake(self.id, number(WaitEnd::Cancelled));
        }
    }
}

impl Sleeps for StackWait {
    type Wake = Ended;

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
}

/// The outcome as shown in traces.
pub(super) fn number(outcome: WaitEnd) -> u32 {
    match outcome {
        WaitEnd::Satisfied => 1,
        WaitEnd::Orphaned => 2,
        WaitEnd::Cancelled => 3,
    }
}
