// SPDX-License-Identifier: GPL-2.0

//! The queues and contexts of an engine, as it has them.

use super::{
    context::Context,
    cpu_events::ContextEvents,
    native_fences::NativeFences,
    queue::Queue, //
};
use crate::{
    ddi::{
        queue::QueueCallbacks,
        slab::Slab, //
    },
    engine::{
        self,
        fences::FenceIndex,
        queue::Progress,
        run_list::{
            Arena,
            ContextIndex,
            ContextNode,
            List,
            QueueIndex,
            QueueNode, //
        },
        translation::Root, //
    },
    platform::Shared, //
};

/// The queues and contexts of an engine.
pub(super) struct Entries {
    pub(super) queues: Slab<QueueEntry>,
    pub(super) contexts: Slab<ContextEntry>,
    /// Where the queues are listed that wait for native fences, and for which engine.
    pub(super) native_fences: Shared<NativeFences>,
    pub(super) engine: usize,
}

/// A queue, as its engine has it.
pub(super) struct QueueEntry {
    pub(super) node: QueueNode,
    pub(super) queue: engine::queue::Queue,
    /// Number of the submission that it runs.
    pub(super) running: u64,
    /// Number of the last submission of which the OS part knows that it has been read.
    pub(super) fetched: u64,
    /// From when to when it waits for a value in the middle of its commands, at most.
    pub(super) waits: Option<(u64, u64)>,
    /// It never goes on, because a test wants it so.
    pub(super) hangs: bool,
    /// When its ring was found empty, with so much of it done.
    pub(super) empty: Option<(u64, u64)>,
    pub(super) object: Shared<Queue>,
    pub(super) callbacks: Shared<dyn QueueCallbacks>,
}

/// When an engine looks at an empty ring again.
pub(super) enum Look {
    /// When it is rung, which is told.
    WhenRung,
    /// At the next turn: processes often write again at once, and the first ring costs a fault.
    Soon,
    /// When its doorbell traps.
    AfterTrap,
}

/// How long an engine looks at an empty ring: for as long as it takes a process that writes, rings
/// and waits, again and again. If that is too short, each ring is a fault that wakes up the engine,
/// and that makes the next one late, too. For so long it looks at its bell, too, when a queue has
/// begun to wait for a native fence.
pub(super) const LINGER_NS: u64 = 50_000;

/// A context, as its engine has it.
pub(super) struct ContextEntry {
    pub(super) node: ContextNode,
    pub(super) root: Root,
    pub(super) priority: u8,
    pub(super) object: Shared<Context>,
    pub(super) callbacks: Shared<dyn QueueCallbacks>,
    /// Who is told of what happens to its device.
    pub(super) events: ContextEvents,
}

impl Arena for Entries {
    fn queue(&mut self, index: QueueIndex) -> Option<&mut QueueNode> {
        self.queues.get_mut(index.0).map(|entry| &mut entry.node)
    }

    fn context(&mut self, index: ContextIndex) -> Option<&mut ContextNode> {
        self.contexts.get_mut(index.0).map(|entry| &mut entry.node)
    }

    fn waiting_for(&mut self, fence: FenceIndex) -> List {
        self.native_fences.waiting(fence, self.engine)
    }

    fn set_waiting_for(&mut self, fence: FenceIndex, queues: List) {
        self.native_fences.set_waiting(fence, self.engine, queues);
    }
}

impl QueueEntry {
    /// How many submissions it has that are not done.
    pub(super) fn undone(&self) -> u32 {
        let running = self.queue.submission().is_some();

        // OVERFLOW: a few.
        self.object.waiting().wrapping_add(running.into())
    }

    /// It runs again, at this moment: tells how long it has waited for a value, and not for its
    /// turn.
    pub(super) fn tell_waited(&mut self, now_ns: u64) {
        if let Some((since, until)) = self.waits.take() {
            self.callbacks
                .waited(now_ns.min(until).saturating_sub(since));
        }
    }

    /// Tells once that all of the submission that it runs has been read.
    pub(super) fn tell_fetched(&mut self) {
        if self.fetched != self.running && self.queue.is_fetched() {
            self.fetched = self.running;
            self.callbacks.fetched(self.running);
        }
    }

    /// There is nothing in the ring. What to do about it.
    pub(super) fn look_again(&mut self, now_ns: u64) -> Look {
        let done = self.queue.done();
        let since = match self.empty {
            Some((since, before)) if before == done => since,
            _ => now_ns,
        };

        self.empty = Some((since, done));
        if self.object.traps() {
            Look::WhenRung
        } else if now_ns.saturating_sub(since) < LINGER_NS {
            Look::Soon
        } else {
            Look::AfterTrap
        }
    }

    /// Begins the next submission, if there is one and none is running. Whether one is, or there
    /// may be something in the ring.
    pub(super) fn begin_next(&mut self) -> bool {
        if self.object.is_filled_by_process {
            return true;
        }
        if self.queue.submission().is_some() {
            return true;
        }

        let Some(next) = self.object.pop() else {
            return false;
        };
        let progress_fence = self.object.progress_fence;
        let progress = progress_fence.zip(next.progress);
        let begun = self.queue.submit(engine::queue::Submission {
            va: next.commands,
            length: next.length,
            progress: progress.map(|(va, value)| Progress { va, value }),
        });

        self.running = next.number;
        // The OS part has seen to it that addresses are aligned.
        begun.is_ok()
    }
}
