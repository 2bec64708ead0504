// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins what was queued with what was done (GPU-90).

use std::collections::{BTreeMap, HashMap};

use crate::event::{Event, Key, Operation, Record, CONTEXT, HW_QUEUE};
use crate::paging::{Joiner, Paging};
use crate::release::Steps;
use crate::text::{Trace, RESOLUTION};

/// An operation on a fence in a queue: from when it was queued until it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// What.
    pub key: Key,
    /// When it was queued; `None` if nobody has told.
    pub queued: Option<u64>,
    /// When a wait was looked at first.
    pub observed: Option<u64>,
    /// When it was done; `None` if nobody has told.
    pub done: Option<u64>,
    /// The latest that this can have been.
    latest: u64,
}

impl Work {
    /// From and to, as it is drawn: a point if only its end is known.
    pub fn extent(&self) -> (u64, Option<u64>) {
        (self.queued.or(self.done).unwrap_or(0), self.done)
    }
}

/// A stretch of time; without an end if it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: Option<u64>,
    /// The number of commands, or the object that a queue waits for.
    pub number: u64,
    /// The value that a queue waits for.
    pub value: u64,
}

/// A stretch of time about which something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From the last that is known before.
    pub begin: u64,
    /// Until it was found out.
    pub end: u64,
    /// How many entries or events were lost.
    pub count: u64,
}

/// What one queue did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The thread that has made it or, if that was before, that has queued something.
    pub thread: Option<u32>,
    /// Its waits and signals, by their begin.
    pub work: Vec<Work>,
    /// Its commands, from the KMD until they completed.
    pub commands: Vec<Span>,
    /// When a kernel-mode queue waited.
    pub blocked: Vec<Span>,
    /// Where entries of its log or events are missing.
    pub gaps: Vec<Gap>,
    /// When it stopped for good, and the GPU address of the packet.
    pub faults: Vec<(u64, u64)>,
}

/// A native fence interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// When.
    pub time: u64,
    /// The adapter.
    pub adapter: u64,
    /// The fence, if it was named.
    pub fence: Option<u64>,
    /// The queue, if it was named.
    pub queue: Option<u64>,
}

/// The OS part stored a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// When.
    pub time: u64,
    /// The fence.
    pub fence: u64,
    /// The value.
    pub value: u64,
    /// On whose time.
    pub thread: u32,
}

/// A wait on the CPU ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub time: u64,
    /// When it began, if that is known.
    pub begin: Option<u64>,
    /// The number of the waiter.
    pub waiter: u64,
    /// 1 satisfied, 2 orphaned, 3 cancelled.
    pub outcome: u64,
    /// Fences and values that it waited for.
    pub fences: Vec<(u64, u64)>,
}

/// One end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spot {
    /// The end of work of a queue, by its place in [`Queue::work`].
    Work {
        /// The queue.
        queue: u64,
        /// The place.
        index: usize,
    },
    /// In [`Timeline::stores`].
    Store(usize),
    /// In [`Timeline::wakes`].
    Wake(usize),
}

/// An arrow from a signal to what it has released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The signal.
    pub from: Spot,
    /// The wait.
    pub to: Spot,
}

/// Everything, joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The time of the first event.
    pub begin: u64,
    /// The time of the last one.
    pub end: u64,
    /// What each queue did, by its number.
    pub queues: BTreeMap<u64, Queue>,
    /// Interrupts of native fences.
    pub interrupts: Vec<Interrupt>,
    /// Values that the OS part has stored.
    pub stores: Vec<Store>,
    /// Ends of waits on the CPU.
    pub wakes: Vec<Wake>,
    /// Resets: when, and of which adapter.
    pub resets: Vec<(u64, u64)>,
    /// What the memory managers of adapters have done.
    pub paging: BTreeMap<u64, Paging>,
    /// From signals to waits.
    pub flows: Vec<Flow>,
    /// The names of threads.
    pub names: BTreeMap<u32, String>,
    /// Events that the tracer had no room for.
    pub lost: u64,
}

/// The end of work.
#[derive(Clone, Copy)]
struct End {
    time: u64,
    latest: u64,
    observed: Option<u64>,
}

/// Starts and ends with one key.
#[derive(Default)]
struct Ends {
    starts: Vec<u64>,
    ends: Vec<End>,
}

