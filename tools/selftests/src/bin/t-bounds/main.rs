// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one user can make others pay for, and what a call may cost that is not its caller's doing.
//!
//! Costs are numbers of instructions, and so they are compared only in a machine whose clock
//! counts these (`tools/vm/run --accel count`). How late a wait ends is a number of instructions
//! there, too. No time decides a test.

mod allocations;
mod cost;
mod destroy;
mod fdinfo;
mod frequent;
mod late;
mod waits;

use opendxg::raw::Raw;
use opendxg::uapi::*;
use selftests::call::succeeds;
use selftests::{Suite, TestResult};

pub(crate) fn main() {
    Suite::new("bounds")
        .with(fdinfo::tests)
        .with(destroy::tests)
        .with(waits::tests)
        .with(late::tests)
        .with(allocations::tests)
        .with(frequent::tests)
        .run()
}

/// Another handle of what a handle stands for.
fn duplicate(raw: &Raw, handle: u32) -> TestResult<u32> {
    let mut arg = opendxg_dup_local {
        handle,
        index: OPENDXG_WHOLE,
        ..Default::default()
    };
    succeeds(raw, &mut arg)?;
    Ok(arg.new_handle)
}
