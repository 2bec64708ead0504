// SPDX-License-Identifier: MIT OR Apache-2.0
//! What engines log of native fences, and what a process can do to its logs (gpu.md section 7).

use opendxg::pm4::{Data, Interrupt, Log, Pm4};
use opendxg::{DoorbellStatus, Status};
use rustix::time::{clock_gettime, ClockId};
use selftests::gpu::{Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::trace::{traced, Event};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_native_fences::{
    is_silent, is_told, logged_signal, logged_wait, wait, waited, Counts,
};

/// Bytes of the header of a log, and of an entry.
pub(super) const HEADER: u64 = 40;
const ENTRY: u64 = 48;
pub(super) const ENTRIES: u64 = 84;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-71 GPU-75 GPU-85 which queues have logs", which)
        .test("GPU-72 GPU-74 GPU-86 one queue waits for another", example)
        .test(
            "FEN-98 GPU-77 GPU-83 GPU-88 what a trace tells of logs",
            || told(&Gpu::new()?),
        )
        .test(
            "GPU-78 GPU-77 what a trace tells of logs that come late",
            told_late,
        )
        .test("GPU-80 a trace tells what is lost", lost)
        .test(
            "GPU-84 a process writes what it likes into its logs",
            hostile,
        )
}

/// The memory of a log, copied by an engine: the process cannot read it.
pub(super) fn copy(gpu: &Gpu, log: u64) -> TestResult<Vec<u64>> {
    let buffer = gpu.buffer(PAGE)?;
    gpu.run(&Pm4::new().copy(buffer.at(0), log, PAGE))?;
    Ok((0..PAGE / 8).map(|word| buffer.get64(word * 8)).collect())
}

/// Value, handle and operation, and the two times of an entry.
fn entry(log: &[u64], index: u64) -> (u64, u64, [u64; 2]) {
    let word = |place: u64| log[((HEADER + index * ENTRY) / 8 + place) as usize];
    (word(0), word(1), [word(3), word(5)])
}

fn which() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let through_kernel = context.create_hw_queue()?;
    fails_with(through_kernel.log_detail(), Status::INVALID_PARAMETER)?;
    let queues = [user_queue(&context)?, user_queue(&context)?];
    let details = [queues[0].log_detail()?, queues[1].log_detail()?];
    let mut addresses: Vec<_> = details
        .iter()
        .flat_map(|detail| [detail.waits, detail.signals])
        .collect();
    for (number, (address, entries)) in addresses.iter().enumerate() {
        ensure_eq!((address % PAGE, u64::from(*entries)), (0, ENTRIES));
        let log = copy(&gpu, *address)?;
        // Nothing was logged; the type, and how many entries there are.
        ensure_eq!(log[..3], [0, number as u64 % 2 + 1, ENTRIES]);
        ensure!(log[3..].iter().all(|word| *word == 0));
    }
    addresses.sort_unstable();
    addresses.dedup();
    ensure_eq!(addresses.len(), 4);
    // They go with the queue.
    let [first, _second] = queues;
    let gone = details[0].signals.0;
    first.destroy()?;
    gpu.fails(
        &Pm4::new().write(gone, &[1]),
        opendxg::ExecutionState::DmaPageFault,
    )
}

