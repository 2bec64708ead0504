// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second part of the demo: a picture in a shared resource, handed between four processes.
//!
//! ```text
//! demo-picture FOLDER [FRAME]
//! ```
//!
//! This process renders and starts three readers, each of which opens the picture in its own way.
//! Each writes a frame as it saw it into FOLDER. FRAME is the number of a frame to damage, to show
//! that the readers would notice.

mod frame;
mod plan;
mod reader;
mod renderer;
mod share;

use std::path::Path;
use std::process::ExitCode;

use demo::{alive, Result};
use plan::Way;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let program = match args.get(1).and_then(|arg| Way::from_argument(arg)) {
        Some(way) => way.argument(),
        None => "demo-picture",
    };
    alive::watch(program);
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result {
    let (folder, rest) = args
        .split_first()
        .ok_or("usage: demo-picture FOLDER [FRAME]")?;
    let folder = Path::new(folder);
    match rest.first() {
        None => renderer::run(folder, None),
        Some(arg) => match Way::from_argument(arg) {
            Some(way) => reader::run(folder, way, &rest[1..]),
            None => renderer::run(folder, Some(arg.parse()?)),
        },
    }
}
