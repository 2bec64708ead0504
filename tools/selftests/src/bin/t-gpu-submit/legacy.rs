// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutexes, semaphores, legacy fences and notifications: what they do to queues (section 2.6).

use opendxg::{Context, EventFd, SyncFlags, SyncKind, SyncObject};
use selftests::gpu::{one, Gpu};
use selftests::rounds::rounds;
use selftests::time::{a_while, soon};
use selftests::{ensure, ensure_eq, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-50 a mutex belongs to one context at a time", mutex)
        .test("FEN-50 a mutex that is owned from the start", owned)
        .test("FEN-50 a semaphore counts", semaphore)
        .test("FEN-50 a legacy fence is waited for by value", fence)
        .test("FEN-50 a notification increments its eventfd", notification)
        .test(
            "FEN-50 several objects in one call are taken together",
            together,
        )
        .test("FEN-39 a mutex keeps contexts apart", exclusion)
        .test("FEN-46 a context that owns a mutex is destroyed", abandoned)
        .test(
            "FEN-27 a handle is destroyed while it is waited for",
            destroyed,
        )
}

fn object(gpu: &Gpu, kind: SyncKind<'_>) -> TestResult<SyncObject> {
    Ok(gpu.device().create_sync_object(kind, SyncFlags::empty())?)
}

/// Two contexts of one device.
fn pair() -> TestResult<(Gpu, Gpu)> {
    let a = Gpu::new()?;
    let b = Gpu::on(a.device(), 1)?;
    Ok((a, b))
}

/// Demands that the context does not come to its next mark before `release`.
fn held(gpu: &Gpu, release: impl FnOnce() -> TestResult) -> TestResult {
    let mark = gpu.mark()?;
    a_while();
    ensure!(!gpu.is_done(mark), "not held");
    release()?;
    gpu.until(mark)
}

fn mutex() -> TestResult {
    let (a, b) = pair()?;
    let kind = SyncKind::Mutex {
        initially_owned: false,
    };
    let mutex = object(&a, kind)?;
    for _ in 0..3 {
        a.context().wait_legacy(&[&mutex], 0)?;
        a.finish()?;
        b.context().wait_legacy(&[&mutex], 0)?;
        held(&b, || Ok(a.context().signal_legacy(&[&mutex], 0)?))?;
        b.context().signal_legacy(&[&mutex], 0)?;
        b.finish()?;
    }
    Ok(())
}

fn owned() -> TestResult {
    let (a, b) = pair()?;
    let kind = SyncKind::Mutex {
        initially_owned: true,
    };
    let mutex = object(&a, kind)?;
    b.context().wait_legacy(&[&mutex], 0)?;
    held(&b, || Ok(a.context().signal_legacy(&[&mutex], 0)?))
}

fn semaphore() -> TestResult {
    let (a, b) = pair()?;
    let kind = SyncKind::Semaphore {
        max_count: 3,
        initial_count: 2,
    };
    let semaphore = object(&a, kind)?;
    a.context().wait_legacy(&[&semaphore], 0)?;
    a.context().wait_legacy(&[&semaphore], 0)?;
    a.finish()?;
    for _ in 0..3 {
        a.context().wait_legacy(&[&semaphore], 0)?;
        held(&a, || Ok(b.context().signal_legacy(&[&semaphore], 0)?))?;
    }
    // One signal releases one of two.
    b.context().wait_legacy(&[&semaphore], 0)?;
    a.context().wait_legacy(&[&semaphore], 0)?;
    let marks = (a.mark()?, b.mark()?);
    let c = Gpu::on(a.device(), 2)?;
    c.context().signal_legacy(&[&semaphore], 0)?;
    c.finish()?;
    selftests::time::eventually("one of both goes on", || {
        a.is_done(marks.0) || b.is_done(marks.1)
    })?;
    a_while();
    ensure!(a.is_done(marks.0) != b.is_done(marks.1), "both went on");
    c.context().signal_legacy(&[&semaphore], 0)?;
    a.until(marks.0)?;
    b.until(marks.1)
}

