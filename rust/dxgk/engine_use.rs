// SPDX-License-Identifier: GPL-2.0

//! What the engines of an adapter have done for one process, by node (MEM-106).
//!
//! It is counted where it happens, by atomics that each queue of the process reaches. It outlives
//! the devices of the process, so that what people who watch a process see does not go back.

use crate::error::{
    DxgResult,
    Status, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The counts of a node.
struct Counts {
    busy_ns: Atomic<u64>,
    switches: Atomic<u64>,
    submitted: Atomic<u64>,
    completed: Atomic<u64>,
}

/// What the engines of an adapter have done for a process.
pub(crate) struct EngineUse {
    nodes: KVec<Counts>,
}

/// What one node has done for a process.
#[derive(Clone, Copy, Default)]
pub(crate) struct NodeUse {
    /// Nanoseconds that its engine has run queues of the process.
    pub(crate) busy_ns: u64,
    /// How often it went from another queue to one of these.
    pub(crate) switches: u64,
    /// Command buffers that the KMD got, and those that have completed.
    pub(crate) submitted: u64,
    pub(crate) completed: u64,
}

impl EngineUse {
    /// Nothing yet, on so many nodes.
    pub(in crate::dxgk) fn new(nodes: u32) -> Result<Arc<Self>, AllocError> {
        // CAST: 32 bits fit a usize.
        let mut counts = KVec::with_capacity(nodes as usize, GFP_KERNEL_ACCOUNT)?;

        for _ in 0..nodes {
            // There is room.
            let _room = counts.push_within_capacity(Counts {
                busy_ns: Atomic::new(0),
                switches: Atomic::new(0),
                submitted: Atomic::new(0),
                completed: Atomic::new(0),
            });
        }
        Arc::new(Self { nodes: counts }, GFP_KERNEL_ACCOUNT)
    }

    fn counts(&self, node: u32) -> Option<&Counts> {
        // CAST: 32 bits fit a usize.
        self.nodes.get(node as usize)
    }

    /// An engine of the node has run a queue for so long, after another queue if `switched`. In any
    /// context.
    pub(in crate::dxgk) fn ran(&self, node: u32, ns: u64, switched: bool) {
        if let Some(counts) = self.counts(node) {
            // ORDERING: counts for people who watch, here and below.
            let _before = counts.busy_ns.fetch_add(ns, Relaxed);
            let _before = counts.switches.fetch_add(switched.into(), Relaxed);
        }
    }

    /// The KMD gets commands for the node.
    pub(in crate::dxgk) fn submitted(&self, node: u32) {
        if let Some(counts) = self.counts(node) {
            let _before = counts.submitted.fetch_add(1, Relaxed);
        }
    }

    /// So many of them have completed.
    pub(in crate::dxgk) fn completed(&self, node: u32, count: u64) {
        if let Some(counts) = self.counts(node) {
            let _before = counts.completed.fetch_add(count, Relaxed);
        }
    }

    /// What a node has done; INVALID_PARAMETER if there is none.
    pub(crate) fn node(&self, node: u32) -> DxgResult<NodeUse> {
        let counts = self.counts(node).ok_or(Status::INVALID_PARAMETER)?;

        Ok(NodeUse {
            busy_ns: counts.busy_ns.load(Relaxed),
            switches: counts.switches.load(Relaxed),
            submitted: counts.submitted.load(Relaxed),
            completed: counts.completed.load(Relaxed),
        })
    }
}
