// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may open what, and what nobody is told (RES-103, RES-104, RES-107 to RES-109); a removed
//! adapter.

mod outputs;
mod removed;
mod restricted;
mod users;

use selftests::{module, Suite};

pub(crate) fn main() {
    module::with_parameters("allow_nonsecure=1", || {
        Suite::new("security")
            .with(users::tests)
            .with(restricted::tests)
            .with(outputs::tests)
            .with(removed::tests)
            .run()
    });
}
