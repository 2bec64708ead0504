// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs that are made anew and larger while somebody traces (GPU-80, GPU-81).

use opendxg::pm4::Pm4;
use opendxg::{DoorbellStatus, ExecutionState, NativeFence};
use selftests::gpu::{Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{a_while, eventually};
use selftests::trace::{traced, Event};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::logs::{copy, entries, ENTRIES, HEADER};
use crate::t_native_fences::{logged_signal, wait, Counts};

/// How many entries a log has whose entries somebody traces, and then after each overflow.
const LARGER: [u32; 3] = [340, 681, 1364];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-80 logs are larger while somebody traces", grow)
        .test(
            "GPU-81 old logs are there until what was queued is done",
            old_ones_stay,
        )
        .test(
            "GPU-81 entries are lost while old logs are there",
            lost_beside_old,
        )
        .test("GPU-81 resize under load", under_load)
}

/// The doorbell is taken away, so that the logs can be made anew.
fn is_taken(user: &UserQueue) -> TestResult {
    eventually("the doorbell is taken away", || {
        user.doorbell().status() == DoorbellStatus::Retry
    })
}

/// Submits so many signals that are logged and interrupt nobody, of values from one on.
fn signals(user: &UserQueue, fence: &NativeFence, from: u64, count: u64) -> TestResult {
    let mut last = 0;
    for first in (from..from + count).step_by(20) {
        let values = first..(first + 20).min(from + count);
        last = user.submit(&values.fold(Pm4::new(), |packets, value| {
            packets.append(&logged_signal(fence, value, false))
        }))?;
    }
    user.until(last)
}

/// How many entries were told and how many are lost.
fn told_and_lost(events: &[Event]) -> (u64, u64) {
    let lost = events.iter().filter(|event| event.name == "log_lost");
    let lost = lost.map(|event| event.get("count")).sum();
    (entries(events).len() as u64, lost)
}

fn grow() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let fence = gpu.device().create_native_fence(0)?;
    // Without a trace nothing becomes larger.
    let without = user_queue(&context)?;
    let user = UserQueue::connected(&gpu, &without)?;
    signals(&user, &fence, 1, 2 * ENTRIES)?;
    Counts::of(&gpu)?;
    a_while();
    ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
    drop(user);
    without.destroy()?;
    let queue = user_queue(&context)?;
    let user = UserQueue::connected(&gpu, &queue)?;
    let first = queue.log_detail()?;
    ensure_eq!(u64::from(first.signals.1), ENTRIES);
    let mut value = 0;
    let mut addresses = vec![first.waits.0, first.signals.0];
    let events = traced(|| {
        for count in LARGER {
            is_taken(&user)?;
            user.doorbell().connect()?;
            let detail = queue.log_detail()?;
            ensure_eq!([detail.waits.1, detail.signals.1], [count; 2]);
            let log = copy(&gpu, detail.signals.0)?;
            ensure_eq!(log[..3], [0, 2, u64::from(count)]);
            addresses.extend([detail.waits.0, detail.signals.0]);
            // Not one too many.
            signals(&user, &fence, value + 1, u64::from(count) - 1)?;
            value += u64::from(count) - 1;
            Counts::of(&gpu)?;
            a_while();
            ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
            signals(&user, &fence, value + 1, u64::from(count) + 1)?;
            value += u64::from(count) + 1;
            Counts::of(&gpu)?;
        }
        // There are no larger ones.
        a_while();
        ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
        // Those of a new queue are larger from the beginning.
        let other = user_queue(&context)?;
        ensure_eq!(other.log_detail()?.waits.1, LARGER[0]);
        Ok(())
    })?;
    let (told, lost) = told_and_lost(&events);
    ensure_eq!(told + lost, value);
    ensure_eq!(lost, 3 * 2);
    addresses.sort_unstable();
    addresses.dedup();
    ensure!(addresses.iter().all(|address| address % PAGE == 0));
    ensure!(addresses.len() >= 6, "{addresses:x?}");
    Ok(())
}

