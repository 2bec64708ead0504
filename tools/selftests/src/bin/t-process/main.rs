// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes: fork, exec, passing descriptors, dying, being interrupted.

mod descriptors;
mod ends;
mod exec;
mod foreign;
mod inherit;
mod kill;
mod signals;

use selftests::Suite;

pub(crate) fn main() {
    if let Some(status) = exec::as_helper() {
        std::process::exit(status);
    }
    Suite::new("process")
        .with(foreign::tests)
        .with(inherit::tests)
        .with(exec::tests)
        .with(descriptors::tests)
        .with(kill::tests)
        .with(ends::tests)
        .with(signals::tests)
        .run()
}
