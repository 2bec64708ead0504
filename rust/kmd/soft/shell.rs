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
    context::{
        Context,
        Wish, //
    },
    memory::PROFILE,
    polls::Polls,
    queue::Queue,
    slab::{
        Chunk,
        Slab, //
    }, //
};
use crate::{
    ddi::queue::{
        Fault,
        FaultKind,
        NodeStatus,
        QueueCallbacks,
        PAGE_FAULT_WRITE, //
    },
    engine::{
        self,
        command_processor::{
            Engine,
            Outcome,
            SLICE, //
        },
        fault::FaultRecord,
        memory::{
            Physical,
            Place, //
        },
        queue::{
            Privilege,
            Progress, //
        },
        run_list::{
            Arena,
            ContextIndex,
            ContextNode,
            Ended,
            QueueIndex,
            QueueNode,
            RunList,
            Slice,
            State,
            Suspension, //
        },
        shell::{
            Clock,
            Interrupts,
            Record, //
        },
        translation::{
            Root,
            Scope, //
        }, //
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

/// What runs queues.
struct Core {
    engine: Engine,
    run_list: RunList,
    arena: Entries,
    status: Status,
}

/// What people who watch the engine are told.
#[derive(Default)]
struct Status {
    busy_ns: u64,
    submissions: u64,
    switches: u64,
    /// The queue of the last slice.
    last: Option<QueueIndex>,
}

/// The queues and contexts of an engine.
struct Entries {
    queues: Slab<QueueEntry>,
    contexts: Slab<ContextEntry>,
}

/// A queue, as its engine has it.
struct QueueEntry {
    node: QueueNode,
    queue: engine::queue::Queue,
    /// Number of the submission that it runs.
    running: u64,
    object: Shared<Queue>,
    callbacks: Shared<dyn QueueCallbacks>,
}

/// A context, as its engine has it.
struct ContextEntry {
    node: ContextNode,
    root: Root,
    priority: u8,
    object: Shared<Context>,
    callbacks: Shared<dyn QueueCallbacks>,
}

impl Arena for Entries {
    fn queue(&mut self, index: QueueIndex) -> Option<&mut QueueNode> {
        self.queues.get_mut(index.0).map(|entry| &mut entry.node)
    }

    fn context(&mut self, index: ContextIndex) -> Option<&mut ContextNode> {
        self.contexts.get_mut(index.0).map(|entry| &mut entry.node)
    }
}

/// The clock of timestamps: CLOCK_MONOTONIC.
struct MonotonicClock;

impl Clock for MonotonicClock {
    fn ticks(&self) -> u64 {
        platform::now_ns()
    }
}

/// Tells the OS part what the packets of a queue report.
struct Reporter<'a>(&'a dyn QueueCallbacks);

impl Interrupts for Reporter<'_> {
    fn report(&mut self, record: Record) {
        match record {
            Record::MonitoredFenceSignaled => self.0.monitored_fence_signaled(),
            // Nobody has asked for traps.
            Record::Trap { .. } => {}
        }
    }
}

/// What a look at the engine has found.
enum Turn {
    /// It ran a queue.
    Ran,
    /// Nothing is ready. When the first of the queues that wait has to be looked at.
    Idle(Option<u64>),
}

/// What a context of packets or a HW queue is made of.
pub(super) struct NewQueue<'a> {
    pub(super) object: &'a Shared<Queue>,
    pub(super) callbacks: &'a Shared<dyn QueueCallbacks>,
}

/// Adds to a slab whose lock one may sleep under.
fn insert<T>(slab: &mut Slab<T>, object: T) -> Option<u32> {
    match slab.insert(object) {
        Ok(number) => Some(number),
        Err(object) => {
            slab.grow(Chunk::new()?).ok()?;
            slab.insert(object).ok()
        }
    }
}

