// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters with fewer physical doorbells than queues, with one for all, and with doorbells of
//! which the driver wants to be told (GPU-18, GPU-22 to GPU-25).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{Context, DoorbellStatus, HwQueue};
use selftests::gpu::{Gpu, PAGE};
use selftests::rounds::{rounds, rounds_until};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::a_while;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-24 GPU-22 two queues on one doorbell, step by step",
            two,
        )
        .test("GPU-24 three queues on one doorbell without end", three)
        .test(
            "GPU-23 one last ring against one who takes doorbells",
            last_ring,
        )
        .test(
            "GPU-24 GPU-26 a doorbell is destroyed while it is taken away",
            destroyed,
        )
        .test("GPU-25 the driver wants to be told of work", notify)
        .test("GPU-18 a doorbell for all queues", global)
        .test("GPU-27 rings while the context is suspended", suspended)
        .test("GPU-113 how many doorbells there can be", attributes)
}

/// An adapter with so many physical doorbells, and a device on it.
fn with_doorbells(name: &str, count: u32) -> TestResult<(SoftAdapter, Gpu)> {
    let adapter = SoftAdapter::new(name)?;
    adapter.set("doorbells", &count.to_string())?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    Ok((adapter, gpu))
}

fn queues(context: &Context, count: usize) -> TestResult<Vec<HwQueue<'_>>> {
    (0..count).map(|_| user_queue(context)).collect()
}

fn two() -> TestResult {
    let (_adapter, gpu) = with_doorbells("t-doorbells-two", 1)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = queues(&context, 2)?;
    let first = UserQueue::new(&gpu, &queues[0])?;
    let second = UserQueue::new(&gpu, &queues[1])?;
    let both = || (first.doorbell().status(), second.doorbell().status());
    use DoorbellStatus::{Connected, Retry};
    ensure_eq!(both(), (Retry, Retry));
    first.doorbell().connect()?;
    ensure_eq!(both(), (Connected, Retry));
    first.run(&Pm4::new())?;
    second.doorbell().connect()?;
    ensure_eq!(both(), (Retry, Connected));
    second.run(&Pm4::new())?;
    // The first rings, finds that it is not connected any more, and connects.
    first.run(&Pm4::new())?;
    ensure_eq!(both(), (Connected, Retry));
    gpu.works()
}

