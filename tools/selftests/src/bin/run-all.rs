// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the test programs (`t-*`) of its own directory, one after the other, and passes their TAP on.
//!
//! Arguments select the programs whose name contains one of them. `--part K/N` runs the K-th of N parts, which
//! together are all of them. Ends with status 1 if anything failed.

use std::io::{BufRead, BufReader, Result};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{exit, Command, Stdio};
use std::time::Instant;

/// Programs that run much longer than the others, the longest first. Parts share them out before the rest; a
/// program that is not here, or not any more, makes a run longer and nothing else.
const LONG: [&str; 8] = [
    "t-negative",
    "t-limits",
    "t-races",
    "t-weak",
    "t-process",
    "t-lifetime",
    "t-keyed-mutex",
    "t-harness",
];

/// What the output of one program told.
#[derive(Default)]
struct Told {
    failure: bool,
}

/// One of several parts of all programs.
struct Part {
    number: usize,
    of: usize,
}

impl Part {
    const WHOLE: Self = Self { number: 0, of: 1 };

    /// Reads `K/N`, with K from 1 to N.
    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let of = of.parse::<usize>().ok()?;
        let number = number.parse::<usize>().ok()?.checked_sub(1)?;

        (number < of).then_some(Self { number, of })
    }

    /// Whether the program at an index of the shared-out order belongs here. Back and forth, so that no part
    /// gets the longer one of every round.
    fn has(&self, index: usize) -> bool {
        let (round, place) = (index / self.of, index % self.of);
        let place = if round % 2 == 0 {
            place
        } else {
            self.of - 1 - place
        };

        place == self.number
    }
}

fn programs(directory: &Path, wanted: &[String], part: &Part) -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_wanted = wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
        if name.starts_with("t-") && is_wanted {
            let place = LONG.iter().position(|long| *long == name);
            programs.push((place.unwrap_or(LONG.len()), path));
        }
    }
    programs.sort();
    let mut programs: Vec<PathBuf> = programs
        .into_iter()
        .enumerate()
        .filter(|(index, _)| part.has(*index))
        .map(|(_, (_, path))| path)
        .collect();
    programs.sort();
    Ok(programs)
}

/// Runs one program; true if it failed. Each result is followed by how long it was in coming, which is what the
/// test took: a program prints results as it has them.
fn run(program: &Path) -> Result<bool> {
    let mut last = Instant::now();
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn()?;
    let mut told = Told::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            let failed = line.starts_with("not ok ");
            told.failure |= failed || line.starts_with("Bail out!");
            println!("{line}");
            if failed || line.starts_with("ok ") {
                println!("# took: {:.2} s", last.elapsed().as_secs_f64());
                last = Instant::now();
            }
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
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut part = Part::WHOLE;
    if wanted.first().is_some_and(|word| word == "--part") {
        let Some(asked) = wanted.get(1).and_then(|text| Part::parse(text)) else {
            println!("Bail out! --part needs K/N");
            return Ok(true);
        };
        part = asked;
        wanted.drain(..2);
    }
    let programs = programs(own.parent().unwrap_or(Path::new("/")), &wanted, &part)?;
    if programs.is_empty() {
        println!("Bail out! no test program");
        return Ok(true);
    }
    let mut failed = false;
    for program in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let began = Instant::now();

        println!("# program: {name}");
        failed |= run(&program)?;
        println!("# took: {} s {name}", began.elapsed().as_secs());
    }
    Ok(failed)
}

pub(crate) fn main() {
    match run_all() {
        Ok(failed) => exit(failed.into()),
        Err(error) => {
            println!("Bail out! {error}");
            exit(1);
        }
    }
}
