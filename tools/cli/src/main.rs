// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `opendxg`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use opendxg_cli::args::Args;
use opendxg_cli::{proc, show, world};

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(text) => {
            // Whoever reads may have seen enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("opendxg: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<String, String> {
    let live = args.proc == Path::new("/proc");
    let own = if live { proc::own_view() } else { None };
    let scan =
        proc::scan(&args.proc).map_err(|error| format!("{}: {error}", args.proc.display()))?;
    show::answer(
        &world::build(scan, own),
        args.command.unwrap_or_default(),
        args.json,
    )
}
