// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adapter is removed with clients inside: everything ends as the specification says, and only
//! what was its.

use std::time::Duration;

use opendxg::{
    Access, Device, Dxg, EventFd, ExecutionState, FenceValues, MonitoredFence, Object, Status,
    SyncFlags,
};
use selftests::blocked::Blocked;
use selftests::resource::{flags, is_revoked, locked_again, Create, PAGE_SIZE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-54 GPU-96 GPU-99 new objects are DEVICE_REMOVED, the device is stopped",
            statuses,
        )
        .test("FEN-29 FEN-104 waits end, signals change nothing", waits)
        .test(
            "FEN-104 FEN-176 a stream reads that the adapter is lost",
            streamed,
        )
        .test(
            "FEN-104 FEN-175 events signal a fence of the lost adapter",
            signalled_by_event,
        )
        .test(
            "FEN-105 a fence that keeps its value is not signalled",
            keeps_value,
        )
        .test("FEN-29 a fence that only an NT handle keeps", only_shared)
        .test(
            "FEN-105 many fences that only NT handles keep",
            many_only_shared,
        )
        .test("FEN-29 many waiters of one fence", many_waiters)
        .test(
            "MEM-115 RES-89 mappings are revoked, unlocking and destroying work",
            mappings,
        )
        .test("RES-110 NT handles stay, opening is refused", nt_handles)
        .test(
            "FEN-143 a fence of another adapter that the lost one has open",
            cross_adapter,
        )
        .test(
            "FEN-105 FEN-143 a fence of another adapter that the lost one had open",
            cross_adapter_closed,
        )
        .test(
            "FEN-143 a fence of the lost adapter that only others have open",
            only_open_elsewhere,
        )
        .test("GPU-96 other adapters do not notice", undisturbed)
}

/// How long a thing may take that was seen to have happened already.
const NOW: Duration = Duration::from_millis(0);

/// Whether the event was signalled since the last look.
fn fired(event: &EventFd) -> TestResult<bool> {
    Ok(event.wait(Some(NOW))?.is_some())
}

fn statuses() -> TestResult {
    let soft = SoftAdapter::enabled("statuses")?;
    let (adapter, device) = (soft.open()?, soft.device()?);
    let luid = adapter.luid();
    let context = device.create_context(0)?;
    let fence = device.create_shareable_fence(5)?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    ensure_eq!(device.execution_state()?, ExecutionState::Active);
    soft.disable()?;

    let removed = Status::DEVICE_REMOVED;
    ensure_eq!(device.execution_state()?, ExecutionState::Stopped);
    fails_with(adapter.create_device(), removed)?;
    fails_with(adapter.adapter_type(), removed)?;
    fails_with(adapter.description(), removed)?;
    fails_with(adapter.clock_calibration(0), removed)?;
    fails_with(adapter.feature(0), removed)?;
    fails_with(device.create_context(0), removed)?;
    fails_with(device.create_hw_context(0), removed)?;
    fails_with(device.create_fence(0), removed)?;
    fails_with(device.create_shareable_fence(0), removed)?;
    fails_with(
        device.new_resource().linear(4096).create().map(drop),
        removed,
    )?;
    fails_with(Dxg::open()?.open_adapter(luid), Status::INVALID_PARAMETER)?;
    // Handles in between are not used up.
    let next = fixture::next_handle()?;
    fails_with(device.create_fence(0), removed)?;
    ensure_eq!(fixture::next_handle()?, next + 0x40);

    // What is there can be destroyed, in any order.
    made.destroy()?;
    fence.destroy()?;
    context.destroy()?;
    drop(adapter);
    device.destroy()?;

    // The directory can have another adapter.
    soft.set("enabled", "1")?;
    soft.device()?.create_fence(0)?;
    Ok(())
}