fn example() -> TestResult {
    let gpu = Gpu::new()?;
    let contexts = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let queues = [user_queue(&contexts[0])?, user_queue(&contexts[1])?];
    let [a, b] = [
        UserQueue::connected(&gpu, &queues[0])?,
        UserQueue::connected(&gpu, &queues[1])?,
    ];
    let fence = gpu.device().create_native_fence(0)?;
    let handle = u64::from(fence.handle().0);
    let seen = gpu.buffer(PAGE)?;
    let waits = a.submit(
        &Pm4::new()
            .write(seen.at(0), &[1])
            .append(&logged_wait(&fence, 7)),
    )?;
    eventually("the wait", || seen.get64(0) == 1)?;
    // By plain packets and ODX_WRITE_LOG, which is the same.
    let signals = b.submit(
        &Pm4::new()
            .release(fence.gpu_address(), Data::Full(7), Interrupt::Confirm)
            .write_log(Log::Signals, fence.handle(), 7)
            .release(
                fence.monitored_address(),
                Data::None,
                Interrupt::AboveMonitored(7),
            ),
    )?;
    b.until(signals)?;
    a.until(waits)?;
    let waited = copy(&gpu, queues[0].log_detail()?.waits.0)?;
    let signalled = copy(&gpu, queues[1].log_detail()?.signals.0)?;
    ensure_eq!([waited[0], signalled[0]], [1, 1], "headers");
    let (value, named, [observed, unblocked]) = entry(&waited, 0);
    ensure_eq!((value, named), (7, handle | (1 << 32)));
    let (value, named, [none, executed]) = entry(&signalled, 0);
    ensure_eq!((value, named, none), (7, handle, 0));
    ensure!(
        0 < observed && observed <= unblocked,
        "{observed} {unblocked}"
    );
    ensure!(executed <= unblocked, "{executed} {unblocked}");
    // The logs go round.
    for value in 8..8 + ENTRIES {
        b.submit(&logged_signal(&fence, value, true))?;
    }
    b.run(&Pm4::new())?;
    let signalled = copy(&gpu, queues[1].log_detail()?.signals.0)?;
    ensure_eq!(signalled[0], (1 << 32) | 1);
    ensure_eq!(entry(&signalled, 0).0, 7 + ENTRIES);
    Ok(())
}

/// The entries of logs that were told, as operation, value and times.
pub(super) fn entries(events: &[Event]) -> Vec<(u64, u64, [u64; 2])> {
    let told = events.iter().filter(|event| event.name == "log_entry");
    told.map(|event| {
        let times = [event.get("observed_ns"), event.get("end_ns")];
        (event.get("operation"), event.get("value"), times)
    })
    .collect()
}

fn told(gpu: &Gpu) -> TestResult {
    let context = gpu.device().create_hw_context(0)?;
    let fence = gpu.device().create_native_fence(0)?;
    let now = || {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let before = now();
    let mut after = 0;
    let events = traced(|| {
        let queue = user_queue(&context)?;
        let user = UserQueue::connected(gpu, &queue)?;
        let event = waited(&fence, 3)?;
        user.run(
            &logged_signal(&fence, 1, true)
                .append(&logged_wait(&fence, 1))
                .append(&logged_signal(&fence, 2, true))
                .append(&logged_signal(&fence, 3, true)),
        )?;
        is_told(&event)?;
        after = now();
        // Who looks at the counters reads what nobody has interrupted for.
        user.run(&logged_signal(&fence, 4, true))?;
        Counts::of(gpu)?;
        user.run(&logged_signal(&fence, 5, true))?;
        drop(user);
        queue.destroy()?;
        Ok(())
    })?;
    let entries = entries(&events);
    let said: Vec<_> = entries.iter().map(|entry| (entry.0, entry.1)).collect();
    let mut sorted = said.clone();
    sorted.sort_unstable();
    ensure_eq!(sorted, [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 1)]);
    for (operation, value, [observed, end]) in entries {
        ensure!(
            value > 3 || (before <= end && end <= after),
            "{before} {end} {after}"
        );
        ensure_eq!(observed != 0, operation == 1);
    }
    let interrupts = events
        .iter()
        .filter(|event| event.name == "native_interrupt");
    ensure_eq!(interrupts.count(), 1);
    Ok(())
}

