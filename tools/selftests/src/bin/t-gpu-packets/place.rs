// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a packet is tried: every node, with every kind of memory.

use opendxg::pm4::Pm4;
use selftests::gpu::{Buffer, Gpu, NODES, PAGE};
use selftests::TestResult;

/// Bytes of each buffer.
pub(crate) const BYTES: u64 = 4 * PAGE;

/// A context of one node, and two buffers.
pub(crate) struct Place {
    pub(crate) gpu: Gpu,
    pub(crate) source: Buffer,
    pub(crate) target: Buffer,
}

impl Place {
    fn new(node: u32, is_local: bool) -> TestResult<Self> {
        let gpu = Gpu::node(node)?;
        // One of each kind where one is local, so that packets go from one to the other.
        let target = match is_local {
            true => gpu.local_buffer(BYTES)?,
            false => gpu.buffer(BYTES)?,
        };
        Ok(Self {
            source: gpu.buffer(BYTES)?,
            target,
            gpu,
        })
    }

    /// Sets every word of the source to a number of its own, and the target to 0.
    pub(crate) fn reset(&self) {
        for offset in (0..BYTES).step_by(4) {
            self.source.set32(offset, pattern(offset));
        }
        self.target.fill(0);
    }

    /// Executes commands and waits for them.
    #[track_caller]
    pub(crate) fn run(&self, commands: &Pm4) -> TestResult {
        self.gpu.run(commands)
    }
}

/// The word at an offset of the source.
pub(crate) fn pattern(offset: u64) -> u32 {
    (offset as u32).wrapping_mul(0x9e37_79b1) | 1
}

/// Runs the body on each node, once with system memory alone and once with local memory.
pub(crate) fn everywhere(body: fn(&Place) -> TestResult) -> TestResult {
    for node in NODES {
        for is_local in [false, true] {
            let place = Place::new(node, is_local)?;
            place.reset();
            body(&place).map_err(|error| format!("node {node}, local {is_local}: {error}"))?;
        }
    }
    Ok(())
}
