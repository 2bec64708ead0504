// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs about the GPU, with one processor only.

use std::process::Command;
use std::time::Duration;

use selftests::processors::Offline;
use selftests::program;
use selftests::rounds::{is_brief, BRIEF_VARIABLE, ROUNDS_VARIABLE};
use selftests::{ensure, Suite, TestResult};

/// Each of them.
const LIMIT: Duration = Duration::from_secs(240);

/// A brief run has the tests of t-gpu-fair with one processor. In a kernel with checks these two
/// would take many minutes.
pub(crate) fn tests(suite: Suite) -> Suite {
    if is_brief() {
        return suite;
    }
    suite
        .slow(
            "GPU-4 GPU-114 t-gpu-submit with one processor",
            LIMIT,
            || passes("t-gpu-submit"),
        )
        .slow(
            "GPU-4 GPU-114 t-gpu-races with one processor",
            LIMIT,
            || passes("t-gpu-races"),
        )
}

/// Runs a program of tests briefly.
fn passes(name: &str) -> TestResult {
    let _rest = Offline::all_but_one()?;
    let mut command: Command = program::other(name);
    let output = command
        .env(BRIEF_VARIABLE, "yes")
        .env(ROUNDS_VARIABLE, "0.1")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = text.lines().filter(|line| line.starts_with("ok ")).count();
    for line in text.lines().filter(|line| !line.starts_with("ok ")) {
        println!("# {line}");
    }
    ensure!(output.status.success(), "{name}: {}", output.status);
    ensure!(passed > 5, "{name}: {passed} tests passed");
    Ok(())
}
