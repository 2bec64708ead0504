// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adapter that goes to D3 and comes back (GPU-28).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use opendxg::pm4::{Atomic, Compare, Pm4};
use opendxg::raw::Argument;
use opendxg::uapi::{D3DKMT_DESTROYHWQUEUE, D3DKMT_DEVICE_ERROR_REASON_GENERIC};
use opendxg::{DoorbellStatus, ExecutionState, Status};
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, one, reaches, Gpu, NODES, PAGE};
use selftests::rounds::{rounds, rounds_until};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{a_while, eventually};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-28 a connection wakes the adapter", connection)
        .test("GPU-28 a submission wakes the adapter", submission)
        .test("GPU-28 an adapter with work stays in D0", busy)
        .test("GPU-28 GPU-23 one last ring against D3", last_ring)
        .test("GPU-28 one last submission against D3", last_submission)
        .test("GPU-28 GPU-24 few doorbells against D3", few_doorbells)
        .test("GPU-28 GPU-25 notifications against D3", notified)
        .test("GPU-28 what is made in D3", made)
        .test("GPU-28 GPU-30 a queue is closed in D3", closed)
        .test("GPU-28 GPU-26 removed in D3", removed)
        .test("GPU-28 GPU-26 a device in error in D3", failed)
        .test("GPU-28 GPU-30 processes end in D3", processes)
        .test("GPU-28 power states that there are", attributes)
        .test("GPU-28 an engine with nothing to do goes to F1", f1)
        .test("GPU-28 GPU-23 one last ring against F1", last_ring_f1)
}

/// Sends an adapter to sleep that is about to have nothing to do.
#[track_caller]
fn sleep(adapter: &SoftAdapter) -> TestResult {
    eventually("D3", || adapter.set("power_state", "D3").is_ok())?;
    ensure_eq!(adapter.get("power_state")?, "D3");
    Ok(())
}

#[track_caller]
fn is_awake(adapter: &SoftAdapter) -> TestResult {
    ensure_eq!(adapter.get("power_state")?, "D0");
    Ok(())
}

/// How often an adapter has to sleep where that is the point.
const SLEEPS: u32 = 10;

/// Sends it to sleep again and again, while something else is done. Nothing but work wakes it up,
/// so that work stays lost if it is. What is done is told how often it slept so far.
fn against(adapter: &SoftAdapter, what: impl FnOnce(&dyn Fn() -> u32) -> TestResult) -> TestResult {
    let (ends, slept) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let sleeps = scope.spawn(|| -> TestResult {
            while !ends.load(Ordering::Relaxed) {
                if adapter.get("power_state")? != "D0" {
                    continue;
                }
                match adapter.set("power_state", "D3") {
                    Ok(()) => slept.fetch_add(1, Ordering::Relaxed),
                    Err(error) => {
                        ensure_eq!(error.raw_os_error(), Some(libc::EBUSY));
                        continue;
                    }
                };
            }
            Ok(())
        });
        // It sleeps no more if that thread has failed.
        let done = what(&|| match sleeps.is_finished() {
            true => u32::MAX,
            false => slept.load(Ordering::Relaxed),
        });
        ends.store(true, Ordering::Relaxed);
        sleeps.join().expect("no panic")?;
        done
    })
}

fn connection() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-connection")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    for node in NODES {
        let context = gpu.device().create_hw_context(node)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.run(&Pm4::new())?;
        for _ in 0..rounds(20) {
            ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
            sleep(&adapter)?;
            ensure_eq!(user.doorbell().status(), DoorbellStatus::Retry);
            // Once more is no change.
            sleep(&adapter)?;
            user.run(&Pm4::new())?;
            is_awake(&adapter)?;
        }
        sleep(&adapter)?;
        user.doorbell().connect()?;
        is_awake(&adapter)?;
        ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
        sleep(&adapter)?;
        adapter.set("power_state", "D0")?;
        is_awake(&adapter)?;
        // Nobody has connected it.
        ensure_eq!(user.doorbell().status(), DoorbellStatus::Retry);
        user.run(&Pm4::new())?;
    }
    gpu.works()
}

