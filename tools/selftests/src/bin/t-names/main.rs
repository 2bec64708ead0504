// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named objects: what a name may be, who finds it, and how long it lives (RES-38 to RES-46).

mod directories;
mod lifetime;
mod lookup;
mod modes;
mod namespaces;
mod syntax;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("names")
        .with(syntax::tests)
        .with(directories::tests)
        .with(lookup::tests)
        .with(lifetime::tests)
        .with(namespaces::tests)
        .with(modes::tests)
        .run()
}
