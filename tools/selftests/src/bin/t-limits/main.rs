// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits: handles, waits, descriptors, memory, and who may open what.

mod gpu;
mod memory;
mod permission;
mod quota;

use selftests::{module, Suite};

/// Limits that are reached in a short time, also in a slow kernel.
const LIMITS: &str = "max_handles=7000 max_waiters=7000";

pub(crate) fn main() {
    module::with_parameters(LIMITS, || {
        Suite::new("limits")
            .with(quota::tests)
            .with(memory::tests)
            .with(gpu::tests)
            .with(permission::tests)
            .run()
    });
}
