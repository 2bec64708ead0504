// SPDX-License-Identifier: MIT OR Apache-2.0
//! The third part of the demo: engines of the GPU work on a texture of two processes, and wait for
//! each other without the processors.
//!
//! ```text
//! demo-gpu FOLDER [STEP]
//! ```
//!
//! This process paints, and starts the one that scales, which writes a picture into FOLDER. STEP is
//! the number of a tile that is not painted, to show that the demo would notice.

mod painter;
mod plan;
mod scaler;
mod table;

use std::path::Path;
use std::process::ExitCode;

use demo::{alive, Result};
use opendxg::{EventFd, MonitoredFence};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_scaler = args.get(1).is_some_and(|arg| arg == "scaler");
    let program = if is_scaler { "scaler" } else { "demo-gpu" };
    alive::watch(program);
    match run(&args, is_scaler) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String], is_scaler: bool) -> Result {
    let (folder, rest) = args.split_first().ok_or("usage: demo-gpu FOLDER [STEP]")?;
    let folder = Path::new(folder);
    match rest.first() {
        _ if is_scaler => scaler::run(folder),
        None => painter::run(folder, None),
        Some(step) => painter::run(folder, Some(step.parse()?)),
    }
}

/// Sleeps until a fence has reached a value.
fn wait(fence: &MonitoredFence, value: u64) -> Result {
    let event = EventFd::new()?;
    fence.wait_async(value, &event)?;
    match event.wait(Some(plan::PATIENCE))? {
        Some(_) => Ok(()),
        None => Err(format!("the engines are at {} of {value} steps", fence.value()).into()),
    }
}
