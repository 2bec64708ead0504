// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of each user, and memory cgroups (RES-46, RES-105, RES-106).

mod gpu;
mod limits;
mod memory;
mod users;

use selftests::{module, Suite};

/// Limits that are reached in a short time.
const LIMITS: &str = "max_user_objects=200 max_user_names=20 max_user_globals=30 \
                      max_user_store=300000 max_user_watches=40 max_user_allocations=250 \
                      max_user_claimed_mb=24 max_user_resident_mb=8 max_user_files=300 \
                      max_user_queues=30 max_user_queued_items=400 max_user_queued_bytes=200000";

pub(crate) fn main() {
    module::with_parameters(LIMITS, || {
        Suite::new("quota")
            .with(limits::tests)
            .with(memory::tests)
            .with(gpu::tests)
            .with(users::tests)
            .run()
    });
}
