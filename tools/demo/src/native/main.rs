// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fourth part of the demo: a pipeline over two processes and two engines that nothing but
//! native fences hold together.
//!
//! ```text
//! demo-native FOLDER [STRIP]
//! ```
//!
//! This process paints, and starts the one that keeps the frames, which writes a picture into
//! FOLDER. Each fills the ring of a queue and rings a doorbell, once. STRIP is the number of a
//! strip that is not painted, to show that the demo would notice. DEMO_ADAPTER is the LUID of an
//! adapter whose local memory has room for one of the processes only; else it is the first one.

mod keeper;
mod painter;
mod plan;
mod ring;
mod turns;

use std::path::Path;
use std::process::ExitCode;

use demo::{alive, Result};
use opendxg::{Adapter, Dxg, EventFd, Luid, NativeFence};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_keeper = args.get(1).is_some_and(|arg| arg == "keeper");
    let program = if is_keeper { "keeper" } else { "demo-native" };
    alive::watch(program);
    match run(&args, is_keeper) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String], is_keeper: bool) -> Result {
    let (folder, rest) = args
        .split_first()
        .ok_or("usage: demo-native FOLDER [STRIP]")?;
    let folder = Path::new(folder);
    match rest.first() {
        _ if is_keeper => keeper::run(folder),
        None => painter::run(folder, None),
        Some(strip) => painter::run(folder, Some(strip.parse()?)),
    }
}

/// The LUID of the adapter that was made for this, with little memory.
const SMALL: &str = "DEMO_ADAPTER";

/// Whether there is one.
fn is_small() -> bool {
    std::env::var_os(SMALL).is_some()
}

/// The adapter that both use.
fn adapter(dxg: &Dxg) -> Result<Adapter> {
    let wanted: Option<Luid> = match std::env::var(SMALL) {
        Ok(luid) => Some(luid.parse()?),
        Err(_) => None,
    };
    let mut adapters = dxg.adapters()?.into_iter();
    let found = adapters.find(|one| wanted.is_none_or(|luid| one.luid() == luid));
    Ok(found.ok_or("there is no such adapter")?)
}

/// Sleeps until a fence has reached a value.
fn wait(fence: &NativeFence, value: u64) -> Result {
    let event = EventFd::new()?;
    fence.wait_async(value, &event)?;
    match event.wait(Some(plan::PATIENCE))? {
        Some(_) => Ok(()),
        None => Err(format!("the engines are at {} of {value} strips", fence.value()).into()),
    }
}
