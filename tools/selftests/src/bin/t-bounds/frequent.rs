// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the most frequent calls cost more than a call that does nothing. That is the part that is
//! ours: what every ioctl costs depends on the kernel.

use opendxg::{Access, Dxg};
use selftests::{ensure, fixture, Suite, TestResult};

use crate::t_bounds::cost::{self, Cost};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-31 a signal of one fence is short", signal)
        .test("FEN-14 a wait that is satisfied is short", satisfied)
        .test("FEN-31 a signal on an NT handle is short", nt_signal)
        .test("FEN-14 a wait on an NT handle is short", nt_satisfied)
}

/// How often each call is made.
const TIMES: u64 = 1000;

/// What one of these calls costs. They get numbers that grow.
fn each(mut call: impl FnMut(u64) -> TestResult) -> TestResult<Cost> {
    let mut number = 0;
    let all = cost::least(|| {
        for _ in 0..TIMES {
            number += 1;
            call(number)?;
        }
        Ok(())
    })?;
    Ok(all / TIMES)
}

/// Demands that `call` costs at most so many instructions more than one that does nothing.
fn at_most(limit: Cost, what: &str, call: impl FnMut(u64) -> TestResult) -> TestResult {
    cost::needs_counting()?;
    let dxg = Dxg::open()?;
    let nothing = each(|_| Ok(dxg.no_op()?))?;
    let cost = each(call)?;
    println!("# {what}: {cost}, and {nothing} for a call that does nothing");
    ensure!(
        cost <= nothing + limit,
        "{what}: {cost} instructions, {nothing} for a call that does nothing, {limit} more allowed"
    );
    Ok(())
}

fn signal() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    at_most(420, "signal", |value| Ok(fence.signal(value)?))
}

fn satisfied() -> TestResult {
    let fence = fixture::device()?.create_fence(1)?;
    at_most(370, "satisfied wait", |_| Ok(fence.wait(1)?))
}

fn nt_signal() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let handle = fence.share(Access::SIGNAL)?;
    at_most(145, "signal on an NT handle", |value| {
        Ok(handle.signal(value)?)
    })
}

fn nt_satisfied() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(1)?;
    let handle = fence.share(Access::WAIT)?;
    at_most(
        85,
        "satisfied wait on an NT handle",
        |_| Ok(handle.wait(1)?),
    )
}
