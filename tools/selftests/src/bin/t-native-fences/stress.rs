// SPDX-License-Identifier: MIT OR Apache-2.0
//! No wake-up is lost: rounds that each end with one signal and then silence (FEN-83, M1 to M6,
//! M14, M16, M19).

use std::thread;

use opendxg::pm4::Pm4;
use opendxg::{Device, EventFd, NativeFence};
use selftests::gpu::Gpu;
use selftests::rounds::rounds;
use selftests::time::soon;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::{logged_signal, monitored_value, signal, wait};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-83 FEN-80 one last signal of an engine, then silence",
            last_signal,
        )
        .test(
            "FEN-83 FEN-85 waits that are given up beside signals",
            cancelled,
        )
        .test(
            "GPU-53 CPU signals beside queues that begin to wait",
            queues,
        )
}

/// A wait that blocks is over.
fn is_released(event: &EventFd, fence: &NativeFence, value: u64) -> TestResult {
    match event.wait(Some(soon()))? {
        Some(1) => Ok(()),
        other => Err(format!("wait for {value}: {other:?} at {}", fence.value()).into()),
    }
}

fn last_signal() -> TestResult {
    last_signals(&Gpu::new()?, rounds(2000))
}

/// The same on a device of another adapter, which may interrupt in another way.
pub(crate) fn last_signal_on(device: &Device) -> TestResult {
    last_signals(&Gpu::on(device, 0)?, rounds(200))
}

/// Two engines signal, two threads wait, each round for the last value of one of them.
fn last_signals(gpu: &Gpu, last: u32) -> TestResult {
    let contexts = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let queues = [user_queue(&contexts[0])?, user_queue(&contexts[1])?];
    let users = [
        UserQueue::connected(gpu, &queues[0])?,
        UserQueue::connected(gpu, &queues[1])?,
    ];
    let fences = [
        gpu.device().create_native_fence(0)?,
        gpu.device().create_native_fence(0)?,
    ];
    let last = u64::from(last);
    let rounds_of = |waiter: usize| -> TestResult {
        let event = EventFd::new()?;
        let (user, fence) = (&users[waiter], &fences[waiter]);
        for round in 1..=last {
            // The engine may be before the wait, in the middle of it, or behind it.
            let packets = match round % 3 {
                0 => logged_signal(fence, round, true),
                1 => Pm4::new()
                    .delay(1)
                    .append(&logged_signal(fence, round, true)),
                _ => {
                    logged_signal(fence, round - 1, true).append(&logged_signal(fence, round, true))
                }
            };
            user.submit(&packets)?;
            fence.wait_async(round, &event)?;
            is_released(&event, fence, round)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| rounds_of(1));
        let own = rounds_of(0);
        let other = other.join().map_err(|_| "the thread has panicked")?;
        own.and(other)
    })?;
    for (user, fence) in users.iter().zip(&fences) {
        user.run(&Pm4::new())?;
        ensure_eq!(fence.value(), last);
        ensure_eq!(monitored_value(gpu, fence)?, u64::MAX);
    }
    Ok(())
}

/// Waits for values that do not come are given up while an engine signals.
fn cancelled() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.doorbell().connect()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = EventFd::new()?;
    for round in 1..=u64::from(rounds(300)) {
        user.submit(&signal(&fence, round))?;
        // Given up at once, or satisfied: the point closes its wait.
        let point = fence.point(round + 1)?;
        fence.wait_async(round, &event)?;
        drop(point);
        is_released(&event, &fence, round)?;
    }
    user.run(&Pm4::new())?;
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    Ok(())
}

/// The CPU signals what a queue is just about to wait for.
fn queues() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.doorbell().connect()?;
    let fence = gpu.device().create_native_fence(0)?;
    for round in 1..=u64::from(rounds(1000)) {
        let value = user.submit(&wait(&fence, round))?;
        for _ in 0..round % 50 {
            core::hint::spin_loop();
        }
        fence.signal(round)?;
        user.until(value)?;
        ensure!(fence.value() == round);
    }
    Ok(())
}
