// SPDX-License-Identifier: MIT OR Apache-2.0
//! What works for every kind of shareable object (RES-1), and for every consumer of shared
//! pictures (RES-90).

mod consumers;
mod every_kind;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("kinds")
        .with(every_kind::tests)
        .with(consumers::tests)
        .run()
}
