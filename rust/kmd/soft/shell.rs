// SPDX-License-Identifier: GPL-2.0

//! An engine with its thread: the shell around the core of the software GPU (GPU-114).
//!
//! The thread runs the queues of the engine, a slice of one at a time. What must not sleep puts
//! queues and contexts into lists, and the thread looks at them between two slices.
//!
//! LOCK: `core` is held for one slice only (GPU-41), so that who takes it waits no longer. Whatever
//! is done under it, no access of the engine is in progress. Callbacks are called under it.

use super::{
    aperture::{
        Aperture,
        Reached, //
    },
    context::Context,
    engine_core::{
        Core,
        NewQueue,
        Turn, //
    },
    polls::Polls,
    queue::Queue,
    slab::{
        Chunk,
        Slab, //
    }, //
};
use crate::{
    ddi::queue::{
        NodeStatus,
        QueueCallbacks, //
    },
    engine::{
        memory::Physical,
        run_list::{
            ContextIndex,
            QueueIndex, //
        },
        translation::Scope, //
    },
    platform::{
        self,
        BoxedWakeup,
        Lock,
        PhysicalMemory,
        Run,
        Shared,
        ShortLock,
        Wakeup, //
    }, //
};
use core::ops::DerefMut;

/// An engine.
pub(super) struct Shell {
    /// Which one of its adapter it is.
    number: usize,
    /// The adapter's memory, and when the CMP has to look.
    memory: Shared<PhysicalMemory>,
    aperture: Shared<Aperture>,
    polls: Shared<Polls>,
    wakeup: BoxedWakeup,
    listed: ShortLock<Listed>,
    core: Lock<Core>,
}

/// What the thread has to look at.
struct Listed {
    queues: Option<Shared<Queue>>,
    contexts: Option<Shared<Context>>,
}

impl Shell {
    /// An engine without queues; `None` if there is no memory. May sleep.
    pub(super) fn new(
        number: usize,
        memory: Shared<PhysicalMemory>,
        aperture: Shared<Aperture>,
        polls: Shared<Polls>,
    ) -> Option<Shared<Self>> {
        let listed = Listed {
            queues: None,
            contexts: None,
        };

        platform::shared(Self {
            number,
            memory,
            aperture,
            polls,
            wakeup: platform::wakeup()?,
            listed: platform::short_lock!(listed, "soft::Shell::listed")?,
            core: platform::lock!(Core::new()?, "soft::Shell::core")?,
        })
    }

    /// A queue has a submission that the engine does not know of.
    ///
    /// Context: does not sleep.
    pub(super) fn queue_has_work(&self, queue: &Shared<Queue>) {
        {
            let mut listed = self.listed.lock();
            let first = listed.queues.take();

            queue.list_before(first);
            listed.queues = Some(queue.clone());
        }
        self.wakeup.ring();
    }

    /// A context is to be suspended or resumed.
    ///
    /// Context: does not sleep.
    pub(super) fn context_has_wish(&self, context: &Shared<Context>) {
        {
            let mut listed = self.listed.lock();
            let first = listed.contexts.take();

            context.list_before(first);
            listed.contexts = Some(context.clone());
        }
        self.wakeup.ring();
    }

