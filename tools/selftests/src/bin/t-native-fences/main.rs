// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences: fences that the GPU waits for by itself, and that interrupt only when somebody
//! waits (fences.md section 3).

mod create;
mod ends;
mod interrupts;
mod queues;
mod stress;

use std::collections::BTreeMap;

use opendxg::pm4::Pm4;
use opendxg::{Counters, NativeFence};
use selftests::gpu::Gpu;
use selftests::{Suite, TestResult};

pub(crate) fn main() {
    Suite::new("native fences")
        .with(create::tests)
        .with(interrupts::tests)
        .with(queues::tests)
        .with(ends::tests)
        .with(stress::tests)
        .run()
}

/// What the adapter of a device counts about native fences.
pub(crate) struct Counts(BTreeMap<String, u64>);

impl Counts {
    pub(crate) fn of(gpu: &Gpu) -> TestResult<Self> {
        let luid = gpu.device().adapter().luid();
        Ok(Self(Counters::of_native_fences(luid)?))
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(u64::MAX)
    }

    pub(crate) fn interrupts(&self) -> u64 {
        self.get("interrupts")
    }

    pub(crate) fn monitored_updates(&self) -> u64 {
        self.get("monitored-updates")
    }
}

/// Packets that signal a native fence.
pub(crate) fn signal(fence: &NativeFence, value: u64) -> Pm4 {
    Pm4::new().signal_native(fence.gpu_address(), value)
}

/// Packets that wait for a native fence.
pub(crate) fn wait(fence: &NativeFence, value: u64) -> Pm4 {
    Pm4::new().wait_native(fence.gpu_address(), value)
}

/// MonitoredValue, as the GPU reads it: no process may.
pub(crate) fn monitored_value(gpu: &Gpu, fence: &NativeFence) -> TestResult<u64> {
    let seen = gpu.buffer(selftests::gpu::PAGE)?;
    gpu.run(&Pm4::new().copy(seen.at(0), fence.monitored_address(), 8))?;
    Ok(seen.get64(0))
}
