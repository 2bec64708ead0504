// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything stands still, as it does before the machine goes to sleep.

use std::fs;
use std::path::Path;

use crate::user::needs_root;
use crate::{skip, TestResult};

/// How far a suspension goes that is only a test of it.
const LEVEL: &str = "/sys/power/pm_test";
/// For how many seconds.
const DELAY: &str = "/sys/module/suspend/parameters/pm_test_delay";
/// Suspends.
const STATE: &str = "/sys/power/state";

/// Skips the test if the kernel cannot do this. For before anything is made.
pub fn needs_freezer() -> TestResult {
    needs_root()?;
    if !Path::new(LEVEL).exists() {
        skip!("the kernel has no {LEVEL}");
    }
    Ok(())
}

/// Freezes all processes, and the threads of the kernel that freeze with them, for so many seconds;
/// only the caller goes on. Fails if something does not freeze within what the kernel allows, which
/// is 20 s.
pub fn freeze(seconds: u64) -> TestResult {
    needs_freezer()?;
    let before = fs::read_to_string(DELAY)?;
    fs::write(DELAY, seconds.to_string())?;
    fs::write(LEVEL, "freezer")?;
    let frozen = fs::write(STATE, "freeze");
    fs::write(LEVEL, "none")?;
    fs::write(DELAY, before.trim())?;
    Ok(frozen?)
}
