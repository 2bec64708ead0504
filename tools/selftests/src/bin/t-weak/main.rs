// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weak references and notices of destruction (RES-71 to RES-74).

mod races;
mod watch;
mod weak;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("weak")
        .with(weak::tests)
        .with(watch::tests)
        .with(races::tests)
        .run()
}
