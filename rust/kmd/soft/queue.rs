// SPDX-License-Identifier: GPL-2.0

//! What takes submissions: a context of packets, or a HW queue. It is the part of a queue that
//! submits reach without sleeping; the rest belongs to its engine.
//!
//! A HW queue that its process fills takes none. It is told when its doorbell is rung.

use super::listed::Listed;
use crate::{
    ddi::{
        doorbell::DoorbellCallbacks,
        queue::Submission, //
    },
    platform::{
        self,
        Shared,
        ShortLock, //
    }, //
};

/// Most submissions of a queue that have not completed (`MaxInFlightHwQueueBuffers`).
pub const MAX_IN_FLIGHT: u16 = 4;

/// What an engine and the OS part share of a queue.
pub struct Queue {
    /// What the OS part calls it.
    pub(super) id: u64,
    /// Which engine has it.
    pub(super) engine: usize,
    /// GPU virtual address of its progress fence, if it has one.
    pub(super) progress_fence: Option<u64>,
    /// Its process fills it.
    pub(super) is_filled_by_process: bool,
    waiting: ShortLock<Waiting>,
}

/// What waits for the engine.
struct Waiting {
    /// The submissions that the engine has not begun, the next one first.
    submissions: [Option<Submission>; MAX_IN_FLIGHT as usize],
    /// The engine has it on its list of queues to look at.
    listed: bool,
    /// The next one of that list.
    next: Option<Shared<Queue>>,
    /// Its number in the engine.
    number: Option<u32>,
    /// What its doorbell tells the OS part, if its process fills it.
    doorbell: Option<Shared<dyn DoorbellCallbacks>>,
    /// The next ring is told, so that the engine need not look at the ring.
    traps: bool,
}

impl Queue {
    /// A queue that its engine does not know yet; `None` if there is no memory. May sleep.
    pub fn new(
        id: u64,
        engine: usize,
        progress_fence: Option<u64>,
        is_filled_by_process: bool,
    ) -> Option<Shared<Self>> {
        let waiting = Waiting {
            submissions: [None; MAX_IN_FLIGHT as usize],
            listed: false,
            next: None,
            number: None,
            doorbell: None,
            traps: false,
        };

        platform::shared(Self {
            id,
            engine,
            progress_fence,
            is_filled_by_process,
            waiting: platform::short_lock!(waiting, "soft::Queue::waiting")?,
        })
    }

    /// Adds a submission. True if the engine has to be told of the queue. A submission beyond
    /// [`MAX_IN_FLIGHT`] is a mistake of the OS part, and lost.
    pub(super) fn push(&self, submission: &Submission) -> bool {
        let mut waiting = self.waiting.lock();

        if let Some(place) = waiting.submissions.iter_mut().find(|place| place.is_none()) {
            *place = Some(*submission);
        }
        !core::mem::replace(&mut waiting.listed, true)
    }

    /// It has this doorbell from now on, or none any more. What it had.
    pub fn set_doorbell(
        &self,
        doorbell: Option<Shared<dyn DoorbellCallbacks>>,
    ) -> Option<Shared<dyn DoorbellCallbacks>> {
        core::mem::replace(&mut self.waiting.lock().doorbell, doorbell)
    }

    /// Its process may have written to the ring. True if the engine has to be told of the queue.
    pub fn ring(&self) -> bool {
        let mut waiting = self.waiting.lock();

        waiting.traps = false;
        !core::mem::replace(&mut waiting.listed, true)
    }

    /// True if the engine has to be told of the queue so that it looks once more.
    pub fn look(&self) -> bool {
        !core::mem::replace(&mut self.waiting.lock().listed, true)
    }

    /// Whether the next ring is told.
    pub fn traps(&self) -> bool {
        self.waiting.lock().traps
    }

    /// The next ring is told, unless one comes before [`DoorbellCallbacks::trap`] of the result has
    /// returned. Then the engine has to look once more.
    pub fn begin_trap(&self) -> Option<Shared<dyn DoorbellCallbacks>> {
        let mut waiting = self.waiting.lock();

        waiting.traps = true;
        waiting.doorbell.clone()
    }

    /// Whether there is a submission that the engine has not begun.
    pub(super) fn has_submission(&self) -> bool {
        let waiting = self.waiting.lock();

        waiting.submissions.iter().any(Option::is_some)
    }

    /// How many submissions the engine has not begun.
    pub(super) fn waiting(&self) -> u32 {
        // CAST: a few.
        self.waiting.lock().submissions.iter().flatten().count() as u32
    }

    /// Takes the next submission.
    pub(super) fn pop(&self) -> Option<Submission> {
        let mut waiting = self.waiting.lock();
        let next = waiting.submissions.first_mut()?.take();

        waiting.submissions.rotate_left(1);
        next
    }

    /// Its number in the engine; `None` once the engine does not have it any more.
    pub(super) fn number(&self) -> Option<u32> {
        self.waiting.lock().number
    }

    /// The engine has it by this number, or not any more.
    pub fn set_number(&self, number: Option<u32>) {
        self.waiting.lock().number = number;
    }
}

impl Listed for Queue {
    /// Its number in the engine.
    type Told = Option<u32>;

    fn follow_by(&self, next: &Shared<Self>) {
        self.waiting.lock().next = Some(next.clone());
    }

    fn unlist(&self) -> (Option<Shared<Self>>, Self::Told) {
        let mut waiting = self.waiting.lock();

        waiting.listed = false;
        (waiting.next.take(), waiting.number)
    }
}
