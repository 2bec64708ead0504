// SPDX-License-Identifier: GPL-2.0

//! The last fault of each engine of an adapter, for those who look at it: the queue and its process
//! may be gone.
//!
//! LOCK: `faults` is a leaf.

use crate::ddi::queue::Fault;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// The faults of more nodes are not kept.
const NODES: usize = 32;

/// A fault, and whose it was.
#[derive(Clone, Copy)]
pub(super) struct LastFault {
    /// The id of the queue.
    pub(super) queue: u64,
    /// The number of the process, as the first namespace of process ids has it.
    pub(super) pid: u32,
    pub(super) fault: Fault,
}

/// The last fault of each engine.
#[pin_data]
pub(in crate::dxgk) struct LastFaults {
    #[pin]
    faults: SpinLock<[Option<LastFault>; NODES]>,
}

impl LastFaults {
    /// None.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            faults <- new_spinlock!([None; NODES], "LastFaults::faults"),
        })
    }

    /// The engine of this node had this fault.
    pub(super) fn set(&self, node: u32, fault: LastFault) {
        // CAST: 32 bits fit a usize.
        if let Some(place) = self.faults.lock().get_mut(node as usize) {
            *place = Some(fault);
        }
    }

    /// The last fault of the engine of this node.
    pub(super) fn get(&self, node: u32) -> Option<LastFault> {
        // CAST: as above.
        self.faults.lock().get(node as usize).copied().flatten()
    }
}
