// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits and signals of the CPU, and when an engine interrupts (FEN-67 to FEN-72, FEN-84 to
//! FEN-87, FEN-91, FEN-102, FEN-173).

use std::os::fd::AsFd;

use opendxg::pm4::{Data, Interrupt, Pm4};
use opendxg::{Access, EventFd, FdInfo, FenceValues, Status, SyncFlags};
use rustix::event::epoll;
use selftests::child::in_child;
use selftests::gpu::{one, reaches, Gpu};
use selftests::rounds::rounds;
use selftests::time::{a_while, eventually, soon};
use selftests::uring::Ring;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use crate::t_native_fences::{is_silent, is_told, monitored_value, signal, waited, Counts};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-67 an interrupt only above MonitoredValue", exact)
        .test("FEN-68 nobody waits: no interrupt", silent)
        .test(
            "GPU-45 FEN-67 plain packets interrupt in the same way",
            plain,
        )
        .test("FEN-14 FEN-20 FEN-23 waits of the CPU", waits)
        .test("FEN-31 FEN-32 FEN-33 signals of the CPU", cpu_signals)
        .test(
            "FEN-55 FEN-56 FEN-69 MonitoredValue follows the waits",
            follows,
        )
        .test("FEN-84 how often MonitoredValue is stored", updates)
        .test("FEN-86 FEN-89 the waiters of a process that dies", dies)
        .test("FEN-87 a waiter of another process", other_process)
        .test(
            "FEN-81 without the interrupt packet nobody is woken",
            no_timer,
        )
        .test("FEN-82 a pulse is no loss", pulse)
        .test(
            "FEN-70 FEN-79 an interrupt that releases nobody is counted",
            spurious,
        )
        .test(
            "FEN-90 an epoll set in an io_uring, which asks the driver again",
            nested,
        )
        .test("FEN-24 FEN-16 rewinding", rewinding)
        .test("FEN-106 lists of 64 fences", lists)
        .test("FEN-176 a stream of values", stream)
        .test("FEN-173 what an adapter counts", counted)
}

fn counted() -> TestResult {
    const NAMES: [&str; 7] = [
        "interrupts",
        "legacy-interrupts",
        "waits-added",
        "waits-released",
        "waits-cancelled",
        "wakes",
        "bad-driver-handles",
    ];
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let (first, second) = (
        device.create_native_fence(0)?,
        device.create_native_fence(0)?,
    );
    let monitored = device.create_fence(0)?;
    let before = Counts::of(&gpu)?;
    let since = |counts: &Counts| NAMES.map(|name| counts.get(name) - before.get(name));
    let [one, two] = [waited(&first, 1)?, waited(&first, 2)?];
    // For both of two, and for what never comes.
    let both = EventFd::new()?;
    let elements = FenceValues::new().with(&first, 2).with(&second, 1);
    device.wait_all_async(&elements, &both)?;
    let _never = waited(&second, 9)?;
    ensure_eq!(since(&Counts::of(&gpu)?), [0, 0, 5, 0, 0, 0, 0]);
    gpu.run(&signal(&first, 2))?;
    is_told(&one)?;
    is_told(&two)?;
    eventually("all are released", || {
        Counts::of(&gpu).is_ok_and(|counts| since(&counts) == [1, 0, 5, 3, 0, 2, 0])
    })?;
    gpu.run(&signal(&second, 1).signal(monitored.gpu_address(), 1))?;
    is_told(&both)?;
    second.destroy()?;
    eventually("nobody waits", || {
        Counts::of(&gpu).is_ok_and(|counts| since(&counts) == [2, 1, 5, 4, 1, 3, 0])
    })?;
    // Who may not read debugfs sees the same in his own descriptor.
    let node = fixture::raw()?;
    let info = FdInfo::read(node.fd()?)?;
    let line = info.get("dxg-native-fences").ok_or("no line")?;
    let counts = Counts::of(&gpu)?;
    for name in NAMES {
        let pair = format!(" {name}={}", counts.get(name));
        ensure!(line.contains(&pair), "{line} without {pair}");
    }
    Ok(())
}

fn exact() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(41)?;
    let event = waited(&fence, 42)?;
    ensure_eq!(monitored_value(&gpu, &fence)?, 41);
    let before = Counts::of(&gpu)?.interrupts();
    gpu.run(&signal(&fence, 41))?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    is_silent(&event)?;
    gpu.run(&signal(&fence, 42))?;
    is_told(&event)?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before + 1);
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    gpu.run(&signal(&fence, 43))?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before + 1);
    Ok(())
}

fn silent() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let before = Counts::of(&gpu)?;
    let mut value = 0;
    for _ in 0..u64::from(rounds(100)) {
        let mut commands = Pm4::new();
        for _ in 0..100 {
            value += 1;
            commands = commands.signal_native(fence.gpu_address(), value);
        }
        gpu.run(&commands)?;
    }
    let after = Counts::of(&gpu)?;
    ensure_eq!(fence.value(), value);
    ensure_eq!(after.interrupts(), before.interrupts());
    ensure_eq!(after.monitored_updates(), before.monitored_updates());
    Ok(())
}

