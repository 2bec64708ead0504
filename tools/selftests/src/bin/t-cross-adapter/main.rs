// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fences on several adapters, with native fences and without (fences.md section 4).

mod cells;
mod doorbells;
mod life;
mod races;
mod scene;

use selftests::{module, Suite};

pub(crate) fn main() {
    // The calls of the KMDs say what came after what.
    module::with_parameters("verify_kmd=1", || {
        Suite::new("fences on several adapters")
            .with(cells::tests)
            .with(life::tests)
            .with(races::tests)
            .with(doorbells::tests)
            .run()
    });
}
