// SPDX-License-Identifier: GPL-2.0

//! The nodes of the software adapter (GPU-1).

use super::queue::MAX_IN_FLIGHT;
use crate::ddi::{
    caps::{
        EngineType,
        NodeMetadata, //
    },
    types::Text, //
};

/// By node ordinal. The paging node is of type OTHER: work of users runs there as anywhere, but
/// what only the system may do is refused (GPU-46).
const NODES: [(EngineType, &str); 4] = [
    (EngineType::ThreeD, "3D"),
    (EngineType::Other, "Compute"),
    (EngineType::Copy, "Copy"),
    (EngineType::Other, "Paging"),
];

/// The node whose queues nobody fills but the kernel.
pub(super) const PAGING: u32 = 3;

/// What their threads are called.
pub(super) const PARTS: [&str; NODES.len()] = ["3d", "compute", "copy", "paging"];

/// How many there can be. CAST: four.
pub(super) const COUNT: u32 = NODES.len() as u32;

/// What the first node is instead if the adapter does not render.
const COMPUTE_NODE: (EngineType, &str) = (EngineType::Other, "Compute 0");

/// What a node is; one without a name if there is none.
pub(super) fn metadata(node: u32, compute_only: bool) -> NodeMetadata {
    // CAST: 32 bits fit a usize.
    let (engine_type, name) = NODES
        .get(node as usize)
        .copied()
        .map(|node| match node {
            (EngineType::ThreeD, _) if compute_only => COMPUTE_NODE,
            node => node,
        })
        .unwrap_or((EngineType::Other, ""));

    NodeMetadata {
        engine_type,
        name: Text::new(name),
        ring_buffer_fence_release: true,
        max_in_flight_hw_queue_buffers: MAX_IN_FLIGHT,
        user_mode_submission: node != PAGING,
        gpu_mmu: true,
        // Nothing that is not written here.
        ..NodeMetadata::default()
    }
}
