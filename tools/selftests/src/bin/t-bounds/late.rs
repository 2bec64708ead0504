// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late a wait with a limit ends, where the clock counts instructions and nothing else runs.

use std::time::Duration;

use selftests::child::in_child;
use selftests::sharing::{Client, How, Shape};
use selftests::{ensure, Suite, TestResult};

use crate::t_bounds::cost::needs_counting;
use crate::t_keyed_mutex::timeout::{in_storm, now, timed, SECOND};

/// How late a wait may end. A timer with the period of the scheduler's tick would take longer.
const LATE: Duration = Duration::from_millis(2);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-96 a limit of 10 ms takes 10 to 12 ms", relative)
        .test("RES-96 limit 0 and limits in the past take no time", past)
        .test(
            "RES-96 a SIGALRM each millisecond does not make a wait late",
            storm,
        )
}

fn is_about(took: Duration, limit: Duration) -> TestResult {
    ensure!(took >= limit, "early: {took:?} of {limit:?}");
    ensure!(took <= limit + LATE, "late: {took:?} of {limit:?}");
    Ok(())
}

fn relative() -> TestResult {
    needs_counting()?;
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    for _ in 0..20 {
        let took = timed(&client, mutex.handle(), -SECOND / 100)?;
        is_about(took, Duration::from_millis(10))?;
    }
    Ok(())
}

fn past() -> TestResult {
    needs_counting()?;
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    for limit in [0, 1, now()? - SECOND] {
        is_about(timed(&client, mutex.handle(), limit)?, Duration::ZERO)?;
    }
    Ok(())
}

fn storm() -> TestResult {
    needs_counting()?;
    in_child(|| {
        let client = Client::new()?;
        let mutex = client.create(Shape::KeyedMutex, How::Global)?;
        let (took, alarms) = in_storm(&client, mutex.handle())?;
        ensure!(alarms >= 100, "only {alarms} signals came");
        for took in took {
            is_about(took, Duration::from_millis(100))?;
        }
        Ok(())
    })
}
