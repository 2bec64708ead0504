// SPDX-License-Identifier: MIT OR Apache-2.0
//! Very many queued items (FEN-45).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Error, Status};
use selftests::gpu::{one, Gpu};
use selftests::rounds::is_brief;
use selftests::{ensure, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "FEN-45 100 000 queued waits, then one CPU signal",
            Duration::from_secs(180),
            waits,
        )
        .slow(
            "FEN-45 the limit of a user is NO_MEMORY and never a block",
            Duration::from_secs(300),
            limit,
        )
}

fn waits() -> TestResult {
    let gpu = Gpu::new()?;
    let gate = gpu.device().create_fence(0)?;
    let count = if is_brief() { 10_000 } else { 100_000 };
    for _ in 0..count {
        gpu.context().wait(&one(&gate, 1))?;
    }
    let mark = gpu.mark()?;
    ensure!(!gpu.is_done(mark));
    gate.signal(1)?;
    gpu.until(mark)
}

/// Fills a queue until there is no more, and finds the queue good afterwards.
fn limit() -> TestResult {
    let gpu = Gpu::new()?;
    let gate = gpu.device().create_fence(0)?;
    let done = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&gate, 1))?;
    // A brief run does not come so far.
    let most = if is_brief() { 20_000 } else { 2_000_000 };
    let mut queued = 0;
    let refused = loop {
        match gpu.context().signal(&one(&done, queued + 1)) {
            Ok(()) if queued == most => break None,
            Ok(()) => queued += 1,
            Err(error) => break Some(error),
        }
    };
    match refused {
        Some(Error::Status(Status::NO_MEMORY)) => {}
        Some(error) => return Err(error.into()),
        None => ensure!(is_brief(), "{queued} items, and no limit"),
    }
    gate.signal(1)?;
    // There is room again, as soon as some of it is done.
    selftests::time::eventually("there is room again", || {
        gpu.context().wait(&one(&gate, 0)).is_ok()
    })?;
    // So many take their time. None of them may be the last one for long.
    loop {
        let seen = done.value();
        if seen >= queued {
            break;
        }
        selftests::time::eventually("the queue goes on", || done.value() > seen)?;
    }
    gpu.run(&Pm4::new().nop(0))
}
