// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns the output of `bench` into files, and prints the table.
//!
//! ```text
//! bench-report MEASURED.json FOLDER [CONDITION=VALUE]...
//! ```
//!
//! Conditions are what `bench` cannot know, such as the version of QEMU; they go into the result
//! as they are. Writes `results.json`, `table.txt`, `ratios.svg` and the curves of some groups into
//! the folder.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use bench::report::{compare, plot, rows, table, Publication};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: bench-report MEASURED.json FOLDER [CONDITION=VALUE]...";
    let (measured, folder) = args.next().zip(args.next()).ok_or(usage)?;
    let mut conditions = BTreeMap::new();
    for arg in args {
        let (name, value) = arg.split_once('=').ok_or(usage)?;
        conditions.insert(name.to_owned(), value.to_owned());
    }
    let text = fs::read_to_string(&measured).map_err(|error| format!("{measured}: {error}"))?;
    let measured = serde_json::from_str(&text).map_err(|error| format!("{measured}: {error}"))?;
    let publication = Publication {
        comparisons: compare::compare(&measured, &rows::all()),
        conditions,
        measured,
    };
    let table = table::table(&publication);
    let folder = Path::new(&folder);
    let json = serde_json::to_string_pretty(&publication)?;
    fs::write(folder.join("results.json"), json)?;
    fs::write(folder.join("table.txt"), &table)?;
    fs::write(folder.join("ratios.svg"), plot::ratios(&publication)?)?;
    for curves in plot::Curves::ALL {
        if let Some(picture) = curves.draw(&publication) {
            fs::write(folder.join(format!("{}.svg", curves.group)), picture?)?;
        }
    }
    print!("{table}");
    Ok(())
}
