// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first value of a shareable fence that a window shows, made to fail (FEN-12). The windows of
//! a process stay, so each step has a process of its own.

use opendxg::{Device, Error, MonitoredFence, Status};
use selftests::child::Child;
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::{ensure, ensure_eq, fixture, TestResult};

use crate::t_failslab::inject::Injector;
use crate::t_failslab::plain::Maker;
use crate::t_failslab::MOST;

/// Bytes of a place.
const PAGE: usize = 4096;
/// Places of a window.
const PLACES: usize = 64;
/// Windows for which a process makes room at once.
const ROOM: usize = 4;
/// Where a process tells that the fence was refused.
const REFUSED: usize = 0;
/// Where it tells that there was no such step any more.
const OVER: usize = 4;
/// What the fence has.
const VALUE: u64 = 0x1234_5678_9abc;

/// All rows, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("FEN-12 the first window of a process", |_| {
        in_processes(|_| Ok(vec![]))
    }),
    ("FEN-12 a window beside one that is full", |_| {
        in_processes(|device| shareable(device, PLACES))
    }),
    ("FEN-12 more windows than there is room for", |_| {
        in_processes(|device| shareable(device, ROOM * PLACES))
    }),
    (
        "FEN-12 a window instead of one that the process has unmapped",
        |_| in_processes(unmapped),
    ),
    ("FEN-12 a place in a window that is there", |_| {
        in_processes(|device| shareable(device, 1))
    }),
];

fn shareable(device: &Device, count: usize) -> TestResult<Vec<MonitoredFence>> {
    let fences = (0..count as u64).map(|value| device.create_shareable_fence(value));
    Ok(fences.collect::<Result<_, _>>()?)
}

/// A window whose only place with a fence is free again, and in no mapping any more.
fn unmapped(device: &Device) -> TestResult<Vec<MonitoredFence>> {
    let fence = device.create_shareable_fence(0)?;
    let place = fence
        .value_address()
        .map_addr(|address| address & !(PAGE - 1));
    fence.destroy()?;
    // SAFETY: nobody reads a value there any more.
    let answer = unsafe { libc::munmap(place.cast_mut().cast(), PAGE) };
    ensure_eq!(answer, 0);
    Ok(vec![])
}

/// Raises the number of the step at which the creation of a shareable fence fails until it meets
/// no failure any more. `before` is what a process does before that.
fn in_processes(before: fn(&Device) -> TestResult<Vec<MonitoredFence>>) -> TestResult {
    let watch = Watch::start()?;
    let told = Region::shared(PAGE)?;
    let mut refused = 0;
    for step in 1..=MOST {
        told.set_word(REFUSED, 0);
        let child = Child::spawn(|| {
            let device = fixture::device()?;
            let others = before(&device)?;
            let injector = Injector::new()?;
            // What the process itself needs for the first time is there then.
            device.create_fence(0)?.destroy()?;
            let (made, injected) = injector.fail(step, || device.create_shareable_fence(VALUE))?;
            match made {
                Ok(fence) => ensure_eq!(fence.value(), VALUE),
                Err(Error::Status(Status::NO_MEMORY | Status::ACCESS_VIOLATION)) if injected => {
                    told.set_word(REFUSED, 1);
                }
                Err(error) => return Err(error.into()),
            }
            for (value, fence) in (0..).zip(&others) {
                ensure_eq!(fence.value(), value);
            }
            // Nothing is wrong with what is there now.
            for (value, fence) in (0..).zip(&shareable(&device, PLACES + 1)?) {
                ensure_eq!(fence.value(), value);
            }
            told.set_word(OVER, u32::from(!injected));
            Ok(())
        })?;
        child
            .join()
            .map_err(|error| format!("step {step}: {error}"))?;
        watch
            .ends_clean()
            .map_err(|error| format!("step {step}: {error}"))?;
        refused += told.word(REFUSED);
        if told.word(OVER) == 1 {
            println!("# {} steps, {refused} refused", step - 1);
            ensure!(refused > 0, "no step was refused");
            return Ok(());
        }
    }
    Err(format!("failures never end after {MOST} steps").into())
}
