// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the tests about adapters again with as many adapters as the module allows: loads it anew
//! for them, and afterwards as it was.

use std::process::{exit, Command};

use selftests::{module, Failure, TestResult};

/// Parameter with the highest number of adapters.
const MANY: &str = "adapters=16";

/// Programs, and which of their tests.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("t-adapters", &[]),
    ("t-fences", &["FEN-26"]),
    ("t-open", &["RES-53"]),
];

/// Loads the module with other parameters, which come after its present ones.
fn reload(before: &str, more: &str) -> TestResult {
    module::unload()?;
    module::load(&format!("{before} {more}"))
}

/// Runs one program, whose output is ours; true if nothing failed.
fn run(program: &str, tests: &[&str]) -> TestResult<bool> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(program);
    Ok(Command::new(path).args(tests).status()?.success())
}

fn run_all() -> TestResult<bool> {
    let before = module::parameters()?;
    reload(&before, MANY)?;
    let results: Vec<TestResult<bool>> = PROGRAMS
        .iter()
        .map(|(program, tests)| run(program, tests))
        .collect();
    reload(&before, "")?;
    results
        .into_iter()
        .try_fold(true, |all, one| Ok(all && one?))
}

pub(crate) fn main() {
    if !module::is_replaceable() {
        println!(
            "TAP version 13\n1..1\nok 1 - many adapters # SKIP the module cannot be taken out here"
        );
        return;
    }
    match run_all() {
        Ok(passed) => exit(i32::from(!passed)),
        Err(Failure::Failed(text) | Failure::Skipped(text)) => {
            println!("Bail out! {text}");
            exit(1);
        }
    }
}