impl Ends {
    /// First in, first out. An end belongs to the oldest start that is not younger; what was done
    /// in order may have been told out of order.
    fn join(mut self, key: Key) -> Vec<Work> {
        // Sorts are stable: equal times stay in the order of the trace.
        self.starts.sort();
        self.ends.sort_by_key(|end| end.time);
        let mut starts = self.starts.into_iter().peekable();
        let work = |queued: Option<u64>, end: Option<End>| Work {
            key,
            queued,
            observed: end.and_then(|end| end.observed),
            done: end.map(|end| end.time),
            latest: end.map_or(u64::MAX, |end| end.latest),
        };
        let mut all = Vec::new();
        for end in self.ends {
            let start = starts.next_if(|start| *start <= end.latest);
            // Times of the GPU are finer than those of the text.
            let time = end.time.max(start.unwrap_or(0));
            all.push(work(start, Some(End { time, ..end })));
        }
        all.extend(starts.map(|start| work(Some(start), None)));
        all
    }
}

impl Timeline {
    /// Joins a whole trace.
    pub fn new(trace: &Trace) -> Self {
        let mut timeline = Self::of(&trace.records);
        timeline.names = trace.names.clone();
        timeline
    }

    /// Joins records, in the order in which they were recorded.
    pub fn of(records: &[Record]) -> Self {
        let mut timeline = Self::default();
        let mut work: BTreeMap<Key, Ends> = BTreeMap::new();
        let mut waits: HashMap<u64, (u64, Vec<(u64, u64)>)> = HashMap::new();
        // The last entry of each log.
        let mut heard: HashMap<u64, u64> = HashMap::new();
        let mut gaps = Vec::new();
        let mut paging = Joiner::default();
        timeline.begin = records.iter().map(begin_of).min().unwrap_or(0);
        timeline.end = records.iter().map(|record| record.time).max().unwrap_or(0);

        for Record {
            time,
            thread,
            event,
        } in records.iter().copied()
        {
            match event {
                Event::Queued(key) => {
                    let queue = timeline.queue(key.queue);
                    queue.thread.get_or_insert(thread);
                    work.entry(key).or_default().starts.push(time);
                }
                Event::Done { key, observed, end } => {
                    let blocked = timeline.queue(key.queue).blocked_on(&key);
                    let end = End {
                        time: end.unwrap_or(time),
                        latest: end.unwrap_or(time.saturating_add(RESOLUTION)),
                        observed: observed.or(blocked),
                    };
                    heard.insert(key.queue, end.time);
                    work.entry(key).or_default().ends.push(end);
                }
                Event::EntriesLost { queue, count } => {
                    let begin = heard.get(&queue).copied().unwrap_or(timeline.begin);
                    timeline.queue(queue).gaps.push(Gap {
                        begin: begin.min(time),
                        end: time,
                        count,
                    });
                }
                Event::Lost { since, count } => {
                    timeline.lost = timeline.lost.saturating_add(count);
                    gaps.push(Gap {
                        begin: since.clamp(timeline.begin.min(time), time),
                        end: time,
                        count,
                    });
                }
                Event::Interrupt {
                    adapter,
                    fence,
                    queue,
                } => timeline.interrupts.push(Interrupt {
                    time,
                    adapter,
                    fence,
                    queue,
                }),
                Event::WaitBegins {
                    fence,
                    value,
                    waiter,
                } => {
                    let wait = waits.entry(waiter).or_insert((time, Vec::new()));
                    wait.1.push((fence, value));
                }
                Event::Wake { waiter, outcome } => {
                    let wait = waits.remove(&waiter);
                    let (begin, fences) =
                        wait.map_or((None, Vec::new()), |(begin, fences)| (Some(begin), fences));
                    timeline.wakes.push(Wake {
                        time,
                        begin,
                        waiter,
                        outcome,
                        fences,
                    });
                }
                Event::Stored { fence, value } => timeline.stores.push(Store {
                    time,
                    fence,
                    value,
                    thread,
                }),
                Event::Run { queue, number } => {
                    timeline
                        .queue(queue)
                        .commands
                        .push(Span::new(time, number, 0));
                }
                Event::Complete { queue, number } => {
                    let commands = timeline.queue(queue).commands.iter_mut().rev();
                    // Those behind the last ones that had completed.
                    let running = commands.take_while(|span| span.end.is_none());
                    running
                        .filter(|span| span.number <= number)
                        .for_each(|span| span.end = Some(time));
                }
                Event::Block {
                    queue,
                    object,
                    value,
                } => {
                    let queue = timeline.queue(queue);
                    queue.unblock(time);
                    queue.blocked.push(Span::new(time, object, value));
                }
                Event::Unblock { queue } => timeline.queue(queue).unblock(time),
                Event::Fault { queue, packet } => {
                    timeline.queue(queue).faults.push((time, packet));
                }
                Event::Reset { adapter, .. } => timeline.resets.push((time, adapter)),
                Event::PageOpBuilt {
                    adapter,
                    batch,
                    built,
                } => paging.build(adapter, batch, built),
                Event::PageOpSubmitted { adapter, batch } => paging.submit(adapter, batch, time),
                Event::PageOpDone { adapter, batch } => paging.done(adapter, batch, time),
                Event::Create { object, kind } => {
                    if matches!(kind, CONTEXT | HW_QUEUE) {
                        timeline.queue(object).thread = Some(thread);
                    }
                }
            }
        }

        for (key, ends) in work {
            timeline.queue(key.queue).work.extend(ends.join(key));
        }
        for queue in timeline.queues.values_mut() {
            queue.work.sort_by_key(|work| work.extent());
            queue.gaps.extend(&gaps);
            queue.gaps.sort_by_key(|gap| gap.begin);
        }
        // One that nothing has happened in is not drawn.
        timeline.queues.retain(|_, queue| queue.has_something());
        timeline.paging = paging.end();
        timeline.flows = timeline.releases();
        timeline
    }

