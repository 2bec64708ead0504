// SPDX-License-Identifier: GPL-2.0

//! UpdateGpuVirtualAddress: changes of reserved addresses behind a fence (MEM-45 to MEM-47).
//!
//! Each context has a queue of updates, which are done in order. The first one waits for its fence;
//! then the module's worker changes ranges and page tables, signals the fence, and goes on with the
//! next. What was freed or reserved anew since the call is left alone (MEM-49).
//!
//! LOCK: `UpdateQueue::state` is a leaf. Updates are run and dropped without it.

use super::{
    address_space::AddressSpace,
    device_queues::QueueOwner,
    opened::{
        Kept,
        Opened, //
    }, //
};
use crate::{
    dxgk::{
        device::Device,
        quota::queued::QueuedCharge,
        sync::{
            cpu_wait::{
                Element,
                Registration, //
            },
            fence::Fence,
            pending_waits::PendingWaits,
            waiter::Waiter,
            wake::Wake, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::Reservation,
        gpu_va_rules::Update,
        paging_log::{
            Action,
            Kind,
            Operation, //
        },
        wait_set::WaitSet, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_place, //
        },
        task::{
            memory_group::MemoryGroup,
            sleep, //
        },
        wait_queue::WaitQueue,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// Most updates in a queue (MEM-46).
const MAX_UPDATES: u32 = 128;

/// One operation, checked.
pub(crate) struct Step {
    /// What it does.
    pub(crate) update: Update,
    /// What a map shows.
    pub(crate) opened: Option<Arc<Opened>>,
    /// Keeps that resident if it is, until the update is done (MEM-47).
    pub(crate) _kept: Option<Kept>,
}

/// Operations on one reservation, which copy from at most one.
pub(crate) struct Steps {
    pub(crate) list: KVVec<Step>,
    /// What they change.
    pub(crate) destination: Reservation,
    /// What they copy from.
    pub(crate) source: Option<Reservation>,
}

/// Goes on with the queue when the fence of its first update has reached its value.
struct WakeUpdates(Arc<UpdateQueue>);

impl Wake for WakeUpdates {
    fn wake(&self, _set: &WaitSet) {
        self.0.kick();
    }
}

/// The wait of an update.
enum Phase {
    /// It need not wait.
    Ready,
    /// It has not begun.
    New(Registration<WakeUpdates>),
    /// It has begun, by this.
    Begun(Arc<Waiter<WakeUpdates>>),
}

/// Memory for an update in its queue.
type Place = RBTreeNodeReservation<u64, Queued>;

/// An update in a queue.
struct Queued {
    _charge: QueuedCharge,
    /// What the worker allocates for it is charged to this.
    group: MemoryGroup,
    space: Arc<AddressSpace>,
    /// Whose it is.
    device: Arc<Device>,
    steps: Steps,
    fence: Arc<Fence>,
    /// What the fence shows when it is done.
    done: u64,
    phase: Phase,
}

struct State {
    /// In order. The first one is not there while the worker has it.
    updates: RBTree<u64, Queued>,
    last: u64,
    /// The context is gone.
    closed: bool,
}

/// The updates of a context.
#[pin_data]
pub(crate) struct UpdateQueue {
    #[pin]
    state: SpinLock<State>,
    /// How many were queued so far, modulo 2^32.
    begun: Atomic<u32>,
    /// How many of these have ended.
    ended: Atomic<u32>,
    #[pin]
    progress: WaitQueue,
    #[pin]
    work: Work<UpdateQueue>,
}

impl_has_work! {
    impl HasWork<Self> for UpdateQueue { self.work }
}

impl WorkItem for UpdateQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.go_on();
    }
}

