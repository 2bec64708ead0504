// SPDX-License-Identifier: GPL-2.0

//! A kernel-mode queue: a context of packets, or a HW queue.
//!
//! `state.rs` says what is queued and what is to be done next, `turn.rs` who does it, `ending.rs`
//! how a queue ends, `filled.rs` what is different if its process fills it, `export.rs` how signals
//! become sync files, `watch.rs` what if its work takes too long. Nothing is recursive: the end of
//! a wait only queues work.
//!
//! LOCK: `state` is a leaf; items are dropped without it. `kmd` is held while a priority is set,
//! and is not taken by the adapter's worker.

mod ending;
mod export;
mod exports;
pub(in crate::dxgk) mod filled;
mod state;
mod turn;
mod watch;

use super::{
    callbacks::{
        Callbacks,
        Kick,
        Reported,
        Told, //
    },
    context_state::ContextState,
    export::{
        Found,
        Missing,
        NewExport,
        Wanted, //
    },
    item::Item,
    kmd_queue::KmdQueue,
    list::{
        Key,
        ListedQueue, //
    },
    snapshot::Snapshot, //
};
use crate::dxgk::{
    adapter::Adapter,
    device::Device,
    quota::account::{
        Charge,
        Limit, //
    }, //
};
use crate::{
    ddi::{
        object::{
            self,
            Suspension, //
        },
        power::EngineState,
        queue::QueueCallbacks, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        submit_rules,
        watched::Watched, //
    },
    sys::{
        alloc::pin_arc,
        dma_fence::DmaFence,
        task::caller,
        trace, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex,
        SpinLock, //
    },
    workqueue::{
        DelayedWork,
        Work, //
    }, //
};
use state::{
    Runner,
    State, //
};

pub(super) use state::Place;

/// The number of the work that looks at the patience with a closing queue.
const PATIENCE: u64 = 1;
/// The number of the work that gets the turn of the adapter's worker.
const HANDED_OVER: u64 = 2;
/// The number of the work that looks whether it hangs.
const WATCH: u64 = 3;

/// A kernel-mode queue.
#[pin_data]
pub(crate) struct Queue {
    /// That of its context or HW queue.
    pub(crate) id: u64,
    /// Where its work runs.
    pub(crate) node: u32,
    /// Whether it is a HW queue.
    pub(crate) is_hw: bool,
    /// Whether its process fills it, see `filled.rs`.
    pub(crate) is_filled_by_process: bool,
    /// Whether its commands may take for ever (GPU-93).
    disable_gpu_timeout: bool,
    /// What it has in common with its context.
    context: Arc<ContextState>,
    /// Where the end of a suspension is told, if it is the queue of a context.
    suspension: Option<Arc<Suspension>>,
    /// Lives at least as long.
    pub(crate) device: Arc<Device>,
    /// What the KMD has of it, until it ends.
    #[pin]
    kmd: Mutex<Option<Arc<KmdQueue>>>,
    #[pin]
    state: SpinLock<State>,
    /// What the KMD has told.
    reported: Reported,
    /// What the adapter's worker has to do.
    #[pin]
    work: Work<Queue>,
    #[pin]
    patience: DelayedWork<Queue, PATIENCE>,
    #[pin]
    handed_over: Work<Queue, HANDED_OVER>,
    /// Whether it is looked at, see `watch.rs`.
    watched: Watched,
    #[pin]
    watch: DelayedWork<Queue, WATCH>,
    /// What interrupts of native fences call its logs; 0 if it has none.
    pub(in crate::dxgk) log_number: Atomic<u32>,
    _charge: Charge,
}

impl_has_work! {
    impl HasWork<Self> for Queue { self.work }
    impl HasWork<Self, 2> for Queue { self.handed_over }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Queue { self.patience }
    impl HasDelayedWork<Self, 3> for Queue { self.watch }
}

