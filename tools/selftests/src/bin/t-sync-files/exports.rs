// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points that may become sync files, and when these signal (FEN-160 to FEN-163).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Barrier;

use opendxg::pm4::{Compare, Pm4};
use opendxg::{Context, SignalFlags, Status, SyncFile};
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::sync_file::{driver, ends_with, merged, status, Foreign, PENDING, SIGNALLED};
use selftests::time::{a_while, soon};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-161 a value that is there has signalled", reached)
        .test("FEN-161 FEN-162 a queued signal signals the file", queued)
        .test(
            "FEN-161 behind commands that are carried out",
            behind_commands,
        )
        .test("FEN-161 a signal of a hardware queue", hw_queue)
        .test(
            "FEN-161 behind a sync file of another driver",
            behind_a_foreign_file,
        )
        .test("FEN-161 FEN-162 many points of one signal", many)
        .test("FEN-161 a signal in front of very many others", long_queue)
        .test(
            "FEN-161 the last part of a signal of several contexts",
            broadcast,
        )
        .test(
            "FEN-161 a wait that held at the export does not block it",
            latched,
        )
        .test(
            "FEN-161 a wait for a signal of another context that is bounded",
            through_contexts,
        )
        .test(
            "FEN-162 a value that goes down takes nothing back",
            taken_back,
        )
        .test("FEN-162 Linux knows the file", known)
        .slow(
            "FEN-161 FEN-162 exports while the signal is carried out",
            std::time::Duration::from_secs(120),
            races,
        )
        .slow(
            "FEN-164 files signal while memory is taken back",
            std::time::Duration::from_secs(120),
            reclaim,
        )
}

fn reached() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(7)?;
    for value in [0, 1, 7] {
        let file = gpu.device().create_sync_file(&fence, value)?;
        ensure_eq!(status(&file)?, SIGNALLED, "{value}");
    }
    fails_with(
        gpu.device().create_sync_file(&fence, 8),
        Status::NOT_SUPPORTED,
    )?;
    fence.signal(u64::MAX)?;
    let file = gpu.device().create_sync_file(&fence, u64::MAX)?;
    ensure_eq!(status(&file)?, SIGNALLED);
    // The progress of a queue, which only the queue signals.
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    queue.submit(3, nop.address(), nop.length())?;
    reaches(queue.progress(), 3)?;
    let file = gpu.device().create_sync_file(queue.progress(), 3)?;
    ensure_eq!(status(&file)?, SIGNALLED);
    Ok(())
}

fn queued() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    gpu.context().signal(&one(&fence, 5))?;
    gpu.context().signal(&one(&fence, 9))?;
    // The first signal that is enough counts.
    let low = gpu.device().create_sync_file(&fence, 3)?;
    let exact = gpu.device().create_sync_file(&fence, 5)?;
    let high = gpu.device().create_sync_file(&fence, 6)?;
    fails_with(
        gpu.device().create_sync_file(&fence, 10),
        Status::NOT_SUPPORTED,
    )?;
    for file in [&low, &exact, &high] {
        ensure_eq!(status(file)?, PENDING);
    }
    gate.signal()?;
    for file in [&low, &exact, &high] {
        ends_with(file, SIGNALLED)?;
    }
    reaches(&fence, 9)
}

/// Who sees the file signalled sees what the commands before it have written.
fn behind_commands() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let fence = gpu.device().create_fence(0)?;
    let commands = gpu.commands(
        &Pm4::new()
            .wait32(buffer.address(), Compare::Equal, 1, u32::MAX)
            .write(buffer.at(8), &[5]),
    )?;
    gpu.submit(&commands)?;
    gpu.context().signal(&one(&fence, 1))?;
    let file = gpu.device().create_sync_file(&fence, 1)?;
    ensure_eq!(status(&file)?, PENDING);
    buffer.set32(0, 1);
    ensure!(file.wait(Some(soon()))?);
    ensure_eq!(buffer.get32(8), 5);
    ensure_eq!(fence.value(), 1);
    ensure_eq!(status(&file)?, SIGNALLED);
    gpu.works()
}