fn fence() -> TestResult {
    let (a, b) = pair()?;
    let fence = object(&a, SyncKind::Fence { initial_value: 5 })?;
    for value in [0, 4, 5] {
        a.context().wait_legacy(&[&fence], value)?;
        a.finish()?;
    }
    a.context().wait_legacy(&[&fence], 7)?;
    let mark = a.mark()?;
    b.context().signal_legacy(&[&fence], 6)?;
    b.finish()?;
    a_while();
    ensure!(!a.is_done(mark), "6 is less than 7");
    b.context().signal_legacy(&[&fence], 9)?;
    a.until(mark)
}

fn notification() -> TestResult {
    let gpu = Gpu::new()?;
    let event = EventFd::new()?;
    let kind = SyncKind::CpuNotification {
        event: Some(&event),
    };
    let notification = object(&gpu, kind)?;
    let gate = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&gate, 1))?;
    gpu.context().signal_legacy(&[&notification], 0)?;
    a_while();
    ensure_eq!(event.take()?, 0);
    gate.signal(1)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    gpu.finish()
}

fn together() -> TestResult {
    let (a, b) = pair()?;
    let kind = SyncKind::Mutex {
        initially_owned: true,
    };
    let (first, second) = (object(&a, kind)?, object(&a, kind)?);
    b.context().wait_legacy(&[&first, &second], 0)?;
    let mark = b.mark()?;
    a.context().signal_legacy(&[&first], 0)?;
    a.finish()?;
    a_while();
    ensure!(!b.is_done(mark), "the second one is owned");
    a.context().signal_legacy(&[&second], 0)?;
    b.until(mark)?;
    b.context().signal_legacy(&[&first, &second], 0)?;
    a.context().wait_legacy(&[&second, &first], 0)?;
    a.finish()
}

/// Contexts that each read a number, wait a while and write one more: without the mutex some of
/// them would be lost.
fn exclusion() -> TestResult {
    use opendxg::pm4::Pm4;
    let gpu = Gpu::new()?;
    let kind = SyncKind::Mutex {
        initially_owned: false,
    };
    let mutex = object(&gpu, kind)?;
    // Two words for the owners to disagree about.
    let shared = gpu.buffer(4096)?;
    let gpus: TestResult<Vec<Gpu>> = (0..4)
        .map(|index| Gpu::on(gpu.device(), index % 3))
        .collect();
    let gpus = gpus?;
    let own: TestResult<Vec<_>> = (1..=4u32)
        .map(|index| {
            let lock = Pm4::new()
                .write(shared.address(), &[index])
                .delay(50)
                .write(shared.at(4), &[index])
                .delay(50)
                // Whoever finds another one there writes that down.
                .wait32(
                    shared.address(),
                    opendxg::pm4::Compare::Equal,
                    index,
                    u32::MAX,
                )
                .wait32(shared.at(4), opendxg::pm4::Compare::Equal, index, u32::MAX);
            gpu.commands(&lock)
        })
        .collect();
    let own = own?;
    for _ in 0..rounds(20) {
        for (gpu, commands) in gpus.iter().zip(&own) {
            gpu.context().wait_legacy(&[&mutex], 0)?;
            gpu.submit(commands)?;
            gpu.context().signal_legacy(&[&mutex], 0)?;
        }
    }
    gpus.iter().try_for_each(Gpu::finish)
}

/// What nobody can release any more keeps its waiters, and no more than them.
fn abandoned() -> TestResult {
    let (a, b) = pair()?;
    let kind = SyncKind::Mutex {
        initially_owned: false,
    };
    let mutex = object(&a, kind)?;
    let owner: Context = a.device().create_context(0)?;
    owner.wait_legacy(&[&mutex], 0)?;
    owner.signal(&one(a.done(), 1))?;
    selftests::gpu::reaches(a.done(), 1)?;
    owner.destroy()?;
    b.context().wait_legacy(&[&mutex], 0)?;
    // Another context may release it.
    let mark = b.mark()?;
    a.context().signal_legacy(&[&mutex], 0)?;
    b.until(mark)
}

fn destroyed() -> TestResult {
    let (a, b) = pair()?;
    let fence = object(&a, SyncKind::Fence { initial_value: 0 })?;
    let same = fence.duplicate()?;
    a.context().wait_legacy(&[&fence], 1)?;
    let mark = a.mark()?;
    fence.destroy()?;
    b.context().signal_legacy(&[&same], 1)?;
    a.until(mark)
}
