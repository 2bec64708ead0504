// SPDX-License-Identifier: MIT OR Apache-2.0
//! DRM timelines that signal fences (FEN-175).

use std::os::fd::AsFd;
use std::time::Duration;

use opendxg::{Error, MonitoredFence, TimelinePoint};
use selftests::drm::{Drm, Timeline};
use selftests::leak::Watch;
use selftests::stress::Figure;
use selftests::time::{a_while, eventually, soon};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-175 a timeline signals a fence", follows)
        .test("FEN-175 points that are signalled in any order", any_order)
        .test("FEN-175 a point that is given up", given_up)
        .test("FEN-175 no timeline of that number", unknown)
        .stress(
            "FEN-175 hand-overs from a timeline, none lost",
            Duration::from_secs(300),
            Figure::new(10_000, 100_000),
            |figure| hand_overs(figure.rounds()),
        )
}

fn points(
    drm: &Drm,
    timeline: &Timeline<'_>,
    point: u64,
    fence: &MonitoredFence,
    value: u64,
) -> opendxg::Result<TimelinePoint> {
    TimelinePoint::signals(drm.as_fd(), timeline.handle, point, fence, value)
}

fn follows() -> TestResult {
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let fence = fixture::device()?.create_fence(0)?;
    // Before anybody has submitted the point.
    let early = points(&drm, &timeline, 3, &fence, 30)?;
    timeline.signal(2)?;
    a_while();
    ensure_eq!(fence.value(), 0);
    ensure!(!early.wait(Some(Duration::ZERO))?);
    timeline.signal(3)?;
    fence.wait(30)?;
    ensure!(early.wait(Some(soon()))?);
    // After it.
    let late = points(&drm, &timeline, 1, &fence, 31)?;
    fence.wait(31)?;
    ensure!(late.wait(Some(soon()))?);
    Ok(())
}

fn any_order() -> TestResult {
    let drm = Drm::find()?;
    let device = fixture::device()?;
    let (first, second) = (drm.timeline()?, drm.timeline()?);
    let fence = device.create_fence(0)?;
    let low = points(&drm, &first, 1, &fence, 1)?;
    let high = points(&drm, &second, 1, &fence, 2)?;
    second.signal(1)?;
    fence.wait(2)?;
    first.signal(1)?;
    ensure!(low.wait(Some(soon()))? && high.wait(Some(soon()))?);
    a_while();
    ensure_eq!(fence.value(), 2, "the lower value came too late");
    Ok(())
}

fn given_up() -> TestResult {
    let drm = Drm::find()?;
    let device = fixture::device()?;
    let watch = Watch::start()?;
    for is_destroyed in [false, true] {
        let timeline = drm.timeline()?;
        let fence = device.create_fence(0)?;
        let point = points(&drm, &timeline, 1, &fence, 1)?;
        if is_destroyed {
            drop(timeline);
            drop(point);
        } else {
            drop(point);
            timeline.signal(1)?;
        }
        a_while();
        ensure_eq!(fence.value(), 0);
    }
    watch.ends_clean()
}

fn unknown() -> TestResult {
    let drm = Drm::find()?;
    let fence = fixture::device()?.create_fence(0)?;
    let watch = Watch::start()?;
    let answer = TimelinePoint::signals(drm.as_fd(), 0x7fff, 1, &fence, 1);
    ensure!(matches!(answer, Err(Error::Os(_))), "{answer:?}");
    eventually("the registration is taken back", || {
        watch.unchanged().is_ok()
    })
}

/// As many points wait at once as a program may have descriptors for.
fn hand_overs(count: u32) -> TestResult {
    const AT_ONCE: u64 = 500;
    let drm = Drm::find()?;
    let timeline = drm.timeline()?;
    let device = fixture::device()?;
    let fences: Vec<_> = (0..AT_ONCE)
        .map(|_| device.create_fence(0))
        .collect::<Result<_, _>>()?;
    let mut point = 0;
    for round in 1..=u64::from(count).div_ceil(AT_ONCE) {
        let waiting: Vec<_> = (point + 1..)
            .zip(&fences)
            .map(|(point, fence)| points(&drm, &timeline, point, fence, round))
            .collect::<Result<_, _>>()?;
        std::thread::scope(|scope| -> TestResult {
            let signaller = scope.spawn(|| {
                (point + 1..=point + AT_ONCE).try_for_each(|point| timeline.signal(point))
            });
            for fence in &fences {
                fence.wait(round)?;
            }
            signaller.join().map_err(|_| "panic in a thread")?
        })?;
        point += AT_ONCE;
        drop(waiting);
    }
    Ok(())
}