fn waits() -> TestResult {
    let soft = SoftAdapter::enabled("waits")?;
    let device = soft.device()?;
    let shared = device.create_shareable_fence(0)?;
    let other = device.create_fence(3)?;
    let (event, point) = (EventFd::new()?, shared.point(100)?);
    let both = FenceValues::new().with(&shared, 7).with(&other, u64::MAX);
    ensure_eq!(device.wait_all_async(&both, &event)?, Status::SUCCESS);
    let sleeper = {
        let (device, fence) = (device.clone(), shared.duplicate()?);
        Blocked::new(move || device.wait_all(&FenceValues::new().with(&fence, 9)))?
    };
    ensure!(!fired(&event)? && !point.is_signalled()?);
    soft.disable()?;

    // They have ended when the removal returns.
    sleeper.join()??;
    ensure_eq!(event.wait(Some(NOW))?, Some(1));
    ensure!(point.is_signalled()?);
    for fence in [&shared, &other] {
        ensure_eq!(fence.value(), u64::MAX);
        fence.wait(u64::MAX)?;
        // No signal moves it, none is refused.
        fence.signal(4)?;
        fence.signal_rewind(4)?;
        ensure_eq!(fence.value(), u64::MAX);
    }
    let late = EventFd::new()?;
    ensure_eq!(shared.wait_async(u64::MAX, &late)?, Status::SUCCESS);
    ensure_eq!(late.wait(Some(NOW))?, Some(1));
    Ok(())
}

fn streamed() -> TestResult {
    let soft = SoftAdapter::enabled("streamed")?;
    let device = soft.device()?;
    let fence = device.create_fence(3)?;
    let (stream, at_end) = (fence.stream(3)?, fence.stream(u64::MAX)?);
    ensure_eq!(stream.wait(Some(NOW))?, None);
    ensure_eq!(at_end.wait(Some(NOW))?, Some(3));
    soft.disable()?;
    for stream in [&stream, &at_end] {
        ensure_eq!(stream.wait(Some(NOW))?, Some(u64::MAX));
        fence.signal_rewind(4)?;
        ensure_eq!(stream.wait(Some(NOW))?, None, "no signal moves it");
    }
    Ok(())
}

fn signalled_by_event() -> TestResult {
    let soft = SoftAdapter::enabled("by-event")?;
    let device = soft.device()?;
    let (moved, keeps) = (
        device.create_fence(3)?,
        device.create_fence_with(3, SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR)?,
    );
    let event = EventFd::new()?;
    for fence in [&moved, &keeps] {
        fence.signal_on_event(4, &event, false)?;
    }
    soft.disable()?;
    event.signal()?;
    keeps.wait(4)?;
    ensure_eq!((moved.value(), keeps.value()), (u64::MAX, 4));
    // What the device may still do is signal: this is no new object.
    keeps.signal_on_event(5, &event, false)?;
    moved.signal_on_event(5, &event, false)?;
    ensure_eq!((moved.value(), keeps.value()), (u64::MAX, 5));
    Ok(())
}

fn keeps_value() -> TestResult {
    let soft = SoftAdapter::enabled("keeps")?;
    let device = soft.device()?;
    let keeps = device.create_fence_with(3, SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR)?;
    let other = device.create_fence(3)?;
    let (event, other_event) = (EventFd::new()?, EventFd::new()?);
    keeps.wait_async(4, &event)?;
    other.wait_async(4, &other_event)?;
    soft.disable()?;
    ensure_eq!((keeps.value(), other.value()), (3, u64::MAX));
    ensure!(fired(&other_event)? && !fired(&event)?);
    keeps.signal(4)?;
    ensure!(fired(&event)?);
    keeps.signal_rewind(1)?;
    ensure_eq!(keeps.value(), 1);
    Ok(())
}

fn only_shared() -> TestResult {
    let soft = SoftAdapter::enabled("shared")?;
    let device = soft.device()?;
    let fence = device.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    let (event, point) = (EventFd::new()?, fence.point(2)?);
    fence.wait_async(1, &event)?;
    fence.destroy()?;
    ensure!(!fired(&event)? && !point.is_signalled()?);
    soft.disable()?;
    ensure_eq!(event.wait(Some(NOW))?, Some(1));
    ensure!(point.is_signalled()?);
    let removed = device.open_fence(&nt, SyncFlags::empty());
    fails_with(removed, Status::DEVICE_REMOVED)
}

