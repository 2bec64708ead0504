// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nobody pays for the waits that others have piled up.

use std::time::Duration;

use opendxg::{EventFd, FenceValues, Status};
use selftests::child::in_child;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, module, Suite, TestResult};

use crate::t_bounds::cost::{self, hardly_more};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-17 a wait for one fence many times is queued once",
            doubles,
        )
        .test(
            "RES-105 the elements of waits are charged to the user",
            charged,
        )
        .slow(
            "FEN-31 a signal costs the same however many waits others have",
            Duration::from_secs(60),
            signals,
        )
}

/// How many waits are queued, as fdinfo says.
fn queued() -> TestResult<Vec<String>> {
    let text = crate::t_bounds::fdinfo::text()?;
    let words = text.lines().filter(|line| line.starts_with("dxg-handle:"));
    let words = words.flat_map(|line| line.split_whitespace());
    let counts = words.filter_map(|word| word.strip_prefix("waiters="));
    Ok(counts.map(Into::into).collect())
}

fn doubles() -> TestResult {
    in_child(|| {
        let device = fixture::device()?;
        let fences = [device.create_fence(0)?, device.create_fence(0)?];
        // Large values first in one, small ones first in the other.
        let mut list = FenceValues::new();
        for number in 0..1000 {
            list.push(&fences[0], 1000 - number);
            list.push(&fences[1], 1 + number);
        }
        let (all, any) = (EventFd::new()?, EventFd::new()?);
        device.wait_all_async(&list, &all)?;
        device.wait_any_async(&list, &any)?;
        ensure_eq!(queued()?, ["2", "2"]);
        fences[1].signal(1)?;
        ensure_eq!((any.take()?, all.take()?), (1, 0));
        fences[0].signal(999)?;
        fences[1].signal(1000)?;
        ensure_eq!(all.take()?, 0);
        fences[0].signal(1000)?;
        ensure_eq!(all.take()?, 1);
        ensure_eq!(queued()?, ["0", "0"]);
        Ok(())
    })
}

/// Elements of one call.
const MANY: usize = 4096;

fn charged() -> TestResult {
    let limit = module::number("max_user_wait_elements")?;
    in_child(|| {
        let device = fixture::device()?;
        let fences: Vec<_> = (0..MANY)
            .map(|_| device.create_fence(0))
            .collect::<Result<_, _>>()?;
        let mut list = FenceValues::new();
        for fence in &fences {
            list.push(fence, 1);
        }
        let event = EventFd::new()?;
        for _ in 0..limit / MANY {
            device.wait_all_async(&list, &event)?;
        }
        let left = limit % MANY;
        for _ in 0..left {
            fences[0].wait_async(1, &event)?;
        }
        fails_with(fences[0].wait_async(1, &event), Status::NO_MEMORY)?;
        fails_with(device.wait_all_async(&list, &event), Status::NO_MEMORY)?;
        // A thread that would sleep is charged too; who need not wait is not.
        fails_with(fences[0].wait(1), Status::NO_MEMORY)?;
        fences[0].wait(0)?;
        for fence in &fences {
            fence.signal(1)?;
        }
        let count = (limit / MANY + left) as u64;
        let mut told = 0;
        eventually("all are told", || {
            told += event.take().unwrap_or(0);
            told == count
        })?;
        fences[0].wait_async(2, &event)?;
        Ok(())
    })
}

/// How many waits one process has that pays for none of the signals.
const PILE: u64 = 60_000;

fn signals() -> TestResult {
    let waits = module::number("max_waiters")? as u64;
    ensure!(PILE <= waits);
    in_child(|| {
        let device = fixture::device()?;
        let event = EventFd::new()?;
        // As many as a signal releases itself.
        let fence = device.create_fence(0)?;
        for value in 1..=4096 {
            fence.wait_async(value, &event)?;
        }
        let little = cost::of(|| Ok(fence.signal(4096)?))?;
        ensure_eq!(event.take()?, 4096);
        let pile = device.create_fence(0)?;
        for value in 1..=PILE {
            pile.wait_async(value, &event)?;
        }
        let much = cost::of(|| Ok(pile.signal(PILE)?))?;
        // A pulse: those that are not told yet are told still, and later waits wait.
        pile.signal_rewind(0)?;
        let late = EventFd::new()?;
        pile.wait_async(1, &late)?;
        let mut told = 0;
        eventually("all are told", || {
            told += event.take().unwrap_or(0);
            told == PILE
        })?;
        ensure_eq!(late.take()?, 0);
        pile.signal(1)?;
        ensure_eq!(late.take()?, 1);
        let what = format!("a signal for 4096 and for {PILE} waits");
        hardly_more(&what, little, much)
    })
}
