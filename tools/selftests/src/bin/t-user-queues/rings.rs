// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work through rings, and what processes may write there (GPU-13 to GPU-21, GPU-29, GPU-32).

use std::sync::atomic::{AtomicBool, Ordering};

use opendxg::pm4::{Atomic, Compare, Pm4};
use opendxg::{DoorbellStatus, ExecutionState, Status};
use rustix::mm::{mprotect, MprotectFlags};
use selftests::gpu::{is_in, one, reaches, Gpu, NODES, PAGE};
use selftests::rounds::rounds;
use selftests::time::{a_while, eventually};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-19 GPU-20 a doorbell is disconnected at first",
            creation,
        )
        .test("GPU-21 GPU-29 work by a ring", work)
        .test("GPU-14 a ring is written round and round", round)
        .test("GPU-32 GPU-17 one ring, then silence", silence)
        .test("GPU-23 rings before the doorbell is connected", before)
        .test(
            "GPU-29 work that was not rung is idle although pending",
            not_rung,
        )
        .test(
            "GPU-15 a bad write pointer stops this queue only",
            bad_pointer,
        )
        .test("GPU-16 a ring that is rewritten all the time", rewritten)
        .test("GPU-31 nothing is submitted by the kernel", no_submission)
        .test(
            "GPU-13 the allocations stay as long as the doorbell",
            destroyed,
        )
        .test("FEN-127 others wait for the progress fence", waited)
        .test("GPU-19 another ring after the first", another)
}

fn creation() -> TestResult {
    let gpu = Gpu::new()?;
    for node in NODES {
        let context = gpu.device().create_hw_context(node)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        let bell = user.doorbell();
        ensure_eq!(bell.status(), DoorbellStatus::Retry);
        ensure_eq!(bell.last_queued(), 0);
        bell.set_last_queued(7);
        ensure_eq!(bell.last_queued(), 7);
        bell.set_last_queued(0);
        // It can be rung, and nothing happens.
        bell.ring(1);
        let page = (bell.status_address() as usize & !0xfff) as *mut core::ffi::c_void;
        // SAFETY: must be refused; if not, the page only becomes writable.
        let writable = unsafe { mprotect(page, 4096, MprotectFlags::READ | MprotectFlags::WRITE) };
        ensure_eq!(writable, Err(rustix::io::Errno::ACCESS));
        bell.connect()?;
        ensure_eq!(bell.status(), DoorbellStatus::Connected);
        // Once more is no change.
        bell.connect()?;
        ensure_eq!(bell.status(), DoorbellStatus::Connected);
    }
    Ok(())
}

fn work() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    for node in NODES {
        let context = gpu.device().create_hw_context(node)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        buffer.set64(0, 0);
        for count in 1..=10 {
            user.run(&Pm4::new().atomic(Atomic::Add, buffer.address(), 1, 0))?;
            ensure_eq!(buffer.get64(0), count);
        }
        ensure_eq!(queue.progress().value(), 10);
        let read = || user.read_pointer() == user.written();
        eventually("all of the ring is done", read)?;
        ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
    }
    gpu.works()
}

fn round() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    for bytes in [PAGE, 4 * PAGE] {
        let queue = user_queue(&context)?;
        let user = UserQueue::with_ring(&gpu, &queue, bytes)?;
        let mut last = 0;
        buffer.set64(0, 0);
        let count = rounds(2000);
        for round in 0..count {
            // Of different lengths, so that packets go round the end in every way.
            let packets = Pm4::new().nop(1 + (round % 7) as usize).atomic(
                Atomic::Add,
                buffer.address(),
                1,
                0,
            );
            last = user.submit(&packets)?;
        }
        user.until(last)?;
        ensure_eq!(buffer.get64(0), count as u64);
        ensure!(user.written() > bytes / 4, "the ring was not gone round");
    }
    gpu.works()
}

fn silence() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    let nothing = Pm4::new();
    for round in 0..rounds(1000) {
        let value = user.submit(&nothing)?;
        // Until the engine is asleep, or while it still looks, or in between.
        user.until(value)?;
        let end = std::time::Instant::now() + std::time::Duration::from_micros(round as u64 % 100);
        while std::time::Instant::now() < end {
            core::hint::spin_loop();
        }
    }
    gpu.works()
}