impl UpdateQueue {
    /// None.
    pub(in crate::dxgk) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_spinlock!(
                    State {
                        updates: RBTree::new(),
                        last: 0,
                        closed: false,
                    },
                    "UpdateQueue::state"
                ),
                begun: Atomic::new(0),
                ended: Atomic::new(0),
                progress <- WaitQueue::new(),
                work <- new_work!("UpdateQueue::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Has the worker look at the first update.
    fn kick(self: &Arc<Self>) {
        // It fails only if it is queued already.
        let _queued = work::worker().is_some_and(|worker| worker.enqueue(self.clone()).is_ok());
    }

    /// Queues an update if there is room. How many were queued before it otherwise, of which one
    /// has to end.
    fn push(&self, update: &mut Option<(Place, Queued)>) -> DxgResult<Option<u32>> {
        let mut state = self.state.lock();
        let begun = self.begun.load(Relaxed);

        if state.closed {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if begun.wrapping_sub(self.ended.load(Relaxed)) >= MAX_UPDATES {
            return Ok(Some(begun));
        }
        if let Some((place, queued)) = update.take() {
            // OVERFLOW: 2^64 updates take longer than any machine runs.
            state.last = state.last.wrapping_add(1);

            let number = state.last;
            let _nothing = state.updates.insert(place.into_node(number, queued));

            self.begun.fetch_add(1, Relaxed);
        }
        Ok(None)
    }

    /// Queues an update of `device` that begins when `fence` has reached `value`, unless it need
    /// not wait, and then signals the next value. Waits until there is room: interrupted if the
    /// caller is killed.
    ///
    /// Context: a system call of the process of `waits`, no locks held.
    pub(crate) fn submit(
        self: &Arc<Self>,
        waits: &Arc<PendingWaits>,
        device: &Arc<Device>,
        steps: Steps,
        fence: Arc<Fence>,
        value: u64,
        do_not_wait: bool,
    ) -> DxgResult {
        let bytes = steps
            .list
            .len()
            .saturating_mul(size_of::<Step>())
            .saturating_add(size_of::<Queued>());
        let charge = QueuedCharge::new(device.owner.account(), bytes)?;
        let phase = match do_not_wait {
            true => Phase::Ready,
            false => {
                let element = Element {
                    fence: fence.clone(),
                    value,
                };
                let receiver = WakeUpdates(self.clone());

                Phase::New(Registration::new(waits, &[element], receiver)?)
            }
        };
        let queued = Queued {
            _charge: charge,
            group: MemoryGroup::of_caller(),
            space: device.space()?.clone(),
            device: device.clone(),
            steps,
            fence,
            done: value.wrapping_add(1),
            phase,
        };
        let mut update = Some((tree_place()?, queued));

        while let Some(begun) = self.push(&mut update)? {
            if sleep::is_killed() {
                return Err(DxgError::Interrupted);
            }
            self.progress
                .wait_until_reached(&self.ended, begun.wrapping_sub(MAX_UPDATES - 1));
        }
        self.kick();
        Ok(())
    }

    /// Does what can be done now.
    ///
    /// Context: the worker, one at a time.
    fn go_on(self: &Arc<Self>) {
        while let Some(queued) = self.first_ready() {
            queued.run();
            self.ended.fetch_add(1, Full);
            self.progress.wake();
            work::breathe();
        }
    }

    /// Takes the first update out, if its wait is over; begins the wait otherwise.
    fn first_ready(&self) -> Option<Queued> {
        loop {
            let mut state = self.state.lock();
            let mut first = state.updates.cursor_front_mut()?;
            let (_, queued) = first.current_mut();
            let registration = match &mut queued.phase {
                Phase::Begun(waiter) => match waiter.set.outcome() {
                    None => return None,
                    Some(_) => None,
                },
                Phase::Ready => None,
                phase => {
                    let Phase::New(registration) = core::mem::replace(phase, Phase::Ready) else {
                        return None;
                    };

                    *phase = Phase::Begun(registration.waiter().clone());
                    Some(registration)
                }
            };

            if let Some(registration) = registration {
                let log = queued.device.adapter.memory.log.clone();
                let wait = Action {
                    kind: Kind::Wait,
                    operation: Operation::UpdateGpuVirtualAddress,
                    device: queued.device.id(),
                    process: queued.device.process.id,
                    object: queued.fence.header.id(),
                    value: queued.done.wrapping_sub(1),
                    ..Action::default()
                };

                drop(state);
                log.write(|| wait);
                // Its end brings the worker back, if it has not come yet.
                registration.begin();
                continue;
            }

            let (_, node) = first.remove_current();

            drop(state);
            return Some(node.to_key_value().1);
        }
    }

    /// The context is gone: what is queued is dropped.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn close(&self) {
        let updates = {
            let mut state = self.state.lock();

            state.closed = true;
            core::mem::take(&mut state.updates)
        };

        let mut dropped = 0u32;

        for queued in updates.values() {
            if let Phase::Begun(waiter) = &queued.phase {
                waiter.cancel();
            }
            dropped = dropped.wrapping_add(1);
        }
        // One that runs now ends by itself.
        self.ended.fetch_add(dropped, Full);
        self.progress.wake();
        drop(updates);
    }
}

impl Queued {
    /// Does it, and says so. A fence that is gone says nothing.
    fn run(self) {
        let update = |step: &Step| {
            self.space.update(
                &step.update,
                step.opened.as_deref().map(Opened::opening),
                self.steps.destination,
                self.steps.source,
            )
        };

        let done = self
            .group
            .charge(|| self.steps.list.iter().try_for_each(update));

        // Only memory can be missing. The call has promised the rest, and work that comes after the
        // fence would use other pages than it thinks: none of it runs.
        if done.is_err() {
            self.device.clone().out_of_memory();
            self.fence.always_signal();
            return;
        }

        // What was kept for it may go, before anybody looks.
        drop(self.steps);
        self.device.adapter.memory.log.write(|| Action {
            kind: Kind::Signal,
            operation: Operation::UpdateGpuVirtualAddress,
            device: self.device.id(),
            process: self.device.process.id,
            object: self.fence.header.id(),
            value: self.done,
            ..Action::default()
        });
        // It may have been signalled further meanwhile.
        let _rewind = self.fence.signal(self.done, false);
    }
}
