// SPDX-License-Identifier: GPL-2.0

//! The paging queues of one device, and what they have to do (MEM-10 to MEM-16).
//!
//! An operation that is done in its call needs no value. One that is left to the worker gets the
//! next one of its queue, and so does each that comes while the worker has something of the queue:
//! the fence of the queue shows k when operations 1 to k are complete.
//!
//! LOCK: `DeviceQueues::state` is a spinlock; `PagingWorker::ready` is taken inside. Operations
//! run, and are dropped, without it.

use super::{
    paging_worker::{
        PagingWorker,
        ReadyPlace,
        Served, //
    },
    residency::AllocationMemory, //
};
use crate::{
    dxgk::{
        quota::{
            account::Account,
            queued::QueuedCharge, //
        },
        sync::fence::Fence, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        paging_log::{
            self,
            Action,
            Kind, //
        },
        paging_ring::Serving,
        paging_rules::{
            next_queue,
            Candidate,
            Priority,
            MAX_QUEUED, //
        }, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_node,
            tree_place, //
        },
        task::memory_group::MemoryGroup,
        time::now_ns,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// Most paging queues of a device.
const MAX_QUEUES: usize = 64;

/// What is left to the worker.
pub(crate) enum Operation {
    /// It was done in its call, and its value must wait for those before it.
    Done,
    /// Gives these their placements, which were prepared.
    Finish(KVVec<Arc<AllocationMemory>>),
}

impl Operation {
    /// Bytes that it takes while it is queued.
    fn bytes(&self) -> usize {
        let list = match self {
            Self::Done => 0,
            Self::Finish(list) => list
                .len()
                .saturating_mul(size_of::<Arc<AllocationMemory>>()),
        };

        list.saturating_add(size_of::<Left>())
    }

    /// What the log calls it.
    fn logged(&self) -> paging_log::Operation {
        match self {
            Self::Done => paging_log::Operation::Nothing,
            Self::Finish(_) => paging_log::Operation::MakeResident,
        }
    }

    /// Context: may sleep, no locks held. False if it failed.
    fn run(self) -> bool {
        match self {
            Self::Done => true,
            Self::Finish(list) => list.iter().all(|memory| memory.finish().is_ok()),
        }
    }
}

/// An operation in a queue.
struct Left {
    operation: Operation,
    _charge: QueuedCharge,
    /// Whom its memory is charged to.
    group: MemoryGroup,
}

/// Whose queues these are.
pub(crate) trait QueueOwner: Send + Sync {
    /// Memory that it was promised is not there (MEM-21).
    ///
    /// Context: may sleep, no locks held.
    fn out_of_memory(self: Arc<Self>);
}

/// How far a queue is: what those who queue, those who wait and the worker share.
#[pin_data]
pub(super) struct Progress {
    /// The number of the queue.
    id: u64,
    priority: Priority,
    owner: Arc<dyn QueueOwner>,
    /// Shows it to clients.
    pub(super) fence: Arc<Fence>,
    /// How many operations were left to the worker so far, modulo 2^32.
    begun: Atomic<u32>,
    /// How many of these have ended.
    ended: Atomic<u32>,
    #[pin]
    changed: WaitQueue,
}

impl Progress {
    /// That of a new queue of `owner`.
    pub(super) fn new(
        id: u64,
        priority: Priority,
        owner: Arc<dyn QueueOwner>,
        fence: Arc<Fence>,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                id,
                priority,
                owner,
                fence,
                begun: Atomic::new(0),
                ended: Atomic::new(0),
                changed <- WaitQueue::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether an operation would be the first to run.
    pub(super) fn is_idle(&self) -> bool {
        self.begun.load(Relaxed) == self.ended.load(Acquire)
    }

    /// Waits until what was taken is done, or the caller is killed.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn wait(&self) {
        self.changed
            .wait_until_reached(&self.ended, self.begun.load(Relaxed));
    }

    /// Nobody waits for what was taken any more.
    fn give_up(&self) {
        self.ended.store(self.begun.load(Relaxed), Release);
    }
}

/// A queue, and what it has to do.
struct Waiting {
    queue: Arc<Progress>,
    /// By value.
    operations: RBTree<u64, Left>,
    /// Whether the worker runs one of its operations.
    running: bool,
    /// The last value that was given out.
    last: u64,
    /// When it was last served, or its first operation came.
    since: u64,
}

impl Waiting {
    /// Whether nothing has to be waited for.
    fn is_idle(&self) -> bool {
        self.operations.is_empty() && !self.running
    }

    fn has_work(&self) -> bool {
        !self.operations.is_empty()
    }
}

struct State {
    /// By the numbers of the queues.
    queues: RBTree<u64, Waiting>,
    count: usize,
    /// Memory for its place among the devices that are ready, unless it is there.
    place: Option<ReadyPlace>,
    /// It takes nothing any more.
    failed: bool,
}

impl State {
    fn has_work(&self) -> bool {
        self.queues.values().any(Waiting::has_work)
    }

    /// The queue with this number. DEVICE_REMOVED if nothing is taken any more; INVALID_PARAMETER
    /// if there is no such queue.
    fn queue(&mut self, id: u64) -> DxgResult<&mut Waiting> {
        if self.failed {
            return Err(Status::DEVICE_REMOVED.into());
        }
        self.queues
            .get_mut(&id)
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// The number of the queue that is served next.
    fn next(&self) -> Option<u64> {
        let with_work = || self.queues.iter().filter(|(_, waiting)| waiting.has_work());
        let candidates = with_work().map(|(_, waiting)| Candidate {
            priority: waiting.queue.priority,
            since: waiting.since,
        });
        let place = next_queue(candidates, now_ns())?;

        with_work().nth(place).map(|(id, _)| *id)
    }
}

/// The paging queues of a device.
#[pin_data]
pub(crate) struct DeviceQueues {
    /// The device, in the log.
    device: u64,
    /// Who has it, in the log.
    process: u64,
    worker: Arc<PagingWorker>,
    #[pin]
    state: SpinLock<State>,
}

impl DeviceQueues {
    /// None, of a device of a process on the adapter with this worker.
    pub(crate) fn new(
        worker: &Arc<PagingWorker>,
        device: u64,
        process: u64,
    ) -> Result<Arc<Self>, AllocError> {
        let place = tree_place()?;

        pin_arc(
            pin_init!(Self {
                device,
                process,
                worker: worker.clone(),
                state <- new_spinlock!(
                    State {
                        queues: RBTree::new(),
                        count: 0,
                        place: Some(place),
                        failed: false,
                    },
                    "DeviceQueues::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Adds a queue.
    pub(super) fn add(&self, queue: &Arc<Progress>) -> DxgResult {
        let node = tree_node(
            queue.id,
            Waiting {
                queue: queue.clone(),
                operations: RBTree::new(),
                running: false,
                last: 0,
                since: 0,
            },
        )?;
        let mut state = self.state.lock();

        if state.failed || state.count >= MAX_QUEUES {
            let refusal = match state.failed {
                true => Status::DEVICE_REMOVED,
                false => Status::NO_MEMORY,
            };

            drop(state);
            drop(node);
            return Err(refusal.into());
        }
        state.count += 1;

        let _nothing = state.queues.insert(node);

        Ok(())
    }

    /// Takes a queue out, with all that it has to do.
    pub(super) fn remove(&self, queue: &Progress) {
        let mut state = self.state.lock();
        let node = state.queues.remove_node(&queue.id);

        if node.is_some() {
            state.count -= 1;
        }
        queue.give_up();
        drop(state);
        queue.changed.wake();
        drop(node);
    }

    /// Something of a queue was done: the value that says so, or 0 if nothing is before it.
    pub(super) fn done(self: &Arc<Self>, queue: &Progress, account: &Account) -> DxgResult<u64> {
        let is_idle = self.state.lock().queue(queue.id)?.is_idle();

        match is_idle {
            true => Ok(0),
            false => self.submit(queue, account, Operation::Done),
        }
    }

    /// Leaves an operation to the worker, charged to `account`; returns its value.
    pub(super) fn submit(
        self: &Arc<Self>,
        queue: &Progress,
        account: &Account,
        operation: Operation,
    ) -> DxgResult<u64> {
        // Both are dropped after the lock if they are not used.
        let left = Left {
            _charge: QueuedCharge::new(account, operation.bytes())?,
            operation,
            group: MemoryGroup::of_caller(),
        };
        let operation = left.operation.logged();
        let place = tree_place()?;
        let mut state = self.state.lock();
        let waiting = state.queue(queue.id)?;
        let begun = queue.begun.load(Relaxed);

        if begun.wrapping_sub(queue.ended.load(Relaxed)) >= MAX_QUEUED {
            drop(state);
            return Err(Status::NO_MEMORY.into());
        }
        if !waiting.has_work() {
            waiting.since = now_ns();
        }
        // OVERFLOW: 2^64 operations take longer than any machine runs.
        waiting.last = waiting.last.wrapping_add(1);

        let value = waiting.last;
        let _nothing = waiting.operations.insert(place.into_node(value, left));

        queue.begun.store(begun.wrapping_add(1), Relaxed);
        // The worker has it only behind these.
        for (kind, operation) in [
            (Kind::FenceId, paging_log::Operation::None),
            (Kind::Queue, operation),
        ] {
            self.worker.log.write(|| Action {
                kind,
                operation,
                device: self.device,
                process: self.process,
                queue: queue.id,
                value,
                ..Action::default()
            });
        }
        if let Some(place) = state.place.take() {
            self.worker.add(place, self.clone());
        }
        Ok(value)
    }

    /// The device is in error: what is queued is dropped, and nobody waits for it any more
    /// (MEM-16).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn fail(&self) {
        let mut seen = 0;

        self.state.lock().failed = true;
        loop {
            // Dropped after the lock.
            let mut dropped = RBTree::new();
            let mut state = self.state.lock();
            let next = state.queues.cursor_lower_bound(&seen);
            let Some(id) = next.map(|cursor| *cursor.current().0) else {
                return;
            };
            let queue = state.queues.get_mut(&id).map(|waiting| {
                core::mem::swap(&mut waiting.operations, &mut dropped);
                waiting.queue.clone()
            });

            if let Some(queue) = &queue {
                queue.give_up();
            }
            drop(state);
            drop(dropped);
            if let Some(queue) = queue {
                queue.fence.always_signal();
                queue.changed.wake();
            }
            seen = id.saturating_add(1);
        }
    }
}

impl Served for DeviceQueues {
    fn run_one(self: Arc<Self>, place: ReadyPlace) {
        let mut state = self.state.lock();
        let taken = state.next().and_then(|id| {
            let waiting = state.queues.get_mut(&id)?;
            let value = *waiting.operations.cursor_front()?.current().0;
            let left = waiting.operations.remove(&value)?;

            waiting.running = true;
            waiting.since = now_ns();
            Some((waiting.queue.clone(), value, left))
        });

        match state.has_work() {
            true => self.worker.add(place, self.clone()),
            false => state.place = Some(place),
        }
        drop(state);

        let Some((queue, value, left)) = taken else {
            return;
        };
        // It is charged as long as it runs.
        let Left {
            operation,
            _charge,
            group,
        } = left;
        let log = &self.worker.log;

        let serving = Serving {
            device: self.device,
            queue: queue.id,
            value,
        };

        log.serve(serving, || {
            if !group.charge(|| operation.run()) {
                queue.owner.clone().out_of_memory();
            }
        });
        log.write(|| Action {
            kind: Kind::Signal,
            device: self.device,
            process: self.process,
            queue: queue.id,
            value,
            ..Action::default()
        });
        // It goes up only; after a failure it is at the end already.
        let _rewind = queue.fence.signal(value, false);
        let mut state = self.state.lock();

        if let Some(waiting) = state.queues.get_mut(&queue.id) {
            waiting.running = false;
            if queue.ended.load(Relaxed) != queue.begun.load(Relaxed) {
                queue.ended.fetch_add(1, Full);
            }
        }
        drop(state);
        queue.changed.wake();
    }
}
