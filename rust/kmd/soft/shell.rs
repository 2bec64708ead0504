// SPDX-License-Identifier: GPL-2.0

//! An engine with its thread: the shell around the core of the software GPU (GPU-114).
//!
//! The thread runs the queues of the engine, a slice of one at a time. What must not sleep puts
//! queues and contexts into lists, and the thread looks at them between two slices.
//!
//! LOCK: `core` is held for one slice only (GPU-41), so that who takes it waits no longer. Whatever
//! is done under it, no access of the engine is in progress. Callbacks are called under it.

use super::{
    answers::Answers,
    aperture::{
        Aperture,
        Reached, //
    },
    context::Context,
    cpu_events::ContextEvents,
    engine_core::{
        Core,
        NewQueue,
        Turn, //
    },
    entries::LINGER_NS,
    late_stores::LateStores,
    listed::List,
    native_fences::Bell,
    parts::AdapterParts,
    polls::Polls,
    queue::Queue,
    translations::{
        Translates,
        Translations, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        queue::{
            NodeStatus,
            QueueCallbacks, //
        },
        recovery::DebugInfo,
        slab::{
            Chunk,
            Slab, //
        }, //
    },
    engine::{
        fences::FenceIndex,
        log::{
            Log,
            LogType, //
        },
        memory::Physical,
        page_table::Profile,
        ring::Ring,
        run_list::{
            ContextIndex,
            QueueIndex, //
        },
        translation::Scope, //
    },
    platform::{
        self,
        Lock,
        PhysicalMemory,
        Run,
        Shared,
        ShortLock,
        Signalling,
        Wakeup,
        Word32, //
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
    late: Option<Shared<LateStores>>,
    polls: Shared<Polls>,
    translations: Shared<Translations>,
    bell: Shared<Bell>,
    listed: ShortLock<ToLookAt>,
    core: Lock<Core>,
    /// What it had done before the slice that runs.
    last_status: ShortLock<NodeStatus>,
    /// Held while a doorbell is made to trap, in which the OS part takes its lock of that.
    trapping: Lock<()>,
    /// 1 from a connection of a doorbell until the engine goes to F1.
    connected: Word32,
    /// Whether it answers. No lock is needed for that.
    pub(super) answers: Answers,
}

/// What the thread has to look at.
struct ToLookAt {
    queues: List<Queue>,
    contexts: List<Context>,
}

/// How many naps an engine has time to end its slice.
const PATIENCE: u32 = 100;
/// The same if it is only to be looked at. One that has nothing to do has its core for a moment.
const GLANCES: u32 = 3;

/// How many queues, contexts and fences the thread looks at before it runs a slice, of each.
const LOOKS: u32 = 64;

impl Translates for Shell {
    fn invalidate(&self, scope: Scope, first: u64, last: u64) {
        self.core.lock().invalidate(scope, first, last);
    }
}

impl Shell {
    /// An engine without queues, for page tables of this format; `None` if there is no memory. May
    /// sleep.
    pub(super) fn new(
        number: usize,
        bell: Shared<Bell>,
        parts: &AdapterParts,
        format: Profile,
    ) -> Option<Shared<Self>> {
        let core = Core::new(number, parts, format)?;
        let listed = ToLookAt {
            queues: List::new(),
            contexts: List::new(),
        };

        platform::shared(Self {
            number,
            memory: parts.memory.clone(),
            aperture: parts.aperture.clone(),
            late: parts.late.clone(),
            polls: parts.polls.clone(),
            translations: parts.translations.clone(),
            bell,
            listed: platform::short_lock!(listed, "soft::Shell::listed")?,
            core: platform::lock!(core, "soft::Shell::core")?,
            last_status: platform::short_lock!(NodeStatus::default(), "soft::Shell::last_status")?,
            trapping: platform::lock!((), "soft::Shell::trapping")?,
            connected: platform::word32(0),
            answers: Answers::new(),
        })
    }

    /// A queue has a submission that the engine does not know of.
    ///
    /// Context: does not sleep.
    pub(super) fn queue_has_work(&self, queue: &Shared<Queue>) {
        self.listed.lock().queues.push(queue);
        self.bell.wakeup.ring();
    }

    /// The process of a queue may have written to its ring.
    ///
    /// Context: does not sleep.
    pub(super) fn queue_was_rung(&self, queue: &Shared<Queue>) {
        if queue.ring() {
            self.queue_has_work(queue);
        }
    }

    /// The engine looks at the ring of a queue once more.
    ///
    /// Context: does not sleep.
    pub(super) fn look_at_ring(&self, queue: &Shared<Queue>) {
        if queue.look() {
            self.queue_has_work(queue);
        }
    }

    /// The next ring of a queue is told, and the engine looks at what was written before (GPU-32).
    /// May sleep.
    fn trap(&self, queue: &Shared<Queue>) {
        {
            // Whoever destroys the doorbell waits for this.
            let _trapping = self.trapping.lock();

            if let Some(doorbell) = queue.begin_trap() {
                doorbell.trap(&Passive::here());
            }
        }
        self.look_at_ring(queue);
    }

    /// A doorbell is connected, of an engine that goes to F1 when it has nothing to do.
    pub(super) fn leave_f1(&self) {
        platform::cmpxchg(&self.connected, 0, 1);
    }

    /// There is nothing to do: goes to F1, once after doorbells were connected. May sleep.
    fn go_to_f1(&self) {
        if platform::cmpxchg(&self.connected, 1, 0) {
            self.core.lock().tell_f1();
        }
    }

    /// Returns when no doorbell is made to trap that was when this was called. May sleep.
    pub(super) fn wait_for_trap(&self) {
        drop(self.trapping.lock());
    }

    /// A queue has a ring from now on, or none any more. On return nothing of the old one is read.
    /// May sleep.
    pub(super) fn set_ring(&self, queue: &Queue, ring: Option<Ring>) {
        self.core.lock().set_ring(queue, ring);
    }

    /// What a queue does is logged there from now on. On return nothing is logged in an older log.
    /// May sleep.
    pub(super) fn set_log(&self, queue: &Queue, ty: LogType, log: Log) {
        self.core.lock().set_log(queue, ty, log);
    }

    /// A context is to be suspended or resumed.
    ///
    /// Context: does not sleep.
    pub(super) fn context_has_wish(&self, context: &Shared<Context>) {
        self.listed.lock().contexts.push(context);
        self.bell.wakeup.ring();
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
        events: &ContextEvents,
    ) -> Option<()> {
        self.with_room(Core::contexts)?
            .add_context(context, pasid, callbacks, events)?;

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

        if let Some(removed) = &removed {
            self.answers.take(removed.object.undone());
        }
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

    /// A native fence is destroyed: no queue waits for it any more, and none finds it. May sleep.
    pub(super) fn forget_fence(&self, fence: FenceIndex) {
        self.core.lock().fence_stored(fence, u32::MAX);
        self.bell.wakeup.ring();
    }

    /// Returns when no slice is in progress that was when it was called. May sleep.
    pub(super) fn wait_for_slice(&self) {
        drop(self.core.lock());
    }

    /// It is off or on: if off, no slice is in progress on return, and none begins. May sleep.
    pub(super) fn set_off(&self, is_off: bool) {
        self.core.lock().set_off(is_off);
        self.bell.wakeup.ring();
    }

    /// Whether no queue has anything to do. May sleep.
    pub(super) fn is_idle(&self) -> bool {
        self.core.lock().is_idle(&self.reached())
    }

    /// What it reaches of the adapter's memory.
    fn reached(&self) -> Reached<'_> {
        Reached {
            memory: &self.memory,
            aperture: &self.aperture,
            late: self.late.as_deref(),
        }
    }

    /// PreemptCommand.
    ///
    /// Context: does not sleep.
    pub(super) fn preempt(&self, id: u64) {
        self.answers.ask(id);
        self.bell.wakeup.ring();
    }

    /// Stops the engine, which runs nothing until it is resumed. What hangs goes on. On return no
    /// access of it is in progress, and it holds no translation. May sleep.
    pub(super) fn begin_reset(&self) {
        self.answers.begin_reset();
        self.core.lock().invalidate(Scope::All, 0, u64::MAX);
    }

    /// The work of a context never goes on; that of the last slice if there is `None`. May sleep.
    pub(super) fn lose(&self, context: Option<&Context>) {
        self.core.lock().lose(context);
    }

    /// The engine runs again.
    pub(super) fn resume(&self) {
        self.answers.resume();
        self.wake();
    }

    /// The engine looks anew at what it has to run.
    pub(super) fn wake(&self) {
        self.bell.wakeup.ring();
    }

    /// What it runs, or a context has. The engine runs nothing meanwhile; one that hangs does not
    /// answer in time. May sleep.
    pub(super) fn debug_info(&self, context: Option<&Context>, info: &mut DebugInfo) {
        let memory = self.reached();

        self.answers.hold(true);

        let answers = (0..PATIENCE).any(|_| match self.core.try_lock() {
            Some(mut core) => {
                core.debug_info(context, &memory, info);
                true
            }
            None => {
                platform::nap();
                false
            }
        });

        self.answers.hold(false);
        self.wake();
        if !answers {
            let (queue, packet) = self.answers.last_run();

            info.queue = (queue != 0).then_some(queue);
            info.packet = packet;
            info.is_stale = true;
        }
    }

    /// What the engine does. In the middle of a slice, which may not end, that is what it had done
    /// before, and the queue that it runs. May sleep.
    pub(super) fn status(&self) -> NodeStatus {
        for _ in 0..GLANCES {
            if let Some(core) = self.core.try_lock() {
                return core.status();
            }
            platform::nap();
        }

        let (queue, _) = self.answers.last_run();

        NodeStatus {
            running: (queue != 0).then_some(queue),
            ..*self.last_status.lock()
        }
    }

    /// Looks at what was listed, and runs one slice. A user may list very much at once, so the rest
    /// has to wait for the next turn: others want `core`.
    fn turn(&self) -> Turn {
        let asked = self.answers.asked();
        let turn = self.turn_with_core();

        if let Some(slices) = self.answers.obey(asked, !matches!(turn, Turn::Idle(_))) {
            self.core.lock().note_refusal(slices);
        }
        turn
    }

    fn turn_with_core(&self) -> Turn {
        // Others may wait for the commands, by a sync file (FEN-164).
        let _signalling = Signalling::begin();
        let mut core = self.core.lock();
        let more = [
            self.look_at_contexts(&mut core),
            self.look_at_queues(&mut core),
            self.look_at_fences(&mut core),
        ];
        let turn = match self.answers.may_run() {
            true => core.slice(&self.reached(), &self.answers, &self.bell.wakeup),
            false => Turn::Idle(None),
        };

        *self.last_status.lock() = core.status();
        match turn {
            Turn::Idle(_) if more.contains(&true) => Turn::Ran,
            turn => turn,
        }
    }

    /// Looks at the bell for a while before the engine sleeps. What a queue has just begun to wait
    /// for often comes soon from another engine, and sleep and wake-up take longer than that. Once
    /// for each queue that begins to wait: queues that wait for long cost nothing. Not while others
    /// want the processor: it may be the other engine that cannot run.
    fn linger(&self) {
        let begin = platform::now_ns();

        while !self.bell.wakeup.is_rung()
            && platform::is_alone()
            && platform::now_ns().saturating_sub(begin) < LINGER_NS
        {
            core::hint::spin_loop();
        }
    }

    /// Whether there may be more.
    fn look_at_contexts(&self, core: &mut Core) -> bool {
        for _ in 0..LOOKS {
            let next = self.listed.lock().contexts.pop();
            let Some((_context, (wish, number))) = next else {
                return false;
            };

            if let (Some(wish), Some(number)) = (wish, number) {
                core.grant(ContextIndex(number), wish);
            }
        }
        true
    }

    /// Whether there may be more.
    fn look_at_fences(&self, core: &mut Core) -> bool {
        for _ in 0..LOOKS {
            let Some((fence, index)) = self.bell.pop() else {
                return false;
            };

            if !core.fence_stored(index, LOOKS) {
                self.bell.push(&fence);
                return true;
            }
        }
        true
    }

    /// Whether there may be more.
    fn look_at_queues(&self, core: &mut Core) -> bool {
        for _ in 0..LOOKS {
            let next = self.listed.lock().queues.pop();
            let Some((_queue, number)) = next else {
                return false;
            };

            if let Some(number) = number {
                core.has_work(QueueIndex(number));
            }
        }
        true
    }
}

impl Drop for Shell {
    /// One after the other, so that a long list is not dropped by a deep recursion.
    fn drop(&mut self) {
        loop {
            let next = {
                let mut listed = self.listed.lock();

                (listed.queues.pop(), listed.contexts.pop(), self.bell.pop())
            };

            if let (None, None, None) = next {
                return;
            }
        }
    }
}

impl Run for Shell {
    fn wakeup(&self) -> &Wakeup {
        &self.bell.wakeup
    }

    fn run(&self) {
        // Whether a queue has begun to wait for a native fence since the engine slept.
        let mut blocked = false;

        while !self.bell.wakeup.is_stopped() {
            match self.turn() {
                Turn::Ran => platform::breathe(),
                Turn::Blocked => {
                    blocked = true;
                    platform::breathe();
                }
                Turn::Emptied(queue) => self.trap(&queue),
                Turn::Invalidate(scope) => self.translations.invalidate(scope, 0, u64::MAX),
                Turn::Idle(poll) => {
                    if poll.is_none() {
                        self.go_to_f1();
                    }
                    self.polls.set(self.number, poll);
                    if core::mem::take(&mut blocked) {
                        self.linger();
                    }
                    self.bell.wakeup.wait(None);
                }
            }
        }
    }
}