fn plain() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = waited(&fence, 7)?;
    let before = Counts::of(&gpu)?.interrupts();
    let plain = |value| {
        Pm4::new()
            .release(fence.gpu_address(), Data::Full(value), Interrupt::Confirm)
            .release(
                fence.monitored_address(),
                Data::None,
                Interrupt::AboveMonitored(value),
            )
    };
    gpu.run(&plain(6))?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    is_silent(&event)?;
    gpu.run(&plain(7))?;
    is_told(&event)?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before + 1);
    Ok(())
}

fn waits() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(1)?;
    for value in [0, 1] {
        is_told(&waited(&fence, value)?)?;
        fence.wait(value)?;
    }
    let events = [2, 3, 3, u64::MAX].map(|value| waited(&fence, value));
    gpu.run(&signal(&fence, 3))?;
    for event in &events[..3] {
        is_told(event.as_ref().map_err(|error| error.to_string())?)?;
    }
    let last = events[3].as_ref().map_err(|error| error.to_string())?;
    is_silent(last)?;
    gpu.run(&signal(&fence, u64::MAX))?;
    is_told(last)
}

fn cpu_signals() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(5)?;
    let event = waited(&fence, 9)?;
    let before = Counts::of(&gpu)?.interrupts();
    fence.signal(8)?;
    ensure_eq!(fence.value(), 8);
    is_silent(&event)?;
    fails_with(fence.signal(7), Status::INVALID_PARAMETER)?;
    ensure_eq!(fence.value(), 8);
    fence.signal_rewind(7)?;
    fence.signal(9)?;
    is_told(&event)?;
    // FEN-34: a pulse of the CPU.
    let event = waited(&fence, 20)?;
    fence.signal(20)?;
    fence.signal_rewind(1)?;
    is_told(&event)?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    // A context signals and waits, too.
    gpu.context().signal(&one(&fence, 30))?;
    reaches(&fence, 30)?;
    gpu.context().wait(&one(&fence, 31))?;
    let mark = gpu.mark()?;
    ensure!(!gpu.is_done(mark));
    fence.signal(31)?;
    gpu.until(mark)
}

fn follows() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let monitored = || monitored_value(&gpu, &fence);
    let far = waited(&fence, u64::MAX)?;
    ensure_eq!(monitored()?, u64::MAX - 1);
    let near = waited(&fence, 10)?;
    ensure_eq!(monitored()?, 9);
    let first = waited(&fence, 1)?;
    ensure_eq!(monitored()?, 0);
    gpu.run(&signal(&fence, 1))?;
    is_told(&first)?;
    eventually("MonitoredValue of the next one", || {
        monitored().ok() == Some(9)
    })?;
    fence.signal(10)?;
    is_told(&near)?;
    ensure_eq!(monitored()?, u64::MAX - 1);
    drop(far);
    fence.signal(u64::MAX)?;
    ensure_eq!(monitored()?, u64::MAX);
    Ok(())
}

fn updates() -> TestResult {
    const MANY: u64 = 200;

    let gpu = Gpu::new()?;
    let event = EventFd::new()?;
    let count = || Counts::of(&gpu).map(|counts| counts.monitored_updates());
    let up = gpu.device().create_native_fence(0)?;
    let before = count()?;
    for value in 5..5 + MANY {
        up.wait_async(value, &event)?;
    }
    ensure_eq!(count()?, before + 1);
    let down = gpu.device().create_native_fence(0)?;
    let before = count()?;
    for value in (5..5 + MANY).rev() {
        down.wait_async(value, &event)?;
    }
    ensure_eq!(count()?, before + MANY);
    // One signal releases all, and MonitoredValue is stored once for that.
    let before = count()?;
    down.signal(5 + MANY)?;
    ensure!(count()? > before);
    up.signal(5 + MANY)?;
    ensure_eq!(monitored_value(&gpu, &up)?, u64::MAX);
    Ok(())
}

fn dies() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    in_child(|| {
        let gpu = Gpu::new()?;
        let fence = gpu
            .device()
            .open_native_fence(&handle, SyncFlags::empty())?;
        let event = waited(&fence, 5)?;
        ensure_eq!(monitored_value(&gpu, &fence)?, 4);
        // It ends with the wait.
        core::mem::forget((event, fence, gpu));
        Ok(())
    })?;
    eventually("MonitoredValue without waiters", || {
        monitored_value(&gpu, &fence).ok() == Some(u64::MAX)
    })?;
    let before = Counts::of(&gpu)?.interrupts();
    gpu.run(&signal(&fence, 5))?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    Ok(())
}