fn before() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    for _ in 0..rounds(50) {
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        let (value, dwords) = user.packets(&Pm4::new());
        user.write(&dwords)?;
        // It goes to a page of nothing.
        user.doorbell().ring(user.written());
        std::thread::scope(|scope| -> TestResult {
            let connected = scope.spawn(|| user.doorbell().connect());
            // This ring may go to either page, and nobody rings after it.
            user.doorbell().ring(user.written());
            connected.join().expect("no panic")?;
            Ok(())
        })?;
        user.until(value)?;
    }
    gpu.works()
}

fn not_rung() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.run(&Pm4::new())?;
    a_while();
    // The engine sleeps: nobody tells it of this.
    let (value, dwords) = user.packets(&Pm4::new());
    user.doorbell().set_last_queued(value);
    user.write(&dwords)?;
    a_while();
    ensure_eq!(queue.progress().value(), value - 1);
    ensure_eq!(user.doorbell().last_queued(), value);
    user.doorbell().submit(user.written())?;
    user.until(value)
}

fn bad_pointer() -> TestResult {
    let other = Gpu::node(1)?;
    for pointer in [1025, u64::MAX, 1 << 40, 4] {
        let gpu = Gpu::new()?;
        let context = gpu.device().create_hw_context(1)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.run(&Pm4::new())?;
        user.control().set64(0, pointer);
        user.doorbell().ring(pointer);
        reaches(queue.progress(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::DmaFault)?;
        other.run(&Pm4::new().nop(1))?;
    }
    Ok(())
}

fn rewritten() -> TestResult {
    let other = Gpu::node(1)?;
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    let ends = AtomicBool::new(false);
    user.doorbell().connect()?;
    std::thread::scope(|scope| -> TestResult {
        scope.spawn(|| {
            let mut random = 0x1234_5678_u64;
            while !ends.load(Ordering::Relaxed) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let word = random as u32;
                user.ring().set32(random % 1024 * 4, word);
                match random % 64 {
                    0 => user.control().set64(0, random % 1024),
                    1 => user.control().set64(64, random),
                    2 => user.doorbell().ring(random),
                    _ => {}
                }
            }
        });
        let worked = (0..rounds(100)).try_for_each(|_| other.run(&Pm4::new().nop(1)));
        ends.store(true, Ordering::Relaxed);
        worked
    })?;
    other.works()
}

fn no_submission() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let commands = gpu.commands(&Pm4::new().nop(4))?;
    let refused = Status::INVALID_PARAMETER;
    fails_with(
        queue.submit(1, commands.address(), commands.length()),
        refused,
    )?;
    fails_with(queue.signal(&one(&fence, 1)), refused)?;
    fails_with(queue.wait(&one(&fence, 1)), refused)?;
    let user = UserQueue::new(&gpu, &queue)?;
    fails_with(
        queue.submit(1, commands.address(), commands.length()),
        refused,
    )?;
    user.run(&Pm4::new())
}

fn destroyed() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let buffer = gpu.buffer(PAGE)?;
    let (ring, control) = (gpu.buffer(PAGE)?, gpu.buffer(PAGE)?);
    let bell = queue.create_doorbell(ring.allocation(), control.allocation())?;
    let packets = Pm4::new()
        .atomic(Atomic::Add, buffer.address(), 1, 0)
        .wait64(buffer.at(8), Compare::Equal, 1, u64::MAX)
        .atomic(Atomic::Add, buffer.address(), 1, 0)
        .signal_native(queue.progress().gpu_address(), 1);
    ring.write(0, packets.words());
    control.set64(0, packets.len() as u64);
    bell.submit(packets.len() as u64)?;
    eventually("the first packet", || buffer.get64(0) == 1)?;
    drop((ring, control));
    a_while();
    buffer.set64(8, 1);
    reaches(queue.progress(), 1)?;
    ensure_eq!(buffer.get64(0), 2);
    gpu.works()?;
    bell.destroy()?;
    gpu.works()
}

fn waited() -> TestResult {
    let gpu = Gpu::node(0)?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    let wait = Pm4::new().wait64(buffer.address(), Compare::Equal, 1, u64::MAX);
    let value = user.submit(&wait)?;
    gpu.context().wait(&one(queue.progress(), value))?;
    let mark = gpu.mark()?;
    a_while();
    ensure!(
        !gpu.is_done(mark),
        "the wait for the user's queue has passed"
    );
    buffer.set64(0, 1);
    gpu.until(mark)?;
    user.until(value)
}

fn another() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    for bytes in [PAGE, 16 * PAGE, 256 * PAGE] {
        let user = UserQueue::with_ring(&gpu, &queue, bytes)?;
        for _ in 0..3 {
            user.run(&Pm4::new())?;
        }
    }
    ensure_eq!(queue.progress().value(), 9);
    gpu.works()
}
