// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences: fences that the GPU waits for by itself, and that interrupt only when somebody
//! waits (fences.md section 3).

mod access;
mod caps;
mod create;
mod ends;
mod interrupts;
mod intra_gpu;
mod log_sizes;
mod logs;
mod memory;
mod modes;
mod progress;
mod queues;
mod stress;
mod system_process;

use std::collections::BTreeMap;

use opendxg::pm4::Pm4;
use opendxg::{Counters, EventFd, NativeFence};
use selftests::gpu::Gpu;
use selftests::time::soon;
use selftests::{ensure, ensure_eq, Suite, TestResult};

pub(crate) fn main() {
    Suite::new("native fences")
        .with(create::tests)
        .with(access::tests)
        .with(caps::tests)
        .with(system_process::tests)
        .with(intra_gpu::tests)
        .with(memory::tests)
        .with(interrupts::tests)
        .with(queues::tests)
        .with(logs::tests)
        .with(log_sizes::tests)
        .with(modes::tests)
        .with(progress::tests)
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

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(u64::MAX)
    }

    pub(crate) fn interrupts(&self) -> u64 {
        self.get("interrupts")
    }

    pub(crate) fn scans(&self) -> u64 {
        self.get("scans")
    }

    pub(crate) fn log_overflows(&self) -> u64 {
        self.get("log-overflows")
    }

    pub(crate) fn ignored_entries(&self) -> u64 {
        self.get("ignored-entries")
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

/// Packets that signal a native fence and log that. Whether they may interrupt.
pub(crate) fn logged_signal(fence: &NativeFence, value: u64, interrupts: bool) -> Pm4 {
    /// Flags LOG and NO_INTERRUPT.
    const LOG: u32 = 1;
    const NO_INTERRUPT: u32 = 2;

    let flags = if interrupts { LOG } else { LOG | NO_INTERRUPT };
    signal_with(fence, value, flags)
}

/// Packets that signal a native fence and interrupt nobody.
pub(crate) fn silent_signal(fence: &NativeFence, value: u64) -> Pm4 {
    signal_with(fence, value, 2)
}

fn signal_with(fence: &NativeFence, value: u64, flags: u32) -> Pm4 {
    let halves = |value: u64| [value as u32, (value >> 32) as u32];
    let ([low, high], [value_low, value_high]) = (halves(fence.gpu_address()), halves(value));
    let handle = fence.handle().0;
    let words = [flags, low, high, value_low, value_high, handle, !0, 0, 0];
    Pm4::new().packet(0xe0, &words)
}

/// Packets that wait for a native fence and log that.
pub(crate) fn logged_wait(fence: &NativeFence, value: u64) -> Pm4 {
    Pm4::new().wait_native_logged(fence.gpu_address(), value, fence.handle())
}

/// A wait that tells an event.
pub(crate) fn waited(fence: &NativeFence, value: u64) -> TestResult<EventFd> {
    let event = EventFd::new()?;
    fence.wait_async(value, &event)?;
    Ok(event)
}

/// The wait is over.
#[track_caller]
pub(crate) fn is_told(event: &EventFd) -> TestResult {
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    Ok(())
}

/// It is not.
#[track_caller]
pub(crate) fn is_silent(event: &EventFd) -> TestResult {
    let count = event.take();
    ensure!(matches!(count, Ok(0) | Err(_)), "signalled {count:?}");
    Ok(())
}

/// MonitoredValue, as the GPU reads it: no process may.
pub(crate) fn monitored_value(gpu: &Gpu, fence: &NativeFence) -> TestResult<u64> {
    let seen = gpu.buffer(selftests::gpu::PAGE)?;
    gpu.run(&Pm4::new().copy(seen.at(0), fence.monitored_address(), 8))?;
    Ok(seen.get64(0))
}
