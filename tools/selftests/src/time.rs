// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time limits, which a slow machine can stretch.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::{Failure, TestResult};

/// Environment variable with the factor of all time limits.
pub const SCALE_VARIABLE: &str = "OPENDXG_TEST_SCALE";

/// How long something may take that should happen soon. Only what never happens takes so long, and
/// a machine that does much else may need a good part of it.
const SOON: Duration = Duration::from_secs(30);

/// Whether this is a kernel whose checks make everything slow: the project's debug kernel is named
/// so.
pub fn is_slow_kernel() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim_end().ends_with("debug")
}

/// A factor that the environment may set. Without it: 1, or `slow` in a slow kernel.
pub(crate) fn factor(variable: &str, slow: f64) -> f64 {
    let value = std::env::var(variable).ok();
    let value = value.and_then(|text| text.parse().ok());
    value
        .filter(|factor| (0.001..=1e6).contains(factor))
        .unwrap_or_else(|| if is_slow_kernel() { slow } else { 1.0 })
}

/// A time limit, stretched.
pub fn scaled(limit: Duration) -> Duration {
    static SCALE: OnceLock<f64> = OnceLock::new();
    limit.mul_f64(*SCALE.get_or_init(|| factor(SCALE_VARIABLE, 10.0)))
}

/// How long to wait for something that should happen soon.
pub fn soon() -> Duration {
    scaled(SOON)
}

/// Waits until the condition holds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> TestResult {
    let place = core::panic::Location::caller();
    let end = Instant::now() + soon();
    while !condition() {
        if Instant::now() > end {
            return Err(Failure::Failed(format!("{place}: {what}: never happened")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Time in which something that must not happen would have happened. A test may only use it to
/// show an absence, never to make an order likely.
pub const A_WHILE: Duration = Duration::from_millis(100);

/// Sleeps for [`A_WHILE`].
pub fn a_while() {
    std::thread::sleep(A_WHILE);
}