fn many_only_shared() -> TestResult {
    const FENCES: usize = 150;
    let soft = SoftAdapter::enabled("bound")?;
    let device = soft.device()?;
    let event = EventFd::new()?;
    let mut kept = Vec::new();
    for number in 0..FENCES {
        let fence = device.create_shareable_fence(0)?;
        let nt = fence.share(Access::ALL)?;
        fence.wait_async(1, &event)?;
        fence.destroy()?;
        kept.push((number, nt));
    }
    // Some retire, among them all of one stretch. Nobody can signal those: their waits end.
    kept.retain(|(number, _)| number % 3 == 1 && !(60..130).contains(number));
    let left = kept.len() as u64;
    ensure_eq!(event.wait(Some(NOW))?, Some(FENCES as u64 - left));
    soft.disable()?;
    ensure_eq!(event.wait(Some(NOW))?, Some(left));
    Ok(())
}

fn many_waiters() -> TestResult {
    const WAITS: u64 = 5000;
    let soft = SoftAdapter::enabled("many")?;
    let fence = soft.device()?.create_fence(0)?;
    let event = EventFd::new()?;
    for value in 1..=WAITS {
        fence.wait_async(value, &event)?;
    }
    soft.disable()?;
    // What a signal leaves to the worker comes a little later.
    let mut told = 0;
    selftests::time::eventually("all are told", || {
        told += event.wait(Some(NOW)).ok().flatten().unwrap_or(0);
        told == WAITS
    })
}

fn mappings() -> TestResult {
    let soft = SoftAdapter::enabled("mappings")?;
    let device = soft.device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[2 * PAGE_SIZE, PAGE_SIZE]).run()?;
    let (raw, allocation) = (made.raw().clone(), made.first());
    let (mapping, second) = (made.lock()?, made.lock_nth(1)?);
    mapping.fill(7);
    second.fill(8);
    let address = mapping.address();
    soft.disable()?;
    is_revoked(address)?;
    is_revoked(address + PAGE_SIZE)?;
    is_revoked(second.address())?;
    let refused = locked_again(&raw, device.handle().0, allocation)?;
    ensure_eq!(refused.0, Status::DEVICE_REMOVED);
    // One lock that was there before is taken back, the other ends with the allocation.
    mapping.unlock()?;
    let second = second.leak();
    made.destroy()?;
    is_revoked(second)
}

fn nt_handles() -> TestResult {
    let soft = SoftAdapter::enabled("nt")?;
    let device = soft.device()?;
    let fence = device.create_shareable_fence(1)?;
    let resource = device.new_resource().linear(4096).nt_shared().create()?;
    let (of_fence, of_resource) = (
        fence.share(Access::ALL)?,
        resource.share(Access::RESOURCE_ALL)?,
    );
    let luid = soft.luid()?;
    let living = fixture::device()?;
    let dxg = Dxg::open()?;
    let without_device = dxg.open_nt(&of_fence)?;
    soft.disable()?;
    let removed = Status::DEVICE_REMOVED;
    // Devices of other adapters may not open them, before and after.
    for (own, status) in [(&device, removed), (&living, Status::INVALID_PARAMETER)] {
        fails_with(own.open_fence(&of_fence, SyncFlags::empty()), status)?;
        fails_with(own.open_share(&of_resource).map(drop), status)?;
    }
    fails_with(dxg.open_nt(&of_fence), removed)?;
    // Nor is there another handle beside one that belongs to no device.
    fails_with(without_device.duplicate(), removed)?;
    fails_with(fence.duplicate(), removed)?;
    // What is asked of the handle itself is answered.
    ensure_eq!(of_fence.query()?.id, fence.query()?.id);
    ensure_eq!(Dxg::open()?.resource_luid(&of_resource)?, luid);
    let again = of_fence.duplicate_same()?;
    drop((of_fence, of_resource, again));
    resource.destroy()?;
    Ok(fence.destroy()?)
}

/// A fence of `device` that other adapters may use.
fn crossing(device: &Device) -> TestResult<MonitoredFence> {
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    Ok(device.create_fence_with(0, flags)?)
}

