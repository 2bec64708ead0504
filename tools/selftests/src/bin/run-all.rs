// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every test program (`t-*`) of its own directory, one after the other, and passes their TAP on.
//!
//! Arguments select the programs whose name contains one of them. Ends with status 1 if anything failed.

use std::io::{BufRead, BufReader, Result};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{exit, Command, Stdio};

/// What the output of one program told.
#[derive(Default)]
struct Told {
    failure: bool,
}

fn programs(directory: &Path, wanted: &[String]) -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_wanted = wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
        if name.starts_with("t-") && is_wanted {
            programs.push(path);
        }
    }
    programs.sort();
    Ok(programs)
}

/// Runs one program; true if it failed.
fn run(program: &Path) -> Result<bool> {
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn()?;
    let mut told = Told::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            told.failure |= line.starts_with("not ok") || line.starts_with("Bail out!");
            println!("{line}");
        }
    }
    let status = child.wait()?;
    if !status.success() && !told.failure {
        // Nothing in the output says so: a crash, or a program that is wrong itself.
        match status.signal() {
            Some(signal) => println!("Bail out! killed by signal {signal}"),
            None => println!("Bail out! {status}"),
        }
    }
    Ok(told.failure || !status.success())
}

fn run_all() -> Result<bool> {
    let own = std::env::current_exe()?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let programs = programs(own.parent().unwrap_or(Path::new("/")), &wanted)?;
    if programs.is_empty() {
        println!("Bail out! no test program");
        return Ok(true);
    }
    let mut failed = false;
    for program in programs {
        println!(
            "# program: {}",
            program.file_name().unwrap_or_default().to_string_lossy()
        );
        failed |= run(&program)?;
    }
    Ok(failed)
}

fn main() {
    match run_all() {
        Ok(failed) => exit(failed.into()),
        Err(error) => {
            println!("Bail out! {error}");
            exit(1);
        }
    }
}
