// SPDX-License-Identifier: GPL-2.0

//! The queues of a double, so that a test can do what engines do: complete work, fault, suspend.
//!
//! A test shares this with the double by [`Behaviour::queues`](super::Behaviour::queues), and names
//! a queue by the id that the OS part gave it.

use super::{
    interrupts::Interrupts,
    journal::{
        Journal,
        Kind, //
    }, //
};
use crate::{
    ddi::{
        class::DeviceInterrupt,
        queue::{
            Fault,
            QueueCallbacks,
            Submission, //
        }, //
    },
    platform::{
        self,
        Boxed,
        Shared,
        ShortLock, //
    }, //
};

/// How many queues there can be in one test, and how many submissions of each are looked at.
const QUEUES: usize = 16;
const SUBMISSIONS: usize = 8;

/// What the double keeps of a context or a HW queue.
struct Queue {
    kind: Kind,
    cookie: u64,
    id: u64,
    callbacks: Shared<dyn QueueCallbacks>,
    /// Its last submissions, each at the remainder of its number.
    submissions: [Option<Submission>; SUBMISSIONS],
}

/// The contexts and HW queues of one double.
pub struct Queues {
    journal: Shared<Journal>,
    /// How it tells.
    pub interrupts: Interrupts,
    queues: ShortLock<Boxed<[Option<Queue>; QUEUES]>>,
}

impl Queues {
    /// No queues, of the double with this journal; `None` if there is no memory.
    pub fn new(journal: Shared<Journal>) -> Option<Self> {
        Some(Self {
            journal,
            interrupts: Interrupts::new()?,
            queues: platform::short_lock!(platform::none_array()?, "fake::Queues::queues")?,
        })
    }

    /// DMA_COMPLETED of the context or HW queue with this id: everything up to `number`. False if
    /// there is no such queue, or it was not given so much.
    pub fn complete(&self, id: u64, number: u64) -> bool {
        let Some((cookie, callbacks)) = self.find(id) else {
            return false;
        };

        if !self.journal.complete(cookie, number) {
            return false;
        }
        self.interrupts
            .raise(|class| callbacks.completed(class, number))
    }

    /// All commands of this context or HW queue up to this submission have been read.
    pub fn fetch(&self, id: u64, number: u64) -> bool {
        self.tell(id, |_, callbacks| callbacks.fetched(number))
    }

    /// MONITORED_FENCE_SIGNALED of this context or HW queue.
    pub fn signal(&self, id: u64) -> bool {
        self.tell(id, |class, callbacks| {
            callbacks.monitored_fence_signaled(class);
        })
    }

    /// A fault of this context or HW queue.
    pub fn fault(&self, id: u64, fault: &Fault) -> bool {
        self.tell(id, |class, callbacks| callbacks.faulted(class, fault))
    }

    /// The end of the suspension `suspension` of this context.
    pub fn suspended(&self, id: u64, suspension: u64) -> bool {
        if let Some((cookie, _)) = self.find(id) {
            self.journal.set_rests(Kind::Context, cookie, true);
        }
        self.tell(id, |class, callbacks| {
            callbacks.suspended(class, suspension);
        })
    }

    /// The end of a suspension of the context with this cookie; false if there is no such.
    pub(super) fn end_suspension(&self, cookie: u64, suspension: u64) -> bool {
        self.of_context(cookie).is_some_and(|callbacks| {
            self.interrupts
                .raise(|class| callbacks.suspended(class, suspension))
        })
    }

    /// InvalidateHwContext of the context with this cookie.
    pub(super) fn invalidate(&self, cookie: u64) {
        if let Some(callbacks) = self.of_context(cookie) {
            callbacks.invalidated();
        }
    }

    /// InvalidateHwContext of all contexts.
    pub(super) fn invalidate_all(&self) {
        for place in 0..QUEUES {
            let callbacks = {
                let queues = self.queues.lock();

                queues
                    .get(place)
                    .and_then(Option::as_ref)
                    .filter(|queue| queue.kind == Kind::Context)
                    .map(|queue| queue.callbacks.clone())
            };

            if let Some(callbacks) = callbacks {
                callbacks.invalidated();
            }
        }
    }

    /// The callbacks of the context with this cookie.
    fn of_context(&self, cookie: u64) -> Option<Shared<dyn QueueCallbacks>> {
        let queues = self.queues.lock();

        queues
            .iter()
            .flatten()
            .find(|queue| queue.kind == Kind::Context && queue.cookie == cookie)
            .map(|queue| queue.callbacks.clone())
    }

    /// The submission `number` of this context or HW queue, if it is one of the last eight.
    pub fn submission(&self, id: u64, number: u64) -> Option<Submission> {
        let queues = self.queues.lock();

        queues
            .iter()
            .flatten()
            .find(|queue| queue.id == id)?
            .submissions
            .iter()
            .flatten()
            .find(|submission| submission.number == number)
            .copied()
    }

    /// The number of its last submission.
    pub fn submitted(&self, id: u64) -> u64 {
        self.find(id)
            .map_or(0, |(cookie, _)| self.journal.submitted(cookie))
    }

    /// Whatever a KMD may tell of this context or HW queue, or may not.
    pub fn with(&self, id: u64, what: &dyn Fn(&DeviceInterrupt, &dyn QueueCallbacks)) -> bool {
        self.tell(id, what)
    }

    /// The callbacks of this context or HW queue, to be kept longer than a KMD may.
    pub fn callbacks(&self, id: u64) -> Option<Shared<dyn QueueCallbacks>> {
        self.find(id).map(|(_, callbacks)| callbacks)
    }

    fn tell(&self, id: u64, what: impl FnOnce(&DeviceInterrupt, &dyn QueueCallbacks)) -> bool {
        self.find(id)
            .is_some_and(|(_, callbacks)| self.interrupts.raise(|class| what(class, &*callbacks)))
    }

    fn find(&self, id: u64) -> Option<(u64, Shared<dyn QueueCallbacks>)> {
        let queues = self.queues.lock();

        queues
            .iter()
            .flatten()
            .find(|queue| queue.id == id)
            .map(|queue| (queue.cookie, queue.callbacks.clone()))
    }

    pub(super) fn add(
        &self,
        kind: Kind,
        cookie: u64,
        id: u64,
        callbacks: &Shared<dyn QueueCallbacks>,
    ) {
        let mut queues = self.queues.lock();

        match queues.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(Queue {
                    kind,
                    cookie,
                    id,
                    callbacks: callbacks.clone(),
                    submissions: [None; SUBMISSIONS],
                });
            }
            None => self.journal.too_many(),
        }
    }

    pub(super) fn submit(&self, kind: Kind, cookie: u64, submission: &Submission) {
        let mut queues = self.queues.lock();
        let queue = queues
            .iter_mut()
            .flatten()
            .find(|queue| queue.kind == kind && queue.cookie == cookie);
        // CAST: below eight.
        let place = (submission.number % SUBMISSIONS as u64) as usize;

        if let Some(place) = queue.and_then(|queue| queue.submissions.get_mut(place)) {
            *place = Some(*submission);
        }
    }

    pub(super) fn remove(&self, kind: Kind, cookie: u64) {
        let removed = self
            .queues
            .lock()
            .iter_mut()
            .find(|place| {
                place
                    .as_ref()
                    .is_some_and(|queue| queue.kind == kind && queue.cookie == cookie)
            })
            .and_then(Option::take);

        // The callbacks go where no lock is held.
        drop(removed);
    }
}