/// What a queue is made of.
pub(in crate::dxgk) struct Description {
    /// The id of its context or HW queue.
    pub(in crate::dxgk) id: u64,
    /// Where its work runs.
    pub(in crate::dxgk) node: u32,
    /// Whether it is a HW queue.
    pub(in crate::dxgk) is_hw: bool,
    /// Whether its process fills it.
    pub(in crate::dxgk) is_filled_by_process: bool,
    /// `DisableGpuTimeout`: whether its commands may take for ever.
    pub(in crate::dxgk) disable_gpu_timeout: bool,
    /// What it has in common with its context.
    pub(in crate::dxgk) context: Arc<ContextState>,
    /// Where the end of a suspension is told, if it is the queue of a context.
    pub(in crate::dxgk) suspension: Option<Arc<Suspension>>,
}

impl Queue {
    /// A new queue of `device`, which `make` makes in the KMD with these callbacks.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        device: &Arc<Device>,
        description: Description,
        make: impl FnOnce(&Arc<dyn QueueCallbacks>) -> DxgResult<KmdQueue>,
    ) -> DxgResult<Arc<Self>> {
        let Description {
            id,
            node,
            is_hw,
            is_filled_by_process,
            disable_gpu_timeout,
            context,
            suspension,
        } = description;
        let charge = device.owner.account().charge(Limit::Queues, 1)?;
        let most = device.adapter.most_in_flight(node)?;
        let queue = pin_arc(
            pin_init!(Self {
                id,
                node,
                is_hw,
                is_filled_by_process,
                disable_gpu_timeout,
                context,
                suspension,
                device: device.clone(),
                kmd <- new_mutex!(None, "Queue::kmd"),
                state <- new_spinlock!(State::new(most), "Queue::state"),
                reported: Reported::new(),
                work <- new_work!("Queue::work"),
                patience <- new_delayed_work!("Queue::patience"),
                handed_over <- new_work!("Queue::handed_over"),
                watched: Watched::new(),
                watch <- new_delayed_work!("Queue::watch"),
                log_number: Atomic::new(0),
                _charge: charge,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let callbacks = Callbacks::of(&queue).map_err(|_| Status::NO_MEMORY)?;
        let kmd = Arc::new(make(&callbacks)?, GFP_KERNEL_ACCOUNT)?;

        // The KMD has the callbacks, and these the queue: from here on its end breaks the circle.
        *queue.kmd.lock() = Some(kmd.clone());
        queue.state.lock().begin_with(kmd);
        if let Err(error) = queue.publish() {
            queue.leave();
            return Err(error);
        }
        Ok(queue)
    }

    /// Lets the end of the device and of the adapter find it.
    fn publish(self: &Arc<Self>) -> DxgResult {
        self.adapter().queues.add(self.key(), self.clone())?;
        // Either of them has seen the queue, or this fails.
        self.device.check()
    }

    /// Its place among the queues of its adapter.
    fn key(&self) -> Key {
        (self.device.id(), self.id)
    }

    /// That of its device.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.device.adapter
    }

    /// Whether an item would be queued. INVALID_PARAMETER if its handle is gone, DEVICE_REMOVED if
    /// its device is in error.
    pub(super) fn check_open(&self) -> DxgResult {
        Ok(self.state.lock().check_open()?)
    }

    /// Queues an item, and makes the queue go on. Refuses it as [`Queue::check_open`] does, and
    /// commands for a HW queue whose progress would not go up (FEN-126).
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn push(self: &Arc<Self>, item: Item, place: Place) -> DxgResult {
        // What is not queued is dropped after the lock.
        let (mut item, mut place) = (Some(item), Some(place));
        let accepted = self.state.lock().accept(&mut item, &mut place);

        accepted?;
        self.queued();
        Ok(())
    }

    /// Queues an item for which [`Queue::check_open`] has found no reason to refuse it. If the
    /// queue has ended meanwhile, it is discarded, as if the queue had ended after this.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn push_checked(self: &Arc<Self>, item: Item, place: Place) {
        let (mut item, mut place) = (Some(item), Some(place));

        self.state.lock().append(&mut item, &mut place);
        self.queued();
    }

    /// Something was queued.
    fn queued(self: &Arc<Self>) {
        trace::queue(self.id);
        self.advance(Runner::Patient);
    }

    /// Does something with the context that the KMD has, if it still has one.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn with_context<T>(
        &self,
        act: impl FnOnce(&object::Context) -> T,
    ) -> Option<T> {
        self.kmd.lock().as_ref()?.context().map(act)
    }

    /// What the KMD has, if it still has something.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn kmd(&self) -> Option<Arc<KmdQueue>> {
        self.kmd.lock().clone()
    }

    /// What the KMD has, if it still has something. Waits for nobody who is inside the KMD.
    pub(in crate::dxgk) fn kmd_now(&self) -> Option<Arc<KmdQueue>> {
        self.state.lock().kmd()
    }
}

