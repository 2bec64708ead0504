// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lifetimes: containers, their parts, and references of every kind (RES-77 to RES-84).

mod model;
mod random;
mod references;
mod release;
mod steps;
mod worker;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("lifetime")
        .with(steps::tests)
        .with(references::tests)
        .with(release::tests)
        .with(random::tests)
        .run()
}