fn submission() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-submission")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    for round in 1..=rounds(20) {
        gpu.finish()?;
        sleep(&adapter)?;
        gpu.run(&Pm4::new().set32(buffer.address(), round))?;
        ensure_eq!(buffer.get32(0), round);
        is_awake(&adapter)?;
    }
    let context = gpu.device().create_hw_context(1)?;
    let queue = context.create_hw_queue()?;
    let nop = gpu.commands(&Pm4::new().nop(4))?;
    for value in 1..=u64::from(rounds(20)) {
        sleep(&adapter)?;
        queue.submit(value, nop.address(), nop.length())?;
        reaches(queue.progress(), value)?;
    }
    // Work that waits in the kernel is none, until it waits no more.
    let fence = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&fence, 1))?;
    let mark = gpu.mark()?;
    sleep(&adapter)?;
    a_while();
    ensure_eq!(adapter.get("power_state")?, "D3");
    fence.signal(1)?;
    gpu.until(mark)?;
    gpu.works()
}

fn busy() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-busy")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    let wait = Pm4::new().wait64(buffer.address(), Compare::Equal, 1, u64::MAX);
    let value = user.submit(&wait)?;
    for _ in 0..3 {
        let refused = adapter
            .set("power_state", "D3")
            .map_err(|error| error.kind());
        ensure_eq!(refused, Err(std::io::ErrorKind::ResourceBusy));
        is_awake(&adapter)?;
    }
    buffer.set64(0, 1);
    user.until(value)?;
    // The same by a context of packets.
    buffer.set64(0, 0);
    let wait = gpu.commands(&wait)?;
    gpu.context().submit(wait.address(), wait.length())?;
    let mark = gpu.mark()?;
    ensure!(
        adapter.set("power_state", "D3").is_err(),
        "it sleeps with work"
    );
    buffer.set64(0, 1);
    gpu.until(mark)?;
    sleep(&adapter)?;
    gpu.works()
}

fn last_ring() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-ring")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    against(&adapter, |slept| {
        rounds_until(rounds(2000), || slept() >= SLEEPS, || user.run(&Pm4::new()))
    })?;
    gpu.works()
}

fn last_submission() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-last")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let run = || gpu.run(&Pm4::new().nop(1));
    against(&adapter, |slept| {
        rounds_until(rounds(500), || slept() >= SLEEPS, run)
    })?;
    gpu.works()
}

fn few_doorbells() -> TestResult {
    let adapter = SoftAdapter::new("t-power-doorbells")?;
    adapter.set("doorbells", "1")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = [
        user_queue(&context)?,
        user_queue(&context)?,
        user_queue(&context)?,
    ];
    let count = rounds(100);
    against(&adapter, |_| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = queues
                .iter()
                .zip(0..)
                .map(|(queue, number)| {
                    let (gpu, add) = (
                        &gpu,
                        Pm4::new().atomic(Atomic::Add, buffer.at(number * 8), 1, 0),
                    );
                    scope.spawn(move || -> TestResult {
                        let user = UserQueue::new(gpu, queue)?;
                        (0..count).try_for_each(|_| user.run(&add))
                    })
                })
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no panic"))
        })
    })?;
    for number in 0..3 {
        ensure_eq!(buffer.get64(number * 8), u64::from(count));
    }
    gpu.works()
}

fn notified() -> TestResult {
    let adapter = SoftAdapter::new("t-power-notify")?;
    adapter.set("notify_doorbells", "1")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    against(&adapter, |_| {
        (0..rounds(500)).try_for_each(|_| user.run(&Pm4::new()))
    })?;
    gpu.works()
}

