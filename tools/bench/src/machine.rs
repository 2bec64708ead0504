// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured on.

use std::hint::black_box;
use std::thread::available_parallelism;
use std::time::Instant;

use rustix::thread::{sched_setaffinity, CpuSet};

use crate::result::Machine;

/// Describes this machine.
pub fn describe() -> Machine {
    let uname = rustix::system::uname();
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Machine {
        kernel: uname.release().to_string_lossy().into(),
        version: uname.version().to_string_lossy().into(),
        accelerator: accelerator(),
        cpus: cpus(),
        clock: std::fs::read_to_string(clock)
            .unwrap_or_default()
            .trim()
            .into(),
    }
}

/// How many processors there are.
pub fn cpus() -> usize {
    available_parallelism().map_or(0, usize::from)
}

/// Keeps the calling thread on one processor.
pub fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    // Where there is no such processor the measurement is made on any.
    let _ = sched_setaffinity(None, &set);
}

/// Lets it run on all of them.
pub fn unpin() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
    // As before `pin`, or pinned a little longer.
    let _ = sched_setaffinity(None, &all);
}

/// Has the calling thread run before all that have no real-time priority, or as they do.
///
/// # Panics
///
/// If it may not.
pub fn go_first(first: bool) {
    let policy = match first {
        true => libc::SCHED_FIFO,
        false => libc::SCHED_OTHER,
    };
    let param = libc::sched_param {
        sched_priority: first.into(),
    };
    // SAFETY: A live struct.
    let failed = unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
    assert_eq!(failed, 0, "set the policy of the scheduler");
}

/// Whether the clock passes equally in equal work, as one that counts instructions does: a loop
/// takes as long nearly every time, to the nanosecond.
pub fn clock_is_exact() -> bool {
    const LOOPS: usize = 1000;
    let mut took: Vec<u128> = (0..LOOPS)
        .map(|_| {
            let began = Instant::now();
            (0..LOOPS).for_each(|step| {
                black_box(step);
            });
            began.elapsed().as_nanos()
        })
        .collect();
    took.sort_unstable();
    // Interrupts hit some of them, and the guest may take the clock for a millionth slower than it
    // is.
    let (fast, slow) = (took[LOOPS / 100], took[LOOPS - LOOPS / 10]);
    slow - fast <= fast / 400
}

/// The hypervisor, as the processor tells it.
#[cfg(target_arch = "x86_64")]
fn accelerator() -> String {
    use core::arch::x86_64::__cpuid;
    const HYPERVISOR: u32 = 1 << 31;
    // SAFETY: every 64-bit x86 processor has CPUID.
    if unsafe { __cpuid(1) }.ecx & HYPERVISOR == 0 {
        return "none".into();
    }
    // SAFETY: as above; under a hypervisor this leaf holds its signature.
    let leaf = unsafe { __cpuid(0x4000_0000) };
    let signature = [leaf.ebx, leaf.ecx, leaf.edx]
        .map(u32::to_le_bytes)
        .concat();
    match String::from_utf8_lossy(&signature).trim_end_matches('\0') {
        "TCGTCGTCGTCG" => "TCG".into(),
        "KVMKVMKVM" => "KVM".into(),
        other => other.into(),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn accelerator() -> String {
    "unknown".into()
}

/// Descriptors for all measurements.
const DESCRIPTORS: u64 = 200_000;

/// Raises the limit of open descriptors: some measurements need tens of thousands.
pub fn raise_descriptor_limit() {
    use rustix::process::{getrlimit, setrlimit, Resource};
    let mut limit = getrlimit(Resource::Nofile);
    limit.maximum = limit.maximum.map(|most| most.max(DESCRIPTORS));
    limit.current = limit.maximum;
    // Without it those measurements fail with a clear error.
    let _ = setrlimit(Resource::Nofile, limit);
}
