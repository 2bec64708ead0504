// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits: handles, waits, descriptors, memory, and who may open what.

mod memory;
mod permission;
mod quota;

use std::process::{exit, Command};

use selftests::{module, Outcome, Suite};

/// Limits that are reached in a short time, also in a slow kernel.
const LIMITS: &str = "max_handles=7000 max_waiters=7000";
/// Set when this program runs under [`LIMITS`].
const MARK: &str = "OPENDXG_TEST_LIMITS";

/// Runs this program once more with the module loaded with [`LIMITS`], and loads it as it was afterwards.
fn run_with_limits() -> Outcome<i32> {
    let parameters = module::parameters()?;
    module::unload()?;
    module::load(&format!("{parameters} {LIMITS}"))?;
    let status = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .env(MARK, LIMITS)
        .status();
    module::unload()?;
    module::load(&parameters)?;
    Ok(status?.code().unwrap_or(1))
}

fn main() {
    if module::is_replaceable() && std::env::var_os(MARK).is_none() {
        let status = run_with_limits().unwrap_or_else(|error| {
            println!("Bail out! the module cannot be loaded with other limits: {error}");
            1
        });
        exit(status);
    }
    Suite::new("limits")
        .with(quota::tests)
        .with(memory::tests)
        .with(permission::tests)
        .run()
}
