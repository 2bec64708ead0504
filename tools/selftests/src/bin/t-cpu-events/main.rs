// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU events: events of a process that the kernel-mode driver signals (cpu-events.md).

mod border;
mod create;
mod ends;
mod panel;
mod queues;
mod sources;
mod usage;
mod waiting;

use opendxg::soft_gpu::EventRecord;
use opendxg::{CpuEvent, EventFd};
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::soon;
use selftests::{ensure, ensure_eq, Suite, TestResult};

pub(crate) fn main() {
    Suite::new("CPU events")
        .with(create::tests)
        .with(usage::tests)
        .with(sources::tests)
        .with(panel::tests)
        .with(queues::tests)
        .with(waiting::tests)
        .with(ends::tests)
        .with(border::tests)
        .run()
}

/// How the events of this run reach the driver, as `cpu_events` in configfs has it.
pub(crate) const PATH_VARIABLE: &str = "OPENDXG_TEST_CPU_EVENTS";

fn path() -> String {
    std::env::var(PATH_VARIABLE).unwrap_or("local".into())
}

/// Whether the driver is here. If it is across a border, signals come later and may be merged, and
/// nothing else differs (CPU-22, CPU-23).
pub(crate) fn is_local() -> bool {
    path() == "local"
}

/// A directory for an adapter whose events go the same way.
pub(crate) fn soft(name: &str) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(name)?;
    soft.set("cpu_events", &path())?;
    Ok(soft)
}

/// The same with the adapter enabled.
pub(crate) fn soft_enabled(name: &str) -> TestResult<SoftAdapter> {
    let soft = soft(name)?;
    soft.set("enabled", "1")?;
    Ok(soft)
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
        Self::with(gpu, EventFd::new()?, usage)
    }

    /// One of this eventfd.
    pub(crate) fn with(gpu: &Gpu, fd: EventFd, usage: [u32; 8]) -> TestResult<Self> {
        let event = gpu.device().create_cpu_event(&fd)?;
        let name = event.set_usage(usage)?;
        Ok(Self { event, fd, name })
    }

    /// The only record that there is.
    pub(crate) fn one(&self) -> TestResult<EventRecord> {
        let (records, lost) = self.event.take_records(self.name)?;
        ensure_eq!((records.len(), lost), (1, 0), "{records:?}");
        Ok(records[0])
    }

    /// Waits until it is signalled; how often it was.
    pub(crate) fn wait(&self) -> TestResult<u64> {
        let count = self.fd.wait(Some(soon()))?;
        ensure!(count.is_some(), "nobody has signalled it");
        Ok(count.unwrap_or_default())
    }

    /// Waits until it has told of traps up to this argument, for which the driver signals it so
    /// often.
    pub(crate) fn hears_traps(&self, last: u64, signals: u64) -> TestResult {
        if !is_local() {
            return self.hears_merged(last, signals);
        }
        let mut count = 0;
        while count < signals {
            count += self.wait()?;
        }
        ensure_eq!(count, signals);
        Ok(())
    }

    /// The same across a border, which merges signals.
    pub(crate) fn hears_merged(&self, last: u64, signals: u64) -> TestResult {
        let mut count = 0;
        loop {
            count += self.wait()?;
            ensure!(count <= signals, "{count} signals of {signals}");
            let (records, _) = self.event.take_records(self.name)?;
            if records.last().is_some_and(|record| record.detail == last) {
                return Ok(());
            }
        }
    }

    /// Demands that it is not signalled.
    pub(crate) fn is_silent(&self) -> TestResult {
        let count = self.fd.take();
        ensure!(matches!(count, Ok(0) | Err(_)), "signalled {count:?}");
        Ok(())
    }
}