    fn queue(&mut self, queue: u64) -> &mut Queue {
        self.queues.entry(queue).or_default()
    }

    /// Who has released whom.
    fn releases(&self) -> Vec<Flow> {
        /// A signal or the end of a wait.
        enum What {
            Signal,
            Release,
        }
        let mut all: Vec<(u64, What, Spot, u64, u64)> = Vec::new();
        for (store, index) in self.stores.iter().zip(0..) {
            let spot = Spot::Store(index);
            all.push((store.time, What::Signal, spot, store.fence, store.value));
        }
        for (id, queue) in &self.queues {
            for (work, index) in queue.work.iter().zip(0..) {
                let Some(done) = work.done else { continue };
                let (what, time) = match work.key.operation {
                    Operation::Signal => (What::Signal, done),
                    Operation::Wait => (What::Release, work.latest.max(done)),
                };
                let spot = Spot::Work { queue: *id, index };
                all.push((time, what, spot, work.key.fence, work.key.value));
            }
        }
        for (wake, index) in self.wakes.iter().zip(0..) {
            let latest = wake.time.saturating_add(RESOLUTION);
            for (fence, value) in wake.fences.iter().filter(|_| wake.outcome == SATISFIED) {
                all.push((latest, What::Release, Spot::Wake(index), *fence, *value));
            }
        }
        // At the same time: a queue has signalled before the OS part knows, both before the waits.
        all.sort_by_key(|(time, what, spot, ..)| {
            let rank = match (what, spot) {
                (What::Signal, Spot::Work { .. }) => 0,
                (What::Signal, _) => 1,
                (What::Release, _) => 2,
            };
            (*time, rank)
        });

        let mut fences: HashMap<u64, Steps<Spot>> = HashMap::new();
        let mut flows = Vec::new();
        for (_, what, spot, fence, value) in all {
            let steps = fences.entry(fence).or_default();
            match what {
                What::Signal => steps.store(value, spot),
                What::Release => {
                    flows.extend(steps.reached(value).map(|from| Flow { from, to: spot }));
                }
            }
        }
        flows
    }

    /// When what an arrow begins or ends at happened.
    pub fn time_of(&self, spot: Spot) -> u64 {
        match spot {
            Spot::Work { queue, index } => self.queues[&queue].work[index].extent().1.unwrap_or(0),
            Spot::Store(index) => self.stores[index].time,
            Spot::Wake(index) => self.wakes[index].time,
        }
    }

    /// What a queue is called.
    pub fn title(&self, id: u64, queue: &Queue) -> String {
        match queue.thread.map(|thread| (thread, self.names.get(&thread))) {
            Some((thread, Some(name))) => format!("queue {id} of {name} {thread}"),
            Some((thread, None)) => format!("queue {id} of {thread}"),
            None => format!("queue {id}"),
        }
    }
}

/// How a wait ended that was satisfied.
const SATISFIED: u64 = 1;

/// The earliest time that a record names.
fn begin_of(record: &Record) -> u64 {
    match record.event {
        Event::Done { end, observed, .. } => {
            let told = observed.into_iter().chain(end);
            told.fold(record.time, u64::min)
        }
        _ => record.time,
    }
}

impl Span {
    fn new(begin: u64, number: u64, value: u64) -> Self {
        Self {
            begin,
            end: None,
            number,
            value,
        }
    }
}

impl Queue {
    fn unblock(&mut self, time: u64) {
        if let Some(last) = self.blocked.last_mut() {
            last.end.get_or_insert(time);
        }
    }

    /// Since when a kernel-mode queue has been blocked by this wait.
    fn blocked_on(&self, key: &Key) -> Option<u64> {
        let last = self.blocked.last().filter(|last| last.end.is_none())?;
        let is_it = (last.number, last.value) == (key.fence, key.value);
        (is_it && key.operation == Operation::Wait).then_some(last.begin)
    }

    fn has_something(&self) -> bool {
        let is_silent = self.work.is_empty() && self.commands.is_empty() && self.blocked.is_empty();
        !is_silent || !self.gaps.is_empty() || !self.faults.is_empty()
    }
}
