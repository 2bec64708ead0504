// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes are told about memory (MEM-38, MEM-39).

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use opendxg::uapi::*;
use opendxg::{raw::Argument, EvictFlags, MemoryGroup, ResidentFlags, Status, TrimNotices};
use rustix::io::Errno;
use selftests::call::refused;
use selftests::child::{Child, Gate};
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::offers::squeeze;

/// At least so long between two records with bytes.
const INTERVAL: Duration = Duration::from_millis(10);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-38 notices that are refused", refusals)
        .test(
            "MEM-38 MEM-39 who uses more than the budget is told, and only what is true",
            to_budget,
        )
        .test("MEM-38 another budget is told", budgets)
        .slow(
            "MEM-39 told when memory becomes short, and while it is",
            Duration::from_secs(120),
            short,
        )
        .test("MEM-38 it ends with the devices of the process", ends)
}

fn refusals() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let mut good = opendxg_memory_notice::zeroed();
    (good.device, good.kind) = (device.handle().0, OPENDXG_NOTICE_TRIM);
    let luid = device.adapter().luid();
    (good.adapter_luid_low, good.adapter_luid_high) = (luid.low, luid.high);
    type Spoil = fn(&mut opendxg_memory_notice);
    let spoilt: [(&str, Spoil); 6] = [
        ("no device", |arg| arg.device = 0),
        ("kind 0", |arg| arg.kind = 0),
        ("kind 4", |arg| arg.kind = 4),
        ("reserved", |arg| arg.reserved = 1),
        ("another adapter", |arg| arg.adapter_luid_low ^= 1 << 30),
        ("another half", |arg| arg.adapter_luid_high ^= 1 << 30),
    ];
    for (what, spoil) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)
            .map_err(|error| format!("{what}: {error}"))?;
    }
    Ok(())
}

/// The bytes of the next notice that has some.
fn bytes(notices: &TrimNotices) -> TestResult<u64> {
    loop {
        let notice = notices.wait(Some(soon()))?.ok_or("no notice")?;
        ensure!(!(notice.periodic && notice.restart), "{notice:?}");
        if let Some(bytes) = notice.to_budget {
            return Ok(bytes);
        }
    }
}

/// Another process keeps memory for itself, which leaves this one above its budget.
fn to_budget() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let local = || adapter.video_memory(MemoryGroup::Local);
    let whole = local()?;
    let size = whole.budget * 3 / 4 / PAGE * PAGE;
    let large = gpu.allocate_local(size)?;
    let made = gpu
        .paging()
        .make_resident(&[&large], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), made.value()?)?;
    let notices = gpu.device().trim_notices()?;
    let (asked, done) = (Gate::new()?, Gate::new()?);
    let most = whole.available_for_reservation;
    let child = Child::spawn(|| {
        let adapter = fixture::adapter()?;
        let reserve = |bytes| adapter.reserve_video_memory(MemoryGroup::Local, bytes);
        asked.wait_for_parent()?;
        reserve(most)?;
        done.open()?;
        asked.wait_for_parent()?;
        // Nobody reads meanwhile.
        for step in (1..=50).rev() {
            reserve(most - step * PAGE)?;
        }
        done.open()?;
        asked.wait_for_parent()?;
        reserve(most - 3 * PAGE - 1)?;
        done.open()?;
        asked.wait_for_parent()
    })?;
    let step = || -> TestResult {
        asked.open()?;
        done.wait_for_child(&child)
    };
    step()?;
    let before = Instant::now();
    let mut told = bytes(&notices)?;
    ensure_eq!(told, size - local()?.budget);
    ensure!(told >= size - (whole.budget - most), "{told:#x}");
    step()?;
    // The last one is told, with or without some of those before.
    let last = size - local()?.budget;
    let mut first = true;
    while told != last || first {
        told = bytes(&notices)?;
        ensure!(!first || before.elapsed() >= INTERVAL, "too early");
        first = false;
    }
    // Whole pages.
    step()?;
    let over = size - local()?.budget;
    ensure!(over % PAGE != 0, "{over:#x}");
    ensure_eq!(bytes(&notices)?, over.next_multiple_of(PAGE));
    // Nobody has to trim: a larger request still gets what there is.
    gpu.device().evict(&[&large], EvictFlags::empty())?;
    asked.open()?;
    child.join()?;
    selftests::time::eventually("the reservation is gone", || {
        local().is_ok_and(|memory| memory.budget == whole.budget)
    })?;
    gpu.works()
}

fn budgets() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let whole = adapter.video_memory(MemoryGroup::Local)?;
    let notices = gpu.device().budget_notices()?;
    let (asked, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let adapter = fixture::adapter()?;
        for bytes in [PAGE, 7 * PAGE] {
            asked.wait_for_parent()?;
            adapter.reserve_video_memory(MemoryGroup::Local, bytes)?;
            done.open()?;
        }
        asked.wait_for_parent()
    })?;
    for bytes in [PAGE, 7 * PAGE] {
        asked.open()?;
        done.wait_for_child(&child)?;
        let told = notices.wait(Some(soon()))?;
        ensure_eq!(told, Some(whole.budget - bytes));
    }
    // What this process reserves is in its budget. Those of others go with them.
    adapter.reserve_video_memory(MemoryGroup::Local, PAGE)?;
    child.kill()?;
    ensure_eq!(notices.wait(Some(soon()))?, Some(whole.budget));
    ensure_eq!(notices.wait(Some(Duration::ZERO))?, None);
    adapter.reserve_video_memory(MemoryGroup::Local, 0)?;
    Ok(())
}

fn short() -> TestResult {
    let gpu = Gpu::new()?;
    // Others cannot have what their budgets allow.
    let _large = gpu.local_buffer(8 << 20)?;
    let notices = gpu.device().trim_notices()?;
    let mut restarts = 0;
    let end = Instant::now() + soon();
    loop {
        // Somebody lacks room.
        squeeze()?;
        let Some(notice) = notices.wait(Some(Duration::from_millis(500)))? else {
            ensure!(Instant::now() < end, "never told again");
            continue;
        };
        ensure_eq!(notice.to_budget, None);
        ensure!(notice.restart != notice.periodic, "{notice:?}");
        if notice.periodic {
            break;
        }
        restarts += 1;
    }
    ensure_eq!(restarts, 1, "how often it began");
    Ok(())
}

fn ends() -> TestResult {
    // In a process of its own, which has no other device.
    selftests::child::in_child(|| {
        let (first, second) = (fixture::device()?, fixture::device()?);
        let notices = first.trim_notices()?;
        let budgets = second.budget_notices()?;
        first.destroy()?;
        ensure_eq!(budgets.wait(Some(Duration::ZERO))?, None);
        second.destroy()?;
        let over = |error: opendxg::Error| error.status() == Status::INVALID_HANDLE;
        loop {
            match notices.wait(Some(soon())) {
                // What was not read before.
                Ok(Some(_)) => {}
                Ok(None) => return Err("it never ends".into()),
                Err(error) if over(error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        fails_with(
            budgets.wait(Some(soon())).map(|_| ()),
            Status::INVALID_HANDLE,
        )?;
        let mut byte = [0; 4];
        let short = rustix::io::read(budgets.as_fd(), &mut byte);
        ensure_eq!(short, Err(Errno::INVAL));
        Ok(())
    })
}