impl Shell {
    /// An engine without queues; `None` if there is no memory. May sleep.
    pub(super) fn new(
        number: usize,
        memory: Shared<PhysicalMemory>,
        aperture: Shared<Aperture>,
        polls: Shared<Polls>,
    ) -> Option<Shared<Self>> {
        let core = Core {
            engine: Engine::new(PROFILE)?,
            run_list: RunList::new(),
            arena: Entries {
                queues: Slab::new()?,
                contexts: Slab::new()?,
            },
            status: Status::default(),
        };
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
            core: platform::lock!(core, "soft::Shell::core")?,
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

    /// Adds a context of the process with this PASID, with its queue if it is one of packets;
    /// `None` if there is no memory. May sleep.
    pub(super) fn add_context(
        &self,
        context: &Shared<Context>,
        pasid: u16,
        callbacks: &Shared<dyn QueueCallbacks>,
    ) -> Option<()> {
        let mut core = self.core.lock();
        let number = insert(
            &mut core.arena.contexts,
            ContextEntry {
                node: ContextNode::default(),
                root: Root {
                    table: Physical::new(Place::System, 0),
                    entries: 0,
                    process: pasid,
                },
                priority: DEFAULT_PRIORITY,
                object: context.clone(),
                callbacks: callbacks.clone(),
            },
        )?;

        context.set_number(Some(number));
        if let Some(object) = &context.packets {
            let queue = NewQueue { object, callbacks };

            if core.add_queue(number, &queue).is_none() {
                drop(core);
                self.remove_context(context);
                return None;
            }
        }
        Some(())
    }

    /// Adds a HW queue of a context; `None` if there is no memory. May sleep.
    pub(super) fn add_queue(&self, context: &Context, queue: &NewQueue<'_>) -> Option<()> {
        let number = context.number()?;

        self.core.lock().add_queue(number, queue)
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

        let removed = {
            let mut core = self.core.lock();
            let number = context.number();

            context.set_number(None);
            number.and_then(|number| core.arena.contexts.remove(number))
        };

        drop(removed);
    }

    /// The page tables of a context begin there. May sleep.
    pub(super) fn set_root(&self, context: &Context, table: Physical, entries: u32) {
        let mut core = self.core.lock();
        let Some(entry) = context
            .number()
            .and_then(|number| core.arena.contexts.get_mut(number))
        else {
            return;
        };

        entry.root = Root {
            table,
            entries,
            ..entry.root
        };
    }

    /// The priority of the queues of a context, below [`engine::run_list::PRIORITIES`]. May sleep.
    pub(super) fn set_priority(&self, context: &Context, priority: u8) {
        let mut core = self.core.lock();
        let core = &mut *core;
        let Some(number) = context.number() else {
            return;
        };

        if let Some(entry) = core.arena.contexts.get_mut(number) {
            entry.priority = priority;
        }

        let index = ContextIndex(number);
        // The context is there, and the priority is one.
        let _changed = core.run_list.set_priority(&mut core.arena, index, priority);
    }

    /// Forgets translations. On return no access that has used one is in progress. May sleep.
    ///
    /// # Arguments
    ///
    /// * `first`, `last` - an address in the first page, and one in the last one.
    pub(super) fn invalidate(&self, scope: Scope, first: u64, last: u64) {
        self.core.lock().engine.invalidate(scope, first, last);
    }

    /// Returns when no slice is in progress that was when it was called. May sleep.
    pub(super) fn wait_for_slice(&self) {
        drop(self.core.lock());
    }

    /// What the engine does. May sleep.
    pub(super) fn status(&self) -> NodeStatus {
        let core = self.core.lock();
        let count = |state| {
            let in_state = core.arena.queues.iter();
            let in_state = in_state.filter(|entry| entry.node.state() == state);

            // CAST: as many as numbers at most.
            in_state.count() as u32
        };
        let last = core
            .status
            .last
            .and_then(|index| core.arena.queues.get(index.0))
            .filter(|entry| entry.node.state() == State::Ready);

        NodeStatus {
            running: last.map(|entry| entry.object.id),
            busy_ns: core.status.busy_ns,
            submissions: core.status.submissions,
            switches: core.status.switches,
            ready: count(State::Ready),
            blocked: count(State::Blocked),
        }
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

/// The priority of a context whose client has said nothing: 0 in D3DKMT.
const DEFAULT_PRIORITY: u8 = 7;

impl Core {
    fn add_queue(&mut self, context: u32, new: &NewQueue<'_>) -> Option<()> {
        let entry = self.arena.contexts.get(context)?;
        let (root, priority) = (entry.root, entry.priority);
        let number = insert(
            &mut self.arena.queues,
            QueueEntry {
                node: QueueNode::default(),
                queue: engine::queue::Queue::new(root, Privilege::Normal),
                running: 0,
                object: new.object.clone(),
                callbacks: new.callbacks.clone(),
            },
        )?;
        let added = self.run_list.add(
            &mut self.arena,
            QueueIndex(number),
            ContextIndex(context),
            priority,
        );

        if added.is_err() {
            drop(self.arena.queues.remove(number));
            return None;
        }
        new.object.set_number(Some(number));
        Some(())
    }

    fn remove_queue(&mut self, queue: &Queue) -> Option<QueueEntry> {
        let number = queue.number()?;

        queue.set_number(None);

        // No slice runs now, so it is out of the list at once.
        let _gone = self.run_list.remove(&mut self.arena, QueueIndex(number));

        if self.status.last == Some(QueueIndex(number)) {
            self.status.last = None;
        }
        self.arena.queues.remove(number)
    }

    /// Suspends or resumes a context.
    fn grant(&mut self, index: ContextIndex, wish: Wish) {
        match wish {
            Wish::Suspend(id) => {
                let suspended = self.run_list.suspend(&mut self.arena, index, id);

                if suspended == Ok(Suspension::Suspended) {
                    self.suspended(index, id);
                }
            }
            Wish::Resume => {
                // The context is there.
                let _resumed = self.run_list.resume(&mut self.arena, index);
            }
        }
    }

    fn suspended(&self, index: ContextIndex, id: u64) {
        if let Some(entry) = self.arena.contexts.get(index.0) {
            entry.callbacks.suspended(id);
        }
    }

    /// A queue may have a submission that the run list does not know of. One that a fault has
    /// stopped never has.
    fn has_work(&mut self, index: QueueIndex) {
        let Some(entry) = self.arena.queues.get_mut(index.0) else {
            return;
        };

        if entry.begin_next() {
            let _stopped = self.run_list.work(&mut self.arena, index);
        }
    }

    /// Runs one slice of the queue whose turn it is.
    fn slice(&mut self, memory: &Reached<'_>) -> Turn {
        let begin = platform::now_ns();
        let Some(index) = self.run_list.next(&mut self.arena, begin) else {
            return Turn::Idle(self.run_list.next_poll_ns(&mut self.arena));
        };
        let outcome = self.step(index, memory);
        let end = platform::now_ns();

        if self.status.last != Some(index) {
            self.status.switches = self.status.switches.wrapping_add(1);
        }
        self.status.last = Some(index);
        self.status.busy_ns = self.status.busy_ns.wrapping_add(end.saturating_sub(begin));

        if let Some(entry) = self.arena.queues.get(index.0) {
            entry.callbacks.ran(end.saturating_sub(begin));
        }

        let slice = self.finish(index, outcome);
        let ended = self
            .run_list
            .slice_ended(&mut self.arena, index, slice, end);

        if let Ok(Ended {
            suspended: Some(suspended),
            ..
        }) = ended
        {
            self.suspended(suspended.context, suspended.fence_id);
        }
        Turn::Ran
    }

    fn step(&mut self, index: QueueIndex, memory: &Reached<'_>) -> Outcome {
        let Some(entry) = self.arena.queues.get_mut(index.0) else {
            return Outcome::Idle;
        };
        let root = entry
            .node
            .context()
            .and_then(|context| self.arena.contexts.get(context.0))
            .map(|context| context.root);

        if let Some(root) = root {
            entry.queue.set_root(root);
        }
        self.engine.step(
            &mut entry.queue,
            memory,
            &mut Reporter(&*entry.callbacks),
            &MonotonicClock,
            SLICE,
        )
    }

    /// Tells how a step has ended. What its slice was.
    fn finish(&mut self, index: QueueIndex, outcome: Outcome) -> Slice {
        let Some(entry) = self.arena.queues.get_mut(index.0) else {
            return Slice::Empty;
        };
        let more = |more| if more { Slice::More } else { Slice::Empty };

        match outcome {
            // Only a queue of the system may invalidate, and there is none: the processor updates
            // page tables, and flushes by `Shell::invalidate`.
            Outcome::Ran | Outcome::Invalidate(_) => Slice::More,
            Outcome::Blocked { poll_after_ns } => Slice::Blocked { poll_after_ns },
            Outcome::Idle => more(entry.begin_next()),
            Outcome::Done(_) => {
                self.status.submissions = self.status.submissions.wrapping_add(1);
                entry.callbacks.completed(entry.running);
                more(entry.begin_next())
            }
            Outcome::Faulted(record) => {
                entry.callbacks.faulted(&fault(&record, entry.running));
                Slice::Faulted
            }
        }
    }
}

impl QueueEntry {
    /// Begins the next submission, if there is one and none is running. Whether one is.
    fn begin_next(&mut self) -> bool {
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

/// What the OS part is told of a fault.
fn fault(record: &FaultRecord, number: u64) -> Fault {
    let (kind, flags) = match record.kind {
        engine::fault::FaultKind::Page(page) => (
            FaultKind::PageFault {
                address: page.va,
                write: page.write,
                level: page.level.into(),
            },
            if page.write { PAGE_FAULT_WRITE } else { 0 },
        ),
        engine::fault::FaultKind::Packet(_) => (
            FaultKind::IllegalPacket {
                header: record.header,
            },
            0,
        ),
    };

    Fault {
        kind,
        packet: record.packet,
        number,
        flags,
    }
}