fn other_process() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    let before = Counts::of(&gpu)?.interrupts();
    let child = selftests::child::Child::spawn(|| {
        let gpu = Gpu::new()?;
        let fence = gpu
            .device()
            .open_native_fence(&handle, SyncFlags::empty())?;
        fence.wait(5)?;
        ensure_eq!(fence.value(), 5);
        Ok(())
    })?;
    eventually("its wait", || monitored_value(&gpu, &fence).ok() == Some(4))?;
    gpu.run(&signal(&fence, 5))?;
    child.join()?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before + 1);
    Ok(())
}

/// Whoever stores the value and asks for no interrupt wakes nobody: not by the end of the commands,
/// and not by time.
fn no_timer() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = waited(&fence, 5)?;
    gpu.run(&Pm4::new().write64(fence.gpu_address(), 5))?;
    ensure_eq!(fence.value(), 5);
    a_while();
    is_silent(&event)?;
    // The next signal that asks for one.
    gpu.run(&signal(&fence, 5))?;
    is_told(&event)
}

fn pulse() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = waited(&fence, 10)?;
    gpu.run(
        &Pm4::new()
            .signal_native(fence.gpu_address(), 10)
            .signal_native(fence.gpu_address(), 3),
    )?;
    // Seen or not: the next one is.
    gpu.run(&signal(&fence, 10))?;
    is_told(&event)?;
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    Ok(())
}

/// A value that is taken back before anybody looks: the wait goes on, and that was counted.
fn spurious() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    for _ in 0..rounds(20) {
        let event = waited(&fence, 10)?;
        let before = Counts::of(&gpu)?.get("spurious");
        gpu.run(&signal(&fence, 10).append(&signal(&fence, 3)))?;
        let mut is_released = false;
        eventually("released, or counted", || {
            is_released |= event.take().is_ok_and(|count| count != 0);
            let spurious = Counts::of(&gpu).map(|counts| counts.get("spurious") - before);
            is_released || spurious.is_ok_and(|count| count == 1)
        })?;
        if !is_released {
            gpu.run(&signal(&fence, 10))?;
            is_told(&event)?;
        }
        gpu.run(&signal(&fence, 0))?;
    }
    Ok(())
}

/// Who waits runs inside of the wake-up, and takes locks of his own.
fn nested() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = EventFd::new()?;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let level = epoll::EventFlags::IN;
    epoll::add(&set, &event, epoll::EventData::new_u64(1), level)?;
    let mut ring = Ring::new()?;
    for round in 1..=50 {
        fence.wait_async(round, &event)?;
        ring.poll_add(set.as_fd(), round)?;
        ensure_eq!(ring.completed()?, None);
        if round % 2 == 0 {
            gpu.run(&signal(&fence, round))?;
        } else {
            fence.signal(round)?;
        }
        ensure_eq!(ring.wait()?.0, round);
        // State first, then the wake-up.
        ensure_eq!(fence.value(), round);
        ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
        ensure_eq!(event.take()?, 1);
    }
    Ok(())
}

fn rewinding() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(2)?;
    fence.signal_rewind(1)?;
    let event = waited(&fence, 2)?;
    gpu.run(&signal(&fence, 0))?;
    is_silent(&event)?;
    ensure_eq!(monitored_value(&gpu, &fence)?, 1);
    gpu.run(&signal(&fence, 2))?;
    is_told(&event)?;
    // FEN-16: seen once is seen.
    let other = gpu.device().create_native_fence(0)?;
    let both = FenceValues::new().with(&fence, 3).with(&other, 1);
    let event = EventFd::new()?;
    gpu.device().wait_all_async(&both, &event)?;
    gpu.run(&signal(&fence, 3))?;
    eventually("the first one", || {
        monitored_value(&gpu, &fence).ok() == Some(u64::MAX)
    })?;
    fence.signal_rewind(0)?;
    gpu.run(&signal(&other, 1))?;
    is_told(&event)
}

fn lists() -> TestResult {
    let gpu = Gpu::new()?;
    let fences = (0..64)
        .map(|_| gpu.device().create_native_fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    let mut all = FenceValues::new();
    for fence in &fences {
        all = all.with(fence, 1);
    }
    let event = EventFd::new()?;
    gpu.device().wait_all_async(&all, &event)?;
    let (cpu, engine) = fences.split_at(32);
    for fence in cpu {
        fence.signal(1)?;
    }
    is_silent(&event)?;
    let mut commands = Pm4::new();
    for fence in engine {
        commands = commands.signal_native(fence.gpu_address(), 1);
    }
    gpu.run(&commands)?;
    is_told(&event)?;
    for fence in &fences {
        ensure_eq!(monitored_value(&gpu, fence)?, u64::MAX);
    }
    Ok(())
}

fn stream() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(3)?;
    let stream = fence.stream(3)?;
    for value in [4, 9, 2] {
        gpu.run(&signal(&fence, value))?;
        ensure_eq!(stream.wait(Some(soon()))?, Some(value));
    }
    Ok(())
}