/// Commands that were queued with the old addresses.
fn old_ones_stay() -> TestResult {
    for lazy in ["0", "1"] {
        let adapter = SoftAdapter::new("t-native-fences-sizes")?;
        adapter.set("lazy_logs", lazy)?;
        adapter.set("enabled", "1")?;
        let device = adapter.device()?;
        let gpu = Gpu::on(&device, 0)?;
        let context = device.create_hw_context(0)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::connected(&gpu, &queue)?;
        let (fence, gate) = (
            device.create_native_fence(0)?,
            device.create_native_fence(0)?,
        );
        let old = queue.log_detail()?.signals.0;
        let handle = u64::from(fence.handle().0);
        // An entry by plain packets: a process may do so.
        let last = user.submit(
            &wait(&gate, 1)
                .write64(old + HEADER, 7)
                .write64(old + HEADER + 8, handle)
                .write64(old, 1),
        )?;
        let mut new = 0;
        let events = traced(|| {
            is_taken(&user)?;
            user.doorbell().connect()?;
            new = queue.log_detail()?.signals.0;
            ensure!(new != old);
            let behind = user.submit(&logged_signal(&fence, 8, false))?;
            // Looks do not end the old logs, and no third ones are made.
            Counts::of(&gpu)?;
            user.doorbell().connect()?;
            ensure_eq!(copy(&gpu, old)?[2], ENTRIES);
            gate.signal(1)?;
            user.until(last)?;
            user.until(behind)?;
            Counts::of(&gpu)?;
            Ok(())
        })?;
        let values: Vec<_> = entries(&events).iter().map(|entry| entry.1).collect();
        ensure_eq!(values, [7, 8]);
        ensure_eq!(copy(&gpu, new)?[0], 1);
        // Nobody can write there any more.
        gpu.fails(&Pm4::new().write(old, &[1]), ExecutionState::DmaPageFault)?;
    }
    Ok(())
}

/// Logs become larger once, when the old ones are gone, although nothing is lost any more then.
fn lost_beside_old() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let context = device.create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::with_ring(&gpu, &queue, 16 * PAGE)?;
    user.doorbell().connect()?;
    let (fence, first, second) = (
        device.create_native_fence(0)?,
        device.create_native_fence(0)?,
        device.create_native_fence(0)?,
    );
    let entries = u64::from(LARGER[0]);
    let signals = (1..=entries + 1).fold(wait(&first, 1), |packets, value| {
        packets.append(&logged_signal(&fence, value, false))
    });
    let last = user.submit(&signals.append(&wait(&second, 1)))?;
    traced(|| {
        is_taken(&user)?;
        // Engines log there at once, and the old logs stay until all that was queued is done.
        user.doorbell().connect()?;
        ensure_eq!(queue.log_detail()?.signals.1, LARGER[0]);
        first.signal(1)?;
        eventually("all signals", || fence.value() == entries + 1)?;
        Counts::of(&gpu)?;
        a_while();
        ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
        second.signal(1)?;
        user.until(last)?;
        Counts::of(&gpu)?;
        is_taken(&user)?;
        user.doorbell().connect()?;
        ensure_eq!(queue.log_detail()?.signals.1, LARGER[1]);
        Ok(())
    })
    .map(drop)
}

/// A process that goes on while its logs are made anew: its engine always has something to do. It
/// asks where they are when it has connected its doorbell, and stores there by plain packets, to
/// words of the header that say nothing.
fn under_load() -> TestResult {
    const RESERVED: u64 = 24;
    /// After how many signals the logs are read: no log has room for so many.
    const LOOK: u64 = 1600;

    let adapter = SoftAdapter::new("t-native-fences-load")?;
    adapter.set("lazy_logs", "1")?;
    adapter.set("enabled", "1")?;
    let device = adapter.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let context = device.create_hw_context(1)?;
    for _ in 0..rounds(10) {
        let queue = user_queue(&context)?;
        let user = UserQueue::with_ring(&gpu, &queue, 16 * PAGE)?;
        let fence = device.create_native_fence(0)?;
        user.doorbell().connect()?;
        let mut detail = queue.log_detail()?;
        let mut sizes = vec![detail.signals.1];
        let mut value = 0;
        let events = traced(|| {
            let mut last = 0;
            while sizes.last() != Some(&LARGER[2]) && value < 400 * LOOK {
                let packets = (0..40).fold(Pm4::new(), |packets, _| {
                    value += 1;
                    packets.append(&logged_signal(&fence, value, false))
                });
                last = user.submit(
                    &packets
                        .write64(detail.signals.0 + RESERVED, value)
                        .write64(detail.waits.0 + RESERVED, value),
                )?;
                // That may have connected the doorbell.
                detail = queue.log_detail()?;
                if sizes.last() != Some(&detail.signals.1) {
                    sizes.push(detail.signals.1);
                }
                if value % LOOK == 0 {
                    Counts::of(&gpu)?;
                }
            }
            user.until(last)?;
            Counts::of(&gpu)?;
            Ok(())
        })?;
        ensure_eq!(sizes.last(), Some(&LARGER[2]), "{sizes:?}");
        ensure!(sizes.is_sorted(), "{sizes:?}");
        ensure_eq!(fence.value(), value);
        // Whatever was written is told or counted, once.
        let (told, lost) = told_and_lost(&events);
        ensure_eq!(told + lost, value, "{told} and {lost}");
        let values: Vec<_> = entries(&events).iter().map(|entry| entry.1).collect();
        ensure!(values.windows(2).all(|two| two[0] < two[1]));
        drop(user);
        queue.destroy()?;
    }
    gpu.works()
}