impl Kick for Queue {
    fn kick(self: ArcBorrow<'_, Self>) {
        self.adapter().worker.enqueue(self.into());
    }
}

impl Told for Queue {
    fn reported(&self) -> &Reported {
        &self.reported
    }

    fn suspension(&self) -> Option<&Suspension> {
        self.suspension.as_deref()
    }

    fn context(&self) -> &ContextState {
        &self.context
    }

    fn ran(self: ArcBorrow<'_, Self>, ns: u64, switched: bool) {
        self.device.process.engines.ran(self.node, ns, switched);
        if self.is_filled_by_process {
            self.watch();
        }
    }

    fn monitored_fence_signaled(&self) {
        self.adapter().native_interrupts.legacy_interrupt();
    }

    fn native_fence_signaled(&self, names_queue: bool) {
        let logs = names_queue.then(|| self.log_number.load(Relaxed));
        let id = if names_queue { self.id } else { 0 };

        self.adapter()
            .native_interrupts
            .signaled_by(self.node, id, logs);
    }

    fn engine_state_changed(&self, state: EngineState) {
        match state {
            EngineState::TransitionToF1 => self.adapter().power.goes_to_f1(self.node),
        }
    }
}

impl ListedQueue for Queue {
    fn close(self: Arc<Self>) {
        // Nobody finishes what a killed process has begun to write (GPU-30).
        if self.is_filled_by_process && caller::group_is_killed() {
            self.stop_now();
        } else {
            self.leave();
        }
    }

    fn stop(self: Arc<Self>) {
        self.stop_now();
    }

    fn node(&self) -> u32 {
        self.node
    }

    fn disconnect_doorbell(&self) {
        let ring = self.state.lock().ring();

        if let Some(ring) = ring {
            ring.disconnect_for_now();
        }
    }

    fn wants_other_logs(&self) -> bool {
        let kmd = self.kmd_now();

        kmd.and_then(|kmd| kmd.logs().cloned())
            .is_some_and(|logs| logs.want_others())
    }

    fn end_if_lost(&self, hangs: bool) {
        match (self.context.is_invalidated(), hangs) {
            (true, true) => self.device.hung(),
            (true, false) => self.device.was_reset(),
            (false, _) => {}
        }
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn find(
        &self,
        wanted: Wanted,
        is_assumed: &dyn Fn(u64) -> bool,
        export: &mut Option<NewExport>,
    ) -> Found {
        Self::find(self, wanted, is_assumed, export)
    }

    fn missing(&self, number: u64, from: usize) -> Option<Missing> {
        self.missing_to(number, from)
    }

    fn bind(self: Arc<Self>, number: u64, fences: &[DmaFence]) -> Result<(), AllocError> {
        self.bind_wait(number, fences)
    }

    fn snapshot(&self) -> Snapshot {
        let state = self.state.lock();
        let (in_flight, items) = state.counts();

        Snapshot {
            id: self.id,
            node: self.node,
            is_hw: self.is_hw,
            ring: state.ring_state(),
            pid: self.device.owner.mappings().identity.number(),
            items,
            in_flight,
            completed: state.completed(),
            busy_ns: self.reported.busy_ns(),
            blocked: state.blocked(),
            fault: state.fault(),
            // What was set was checked.
            priority: submit_rules::priority(self.context.priority()).unwrap_or(0),
            life: state.life(),
        }
    }
}
