// SPDX-License-Identifier: GPL-2.0

//! An engine with its run list and its queues: what the thread of a shell works with.
//!
//! LOCK: that of the shell ([`super::shell::Shell`]), around each call.

use super::{
    answers::Answers,
    aperture::Reached,
    cause::{
        Cause,
        Class, //
    },
    context::{
        Context,
        Wish, //
    },
    cpu_events::ContextEvents,
    entries::{
        ContextEntry,
        Entries,
        Look,
        QueueEntry, //
    },
    native_record::{
        NativeRecord,
        Signaller, //
    },
    parts::AdapterParts,
    queue::Queue,
    report::{
        cause_of,
        fault_of,
        MonotonicClock,
        Reporter, //
    }, //
};
use crate::{
    ddi::{
        callbacks::Callbacks,
        power::EngineState,
        queue::{
            NodeStatus,
            QueueCallbacks, //
        },
        recovery::DebugInfo,
        slab::{
            Removed,
            Slab, //
        }, //
    },
    engine::{
        self,
        command_processor::{
            Engine,
            Outcome,
            SLICE, //
        },
        fences::FenceIndex,
        log::{
            Log,
            LogType, //
        },
        memory::{
            Physical,
            Place, //
        },
        page_table::Profile,
        queue::Privilege,
        ring::Ring,
        run_list::{
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
        translation::{
            Root,
            Scope, //
        }, //
    },
    platform::{
        self,
        Shared,
        Wakeup, //
    }, //
};

/// What runs queues.
pub(super) struct Core {
    node: u32,
    engine: Engine,
    run_list: RunList,
    entries: Entries,
    status: Status,
    /// The interrupts of native fences that are still to be raised.
    native_record: NativeRecord,
    /// What it interrupts by.
    callbacks: Callbacks,
    /// In D3 it runs nothing.
    is_off: bool,
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

/// What a look at the engine has found.
pub(super) enum Turn {
    /// It ran a queue.
    Ran,
    /// It ran a queue, which waits for a native fence now.
    Blocked,
    /// It ran a queue, whose ring is empty: its doorbell is to trap, and then it has to look again.
    Emptied(Shared<Queue>),
    /// It ran a queue of the system, which goes on when everybody has forgotten these translations.
    Invalidate(Scope),
    /// Nothing is ready. When the first of the queues that wait has to be looked at.
    Idle(Option<u64>),
}

/// What a context of packets or a HW queue is made of.
pub(super) struct NewQueue<'a> {
    pub(super) object: &'a Shared<Queue>,
    pub(super) callbacks: &'a Shared<dyn QueueCallbacks>,
}

/// The priority of a context whose client has said nothing: 0 in D3DKMT.
const DEFAULT_PRIORITY: u8 = 7;

/// What a slice of a queue takes that hangs because a test wants it so.
const HANG_NS: u64 = 50_000;

impl Core {
    /// That of a node, without queues, for page tables of this format; `None` if there is no
    /// memory. May sleep.
    pub(super) fn new(engine: usize, parts: &AdapterParts, format: Profile) -> Option<Self> {
        Some(Self {
            // CAST: a few.
            node: engine as u32,
            engine: Engine::new(format)?,
            run_list: RunList::new(),
            entries: Entries {
                queues: Slab::new()?,
                contexts: Slab::new()?,
                native_fences: parts.native_fences.clone(),
                engine,
            },
            status: Status::default(),
            native_record: NativeRecord::new(parts.native_interrupts),
            callbacks: parts.callbacks.clone(),
            is_off: false,
        })
    }

    /// The places of its contexts.
    pub(super) fn contexts(&mut self) -> &mut Slab<ContextEntry> {
        &mut self.entries.contexts
    }

    /// The places of its queues.
    pub(super) fn queues(&mut self) -> &mut Slab<QueueEntry> {
        &mut self.entries.queues
    }

    /// Adds a context of the process with this PASID; `None` if there is no place.
    pub(super) fn add_context(
        &mut self,
        context: &Shared<Context>,
        pasid: u16,
        callbacks: &Shared<dyn QueueCallbacks>,
        events: &ContextEvents,
    ) -> Option<()> {
        let entry = ContextEntry {
            node: ContextNode::default(),
            root: Root {
                table: Physical::new(Place::System, 0),
                entries: 0,
                process: pasid,
            },
            priority: DEFAULT_PRIORITY,
            object: context.clone(),
            callbacks: callbacks.clone(),
            events: events.clone(),
        };
        let number = self.entries.contexts.insert(entry).ok()?;

        context.set_number(Some(number));
        Some(())
    }

    /// Removes a context that has no queues.
    pub(super) fn remove_context(&mut self, context: &Context) -> Option<Removed<ContextEntry>> {
        let number = context.number()?;

        context.set_number(None);
        self.entries.contexts.remove(number)
    }

    /// Adds a queue of a context; `None` if there is no place.
    pub(super) fn add_queue(&mut self, context: &Context, new: &NewQueue<'_>) -> Option<()> {
        let context = context.number()?;
        let entry = self.entries.contexts.get(context)?;
        let (root, priority) = (entry.root, entry.priority);
        let privilege = match entry.object.system {
            Some(_) => Privilege::Paging,
            None => Privilege::Normal,
        };
        let entry = QueueEntry {
            node: QueueNode::default(),
            queue: engine::queue::Queue::new(root, privilege),
            running: 0,
            fetched: 0,
            waits: None,
            hangs: false,
            empty: None,
            object: new.object.clone(),
            callbacks: new.callbacks.clone(),
        };
        let number = self.entries.queues.insert(entry).ok()?;
        let added = self.run_list.add(
            &mut self.entries,
            QueueIndex(number),
            ContextIndex(context),
            priority,
        );

        if added.is_err() {
            drop(self.entries.queues.remove(number));
            return None;
        }
        new.object.set_number(Some(number));
        Some(())
    }

    /// A queue has a ring from now on, or none any more: nothing of what it ran goes on.
    pub(super) fn set_ring(&mut self, queue: &Queue, ring: Option<Ring>) {
        let number = queue.number();

        if let Some(entry) = number.and_then(|number| self.entries.queues.get_mut(number)) {
            entry.queue.set_ring(ring);
            entry.empty = None;
        }
    }

    /// What a queue does is logged there from now on.
    pub(super) fn set_log(&mut self, queue: &Queue, ty: LogType, log: Log) {
        let number = queue.number();

        if let Some(entry) = number.and_then(|number| self.entries.queues.get_mut(number)) {
            entry.queue.set_log(ty, Some(log));
        }
    }

    /// Removes a queue.
    pub(super) fn remove_queue(&mut self, queue: &Queue) -> Option<Removed<QueueEntry>> {
        let number = queue.number()?;

        queue.set_number(None);

        // No slice runs now, so it is out of the list at once.
        let _gone = self.run_list.remove(&mut self.entries, QueueIndex(number));

        if self.status.last == Some(QueueIndex(number)) {
            self.status.last = None;
        }
        self.entries.queues.remove(number)
    }

    /// The page tables of a context begin there.
    pub(super) fn set_root(&mut self, context: &Context, table: Physical, entries: u32) {
        let number = context.number();

        if let Some(entry) = number.and_then(|number| self.entries.contexts.get_mut(number)) {
            entry.root.table = table;
            entry.root.entries = entries;
        }
    }

    /// The priority of the queues of a context, below [`engine::run_list::PRIORITIES`].
    pub(super) fn set_priority(&mut self, context: &Context, priority: u8) {
        let Some(number) = context.number() else {
            return;
        };

        if let Some(entry) = self.entries.contexts.get_mut(number) {
            entry.priority = priority;
        }

        let index = ContextIndex(number);
        // The context is there, and the priority is one.
        let _changed = self
            .run_list
            .set_priority(&mut self.entries, index, priority);
    }

    /// Forgets translations.
    pub(super) fn invalidate(&mut self, scope: Scope, first: u64, last: u64) {
        self.engine.invalidate(scope, first, last);
    }

    /// It goes to F1, which one queue of those tells that have doorbells.
    pub(super) fn tell_f1(&mut self) {
        let filled = |entry: &&mut QueueEntry| entry.object.is_filled_by_process;

        if let Some(entry) = self.entries.queues.iter_mut().find(filled) {
            self.callbacks.synchronize_execution(|class| {
                entry
                    .callbacks
                    .engine_state_changed(class, EngineState::TransitionToF1);
            });
        }
    }

    /// It is off, so that it runs nothing, or on.
    pub(super) fn set_off(&mut self, is_off: bool) {
        self.is_off = is_off;
    }

    /// Whether no queue has anything to do, suspended or not. Takes as long as there are queues.
    pub(super) fn is_idle(&mut self, memory: &Reached<'_>) -> bool {
        let Self {
            engine, entries, ..
        } = self;
        let Entries {
            queues, contexts, ..
        } = entries;

        // A loop: with closures, the name of the symbol is too long for tools of the kernel.
        for entry in queues.iter_mut() {
            let context = entry.node.context();
            let root = context.and_then(|context| contexts.get(context.0));

            if let Some(context) = root {
                entry.queue.set_root(context.root);
            }
            // What a fault or a reset has stopped never runs again.
            if entry.node.state() != State::Faulted
                && (entry.object.has_submission() || engine.has_work(&mut entry.queue, memory))
            {
                return false;
            }
        }
        true
    }

    /// No work of a context goes on, and the OS part is told so: of the one that ran in the last
    /// slice, if there is `None`.
    pub(super) fn lose(&mut self, context: Option<&Context>) {
        let index = match context {
            Some(context) => context.number().map(ContextIndex),
            None => self.last_context(),
        };
        let Some(index) = index else {
            return;
        };

        // The context is there.
        let _stopped = self.run_list.stop_context(&mut self.entries, index);

        if let Some(entry) = self.entries.contexts.get(index.0) {
            let queue = entry.object.packets.as_ref();

            // Before the OS part is told, so that whoever wakes up finds it.
            entry.events.note(&Cause {
                class: Class::Reset,
                node: self.node,
                queue: queue.map_or(0, |queue| queue.id),
                detail: 0,
                reason: 0,
            });
            entry.callbacks.invalidated();
        }
    }

    /// The queue that ran in the last slice has not yielded for so many.
    pub(super) fn note_refusal(&mut self, slices: u64) {
        let context = self.last_context();
        let context = context.and_then(|index| self.entries.contexts.get(index.0));
        let queue = self.status.last;
        let queue = queue.and_then(|index| self.entries.queues.get(index.0));

        if let (Some(context), Some(queue)) = (context, queue) {
            context.events.note(&Cause {
                class: Class::Preemption,
                node: self.node,
                queue: queue.object.id,
                detail: slices,
                reason: 0,
            });
        }
    }

    /// The context of the queue that ran in the last slice.
    fn last_context(&self) -> Option<ContextIndex> {
        let queue = self.status.last?;

        self.entries.queues.get(queue.0)?.node.context()
    }

    /// What a context has come to, or the one that ran in the last slice if there is `None`.
    pub(super) fn debug_info(
        &mut self,
        context: Option<&Context>,
        memory: &Reached<'_>,
        info: &mut DebugInfo,
    ) {
        let queue = match context {
            Some(context) => context.number().and_then(|number| {
                self.run_list
                    .first_of(&mut self.entries, ContextIndex(number))
            }),
            None => self.status.last,
        };
        let Some(entry) = queue.and_then(|queue| self.entries.queues.get(queue.0)) else {
            return;
        };

        info.queue = Some(entry.object.id);
        info.packet = entry.queue.packet();
        for (place, at) in info.dwords.iter_mut().zip((info.packet..).step_by(4)) {
            let Some(dword) = self.engine.peek(&entry.queue, memory, at) else {
                break;
            };

            *place = dword;
            // OVERFLOW: there are a few places.
            info.count = info.count.wrapping_add(1);
        }
    }

    /// What the engine does.
    pub(super) fn status(&self) -> NodeStatus {
        let last = self
            .status
            .last
            .and_then(|index| self.entries.queues.get(index.0))
            .filter(|entry| entry.node.state() == State::Ready);

        NodeStatus {
            running: last.map(|entry| entry.object.id),
            busy_ns: self.status.busy_ns,
            submissions: self.status.submissions,
            switches: self.status.switches,
            ready: self.run_list.ready(),
            blocked: self.run_list.blocked(),
        }
    }

    /// Suspends or resumes a context.
    pub(super) fn grant(&mut self, index: ContextIndex, wish: Wish) {
        match wish {
            Wish::Suspend(id) => {
                let suspended = self.run_list.suspend(&mut self.entries, index, id);

                if suspended == Ok(Suspension::Suspended) {
                    self.suspended(index, id);
                }
            }
            Wish::Resume => {
                // The context is there.
                let _resumed = self.run_list.resume(&mut self.entries, index);
            }
        }
    }

    fn suspended(&self, index: ContextIndex, id: u64) {
        if let Some(entry) = self.entries.contexts.get(index.0) {
            self.callbacks
                .synchronize_execution(|class| entry.callbacks.suspended(class, id));
        }
    }

    /// A queue may have a submission that the run list does not know of. One that a fault has
    /// stopped never has.
    pub(super) fn has_work(&mut self, index: QueueIndex) {
        let Some(entry) = self.entries.queues.get_mut(index.0) else {
            return;
        };

        if entry.begin_next() {
            let _stopped = self.run_list.work(&mut self.entries, index);
        }
    }

    /// A native fence was stored to: those who wait for it look again, or so many. False if there
    /// are more.
    pub(super) fn fence_stored(&mut self, fence: FenceIndex, most: u32) -> bool {
        self.run_list.fence_stored(&mut self.entries, fence, most)
    }

    /// Runs one slice of the queue whose turn it is.
    pub(super) fn slice(
        &mut self,
        memory: &Reached<'_>,
        answers: &Answers,
        wakeup: &Wakeup,
    ) -> Turn {
        if self.is_off {
            return Turn::Idle(None);
        }

        let begin = platform::now_ns();
        let Some(index) = self.run_list.next(&mut self.entries, begin) else {
            return Turn::Idle(self.run_list.next_poll_ns(&mut self.entries));
        };
        let switched = self.status.last != Some(index);

        if switched {
            self.status.switches = self.status.switches.wrapping_add(1);
        }
        self.status.last = Some(index);
        self.begin_slice(index, answers, begin);

        let outcome = match answers.in_slice(wakeup) {
            true => self.step(index, memory),
            false => Outcome::Ran,
        };
        let end = platform::now_ns();

        self.status.busy_ns = self.status.busy_ns.wrapping_add(end.saturating_sub(begin));

        if let Some(entry) = self.entries.queues.get(index.0) {
            let ns = end.saturating_sub(begin);

            if matches!(outcome, Outcome::Blocked { again: true, .. }) {
                entry.callbacks.polled(ns);
            }
            entry.callbacks.ran(ns, switched);
        }

        let emptied = self.emptied(index, outcome, end);
        let slice = match &emptied {
            Some((slice, _)) => *slice,
            None => self.finish(index, outcome, answers),
        };
        let ended = self
            .run_list
            .slice_ended(&mut self.entries, index, slice, end);

        if let Some(entry) = self.entries.queues.get_mut(index.0) {
            match slice {
                Slice::Blocked { .. } => entry.waits = Some((end, entry.node.poll_at_ns())),
                Slice::BlockedOnFence(_) => {
                    entry.waits = Some((end, u64::MAX));
                    entry.callbacks.waits(end);
                    self.look_at_fence(index, memory);
                }
                _ => {}
            }
        }
        if let Ok(Ended {
            suspended: Some(suspended),
            ..
        }) = ended
        {
            self.suspended(suspended.context, suspended.fence_id);
        }
        match (emptied, outcome) {
            (Some((_, Some(queue))), _) => Turn::Emptied(queue),
            (_, Outcome::Invalidate(scope)) => Turn::Invalidate(scope),
            _ if matches!(slice, Slice::BlockedOnFence(_)) => Turn::Blocked,
            _ => Turn::Ran,
        }
    }

    /// A queue has been put where those are who wait for a native fence, which may have been stored
    /// to just before (GPU-53).
    fn look_at_fence(&mut self, index: QueueIndex, memory: &Reached<'_>) {
        let fences = self.entries.native_fences.clone();
        let Some(entry) = self.entries.queues.get(index.0) else {
            return;
        };

        if self.engine.is_reached(&entry.queue, memory, &*fences) {
            // It is there.
            let _woken = self.run_list.wake(&mut self.entries, index);
        }
    }

    /// A queue is about to run.
    fn begin_slice(&mut self, index: QueueIndex, answers: &Answers, now_ns: u64) {
        let Some(entry) = self.entries.queues.get_mut(index.0) else {
            return;
        };

        entry.tell_waited(now_ns);
        if answers.hangs_queue() {
            entry.hangs = true;
        }
        if entry.object.is_filled_by_process {
            entry.callbacks.ran(0, false);
        }
        answers.runs(entry.object.id, entry.queue.packet());
    }

    /// If there was nothing in the ring of a queue: what its slice was, and the queue if its
    /// doorbell is to trap.
    fn emptied(
        &mut self,
        index: QueueIndex,
        outcome: Outcome,
        now_ns: u64,
    ) -> Option<(Slice, Option<Shared<Queue>>)> {
        let entry = self.entries.queues.get_mut(index.0)?;

        if !entry.object.is_filled_by_process || outcome != Outcome::Idle {
            return None;
        }
        Some(match entry.look_again(now_ns) {
            Look::WhenRung => (Slice::Empty, None),
            Look::Soon => (Slice::More, None),
            Look::AfterTrap => (Slice::Empty, Some(entry.object.clone())),
        })
    }

    fn step(&mut self, index: QueueIndex, memory: &Reached<'_>) -> Outcome {
        let Some(entry) = self.entries.queues.get_mut(index.0) else {
            return Outcome::Idle;
        };

        if entry.hangs {
            let begin = platform::now_ns();

            while platform::now_ns().saturating_sub(begin) < HANG_NS {
                core::hint::spin_loop();
            }
            return Outcome::Ran;
        }

        let context = entry
            .node
            .context()
            .and_then(|context| self.entries.contexts.get(context.0));

        if let Some(context) = context {
            entry.queue.set_root(context.root);
        }
        let outcome = self.engine.step(
            &mut entry.queue,
            memory,
            &*self.entries.native_fences,
            &mut Reporter {
                signaller: Signaller {
                    callbacks: &*entry.callbacks,
                    has_logs: entry.object.is_filled_by_process,
                },
                events: context.map(|context| &context.events),
                node: self.node,
                queue: entry.object.id,
                native_fences: &self.entries.native_fences,
                native_record: &mut self.native_record,
                interrupts: &self.callbacks,
            },
            &MonotonicClock,
            SLICE,
        );

        if self.native_record.has_more() {
            let signaller = Signaller {
                callbacks: &*entry.callbacks,
                has_logs: entry.object.is_filled_by_process,
            };

            self.callbacks.synchronize_execution(|class| {
                self.native_record
                    .raise(class, &self.entries.native_fences, &signaller);
            });
        }
        outcome
    }

    /// Tells how a step has ended. What its slice was.
    fn finish(&mut self, index: QueueIndex, outcome: Outcome, answers: &Answers) -> Slice {
        let Some(entry) = self.entries.queues.get_mut(index.0) else {
            return Slice::Empty;
        };
        let more = |more| if more { Slice::More } else { Slice::Empty };

        match outcome {
            Outcome::Ran | Outcome::Invalidate(_) => {
                entry.tell_fetched();
                Slice::More
            }
            Outcome::Blocked {
                poll_after_ns,
                again,
            } => {
                entry.tell_fetched();
                Slice::Blocked {
                    poll_after_ns,
                    again,
                }
            }
            Outcome::BlockedOnFence(fence) => {
                entry.tell_fetched();
                Slice::BlockedOnFence(fence)
            }
            Outcome::Idle => more(entry.begin_next()),
            Outcome::Done(_) => {
                self.status.submissions = self.status.submissions.wrapping_add(1);
                if !answers.drops_interrupt() {
                    self.callbacks.synchronize_execution(|class| {
                        entry.callbacks.completed(class, entry.running);
                    });
                }
                // Who finds the engine idle has been told of all that it has done.
                answers.take(1);
                more(entry.begin_next())
            }
            Outcome::Faulted(record) => {
                let context = entry.node.context();
                let context = context.and_then(|context| self.entries.contexts.get(context.0));

                // Before the OS part is told, so that whoever wakes up finds it.
                if let Some(context) = context {
                    context
                        .events
                        .note(&cause_of(&record, self.node, entry.object.id));
                }
                let fault = fault_of(&record, entry.running);

                self.callbacks
                    .synchronize_execution(|class| entry.callbacks.faulted(class, &fault));
                Slice::Faulted
            }
        }
    }
}
