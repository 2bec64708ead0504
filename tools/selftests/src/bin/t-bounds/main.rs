// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one user can make others pay for, and what a call may cost that is not its caller's doing.
//!
//! Costs are compared with each other, in the same machine and at the same time, and what is bounded differs by
//! orders of magnitude from what is not.

mod destroy;
mod fdinfo;
mod waits;

use std::time::{Duration, Instant};

use opendxg::raw::Raw;
use opendxg::uapi::*;
use selftests::call::succeeds;
use selftests::time::is_slow_kernel;
use selftests::{Failure, Outcome, Suite};

pub(crate) fn main() {
    Suite::new("bounds")
        .with(fdinfo::tests)
        .with(destroy::tests)
        .with(waits::tests)
        .run()
}

/// How many of something a comparison needs. A kernel whose checks make every allocation slow looks for other
/// things than costs, and gets a few.
fn many(number: usize) -> usize {
    match is_slow_kernel() {
        true => number / 20,
        false => number,
    }
}

/// The shortest time that `work` takes in a few attempts.
fn cost(mut work: impl FnMut() -> Outcome) -> Outcome<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

/// Demands that `much` is not of another order than `little`.
#[track_caller]
fn same_order(what: &str, little: Duration, much: Duration) -> Outcome {
    println!("# {what}: {little:?} and {much:?}");
    if much > 8 * little + Duration::from_millis(20) {
        let place = core::panic::Location::caller();
        return Err(Failure::Failed(format!(
            "{place}: {what}: {little:?}, then {much:?}"
        )));
    }
    Ok(())
}

/// Another handle of what a handle stands for.
fn duplicate(raw: &Raw, handle: u32) -> Outcome<u32> {
    let mut arg = opendxg_dup_local {
        handle,
        index: OPENDXG_WHOLE,
        ..Default::default()
    };
    succeeds(raw, &mut arg)?;
    Ok(arg.new_handle)
}
