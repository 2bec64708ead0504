// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU events: events of a process that the kernel-mode driver signals (cpu-events.md).

mod create;
mod ends;
mod sources;
mod usage;

use opendxg::{CpuEvent, EventFd};
use selftests::gpu::Gpu;
use selftests::time::soon;
use selftests::{ensure, Suite, TestResult};

pub(crate) fn main() {
    Suite::new("CPU events")
        .with(create::tests)
        .with(usage::tests)
        .with(sources::tests)
        .with(ends::tests)
        .run()
}

/// An event of a device, with the eventfd that it signals.
pub(crate) struct Told {
    pub(crate) event: CpuEvent,
    pub(crate) fd: EventFd,
    /// What the driver calls it.
    pub(crate) name: u64,
}

impl Told {
    /// One with this usage.
    pub(crate) fn new(gpu: &Gpu, usage: [u32; 8]) -> TestResult<Self> {
        let fd = EventFd::new()?;
        let event = gpu.device().create_cpu_event(&fd)?;
        let name = event.set_usage(usage)?;
        Ok(Self { event, fd, name })
    }

    /// Waits until it is signalled; how often it was.
    pub(crate) fn wait(&self) -> TestResult<u64> {
        let count = self.fd.wait(Some(soon()))?;
        ensure!(count.is_some(), "nobody has signalled it");
        Ok(count.unwrap_or_default())
    }

    /// Demands that it is not signalled.
    pub(crate) fn is_silent(&self) -> TestResult {
        let count = self.fd.take();
        ensure!(matches!(count, Ok(0) | Err(_)), "signalled {count:?}");
        Ok(())
    }
}