    /// Takes the core, in which a slab has a place; `None` if there is no memory. May sleep: what
    /// makes room does so outside of the lock, because an engine waits for it.
    fn with_room<T>(
        &self,
        slab: fn(&mut Core) -> &mut Slab<T>,
    ) -> Option<impl DerefMut<Target = Core> + '_> {
        loop {
            let mut core = self.core.lock();

            if slab(&mut core).has_room() {
                return Some(core);
            }
            drop(core);

            let chunk = Chunk::new()?;
            // Others may have made room meanwhile, so this may be more than is needed.
            let grown = slab(&mut self.core.lock()).grow(chunk);

            grown.ok()?;
        }
    }

    /// Adds a context of the process with this PASID, with its queue if it is one of packets;
    /// `None` if there is no memory. May sleep.
    pub(super) fn add_context(
        &self,
        context: &Shared<Context>,
        pasid: u16,
        callbacks: &Shared<dyn QueueCallbacks>,
    ) -> Option<()> {
        self.with_room(Core::contexts)?
            .add_context(context, pasid, callbacks)?;

        if let Some(object) = &context.packets {
            let queue = NewQueue { object, callbacks };

            if self.add_queue(context, &queue).is_none() {
                self.remove_context(context);
                return None;
            }
        }
        Some(())
    }

    /// Adds a queue of a context; `None` if there is no memory. May sleep.
    pub(super) fn add_queue(&self, context: &Context, queue: &NewQueue<'_>) -> Option<()> {
        self.with_room(Core::queues)?.add_queue(context, queue)
    }

    /// Removes a queue. On return nothing of it runs or is told. May sleep.
    pub(super) fn remove_queue(&self, queue: &Queue) {
        let removed = self.core.lock().remove_queue(queue);

        // What the callbacks keep goes where no lock is held.
        drop(removed);
    }

    /// Removes a context, and its queue if it is one of packets. May sleep.
    pub(super) fn remove_context(&self, context: &Context) {
        if let Some(queue) = &context.packets {
            self.remove_queue(queue);
        }

        let removed = self.core.lock().remove_context(context);

        drop(removed);
    }

    /// The page tables of a context begin there. May sleep.
    pub(super) fn set_root(&self, context: &Context, table: Physical, entries: u32) {
        self.core.lock().set_root(context, table, entries);
    }

    /// The priority of the queues of a context, below [`PRIORITIES`]. May sleep.
    ///
    /// [`PRIORITIES`]: crate::engine::run_list::PRIORITIES
    pub(super) fn set_priority(&self, context: &Context, priority: u8) {
        self.core.lock().set_priority(context, priority);
    }

    /// Forgets translations. On return no access that has used one is in progress. May sleep.
    ///
    /// # Arguments
    ///
    /// * `first`, `last` - an address in the first page, and one in the last one.
    pub(super) fn invalidate(&self, scope: Scope, first: u64, last: u64) {
        self.core.lock().invalidate(scope, first, last);
    }

    /// Returns when no slice is in progress that was when it was called. May sleep.
    pub(super) fn wait_for_slice(&self) {
        drop(self.core.lock());
    }

    /// What the engine does. May sleep.
    pub(super) fn status(&self) -> NodeStatus {
        self.core.lock().status()
    }

    /// Looks at what was listed, and runs one slice.
    fn turn(&self) -> Turn {
        let mut core = self.core.lock();

        self.look_at_contexts(&mut core);
        self.look_at_queues(&mut core);
        core.slice(&Reached {
            memory: &self.memory,
            aperture: &self.aperture,
        })
    }

    fn look_at_contexts(&self, core: &mut Core) {
        let mut first = self.listed.lock().contexts.take();

        while let Some(context) = first {
            let (next, wish, number) = context.unlist();

            if let (Some(wish), Some(number)) = (wish, number) {
                core.grant(ContextIndex(number), wish);
            }
            first = next;
        }
    }

    fn look_at_queues(&self, core: &mut Core) {
        let mut first = self.listed.lock().queues.take();

        while let Some(queue) = first {
            let (next, number) = queue.unlist();

            if let Some(number) = number {
                core.has_work(QueueIndex(number));
            }
            first = next;
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // One after the other, so that a long list is not dropped by a deep recursion.
        let (mut queue, mut context) = {
            let mut listed = self.listed.lock();

            (listed.queues.take(), listed.contexts.take())
        };

        while let Some(first) = queue {
            queue = first.unlist().0;
        }
        while let Some(first) = context {
            context = first.unlist().0;
        }
    }
}

impl Run for Shell {
    fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    fn run(&self) {
        while !self.wakeup.is_stopped() {
            match self.turn() {
                Turn::Ran => platform::breathe(),
                Turn::Idle(poll) => {
                    self.polls.set(self.number, poll);
                    self.wakeup.wait(None);
                }
            }
        }
    }
}
