// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may do what with the two values of a native fence (FEN-57), a cell of the table each; and
//! what a fence of the default type is for (FEN-129).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Access, Context, ExecutionState, FenceValues, NativeFence, SignalFlags, Status};
use opendxg::{EventFd, SyncFlags, Timeout};
use selftests::blocked::Blocked;
use selftests::child::{in_child, Child};
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_native_fences::{is_told, monitored_value, signal, wait, waited, Counts};

/// Flags of a private fence, and of one that may be shared.
const SHARING: [SyncFlags; 2] = [
    SyncFlags::empty(),
    SyncFlags::SHARED.union(SyncFlags::NT_SECURITY_SHARING),
];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-57 CurrentValue, the process: it reads", current_user)
        .test(
            "FEN-57 CurrentValue, the kernel: it reads and stores",
            current_kernel,
        )
        .test(
            "FEN-57 CurrentValue, engines: they read and store",
            current_engine,
        )
        .test(
            "FEN-57 MonitoredValue, the process: nothing",
            monitored_user,
        )
        .test(
            "FEN-57 MonitoredValue, the kernel: it reads and stores",
            monitored_kernel,
        )
        .test(
            "FEN-57 FEN-19 MonitoredValue and the descriptor of an NT handle",
            monitored_nt,
        )
        .test(
            "FEN-57 MonitoredValue, engines: they read",
            monitored_engine,
        )
        .test("FEN-129 it takes every call", every_call)
        .test("FEN-129 another process", another_process)
        .test("FEN-129 another adapter", another_adapter)
}

fn current_user() -> TestResult {
    let gpu = Gpu::new()?;
    for flags in SHARING {
        let fence = gpu.device().create_native_fence_with(41, flags)?;
        ensure_eq!(fence.value(), 41);
        Child::spawn(|| {
            let word = fence.value_address().cast_mut();
            // SAFETY: the page is mapped, and the process ends with the store.
            unsafe { word.write_volatile(42) };
            Ok(())
        })?
        .dies_of(libc::SIGSEGV)?;
        ensure_eq!(fence.value(), 41);
    }
    Ok(())
}

fn current_kernel() -> TestResult {
    let gpu = Gpu::new()?;
    let seen = gpu.buffer(PAGE)?;
    for flags in SHARING {
        let fence = gpu.device().create_native_fence_with(0, flags)?;
        fence.signal(41)?;
        gpu.run(&Pm4::new().copy(seen.at(0), fence.gpu_address(), 8))?;
        ensure_eq!(seen.get64(0), 41);
        // What an engine has stored, without a word.
        gpu.run(&Pm4::new().write64(fence.gpu_address(), 50))?;
        fence.wait(50)?;
        fails_with(fence.signal(49), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn current_engine() -> TestResult {
    let gpu = Gpu::new()?;
    let seen = gpu.buffer(PAGE)?;
    for flags in SHARING {
        let fence = gpu.device().create_native_fence_with(41, flags)?;
        let stores = signal(&fence, 42).copy(seen.at(0), fence.gpu_address(), 8);
        gpu.run(&stores)?;
        ensure_eq!((seen.get64(0), fence.value()), (42, 42));
    }
    Ok(())
}

/// The lines of `/proc/self/maps`: from where, to where, and of what.
fn mappings() -> TestResult<Vec<(u64, u64, String)>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let name = words.nth(4).unwrap_or_default();
        Some((number(start)?, number(end)?, name.to_owned()))
    };
    Ok(maps.lines().filter_map(line).collect())
}

/// How often a word is in what the process sees of the driver.
fn occurrences(fence: &NativeFence, value: u64) -> TestResult<usize> {
    let address = fence.value_address() as u64;
    let all = mappings()?;
    let own = all
        .iter()
        .find(|(start, end, _)| (*start..*end).contains(&address))
        .ok_or("not mapped")?;
    let memory = File::open("/proc/self/mem")?;
    let mut count = 0;
    for (start, end, name) in &all {
        if *name != own.2 {
            continue;
        }
        for page in (*start..*end).step_by(PAGE as usize) {
            let mut bytes = [0; PAGE as usize];
            // A place of a window that has no page.
            if memory.read_exact_at(&mut bytes, page).is_err() {
                continue;
            }
            let words = bytes.chunks_exact(8);
            count += words.filter(|word| *word == value.to_ne_bytes()).count();
        }
    }
    Ok(count)
}

fn monitored_user() -> TestResult {
    const CURRENT: u64 = 0x5eed_0001_0000_0001;
    const WAITED: u64 = 0x5eed_0002_0000_0002;

    let gpu = Gpu::new()?;
    for (number, flags) in (0..).zip(SHARING) {
        // The value of a fence that is gone may still be there.
        let (current, value) = (CURRENT + (number << 8), WAITED + (number << 8));
        let fence = gpu.device().create_native_fence_with(current, flags)?;
        let _event = waited(&fence, value)?;
        ensure_eq!(monitored_value(&gpu, &fence)?, value - 1);
        ensure_eq!(occurrences(&fence, current)?, 1);
        ensure_eq!(occurrences(&fence, value - 1)?, 0);
    }
    Ok(())
}

fn monitored_kernel() -> TestResult {
    let gpu = Gpu::new()?;
    for flags in SHARING {
        let fence = gpu.device().create_native_fence_with(41, flags)?;
        let first = waited(&fence, 50)?;
        ensure_eq!(monitored_value(&gpu, &fence)?, 49);
        // It is what it is to be: nothing is stored.
        let before = Counts::of(&gpu)?.monitored_updates();
        let second = waited(&fence, 60)?;
        ensure_eq!(Counts::of(&gpu)?.monitored_updates(), before);
        gpu.run(&signal(&fence, 50))?;
        is_told(&first)?;
        ensure_eq!(monitored_value(&gpu, &fence)?, 59);
        fence.signal(60)?;
        is_told(&second)?;
        ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    }
    Ok(())
}

fn monitored_nt() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence_with(41, SHARING[1])?;
    let handle = fence.share(Access::ALL)?;
    let wait = |value| {
        let waiter = handle.try_clone()?;
        Blocked::new(move || waiter.wait(value))
    };
    // Nobody waits: an engine interrupts nobody.
    let before = Counts::of(&gpu)?.interrupts();
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    gpu.run(&signal(&fence, 45))?;
    ensure_eq!(handle.fence_value()?, 45);
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    let first = wait(50)?;
    eventually("it is told", || {
        monitored_value(&gpu, &fence).is_ok_and(|value| value == 49)
    })?;
    gpu.run(&signal(&fence, 50))?;
    first.join()??;
    ensure!(Counts::of(&gpu)?.interrupts() > before, "no interrupt");
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    // The signal of a CPU, and a deadline.
    let second = wait(60)?;
    handle.signal(60)?;
    second.join()??;
    ensure_eq!(fence.value(), 60);
    let limit = Timeout::After(Duration::from_millis(20));
    ensure!(!handle.wait_until(61, limit)?);
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    Ok(())
}