fn hw_queue() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let fence = gpu.device().create_fence(0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = context.create_hw_queue()?;
    let commands =
        gpu.commands(&Pm4::new().wait32(buffer.address(), Compare::Equal, 1, u32::MAX))?;
    queue.submit(1, commands.address(), commands.length())?;
    queue.signal(&one(&fence, 4))?;
    let file = gpu.device().create_sync_file(&fence, 4)?;
    ensure_eq!(status(&file)?, PENDING);
    buffer.set32(0, 1);
    ends_with(&file, SIGNALLED)
}

fn behind_a_foreign_file() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let fence = gpu.device().create_fence(0)?;
    let commands = gpu.commands(&Pm4::new().write(buffer.address(), &[1]))?;
    let gates = [Foreign::new()?, Foreign::new()?];
    for gate in &gates {
        gpu.context().wait_sync_file(gate.file()?)?;
        gpu.submit(&commands)?;
    }
    gpu.context().signal(&one(&fence, 1))?;
    let file = gpu.device().create_sync_file(&fence, 1)?;
    gates[1].signal()?;
    a_while();
    ensure_eq!(status(&file)?, PENDING);
    ensure_eq!(buffer.get32(0), 0);
    gates[0].signal()?;
    ends_with(&file, SIGNALLED)?;
    ensure_eq!(buffer.get32(0), 1);
    Ok(())
}

fn many() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    gpu.context().signal(&one(&fence, 1))?;
    let files: Result<Vec<SyncFile>, _> = (0..200)
        .map(|_| gpu.device().create_sync_file(&fence, 1))
        .collect();
    let mut files = files?;
    files.truncate(150);
    gate.signal()?;
    for file in &files {
        ends_with(file, SIGNALLED)?;
    }
    Ok(())
}

fn long_queue() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    for value in 1..=500 {
        gpu.context().signal(&one(&fence, value))?;
    }
    let last = gpu.device().create_sync_file(&fence, 500)?;
    let first = gpu.device().create_sync_file(&fence, 1)?;
    gate.signal()?;
    for file in [&last, &first] {
        ends_with(file, SIGNALLED)?;
    }
    ensure_eq!(fence.value(), 500);
    Ok(())
}

/// As long as another context could hold it back it is not given out.
fn broadcast() -> TestResult {
    let gpu = Gpu::new()?;
    let (fence, held) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let other = gpu.device().create_context(1)?;
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    other.wait(&one(&held, 1))?;
    gpu.context()
        .signal_broadcast(&[&other], &one(&fence, 1), SignalFlags::empty())?;
    fails_with(
        gpu.device().create_sync_file(&fence, 1),
        Status::NOT_SUPPORTED,
    )?;
    held.signal(1)?;
    let mut file = gpu.device().create_sync_file(&fence, 1);
    selftests::time::eventually("the other context has come so far", || {
        file = gpu.device().create_sync_file(&fence, 1);
        file.is_ok()
    })?;
    let file = file?;
    ensure_eq!(status(&file)?, PENDING);
    gate.signal()?;
    ends_with(&file, SIGNALLED)
}

/// The same queue with and without an export: a wait, whose condition is taken back before it is
/// its turn.
fn latched() -> TestResult {
    for exported in [false, true] {
        let gpu = Gpu::new()?;
        let (condition, fence) = (gpu.device().create_fence(1)?, gpu.device().create_fence(0)?);
        let gate = Foreign::new()?;
        gpu.context().wait_sync_file(gate.file()?)?;
        gpu.context().wait(&one(&condition, 1))?;
        gpu.context().signal(&one(&fence, 1))?;
        let file = exported
            .then(|| gpu.device().create_sync_file(&fence, 1))
            .transpose()?;
        condition.signal_rewind(0)?;
        gate.signal()?;
        match file {
            Some(file) => ends_with(&file, SIGNALLED)?,
            None => {
                a_while();
                ensure_eq!(fence.value(), 0, "the wait does not block");
                fails_with(
                    gpu.device().create_sync_file(&fence, 1),
                    Status::NOT_SUPPORTED,
                )?;
                condition.signal(1)?;
            }
        }
        reaches(&fence, 1)?;
    }
    Ok(())
}

