// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences of a GPU whose CMP reaches them in the paging process (MapToGpuSystemProcess,
//! FEN-119). The driver stores by those addresses, and fails if they do not lead to the words. It
//! loses the adapter if they do not do so until a fence is destroyed.

use opendxg::{Access, Counters, EventFd, Luid, NativeFence, Status, SyncFlags};
use selftests::child::in_child;
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{eventually, soon};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_native_fences::caps::works;
use crate::t_native_fences::{signal, wait};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    [
        ("vram4", "direct"),
        ("vram4", "shadow"),
        ("doc2", "direct"),
        ("uma", "shadow"),
    ]
    .into_iter()
    .fold(suite, |suite, (profile, values)| {
        suite.test(
            format!("FEN-119 both words are in the paging process, {profile}, {values}"),
            move || mapped(profile, values),
        )
    })
    .test("FEN-119 nothing is mapped for a GPU that does not ask", not)
    .test("FEN-119 FEN-65 no more pages than addresses", full)
    .test("FEN-119 FEN-121 a fence of two adapters", across)
    .test("FEN-119 the adapter is reset, and sleeps", reset)
    .test("FEN-119 the adapter is removed with open fences", removed)
}

/// An adapter whose CMP reaches native fences in the paging process.
fn adapter(name: &str) -> TestResult<SoftAdapter> {
    let adapter = SoftAdapter::new(&format!("system-process-{name}"))?;
    adapter.set("map_to_gpu_system_process", "1")?;
    Ok(adapter)
}

fn enabled(name: &str) -> TestResult<SoftAdapter> {
    let adapter = adapter(name)?;
    adapter.set("enabled", "1")?;
    Ok(adapter)
}

/// How many pages the paging process shows.
fn pages(luid: Luid) -> TestResult<u64> {
    let counts = Counters::of_adapter(luid)?;
    Ok(counts.get("system-pages").copied().ok_or("no count")?)
}

fn mapped(profile: &str, values: &str) -> TestResult {
    let adapter = adapter(profile)?;
    if profile != "vram4" {
        adapter.set("local_memory", "0")?;
    }
    adapter.set("profile", profile)?;
    adapter.set("monitored_values", values)?;
    adapter.set("enabled", "1")?;
    let luid = adapter.luid()?;
    let device = adapter.device()?;
    let gpu = Gpu::on(&device, 0)?;
    ensure_eq!(pages(luid)?, 0);
    {
        // Private fences are together in two pages.
        let fences = [
            device.create_native_fence(1)?,
            device.create_native_fence(7)?,
        ];
        ensure_eq!(pages(luid)?, 2);
        for fence in &fences {
            works(&device, fence)?;
        }
        // What may be shared has its own, and so has what packets alone use.
        let shared = device.create_shareable_native_fence(3)?;
        ensure_eq!(pages(luid)?, 4);
        works(&device, &shared)?;
        let intra = device.create_intra_gpu_fence(SyncFlags::empty())?;
        ensure_eq!(pages(luid)?, 6);
        let again = shared.share(Access::ALL)?;
        in_child(|| {
            let device = adapter.device()?;
            let there = device.open_native_fence(&again, SyncFlags::empty())?;
            ensure_eq!(pages(luid)?, 6);
            works(&device, &there)?;
            let own = device.create_native_fence(1)?;
            ensure_eq!(pages(luid)?, 8);
            works(&device, &own)
        })?;
        eventually("the end of the other process", || {
            pages(luid).is_ok_and(|pages| pages == 6)
        })?;
        drop(intra);
        ensure_eq!(pages(luid)?, 4);
        let [first, second] = fences;
        drop(first);
        ensure_eq!(pages(luid)?, 4);
        works(&device, &second)?;
        drop(second);
        ensure_eq!(pages(luid)?, 2);
        // An NT handle keeps a fence.
        drop(shared);
        ensure_eq!(pages(luid)?, 2);
    }
    ensure_eq!(pages(luid)?, 0);
    // Many pages, and those of others stay where they are.
    let fences = (0..40)
        .map(|value| device.create_shareable_native_fence(value))
        .collect::<Result<Vec<_>, _>>()?;
    ensure_eq!(pages(luid)?, 80);
    let kept: Vec<NativeFence> = fences.into_iter().step_by(3).collect();
    ensure_eq!(pages(luid)?, 28);
    for fence in &kept {
        works(&device, fence)?;
    }
    drop(kept);
    ensure_eq!(pages(luid)?, 0);
    // The adapter is not lost: it still runs something.
    works(&device, &device.create_native_fence(0)?)?;
    drop(gpu);
    adapter.remove()
}

fn not() -> TestResult {
    let adapter = SoftAdapter::enabled("no-system-process")?;
    ensure_eq!(adapter.get("map_to_gpu_system_process")?, "0");
    let device = adapter.device()?;
    let _fences = [
        device.create_native_fence(1)?,
        device.create_shareable_native_fence(1)?,
    ];
    ensure_eq!(pages(adapter.luid()?)?, 0);
    Ok(())
}