fn monitored_engine() -> TestResult {
    for flags in SHARING {
        let keeps = flags | SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_native_fence_with(41, keeps)?;
        ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
        let event = waited(&fence, 50)?;
        let store = Pm4::new().write64(fence.monitored_address(), u64::MAX);
        gpu.fails(&store, ExecutionState::DmaPageFault)?;
        // Nothing was stored: the signal is told.
        fence.signal(50)?;
        is_told(&event)?;
    }
    Ok(())
}

fn every_call() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let fence = device.create_native_fence(0)?;
    let monitored = device.create_fence(0)?;
    let contexts: [Context; 2] = [device.create_context(0)?, device.create_context(1)?];
    let hw = device.create_hw_context(0)?;
    let queue = hw.create_hw_queue()?;
    let both = |value| {
        FenceValues::new()
            .with(&fence, value)
            .with(&monitored, value)
    };
    // The CPU.
    fence.signal(1)?;
    fence.wait(1)?;
    is_told(&waited(&fence, 1)?)?;
    device.signal(&both(2), SignalFlags::empty())?;
    device.wait_all(&both(2))?;
    device.wait_any(&both(2))?;
    let event = EventFd::new()?;
    device.wait_any_async(&both(2), &event)?;
    is_told(&event)?;
    fence.signal_rewind(1)?;
    fails_with(fence.signal(0), Status::INVALID_PARAMETER)?;
    // Contexts of packets.
    contexts[0].wait(&one(&fence, 3))?;
    contexts[0].signal(&one(&fence, 4))?;
    contexts[1].signal(&one(&fence, 3))?;
    reaches(&fence, 4)?;
    contexts[0].signal_broadcast(&[&contexts[1]], &both(5), SignalFlags::empty())?;
    reaches(&fence, 5)?;
    reaches(&monitored, 5)?;
    // HW queues of the kernel.
    queue.wait(&one(&fence, 6))?;
    queue.signal(&one(&fence, 7))?;
    fence.signal(6)?;
    reaches(&fence, 7)?;
    // Packets.
    gpu.run(&wait(&fence, 7).append(&signal(&fence, 8)))?;
    let filled = user_queue(&hw)?;
    let user = UserQueue::connected(&gpu, &filled)?;
    let work = user.submit(&wait(&fence, 8).append(&signal(&fence, 9)))?;
    user.until(work)?;
    ensure_eq!(fence.value(), 9);
    // Calls about older objects refuse it.
    let legacy = contexts[0].signal_legacy(&[&fence], 10);
    fails_with(legacy, Status::INVALID_PARAMETER)?;
    let legacy = contexts[0].wait_legacy(&[&fence], 10);
    fails_with(legacy, Status::INVALID_PARAMETER)
}

fn another_process() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    let event = waited(&fence, 4)?;
    in_child(|| {
        let gpu = Gpu::new()?;
        let fence = gpu
            .device()
            .open_native_fence(&handle, SyncFlags::empty())?;
        fence.signal(1)?;
        gpu.context().wait(&one(&fence, 1))?;
        gpu.context().signal(&one(&fence, 2))?;
        reaches(&fence, 2)?;
        gpu.run(&wait(&fence, 2).append(&signal(&fence, 4)))
    })?;
    is_told(&event)?;
    ensure_eq!(fence.value(), 4);
    Ok(())
}

fn another_adapter() -> TestResult {
    let gpu = Gpu::new()?;
    let flags = SHARING[1] | SyncFlags::CROSS_ADAPTER;
    let fence = gpu.device().create_native_fence_with(0, flags)?;
    let handle = fence.share(Access::ALL)?;
    let adapter = SoftAdapter::enabled("default-type")?;
    let other = Gpu::on(&adapter.device()?, 0)?;
    let there = other
        .device()
        .open_native_fence(&handle, SyncFlags::empty())?;
    let commands = gpu.commands(&wait(&fence, 1).append(&signal(&fence, 2)))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    let event = waited(&there, 2)?;
    other.run(&signal(&there, 1))?;
    gpu.until(mark)?;
    is_told(&event)?;
    there.signal(3)?;
    other.context().wait(&one(&there, 3))?;
    other.context().signal(&one(&there, 4))?;
    reaches(&fence, 4)
}
