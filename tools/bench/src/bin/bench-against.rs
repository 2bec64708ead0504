// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints how this tree compares with another commit.
//!
//! ```text
//! bench-against MEASURED.txt
//! ```
//!
//! Each line is `this` or `other`, a space, and what `bench` has printed. The blocks of all rounds
//! of one side are taken together.

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use bench::report::against;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-against: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let file = file.ok_or("usage: bench-against MEASURED.txt")?;
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    print!("{}", against::table(&text)?);
    Ok(())
}
