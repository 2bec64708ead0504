// SPDX-License-Identifier: MIT OR Apache-2.0
//! Negative tests of every field of every call, generated from a description of the fields.
//!
//! [`table`] describes each call: where its fields are and what kind of thing each of them is.
//! [`mutate`] turns the kind of a field into wrong (and into acceptable) values; [`check`] makes
//! the call with each of them and looks at the status, the errno, the argument and the driver's
//! counters. [`complete`] compares the description with the documented layouts and with what the
//! driver says it implements, so that a new call or field without a description fails.

mod cases;
pub(crate) mod check;
mod complete;
mod exact;
mod image;
mod layout;
mod mutate;
mod order;
mod shapes;
mod table;
pub(crate) mod world;

use std::time::Duration;

use selftests::rounds::is_brief;
use selftests::Suite;
use world::State;

pub(crate) fn main() {
    let mut suite = Suite::new("negative")
        .with(complete::tests)
        .with(shapes::tests)
        .with(exact::tests)
        .with(order::tests);
    for (number, state) in State::ALL.into_iter().enumerate() {
        for (place, form) in table::forms().iter().enumerate() {
            // What is refused is refused before the state matters: a brief run has each form in
            // one of them.
            if is_brief() && place % State::ALL.len() != number {
                continue;
            }
            let name = format!("NEG-{:#04x} {}, {}", form.nr, form.title(), state.name());
            suite = suite.slow(name, Duration::from_secs(120), move || {
                check::form(form, state)
            });
        }
    }
    suite.run()
}
