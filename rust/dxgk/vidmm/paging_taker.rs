// SPDX-License-Identifier: GPL-2.0

//! A context of the paging process that takes paging buffers, and what the KMD tells about it.

use super::{
    contexts::SpaceContext,
    paging_process::{
        PagingProcess,
        SystemContext, //
    }, //
};
use crate::{
    ddi::{
        class::{
            DeviceInterrupt,
            Passive, //
        },
        object::Suspension,
        queue::{
            Fault,
            FaultKind,
            QueueCallbacks, //
        },
        types::Scheduling, //
    },
    error::DxgResult,
    sys::wait_queue::Arrivals, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

/// Its priority, above all of clients.
const PRIORITY: i32 = 31;

/// What the KMD tells about one context of the paging process.
pub(super) struct TakerState {
    /// The last submission that has completed.
    completed: Atomic<u64>,
    /// Nothing of it completes any more.
    is_lost: AtomicFlag,
    /// It has stopped at a packet, by an access to this address with these flags.
    has_faulted: AtomicFlag,
    fault_address: Atomic<u64>,
    fault_flags: Atomic<u32>,
    suspension: Arc<Suspension>,
    /// Something was told, about any context.
    arrivals: Arc<Arrivals>,
}

impl QueueCallbacks for Arc<TakerState> {
    fn completed(&self, _: &DeviceInterrupt, number: u64) {
        // ORDERING: release: who sees the number sees what the commands have stored.
        self.completed.store(number, Release);
        self.arrivals.arrive();
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

    fn faulted(&self, _: &DeviceInterrupt, fault: &Fault) {
        if let FaultKind::PageFault { address, .. } = fault.kind {
            self.fault_address.store(address, Relaxed);
        }
        self.fault_flags.store(fault.flags, Relaxed);
        self.has_faulted.store(true, Relaxed);
        self.is_lost.store(true, Release);
        self.arrivals.arrive();
    }

    fn invalidated(&self) {
        self.is_lost.store(true, Release);
        self.arrivals.arrive();
    }

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        self.suspension.ended(id);
    }
}

/// What has become of the last submission.
pub(super) enum Told {
    /// It has completed.
    Completed,
    /// It never will: a reset has hit the context.
    Lost,
    /// It never will: an access to this address, with these flags, has faulted.
    Faulted(u64, u32),
    /// Nothing is told yet.
    Nothing,
}

/// A context of the paging process that takes work.
pub(super) struct Taker {
    pub(super) id: u64,
    pub(super) context: SpaceContext,
    told: Arc<TakerState>,
    /// The number of the last submission.
    pub(super) number: u64,
}

impl Taker {
    /// CreateContext and SetRootPageTable (MEM-73), for a node.
    ///
    /// Context: may sleep, no locks of contexts held.
    pub(super) fn new(
        process: &PagingProcess,
        node: u32,
        arrivals: &Arc<Arrivals>,
    ) -> DxgResult<Self> {
        let suspension = process.space.suspension()?;
        let told = TakerState {
            completed: Atomic::new(0),
            is_lost: AtomicFlag::new(false),
            has_faulted: AtomicFlag::new(false),
            fault_address: Atomic::new(0),
            fault_flags: Atomic::new(0),
            suspension: suspension.clone(),
            arrivals: arrivals.clone(),
        };
        let told = Arc::new(told, GFP_KERNEL)?;
        let callbacks: Arc<dyn QueueCallbacks> = Arc::new(told.clone(), GFP_KERNEL)?;
        let (id, context) = process.context(SystemContext {
            scheduling: Scheduling::Packets,
            node,
            callbacks: &callbacks,
            suspension,
        })?;

        context.set_priority(&Passive::here(), PRIORITY)?;
        Ok(Self {
            id,
            context,
            told,
            number: 0,
        })
    }

    /// Whether a reset has hit it.
    pub(super) fn is_lost(&self) -> bool {
        self.told.is_lost.load(Acquire)
    }

    /// What the KMD has told of the last submission.
    pub(super) fn look(&self) -> Told {
        let told = &self.told;

        if told.completed.load(Acquire) >= self.number {
            return Told::Completed;
        }
        if !self.is_lost() {
            return Told::Nothing;
        }
        match told.has_faulted.load(Relaxed) {
            true => Told::Faulted(
                told.fault_address.load(Relaxed),
                told.fault_flags.load(Relaxed),
            ),
            false => Told::Lost,
        }
    }
}
