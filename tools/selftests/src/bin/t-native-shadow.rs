// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program about native fences again, on an adapter whose CMP has copies of MonitoredValue
//! (GPU-57, FEN-75), with a fifth of the rounds.

use std::env::{args_os, current_exe, var_os};
use std::process::{exit, Command, ExitStatus};

use selftests::fixture::ADAPTER_VARIABLE;
use selftests::rounds::ROUNDS_VARIABLE;
use selftests::soft_adapter::SoftAdapter;
use selftests::TestResult;

pub(crate) fn main() {
    match run() {
        Ok(status) => exit(status.code().unwrap_or(1)),
        Err(error) => {
            println!("Bail out! {error:?}");
            exit(1);
        }
    }
}

fn run() -> TestResult<ExitStatus> {
    let adapter = SoftAdapter::new("t-native-shadow")?;
    adapter.set("monitored_values", "shadow")?;
    adapter.set("enabled", "1")?;
    let program = current_exe()?.with_file_name("t-native-fences");
    let mut command = Command::new(program);
    command
        .args(args_os().skip(1))
        .env(ADAPTER_VARIABLE, adapter.get("luid")?);
    if var_os(ROUNDS_VARIABLE).is_none() {
        command.env(ROUNDS_VARIABLE, "0.2");
    }
    Ok(command.status()?)
}
