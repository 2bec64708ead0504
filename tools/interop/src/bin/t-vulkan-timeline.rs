// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timeline semaphores of a Vulkan driver and fences follow each other, in both directions.

use std::os::fd::AsFd;
use std::time::Duration;

use ash::vk::ExternalSemaphoreFeatureFlags as Features;
use ash::vk::ExternalSemaphoreHandleTypeFlags as HandleType;
use interop::gpu::Gpu as Vulkan;
use interop::semaphore::Semaphore;
use interop::timeline::{pass_on, shared_as, Idle, Timeline, What};
use opendxg::{MonitoredFence, TimelinePoint};
use selftests::child::in_child;
use selftests::drm::Drm;
use selftests::gpu::{one, reaches, Gpu};
use selftests::stress::Figure;
use selftests::sync_file::Foreign;
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

fn main() {
    // The driver is slow to open, on an emulated processor.
    let limit = Duration::from_secs(120);
    let figure = Figure::new(1_000, 100_000);
    Suite::new("vulkan-timeline")
        .slow(
            "FEN-175 the driver gives its timelines to nobody, so sync files or a program have to",
            limit,
            || in_child(shared_with),
        )
        .stress(
            "FEN-161 FEN-175 hand-overs to a timeline semaphore and back by sync files, none lost",
            limit,
            figure,
            |figure| in_child(|| by_sync_files(figure.rounds().into())),
        )
        .stress(
            "FEN-20 FEN-176 hand-overs by a program that waits before the signals, none lost",
            limit,
            figure,
            |figure| in_child(|| by_waits(figure.rounds().into())),
        )
        .run()
}

/// What Documentation/event-loops.md says of this driver. Those on DRM export a drm_syncobj.
fn shared_with() -> TestResult {
    let vulkan = Vulkan::open()?;
    println!("# {}", vulkan.name());
    for kind in [HandleType::OPAQUE_FD, HandleType::SYNC_FD] {
        ensure_eq!(shared_as(&vulkan, kind), Features::empty(), "{kind:?}");
    }
    Ok(())
}

/// A value that a queue of ours will signal becomes the semaphore's, and comes back to another
/// fence by the timeline of a third driver. No thread of this process waits in between, and all
/// ways are laid before anything is signalled.
fn by_sync_files(count: u64) -> TestResult {
    let vulkan = Vulkan::open()?;
    let drm = Drm::find()?;
    let third = drm.timeline()?;
    let gpu = Gpu::new()?;
    let (from, to) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let (arrives, leaves) = (Semaphore::new(&vulkan)?, Semaphore::new(&vulkan)?);
    let timeline = Timeline::new(&vulkan)?;
    let _idle = Idle::new(&vulkan);

    let mut done_before = 0;
    for value in 1..=count {
        let way = TimelinePoint::signals(drm.as_fd(), third.handle, value, &to, value)?;
        // Now and then a fourth driver holds everything up, so that it can be seen who waits.
        let gate = (value % 16 == 1).then(Foreign::new).transpose()?;
        if let Some(gate) = &gate {
            gpu.context().wait_sync_file(gate.file()?)?;
        }
        gpu.context().signal(&one(&from, value))?;
        let file = gpu.device().create_sync_file(&from, value)?;
        arrives.import(file.into())?;
        pass_on(&vulkan, What::Once(&arrives), What::Value(&timeline, value))?;
        pass_on(&vulkan, What::Value(&timeline, value), What::Once(&leaves))?;
        if let Some(gate) = gate {
            ensure_eq!(timeline.value()?, value - 1, "before anything is signalled");
            gate.signal()?;
        }
        match leaves.export()? {
            Some(file) => third.import(file, value)?,
            None => {
                done_before += 1;
                third.signal(value)?;
            }
        }
        ensure!(way.wait(Some(soon()))?, "{value} was lost");
        to.wait(value)?;
        ensure_eq!((timeline.value()?, to.value()), (value, value));
    }
    println!("# {count} hand-overs each way, {done_before} were done before they were exported");
    Ok(())
}

/// What the driver's queue signals, one thread hands over to a fence, and what the fence has,
/// another one hands over to what the queue waits for. A value that is lost is the last one: each
/// depends on the one before.
fn by_waits(count: u64) -> TestResult {
    /// So many submissions wait at once.
    const AT_ONCE: u64 = 100;
    let vulkan = Vulkan::open()?;
    let fence = fixture::device()?.create_fence(0)?;
    let (leaves, arrives) = (Timeline::new(&vulkan)?, Timeline::new(&vulkan)?);
    let _idle = Idle::new(&vulkan);

    let batches = count.div_ceil(AT_ONCE);
    let outcome = std::thread::scope(|scope| -> TestResult {
        let to_fence = scope.spawn(|| to_fence(&leaves, &fence, batches * AT_ONCE));
        let to_semaphore = scope.spawn(|| {
            let is_end = |value: u64| value % AT_ONCE == 0;
            to_semaphore(&fence, &arrives, batches * AT_ONCE, is_end)
        });
        let driven = (0..batches).try_for_each(|batch| {
            let (before, last) = (batch * AT_ONCE, (batch + 1) * AT_ONCE);
            for value in before + 1..=last {
                let (wait, signal) = (What::Value(&arrives, value), What::Value(&leaves, value));
                pass_on(&vulkan, wait, signal)?;
            }
            ensure_eq!((leaves.value()?, fence.value()), (before, before));
            arrives.signal(before + 1)?;
            leaves.wait(last, soon())?;
            reaches(&fence, last)
        });
        let ends = [to_semaphore.join(), to_fence.join()];
        ends.into_iter()
            .try_for_each(|end| end.map_err(|_| "panic in a thread")?)?;
        driven
    });
    if outcome.is_err() {
        // Whatever was submitted ends.
        arrives.signal(u64::MAX)?;
    }
    outcome
}

/// Hands each value of a semaphore over to a fence.
fn to_fence(semaphore: &Timeline<'_>, fence: &MonitoredFence, last: u64) -> TestResult {
    for value in 1..=last {
        semaphore.wait(value, soon())?;
        fence.signal(value)?;
    }
    Ok(())
}

/// Hands each value of a fence over to a semaphore, which makes the next one possible; not where a
/// batch ends.
fn to_semaphore(
    fence: &MonitoredFence,
    semaphore: &Timeline<'_>,
    last: u64,
    is_end: impl Fn(u64) -> bool,
) -> TestResult {
    let stream = fence.stream(0)?;
    let mut value = 0;
    while value < last {
        let seen = stream.wait(Some(soon()))?.ok_or("no value came")?;
        // The end of a batch does not wait for this thread: it may be seen with what follows.
        ensure!(
            seen == value + 1 || seen == value + 2 && is_end(value + 1),
            "{seen} after {value}"
        );
        value = seen;
        if !is_end(value) {
            semaphore.signal(value + 1)?;
        }
    }
    Ok(())
}
