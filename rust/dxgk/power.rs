// SPDX-License-Identifier: GPL-2.0

//! The power of an adapter: D0, in which it works, and D3, in which it does not (GPU-28).
//!
//! An adapter with nothing to do goes to D3 when it is told to. Its contexts are suspended, and its
//! doorbells say that they have to be connected again. Whoever connects one, or submits something,
//! wakes it.
//!
//! No work is forgotten. It is looked for after all doorbells were disconnected, and an adapter
//! with work stays in D0. Who submits later finds that the adapter sleeps, see `logic/power.rs`;
//! and who rings later finds that the doorbell is disconnected (GPU-23).
//!
//! What allocations hold stays where it is: neither kind of memory that there is needs power.
//!
//! LOCK: `turn` is a mutex, outside `AllContexts::state` and `doorbell::Ring::live`. Held while
//! contexts are suspended, which waits for engines.

use super::{
    sched::list::Queues,
    vidmm::all_contexts::AllContexts, //
};
use crate::{
    ddi::{
        class::Passive,
        port::Port,
        power::PowerState, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::power::Awake,
    sys::{
        alloc::pin_arc,
        work::{
            self,
            OrderedWorker, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// The power of an adapter.
#[pin_data]
pub(crate) struct Power {
    port: Arc<Port>,
    contexts: Arc<AllContexts>,
    queues: Arc<Queues>,
    pub(in crate::dxgk) awake: Awake,
    /// Nodes whose engines are about to go to F1, a bit for each.
    to_f1: Atomic<u32>,
    /// One change at a time, and connections of an adapter that slept.
    #[pin]
    turn: Mutex<()>,
    /// Wakes it.
    worker: OrderedWorker,
    #[pin]
    waking: Work<Power>,
    #[pin]
    disconnecting: Work<Power, TO_F1>,
}

/// The number of the work for engines that go to F1.
const TO_F1: u64 = 1;

impl_has_work! {
    impl HasWork<Self> for Power { self.waking }
    impl HasWork<Self, 1> for Power { self.disconnecting }
}

impl WorkItem for Power {
    type Pointer = Arc<Self>;

    /// Its own worker: somebody has submitted something, and may wait for it in any other one.
    fn run(this: Arc<Self>) {
        // A removed adapter is not needed any more.
        let _removed = this.up();
    }
}

impl WorkItem<TO_F1> for Power {
    type Pointer = Arc<Self>;

    /// The module's worker: connections wait for locks that calls hold.
    fn run(this: Arc<Self>) {
        let nodes = this.to_f1.xchg(0, Full);

        this.disconnect_doorbells(|node| bit(node) & nodes != 0);
    }
}

/// What stands for a node in a set of nodes.
fn bit(node: u32) -> u32 {
    1_u32.checked_shl(node).unwrap_or(0)
}

impl Power {
    /// D0, after StartDevice.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(
        port: &Arc<Port>,
        contexts: &Arc<AllContexts>,
        queues: &Arc<Queues>,
    ) -> Result<Arc<Self>, AllocError> {
        let worker = OrderedWorker::start(c"dxg-power")?;

        pin_arc(
            pin_init!(Self {
                worker,
                port: port.clone(),
                contexts: contexts.clone(),
                queues: queues.clone(),
                awake: Awake::new(),
                to_f1: Atomic::new(0),
                turn <- new_mutex!((), "Power::turn"),
                waking <- new_work!("Power::waking"),
                disconnecting <- new_work!("Power::disconnecting"),
            }),
            GFP_KERNEL,
        )
    }

    /// D0 or D3.
    pub(crate) fn state(&self) -> PowerState {
        match self.awake.is_awake() {
            true => PowerState::D0,
            false => PowerState::D3,
        }
    }

    /// D0 to D3. EBUSY if there is something to do, ENODEV if the adapter is removed.
    ///
    /// Context: may sleep, no locks held that calls of clients take.
    pub(crate) fn down(&self) -> Result {
        let _turn = self.turn.lock();

        if !self.awake.is_awake() {
            return Ok(());
        }
        self.awake.falls_asleep();
        self.contexts.suspend();
        self.disconnect_doorbells(|_| true);

        let switched = self.switch_off();

        if switched.is_err() {
            self.awake.awakes();
            self.contexts.resume();
        }
        switched
    }

    fn switch_off(&self) -> Result {
        let class = Passive::here();
        let kmd = self.port.enter().map_err(|_| ENODEV)?;

        if !kmd.is_idle(&class) {
            return Err(EBUSY);
        }
        kmd.set_power_state(&class, PowerState::D3);
        Ok(())
    }

    /// D3 to D0. DEVICE_REMOVED if the adapter is removed.
    ///
    /// Context: as [`Power::down`].
    pub(crate) fn up(&self) -> DxgResult {
        self.while_up(|| Ok(()))
    }

    /// Does something in D0, which the adapter does not leave meanwhile. DEVICE_REMOVED as above.
    ///
    /// Context: may sleep; no locks held that are inside `turn`.
    pub(in crate::dxgk) fn while_up(&self, act: impl FnOnce() -> DxgResult) -> DxgResult {
        let _turn = self.turn.lock();

        if !self.awake.is_awake() {
            let kmd = self.port.enter().map_err(|_| Status::DEVICE_REMOVED)?;

            kmd.set_power_state(&Passive::here(), PowerState::D0);
            self.awake.awakes();
            self.contexts.resume();
        }
        act()
    }

    /// Wakes the adapter up if it sleeps, after the KMD has got something to do.
    ///
    /// Context: may sleep; waits for nobody.
    pub(in crate::dxgk) fn wake_for_work(self: &Arc<Self>) {
        if self.awake.is_awake_for_work() {
            return;
        }
        self.worker.enqueue(self.clone());
    }

    /// The engine of a node is about to go to F1: its doorbells are disconnected first. A process
    /// connects its own again, which the KMD learns of.
    ///
    /// Context: any; touches atomics and queues work only.
    pub(in crate::dxgk) fn goes_to_f1(self: &Arc<Self>, node: u32) {
        let mut before = self.to_f1.load(Relaxed);

        // ORDERING: full, before the work is queued, which may be running.
        while let Err(now) = self.to_f1.cmpxchg(before, before | bit(node), Full) {
            before = now;
        }
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already.
            let _queued = worker.enqueue::<_, TO_F1>(self.clone()).is_ok();
        }
    }

    /// Disconnects the doorbells of all queues of these nodes, which can be connected again.
    fn disconnect_doorbells(&self, of: impl Fn(u32) -> bool) {
        for queue in self.queues.iter() {
            if of(queue.node()) {
                queue.disconnect_doorbell();
            }
        }
    }
}
