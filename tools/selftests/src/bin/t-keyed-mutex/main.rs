// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyed mutexes (RES-91 to RES-102).

mod abandon;
mod acquire;
mod calls;
mod order;
mod private;
mod stress;
pub(crate) mod timeout;

use selftests::Suite;

pub(crate) fn main() {
    if let Some(status) = abandon::as_helper() {
        std::process::exit(status);
    }
    Suite::new("keyed-mutex")
        .with(calls::tests)
        .with(private::tests)
        .with(acquire::tests)
        .with(timeout::tests)
        .with(order::tests)
        .with(abandon::tests)
        .with(stress::tests)
        .run()
}