/// Each context waits for the one before it. The first one decides.
fn through_contexts() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let fence = device.create_fence(0)?;
    let gate = Foreign::new()?;
    let contexts: Result<Vec<Context>, _> = (0..8)
        .map(|index| device.create_context(index % 3))
        .collect();
    let contexts = contexts?;
    contexts[0].wait_sync_file(gate.file()?)?;
    for (value, context) in (0u64..).zip(&contexts) {
        if value != 0 {
            context.wait(&one(&fence, value))?;
        }
        context.signal(&one(&fence, value + 1))?;
    }
    let file = device.create_sync_file(&fence, 8)?;
    ensure_eq!(status(&file)?, PENDING);
    gate.signal()?;
    ends_with(&file, SIGNALLED)?;
    ensure_eq!(fence.value(), 8);
    Ok(())
}

fn taken_back() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    gpu.context().signal(&one(&fence, 5))?;
    gpu.context().signal(&one(&fence, 2))?;
    let file = gpu.device().create_sync_file(&fence, 4)?;
    gate.signal()?;
    ends_with(&file, SIGNALLED)?;
    gpu.finish()?;
    ensure_eq!(fence.value(), 2);
    fence.signal_rewind(0)?;
    ensure_eq!(status(&file)?, SIGNALLED);
    fails_with(
        gpu.device().create_sync_file(&fence, 4),
        Status::NOT_SUPPORTED,
    )
}

fn known() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let (gate, other) = (Foreign::new()?, Foreign::new()?);
    gpu.context().wait_sync_file(gate.file()?)?;
    gpu.context().signal(&one(&fence, 1))?;
    let file = gpu.device().create_sync_file(&fence, 1)?;
    ensure_eq!(driver(&file)?, "opendxg");
    let both = merged(&file, other.file()?)?;
    ensure!(!file.is_signalled()?);
    gate.signal()?;
    ensure!(file.wait(Some(soon()))?);
    ensure_eq!(status(&both)?, PENDING);
    other.signal()?;
    ends_with(&both, SIGNALLED)?;
    // A name for it is all that there is of the driver then.
    ensure_eq!(status(&file)?, SIGNALLED);
    Ok(())
}

/// A signal that is queued and on its way is never missing.
fn races() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let delay = gpu.commands(&Pm4::new().delay(5))?;
    for value in 1..=u64::from(rounds(2000)) {
        gpu.submit(&delay)?;
        gpu.context().signal(&one(&fence, value))?;
        let file = gpu.device().create_sync_file(&fence, value)?;
        ensure!(file.wait(Some(soon()))?, "{value}");
        ensure_eq!(status(&file)?, SIGNALLED, "{value}");
        ensure!(fence.is_reached(value), "{value}");
    }
    Ok(())
}

/// Whoever takes memory back may wait for a sync file. So nothing on the way to its signal waits
/// for memory: kernels with lockdep check that in this test, others show that all of them signal.
///
/// Both begin together, and files go on until the caches were dropped once beside them.
fn reclaim() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let (start, is_over) = (Barrier::new(2), AtomicBool::new(false));
    let turns = AtomicU32::new(0);
    let signal = |round| -> TestResult {
        let commands = gpu.commands(&Pm4::new().write(buffer.address(), &[round]))?;
        gpu.submit(&commands)?;
        let mark = gpu.mark()?;
        let file = gpu.device().create_sync_file(gpu.done(), mark)?;
        ends_with(&file, SIGNALLED)?;
        ensure_eq!(buffer.get32(0), round);
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> TestResult {
            start.wait();
            while !is_over.load(Ordering::Relaxed) {
                std::fs::write("/proc/sys/vm/drop_caches", "3")?;
                turns.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        start.wait();
        let least = rounds(200);
        let signalled = (1..)
            .take_while(|&round| {
                round <= least || turns.load(Ordering::Relaxed) == 0 && !other.is_finished()
            })
            .try_for_each(signal);
        is_over.store(true, Ordering::Relaxed);
        other.join().map_err(|_| "a panic")??;
        signalled
    })?;
    let turns = turns.into_inner();
    println!("# caches were dropped {turns} times");
    ensure!(turns > 0, "caches were never dropped");
    Ok(())
}