fn made() -> TestResult {
    let adapter = SoftAdapter::new("t-power-made")?;
    // Each change of page tables suspends the contexts of its process, and resumes them.
    adapter.set("idle_updates", "1")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    gpu.works()?;
    for _ in 0..rounds(10) {
        sleep(&adapter)?;
        let buffer = gpu.buffer(PAGE)?;
        ensure_eq!(adapter.get("power_state")?, "D3");
        // The paging node fills this one.
        let local = gpu.local_buffer(PAGE)?;
        sleep(&adapter)?;
        let context = gpu.device().create_hw_context(1)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        // Another process of the adapter, as far as its driver is concerned.
        Child::spawn(|| {
            let gpu = Gpu::on(&adapter.device()?, 1)?;
            ensure_eq!(adapter.get("power_state")?, "D3");
            gpu.works()
        })?
        .join()?;
        sleep(&adapter)?;
        drop(gpu.buffer(PAGE)?);
        ensure_eq!(adapter.get("power_state")?, "D3");
        user.run(
            &Pm4::new()
                .atomic(Atomic::Add, buffer.address(), 1, 0)
                .atomic(Atomic::Add, local.address(), 1, 0),
        )?;
        ensure_eq!(buffer.get64(0), 1);
        gpu.finish()?;
    }
    gpu.works()
}

fn closed() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-closed")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let raw = fixture::raw()?;
    for round in 1..=u64::from(rounds(10)) {
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.run(&Pm4::new())?;
        sleep(&adapter)?;
        let add = Pm4::new().atomic(Atomic::Add, buffer.address(), 1, 0);
        let (value, dwords) = user.packets(&add);
        user.doorbell().set_last_queued(value);
        user.write(&dwords)?;
        // It was not rung, but it is in the ring when the queue goes.
        let mut destroy = D3DKMT_DESTROYHWQUEUE::zeroed();
        destroy.hHwQueue = queue.handle().0;
        selftests::call::succeeds(&raw, &mut destroy)?;
        eventually("what was in the ring is done", || buffer.get64(0) == round)?;
    }
    gpu.works()
}

fn removed() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-removed")?;
    for _ in 0..rounds(5) {
        let gpu = Gpu::on(&adapter.device()?, 0)?;
        let fence = gpu.device().create_fence(0)?;
        let context = gpu.device().create_hw_context(1)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.run(&Pm4::new())?;
        gpu.context().wait(&one(&fence, 1))?;
        sleep(&adapter)?;
        adapter.disable()?;
        ensure_eq!(user.doorbell().status(), DoorbellStatus::Abort);
        fails_with(user.doorbell().connect(), Status::DEVICE_REMOVED)?;
        is_in(gpu.device(), ExecutionState::Stopped)?;
        ensure!(
            adapter.get("power_state").is_err(),
            "an adapter that is gone"
        );
        drop((user, fence));
        adapter.set("enabled", "1")?;
        is_awake(&adapter)?;
    }
    Ok(())
}

fn failed() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-failed")?;
    let device = adapter.device()?;
    let other = Gpu::on(&adapter.device()?, 1)?;
    let gpu = Gpu::on(&device, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.run(&Pm4::new())?;
    sleep(&adapter)?;
    device.mark_as_error(D3DKMT_DEVICE_ERROR_REASON_GENERIC)?;
    eventually("the status says abort", || {
        user.doorbell().status() == DoorbellStatus::Abort
    })?;
    fails_with(user.doorbell().connect(), Status::DEVICE_REMOVED)?;
    reaches(queue.progress(), u64::MAX)?;
    // That has woken nobody.
    ensure_eq!(adapter.get("power_state")?, "D3");
    other.works()
}