/// No signal comes behind the last wait before the logs are read, so that only
/// UpdateNativeFenceLogs brings its entry.
fn told_late() -> TestResult {
    let adapter = SoftAdapter::new("t-native-fences-late")?;
    adapter.set("lazy_logs", "1")?;
    adapter.set("enabled", "1")?;
    let device = adapter.device()?;
    let gpu = Gpu::on(&device, 0)?;
    told(&gpu)?;
    let context = device.create_hw_context(0)?;
    let (fence, gate) = (
        device.create_native_fence(0)?,
        device.create_native_fence(0)?,
    );
    let seen = gpu.buffer(PAGE)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::connected(&gpu, &queue)?;
    let events = traced(|| {
        let last = user.submit(
            &logged_signal(&fence, 5, true)
                .append(&logged_wait(&fence, 4))
                .write(seen.at(0), &[1])
                .append(&wait(&gate, 1)),
        )?;
        eventually("the wait is logged", || seen.get64(0) == 1)?;
        Counts::of(&gpu)?;
        gate.signal(1)?;
        user.until(last)
    })?;
    let said: Vec<_> = entries(&events)
        .iter()
        .map(|entry| (entry.0, entry.1))
        .collect();
    ensure_eq!(said, [(0, 5), (1, 4)]);
    // What is still kept back goes with the queue.
    user.run(&logged_wait(&fence, 3))?;
    drop(user);
    Ok(queue.destroy()?)
}

fn lost() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::connected(&gpu, &queue)?;
    let fence = gpu.device().create_native_fence(0)?;
    let before = Counts::of(&gpu)?.log_overflows();
    let mut places = 0;
    let events = traced(|| {
        eventually("the trace takes the doorbell away", || {
            user.doorbell().status() == DoorbellStatus::Retry
        })?;
        user.doorbell().connect()?;
        places = u64::from(queue.log_detail()?.signals.1);
        for value in 1..=3 * places {
            user.submit(&logged_signal(&fence, value, true))?;
        }
        user.run(&Pm4::new())?;
        let event = waited(&fence, 10_000)?;
        user.run(&logged_signal(&fence, 10_000, true))?;
        is_told(&event)?;
        // Waiters hear before the logs are read. Who looks at the counters reads them, too.
        Counts::of(&gpu)?;
        Ok(())
    })?;
    let lost = events.iter().find(|event| event.name == "log_lost");
    let lost = lost.ok_or("nothing is lost")?.get("count");
    // One more than was written over: it may have been half of another.
    ensure_eq!(lost, 2 * places + 2);
    ensure_eq!(entries(&events).len() as u64, places - 1);
    ensure_eq!(Counts::of(&gpu)?.log_overflows(), before + 1);
    Ok(())
}

fn hostile() -> TestResult {
    let adapter = SoftAdapter::new("t-native-fences-hostile")?;
    // The driver names queues, so that logs are read all the time.
    adapter.set("native_interrupts", "queue")?;
    adapter.set("enabled", "1")?;
    let device = adapter.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let context = device.create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::connected(&gpu, &queue)?;
    let log = queue.log_detail()?.signals.0;
    // The fence of another device, which the process may only wait for.
    let other = Gpu::on(&adapter.device()?, 0)?;
    let victim = other.device().create_native_fence(0)?;
    let own = device.create_native_fence(0)?;
    let blocked = waited(&victim, 5)?;
    let before = Counts::of(&gpu)?.ignored_entries();
    let mut random: u64 = 0x1234_5678;
    for round in 1..=u64::from(rounds(200)) {
        let mut word = || {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            random
        };
        // Any header, and entries about handles that there are not.
        let header = match word() % 2 {
            0 => (round << 32) | (word() % 90),
            _ => word(),
        };
        let mut packets = Pm4::new();
        for _ in 0..4 {
            let place = log + 8 + word() % (PAGE - 16) / 8 * 8;
            packets = packets.write64(place, word());
        }
        let event = waited(&own, round)?;
        user.run(
            &packets
                .write64(log, header)
                .append(&logged_signal(&own, round, true)),
        )?;
        // A scan, if the log says nothing that makes sense.
        is_told(&event)?;
    }
    ensure!(Counts::of(&gpu)?.ignored_entries() > before);
    is_silent(&blocked)?;
    ensure_eq!(victim.value(), 0);
    // Others go on.
    other.run(&wait(&victim, 0))?;
    victim.signal(5)?;
    is_told(&blocked)
}
