// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program about CPU events again, on an adapter whose driver is across the border of a virtual
//! machine (CPU-49).

use std::env::{args_os, current_exe};
use std::process::{exit, Command, ExitStatus};

use selftests::fixture::ADAPTER_VARIABLE;
use selftests::soft_adapter::SoftAdapter;
use selftests::TestResult;

use crate::t_cpu_events::PATH_VARIABLE;

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
    let adapter = SoftAdapter::new("t-cpu-border")?;
    adapter.set("cpu_events", "border")?;
    adapter.set("enabled", "1")?;
    let program = current_exe()?.with_file_name("t-cpu-events");
    let status = Command::new(program)
        .args(args_os().skip(1))
        .env(ADAPTER_VARIABLE, adapter.get("luid")?)
        .env(PATH_VARIABLE, "border")
        .status()?;
    Ok(status)
}