/// One exits and one is killed, with all that they have.
fn processes() -> TestResult {
    let adapter = SoftAdapter::enabled("t-power-processes")?;
    for is_killed in [false, true] {
        let (ready, go) = (Gate::new()?, Gate::new()?);
        let child = Child::spawn(|| {
            let gpu = Gpu::on(&adapter.device()?, 0)?;
            let context = gpu.device().create_hw_context(1)?;
            let queue = user_queue(&context)?;
            let user = UserQueue::new(&gpu, &queue)?;
            user.run(&Pm4::new())?;
            gpu.works()?;
            ready.open()?;
            go.wait()?;
            std::mem::forget(user);
            std::mem::forget((queue.into_raw(), gpu));
            Ok(())
        })?;
        ready.wait()?;
        sleep(&adapter)?;
        if is_killed {
            child.signal(libc::SIGKILL)?;
            child.ends_soon()?;
        } else {
            go.open()?;
            child.join()?;
        }
    }
    Gpu::on(&adapter.device()?, 0)?.works()
}

fn attributes() -> TestResult {
    let adapter = SoftAdapter::new("t-power-attributes")?;
    let errno = |value| {
        let set: std::io::Result<()> = adapter.set("power_state", value);
        set.map_err(|error| error.raw_os_error().unwrap_or(0))
    };
    ensure_eq!(errno("D3"), Err(libc::ENODEV));
    ensure!(adapter.get("power_state").is_err(), "there is no adapter");
    adapter.set("enabled", "1")?;
    is_awake(&adapter)?;
    for bad in ["0", "3", "d3", "D1", "D30", "D3D0"] {
        ensure_eq!(errno(bad), Err(libc::EINVAL));
    }
    is_awake(&adapter)?;
    // Without a client there is nothing to do.
    ensure_eq!(errno("D3\n"), Ok(()));
    ensure_eq!(adapter.get("power_state")?, "D3");
    ensure_eq!(errno(" D0 "), Ok(()));
    is_awake(&adapter)
}

/// An adapter whose engines go to F1.
fn with_f1(name: &str) -> TestResult<SoftAdapter> {
    let adapter = SoftAdapter::new(name)?;
    ensure_eq!(adapter.get("idle_f1")?, "0");
    adapter.set("idle_f1", "1")?;
    adapter.set("enabled", "1")?;
    Ok(adapter)
}

fn f1() -> TestResult {
    let adapter = with_f1("t-power-f1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let contexts = [0, 1].map(|node| gpu.device().create_hw_context(node));
    let [one, two] = contexts;
    let (one, two) = (one?, two?);
    let queues = [user_queue(&one)?, user_queue(&one)?, user_queue(&two)?];
    let buffer = gpu.buffer(PAGE)?;
    let idle = UserQueue::new(&gpu, &queues[0])?;
    let other = UserQueue::new(&gpu, &queues[1])?;
    let busy = UserQueue::new(&gpu, &queues[2])?;
    let value = busy.submit(&Pm4::new().wait64(buffer.address(), Compare::Equal, 1, u64::MAX))?;
    for _ in 0..rounds(10) {
        idle.run(&Pm4::new())?;
        other.run(&Pm4::new())?;
        for user in [&idle, &other] {
            eventually("the engine goes to F1", || {
                user.doorbell().status() == DoorbellStatus::Retry
            })?;
        }
        // The engine of the other node has something to do.
        ensure_eq!(busy.doorbell().status(), DoorbellStatus::Connected);
        is_awake(&adapter)?;
    }
    buffer.set64(0, 1);
    busy.until(value)?;
    eventually("this engine goes to F1", || {
        busy.doorbell().status() == DoorbellStatus::Retry
    })?;
    gpu.works()
}

fn last_ring_f1() -> TestResult {
    let adapter = with_f1("t-power-last-f1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    for round in 0..rounds(1000) {
        user.run(&Pm4::new())?;
        let end = std::time::Instant::now() + std::time::Duration::from_micros(round as u64 % 100);
        while std::time::Instant::now() < end {
            core::hint::spin_loop();
        }
    }
    // The same while the adapter sleeps now and then.
    against(&adapter, |_| {
        (0..rounds(300)).try_for_each(|_| user.run(&Pm4::new()))
    })?;
    gpu.works()
}
