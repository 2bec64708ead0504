// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each packet of the command processor, executed by an engine and seen by its effects.

mod data;
mod flow;
mod place;
mod privileged;
mod signals;
mod translation;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("gpu-packets")
        .with(data::tests)
        .with(flow::tests)
        .with(signals::tests)
        .with(privileged::tests)
        .with(translation::tests)
        .run()
}