fn three() -> TestResult {
    let (_adapter, gpu) = with_doorbells("t-doorbells-three", 1)?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = queues(&context, 3)?;
    let users: TestResult<Vec<UserQueue<'_>>> = queues
        .iter()
        .map(|queue| UserQueue::new(&gpu, queue))
        .collect();
    let users = users?;
    let count = rounds(200);
    std::thread::scope(|scope| -> TestResult {
        let threads: Vec<_> = users
            .iter()
            .zip(0..)
            .map(|(user, number)| {
                let add = Pm4::new().atomic(Atomic::Add, buffer.at(number * 8), 1, 0);
                scope.spawn(move || -> TestResult { (0..count).try_for_each(|_| user.run(&add)) })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    for number in 0..3 {
        ensure_eq!(buffer.get64(number * 8), count as u64);
    }
    gpu.works()
}

fn last_ring() -> TestResult {
    let (_adapter, gpu) = with_doorbells("t-doorbells-last", 1)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = queues(&context, 2)?;
    let user = UserQueue::new(&gpu, &queues[0])?;
    let taker = UserQueue::new(&gpu, &queues[1])?;
    let (ends, taken) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| -> TestResult {
        let takes = scope.spawn(|| -> TestResult {
            while !ends.load(Ordering::Relaxed) {
                // It never rings: all it does is to take the doorbell away.
                if taker.doorbell().status() == DoorbellStatus::Retry {
                    taker.doorbell().connect()?;
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        });
        let enough = || takes.is_finished() || taken.load(Ordering::Relaxed) >= 10;
        let ran = rounds_until(rounds(500), enough, || user.run(&Pm4::new()));
        ends.store(true, Ordering::Relaxed);
        takes.join().expect("no panic")?;
        ran
    })?;
    gpu.works()
}

fn notify() -> TestResult {
    let adapter = SoftAdapter::new("t-doorbells-notify")?;
    adapter.set("notify_doorbells", "1")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.run(&Pm4::new())?;
    ensure_eq!(user.doorbell().status(), DoorbellStatus::ConnectedNotify);
    a_while();
    // A ring alone is not enough.
    let (value, dwords) = user.packets(&Pm4::new());
    user.write(&dwords)?;
    user.doorbell().ring(user.written());
    a_while();
    ensure_eq!(queue.progress().value(), value - 1);
    user.doorbell().notify()?;
    user.until(value)?;
    for _ in 0..rounds(200) {
        user.run(&Pm4::new())?;
    }
    gpu.works()
}

fn global() -> TestResult {
    let adapter = SoftAdapter::new("t-doorbells-global")?;
    adapter.set("global_doorbells", "1")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = queues(&context, 4)?;
    let users: TestResult<Vec<UserQueue<'_>>> = queues
        .iter()
        .map(|queue| UserQueue::new(&gpu, queue))
        .collect();
    for user in users?.iter().cycle().take(rounds(200) as usize) {
        user.run(&Pm4::new())?;
    }
    gpu.works()
}

fn suspended() -> TestResult {
    let adapter = SoftAdapter::new("t-doorbells-suspended")?;
    // Each change of page tables suspends the contexts of the process.
    adapter.set("idle_updates", "1")?;
    adapter.set("doorbells", "1")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = queues(&context, 2)?;
    let first = UserQueue::new(&gpu, &queues[0])?;
    let second = UserQueue::new(&gpu, &queues[1])?;
    let add = Pm4::new().atomic(Atomic::Add, buffer.address(), 1, 0);
    let (ends, changes) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut added = 0;
    std::thread::scope(|scope| -> TestResult {
        let changing = scope.spawn(|| -> TestResult {
            while !ends.load(Ordering::Relaxed) {
                drop(gpu.buffer(PAGE)?);
                changes.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        let enough = || changing.is_finished() || changes.load(Ordering::Relaxed) > 2;
        let ran = rounds_until(rounds(200), enough, || {
            first.run(&add)?;
            second.run(&add)?;
            added += 2;
            Ok(())
        });
        ends.store(true, Ordering::Relaxed);
        changing.join().expect("no panic")?;
        ran
    })?;
    ensure_eq!(buffer.get64(0), added);
    gpu.works()
}

/// Who takes it must not be the one who ends it.
fn destroyed() -> TestResult {
    let (_adapter, gpu) = with_doorbells("t-doorbells-destroyed", 1)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = queues(&context, 2)?;
    let taker = UserQueue::new(&gpu, &queues[0])?;
    let (ring, control) = (gpu.buffer(PAGE)?, gpu.buffer(PAGE)?);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| -> TestResult {
        let taking = scope.spawn(|| -> TestResult {
            while !ends.load(Ordering::Relaxed) {
                taker.doorbell().connect()?;
            }
            Ok(())
        });
        // So that one of them loses its processor at any moment.
        let busy = || {
            while !ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        scope.spawn(busy);
        scope.spawn(busy);
        let done = (0..rounds(1000)).try_for_each(|_| -> TestResult {
            let doorbell = queues[1].create_doorbell(ring.allocation(), control.allocation())?;
            doorbell.connect()?;
            while doorbell.status() != DoorbellStatus::Retry {
                ensure!(!taking.is_finished(), "nobody takes it");
            }
            Ok(())
        });
        ends.store(true, Ordering::Relaxed);
        taking.join().expect("no panic")?;
        done
    })?;
    gpu.works()
}

fn attributes() -> TestResult {
    let adapter = SoftAdapter::new("t-doorbells-attributes")?;
    ensure_eq!(adapter.get("doorbells")?, "256");
    ensure_eq!(adapter.get("global_doorbells")?, "0");
    ensure_eq!(adapter.get("notify_doorbells")?, "0");
    for bad in ["0", "257", "-1", "", "x", "4294967297"] {
        ensure!(adapter.set("doorbells", bad).is_err(), "{bad} was accepted");
    }
    adapter.set("doorbells", "3")?;
    adapter.set("enabled", "1")?;
    ensure!(
        adapter.set("doorbells", "4").is_err(),
        "changed while enabled"
    );
    ensure_eq!(adapter.get("doorbells")?, "3");
    Ok(())
}