fn cross_adapter() -> TestResult {
    let soft = SoftAdapter::enabled("cross")?;
    let (lost, living) = (soft.device()?, fixture::device()?);
    let made_there = crossing(&lost)?;
    let open_here = living.open_fence(made_there.share(Access::ALL)?, SyncFlags::empty())?;
    let made_here = crossing(&living)?;
    let open_there = lost.open_fence(made_here.share(Access::ALL)?, SyncFlags::empty())?;
    let apart = crossing(&living)?;
    let event = EventFd::new()?;
    open_here.wait_async(5, &event)?;
    made_here.wait_async(6, &event)?;
    apart.wait_async(1, &event)?;
    soft.disable()?;
    ensure_eq!(event.wait(Some(NOW))?, Some(2));
    for fence in [&made_there, &open_here, &made_here, &open_there] {
        ensure_eq!(fence.value(), u64::MAX);
    }
    ensure_eq!(apart.value(), 0);
    apart.signal(1)?;
    ensure!(fired(&event)?);
    Ok(())
}

fn cross_adapter_closed() -> TestResult {
    let soft = SoftAdapter::enabled("closed")?;
    let (lost, living) = (soft.device()?, fixture::device()?);
    let fence = crossing(&living)?;
    let nt = fence.share(Access::ALL)?;
    let (gone, still) = (
        lost.open_fence(&nt, SyncFlags::empty())?,
        lost.open_fence(&nt, SyncFlags::empty())?,
    );
    gone.destroy()?;
    still.destroy()?;
    let event = EventFd::new()?;
    fence.wait_async(2, &event)?;
    soft.disable()?;
    // No device of the lost adapter could signal it.
    ensure!(!fired(&event)? && fence.value() == 0);
    fence.signal(2)?;
    ensure!(fired(&event)?);
    // One handle of two is enough.
    soft.set("enabled", "1")?;
    let again = soft.device()?;
    let (gone, _still) = (
        again.open_fence(&nt, SyncFlags::empty())?,
        again.open_fence(&nt, SyncFlags::empty())?,
    );
    gone.destroy()?;
    fence.wait_async(3, &event)?;
    soft.disable()?;
    ensure!(fired(&event)? && fence.value() == u64::MAX);
    Ok(())
}

fn only_open_elsewhere() -> TestResult {
    let soft = SoftAdapter::enabled("elsewhere")?;
    let (lost, living) = (soft.device()?, fixture::device()?);
    let fence = crossing(&lost)?;
    let open = living.open_fence(fence.share(Access::ALL)?, SyncFlags::empty())?;
    // One value for all of them.
    fence.signal(4)?;
    ensure_eq!(open.value(), 4);
    fence.destroy()?;
    let event = EventFd::new()?;
    open.wait_async(5, &event)?;
    lost.destroy()?;
    ensure!(!fired(&event)?);
    soft.disable()?;
    ensure!(fired(&event)? && open.value() == u64::MAX);
    Ok(())
}

fn undisturbed() -> TestResult {
    let (first, second) = (
        SoftAdapter::enabled("first")?,
        SoftAdapter::enabled("second")?,
    );
    for device in [first.device()?, fixture::device()?] {
        let fence = device.create_shareable_fence(0)?;
        let nt = fence.share(Access::ALL)?;
        let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
        let mapping = made.lock()?;
        mapping.set(0, 9);
        let (event, point) = (EventFd::new()?, fence.point(1)?);
        fence.wait_async(1, &event)?;
        let sleeper = {
            let (device, fence) = (device.clone(), fence.duplicate()?);
            Blocked::new(move || device.wait_all(&FenceValues::new().with(&fence, 1)))?
        };
        let other = second.device()?;
        let lost = other.create_fence(0)?;
        second.disable()?;
        ensure_eq!(lost.value(), u64::MAX);
        sleeper.stays()?;
        ensure!(!fired(&event)? && !point.is_signalled()? && fence.value() == 0);
        ensure_eq!(mapping.get(0), 9);
        ensure_eq!(device.execution_state()?, ExecutionState::Active);
        device.open_fence(&nt, SyncFlags::empty())?.signal(1)?;
        sleeper.join()??;
        ensure!(fired(&event)? && point.is_signalled()?);
        drop(mapping);
        second.set("enabled", "1")?;
    }
    Ok(())
}
