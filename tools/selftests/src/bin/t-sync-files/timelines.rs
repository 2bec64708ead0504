// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timelines of DRM that follow fences (FEN-161), and the way through both (FEN-175).

use std::os::fd::AsFd;
use std::time::Duration;

use opendxg::{Error, HandOver, MonitoredFence, Status, SyncFlags, SyncKind, TimelinePoint};
use selftests::child::Child;
use selftests::drm::{Drm, Timeline};
use selftests::gpu::{one, Gpu};
use selftests::leak::Watch;
use selftests::stress::Figure;
use selftests::sync_file::Foreign;
use selftests::time::{a_while, soon};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-161 a timeline follows a fence", follows)
        .test("FEN-160 FEN-168 a value that nobody has queued", later)
        .test("FEN-162 the point comes if the queue ends before", ended)
        .test("FEN-162 the point comes if the process is killed", killed)
        .test("FEN-161 no timeline of that number, no fence", refusals)
        .stress(
            "FEN-161 FEN-175 hand-overs to a timeline and on to a fence, none lost",
            Duration::from_secs(300),
            Figure::new(10_000, 100_000),
            |figure| hand_overs(figure.rounds()),
        )
}

/// Hands a value over, which can be promised.
fn hand_over(gpu: &Gpu, fence: &MonitoredFence, value: u64, to: &Timeline<'_>) -> TestResult {
    let (drm, handle) = (to.drm().as_fd(), to.handle);
    match gpu
        .device()
        .signal_timeline(fence, value, drm, handle, value)?
    {
        HandOver::Done => Ok(()),
        HandOver::Later(_) => Err(format!("{value} was not handed over").into()),
    }
}

fn follows() -> TestResult {
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(3)?;
    // Somebody waits since before there is a point.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| timeline.wait(5, soon()));
        // What the fence has.
        hand_over(&gpu, &fence, 3, &timeline)?;
        ensure!(timeline.wait(3, soon())?);
        // What it will have.
        let foreign = Foreign::new()?;
        gpu.context().wait_sync_file(foreign.file()?)?;
        gpu.context().signal(&one(&fence, 4))?;
        gpu.context().signal(&one(&fence, 5))?;
        for value in [4, 5] {
            hand_over(&gpu, &fence, value, &timeline)?;
        }
        a_while();
        ensure!(!timeline.wait(4, Duration::ZERO)?);
        ensure!(!waits.is_finished());
        foreign.signal()?;
        let waited = waits.join().map_err(|_| "panic in a thread")??;
        ensure!(waited && timeline.wait(4, Duration::ZERO)?);
        Ok(())
    })
}

fn later() -> TestResult {
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let hand_over = || device.signal_timeline(&fence, 1, drm.as_fd(), timeline.handle, 1);
    let HandOver::Later(point) = hand_over()? else {
        return Err("nobody may ever signal this".into());
    };
    ensure!(!point.is_signalled()?);
    ensure!(!timeline.wait(1, Duration::ZERO)?);
    fence.signal(1)?;
    ensure!(point.wait(Some(soon()))?);
    // The point alone changes nothing.
    ensure!(!timeline.wait(1, Duration::ZERO)?);
    ensure!(matches!(hand_over()?, HandOver::Done));
    ensure!(timeline.wait(1, soon())?);
    Ok(())
}

/// A device whose queue waits for somebody else before it signals a value that a timeline follows.
fn pending(foreign: &Foreign, timeline: &Timeline<'_>) -> TestResult<(Gpu, MonitoredFence)> {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.context().signal(&one(&fence, 1))?;
    hand_over(&gpu, &fence, 1, timeline)?;
    Ok((gpu, fence))
}

fn ended() -> TestResult {
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let foreign = Foreign::new()?;
    let both = pending(&foreign, &timeline)?;
    ensure!(!timeline.wait(1, Duration::ZERO)?);
    drop(both);
    ensure!(timeline.wait(1, soon())?);
    Ok(())
}

fn killed() -> TestResult {
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let foreign = Foreign::new()?;
    let ready = selftests::child::Gate::new()?;
    let child = Child::spawn(|| {
        let _both = pending(&foreign, &timeline)?;
        ready.open()?;
        loop {
            a_while();
        }
    })?;
    ready.wait_for_child(&child)?;
    ensure!(!timeline.wait(1, Duration::ZERO)?);
    child.kill()?;
    ensure!(timeline.wait(1, soon())?);
    Ok(())
}

fn refusals() -> TestResult {
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(1)?;
    let watch = Watch::start()?;
    let device = gpu.device();
    let answer = device.signal_timeline(&fence, 1, drm.as_fd(), 0x7fff, 1);
    ensure!(matches!(answer, Err(Error::Os(_))), "{answer:?}");
    let no_drm = std::fs::File::open("/dev/null")?;
    let answer = device.signal_timeline(&fence, 1, no_drm.as_fd(), timeline.handle, 1);
    ensure!(matches!(answer, Err(Error::Os(_))), "{answer:?}");
    let semaphore = SyncKind::Semaphore {
        max_count: 1,
        initial_count: 1,
    };
    let no_fence = device.create_sync_object(semaphore, SyncFlags::empty())?;
    let answer = device.signal_timeline(&no_fence, 1, drm.as_fd(), timeline.handle, 1);
    fails_with(answer.map(drop), Status::INVALID_PARAMETER)?;
    ensure!(!timeline.wait(1, Duration::ZERO)?);
    drop((no_fence, no_drm));
    watch.ends_clean()
}

/// Values go from a fence to a timeline and from there to another fence. Both ways are laid before
/// anything is signalled: no thread of this process takes part in between.
fn hand_overs(count: u32) -> TestResult {
    const AT_ONCE: u64 = 400;
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let gpu = Gpu::new()?;
    let (from, to) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let rounds = u64::from(count).div_ceil(AT_ONCE);
    for round in 0..rounds {
        let first = round * AT_ONCE + 1;
        let last = first + AT_ONCE - 1;
        let ways = (first..=last)
            .map(|value| TimelinePoint::signals(drm.as_fd(), timeline.handle, value, &to, value))
            .collect::<Result<Vec<_>, _>>()?;
        // Every other time the values are signalled while they are handed over.
        let held = match round % 2 {
            0 => Some(Foreign::new()?),
            _ => None,
        };
        if let Some(held) = &held {
            gpu.context().wait_sync_file(held.file()?)?;
        }
        for value in first..=last {
            gpu.context().signal(&one(&from, value))?;
            hand_over(&gpu, &from, value, &timeline)?;
        }
        if let Some(held) = held {
            ensure_eq!(to.value(), first - 1, "before anything is signalled");
            held.signal()?;
        }
        to.wait(last)?;
        for (value, way) in (first..).zip(&ways) {
            ensure!(way.wait(Some(soon()))?, "{value} was lost");
        }
        ensure_eq!((from.value(), to.value()), (last, last));
    }
    Ok(())
}
