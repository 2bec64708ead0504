// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends in the middle of everything: processes that are killed, exec and fork while engines work,
//! adapters that are removed, objects that are destroyed in use.

mod caller;
mod destroy;
mod processes;
mod removal;
mod shared;

use std::time::Duration;

use selftests::Suite;

/// How long queues whose work does not end may take to end after their process.
const SETTLE: Duration = Duration::from_secs(30);

/// Argument of a process that has become this program again, only to end.
const NOTHING: &str = "--nothing";

pub(crate) fn main() {
    if std::env::args().nth(1).as_deref() == Some(NOTHING) {
        return;
    }
    Suite::new("gpu-races")
        .settle(SETTLE)
        .with(processes::tests)
        .with(removal::tests)
        .with(destroy::tests)
        .with(shared::tests)
        .run()
}
