// SPDX-License-Identifier: GPL-2.0

//! What the engines of an adapter have done for one process, by node (MEM-106).
//!
//! It is counted where it happens, by atomics that each queue of the process reaches. It outlives
//! the devices of the process, so that what people who watch a process see does not go back.

use super::adapter::Adapter;
use crate::{
    ddi::types::Text,
    error::{
        DxgResult,
        Status, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// What the KMD calls a node.
pub(in crate::dxgk) type NodeName = Text<32>;

/// The counts of a node.
struct Counts {
    name: NodeName,
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
    /// Nothing yet, on the nodes of this adapter.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(adapter: &Adapter) -> DxgResult<Arc<Self>> {
        let nodes = adapter.caps.nodes;
        // CAST: 32 bits fit a usize.
        let mut counts = KVec::with_capacity(nodes as usize, GFP_KERNEL_ACCOUNT)?;

        for node in 0..nodes {
            // There is room.
            let _room = counts.push_within_capacity(Counts {
                name: adapter.node_name(node)?,
                busy_ns: Atomic::new(0),
                switches: Atomic::new(0),
                submitted: Atomic::new(0),
                completed: Atomic::new(0),
            });
        }
        Ok(Arc::new(Self { nodes: counts }, GFP_KERNEL_ACCOUNT)?)
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

    /// How many nodes there are.
    pub(in crate::dxgk) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The name of the node at a place.
    pub(in crate::dxgk) fn name(&self, place: usize) -> Option<NodeName> {
        Some(self.nodes.get(place)?.name)
    }

    /// The engines of nodes with this name: how many there are, and how long they have run.
    pub(in crate::dxgk) fn named(&self, name: &NodeName) -> NamedUse {
        let named = self.nodes.iter().filter(|counts| counts.name == *name);

        named.fold(NamedUse::default(), |sum, counts| {
            sum.and(NamedUse {
                engines: 1,
                busy_ns: counts.busy_ns.load(Relaxed),
            })
        })
    }
}

/// What engines of one name have done for a process.
#[derive(Clone, Copy, Default)]
pub(in crate::dxgk) struct NamedUse {
    /// How many engines these are.
    pub(in crate::dxgk) engines: u32,
    /// Nanoseconds that they have run queues of the process.
    pub(in crate::dxgk) busy_ns: u64,
}

impl NamedUse {
    /// These and more of them.
    pub(in crate::dxgk) fn and(self, more: Self) -> Self {
        Self {
            engines: self.engines.saturating_add(more.engines),
            busy_ns: self.busy_ns.saturating_add(more.busy_ns),
        }
    }

    /// Prints it in the keys of DRM drivers.
    pub(in crate::dxgk) fn show(self, name: &NodeName, m: &SeqFile) {
        let Self { engines, busy_ns } = self;

        seq_print!(m, "drm-engine-");
        show_word(name, m);
        seq_print!(m, ":\t{busy_ns} ns\n");
        // A reader takes a missing one for 1.
        if engines > 1 {
            seq_print!(m, "drm-engine-capacity-");
            show_word(name, m);
            seq_print!(m, ":\t{engines}\n");
        }
    }
}

fn show_word(name: &NodeName, m: &SeqFile) {
    for character in name.word() {
        seq_print!(m, "{character}");
    }
}

/// How long engines have run for a process on adapters that it has left and that are forgotten, by
/// name. There are as many names as KMDs give.
pub(in crate::dxgk) struct PastUse(KVec<(NodeName, u64)>);

impl PastUse {
    /// None.
    pub(in crate::dxgk) fn new() -> Self {
        Self(KVec::new())
    }

    /// Room for what an adapter with so many nodes leaves.
    pub(in crate::dxgk) fn reserve(&mut self, nodes: usize) -> DxgResult {
        Ok(self.0.reserve(nodes, GFP_KERNEL_ACCOUNT)?)
    }

    /// Remembers what the engines of an adapter have done. There is room.
    pub(in crate::dxgk) fn add(&mut self, engines: &EngineUse) {
        for counts in &engines.nodes {
            let busy_ns = counts.busy_ns.load(Relaxed);

            match self.0.iter_mut().find(|(name, _)| *name == counts.name) {
                Some((_, sum)) => *sum = sum.saturating_add(busy_ns),
                None => {
                    let _room = self.0.push_within_capacity((counts.name, busy_ns));
                }
            }
        }
    }

    /// The one at a place.
    pub(in crate::dxgk) fn name(&self, place: usize) -> Option<NodeName> {
        Some(self.0.get(place)?.0)
    }

    /// How long engines of this name have run.
    pub(in crate::dxgk) fn named(&self, name: &NodeName) -> NamedUse {
        let found = self.0.iter().find(|(own, _)| own == name);

        NamedUse {
            engines: 0,
            busy_ns: found.map_or(0, |(_, busy_ns)| *busy_ns),
        }
    }
}