/// Four pages for each process, also for the paging process.
fn full() -> TestResult {
    let adapter = adapter("full")?;
    adapter.set("fence_addresses", "1048576-1064960")?;
    adapter.set("enabled", "1")?;
    let luid = adapter.luid()?;
    let device = adapter.device()?;
    in_child(|| {
        let other = adapter.device()?;
        let _fences = [
            other.create_shareable_native_fence(0)?,
            other.create_native_fence(0)?,
        ];
        ensure_eq!(pages(luid)?, 4);
        // This process has room, but there is none left.
        in_child(|| {
            let device = adapter.device()?;
            fails_with(device.create_native_fence(0), Status::NO_MEMORY)?;
            fails_with(device.create_shareable_native_fence(0), Status::NO_MEMORY)
        })?;
        ensure_eq!(pages(luid)?, 4);
        Ok(())
    })?;
    eventually("the end of the other process", || {
        pages(luid).is_ok_and(|pages| pages == 0)
    })?;
    let fence = device.create_native_fence(1)?;
    ensure_eq!(pages(luid)?, 2);
    fence.signal(2)?;
    ensure_eq!(fence.value(), 2);
    Ok(())
}

/// Each adapter has a MonitoredValue of its own. CurrentValue is one word for both.
fn across() -> TestResult {
    let (one, two) = (enabled("one")?, enabled("two")?);
    let (maker, user) = (one.device()?, two.device()?);
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    let fence = maker.create_native_fence_with(0, flags)?;
    ensure_eq!((pages(one.luid()?)?, pages(two.luid()?)?), (2, 0));
    let handle = fence.share(Access::ALL)?;
    let there = user.open_native_fence(&handle, SyncFlags::empty())?;
    ensure_eq!((pages(one.luid()?)?, pages(two.luid()?)?), (2, 2));
    let (here, elsewhere) = (Gpu::on(&maker, 0)?, Gpu::on(&user, 0)?);
    let waiting = elsewhere.commands(&wait(&there, 3))?;
    elsewhere.submit(&waiting)?;
    let mark = elsewhere.mark()?;
    fence.signal(2)?;
    here.run(&wait(&fence, 2).append(&signal(&fence, 3)))?;
    elsewhere.until(mark)?;
    elsewhere.run(&signal(&there, 4))?;
    fence.wait(4)?;
    drop((handle, there));
    ensure_eq!((pages(one.luid()?)?, pages(two.luid()?)?), (2, 0));
    fence.signal(5)?;
    ensure_eq!(fence.value(), 5);
    drop(fence);
    ensure_eq!((pages(one.luid()?)?, pages(two.luid()?)?), (0, 0));
    Ok(())
}

fn reset() -> TestResult {
    let adapter = enabled("reset")?;
    let luid = adapter.luid()?;
    let lost = adapter.device()?;
    let before = lost.create_native_fence(1)?;
    adapter.open()?.reset(None)?;
    let device = adapter.device()?;
    works(&device, &device.create_native_fence(1)?)?;
    eventually("sleep", || adapter.set("power_state", "D3").is_ok())?;
    // Page tables change while no context runs.
    let fences = (0..20)
        .map(|value| device.create_shareable_native_fence(value))
        .collect::<Result<Vec<_>, _>>()?;
    ensure_eq!(adapter.get("power_state")?, "D3");
    for fence in &fences {
        let value = fence.value() + 1;
        fence.signal(value)?;
        ensure_eq!(fence.value(), value);
    }
    works(&device, &fences[19])?;
    drop((fences, before, lost));
    ensure_eq!(pages(luid)?, 0);
    works(&device, &device.create_native_fence(1)?)
}

fn removed() -> TestResult {
    let adapter = enabled("removed")?;
    let luid = adapter.luid()?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let fence = gpu.device().create_native_fence(0)?;
    let shared = gpu.device().create_shareable_native_fence(0)?;
    let handle = shared.share(Access::ALL)?;
    let event = EventFd::new()?;
    fence.wait_async(5, &event)?;
    let commands = gpu.commands(&wait(&shared, 7))?;
    gpu.submit(&commands)?;
    adapter.disable()?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    ensure_eq!([fence.value(), shared.value()], [u64::MAX; 2]);
    ensure!(gpu.device().create_native_fence(0).is_err());
    // They are there until the driver has destroyed the fences.
    ensure_eq!(pages(luid)?, 4);
    drop(fence);
    ensure_eq!(pages(luid)?, 2);
    drop((handle, shared));
    ensure_eq!(pages(luid)?, 0);
    drop((commands, gpu));
    // The last object of the adapter is gone, and so is the paging process.
    eventually("the end of the adapter", || pages(luid).is_err())?;
    adapter.remove()
}
