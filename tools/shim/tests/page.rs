// SPDX-License-Identifier: MIT OR Apache-2.0
//! `Documentation/shim-functions.md` is what the table of functions and the kernel's table of
//! calls say.
//!
//! To bring the page up to date: `OPENDXG_UPDATE=1 cargo test -p opendxg-shim --test page`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use d3dkmt::export::{Function, Route};
use d3dkmt::functions::GROUPS;

const HEAD: &str = "\
# Functions of libd3dkmt.so

<!-- Made by tools/shim/tests/page.rs: OPENDXG_UPDATE=1 cargo test -p opendxg-shim --test page -->

| state | meaning |
|---|---|
| direct | the kernel runs the call with the caller's argument |
| translated | the library turns it into another call |
| answered | the library answers without the kernel |
| not supported yet: … | returns NOT_SUPPORTED, and why |
| not supported | returns NOT_SUPPORTED |
";

const PENDING: &str = "not supported yet";

const STATES: [&str; 5] = ["direct", "translated", "answered", PENDING, "not supported"];

/// Why functions are not supported yet, without their prefix.
const REASONS: [(&str, &str); 5] = [
    (
        "Lock2 and Unlock2 do this without allocation lists",
        "Unlock",
    ),
    (
        "comes with time-outs of the GPU; no known client on Linux calls it",
        "WaitForIdle SetQueuedLimit",
    ),
    (
        "contexts have priorities; no known client on Linux calls it",
        "SetProcessSchedulingPriorityClass GetProcessSchedulingPriorityClass",
    ),
    (
        "which processes of other users it may show is not decided",
        "EnumProcesses",
    ),
    (
        "comes with ownership of displays; no adapter has one",
        "SetVidPnSourceOwner SetVidPnSourceOwner1 SetVidPnSourceOwner2 CheckVidPnExclusiveOwnership \
         QueryVidPnExclusiveOwnership ReleaseProcessVidPnSourceOwners",
    ),
];

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn read(path: &str) -> String {
    let path = repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Why each function is not supported yet.
fn reasons() -> BTreeMap<String, &'static str> {
    let reasons = REASONS.iter().flat_map(|(why, names)| {
        let names = names.split_whitespace();
        names.map(move |name| (format!("D3DKMT{name}"), *why))
    });
    reasons.collect()
}

/// Numbers of the calls the kernel module implements: the rows of its tables, numbered by the
/// header.
fn implemented() -> BTreeSet<u32> {
    let table = read("rust/ioctl/table.rs");
    let types = read("rust/uapi/generated.rs");
    // Calls on descriptors of objects are in a table of their own.
    let on_file = read("rust/ioctl/on_file.rs");
    let rows = table.lines().filter_map(|line| line.trim().split_once(':'));
    let arms = on_file
        .lines()
        .filter_map(|line| line.trim().split_once(" =>"));
    let names = rows
        .chain(arms)
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("DXG_IOCTL_"));
    let code = |name: &str| {
        let start = types.split_once(&format!("pub const {name}: "))?.1;
        start
            .split(&['=', ';'][..])
            .nth(1)?
            .trim()
            .parse::<u32>()
            .ok()
    };
    names
        .map(|name| code(name).unwrap_or_else(|| panic!("no number for {name}")) & 0xff)
        .collect()
}

fn state(route: Route, implemented: &BTreeSet<u32>) -> &'static str {
    match route {
        Route::Direct(nr) | Route::Reopening(nr) | Route::Translated(nr)
            if !implemented.contains(&nr) =>
        {
            PENDING
        }
        Route::Direct(_) | Route::Reopening(_) => "direct",
        Route::Translated(_) => "translated",
        Route::Answered => "answered",
        Route::Pending => PENDING,
        Route::Unsupported => "not supported",
    }
}

fn call(route: Route) -> String {
    match route {
        Route::Direct(nr) | Route::Reopening(nr) | Route::Translated(nr) => format!("0x{nr:02x}"),
        Route::Answered | Route::Unsupported => "none".into(),
        Route::Pending => "to come".into(),
    }
}

fn page() -> String {
    let implemented = implemented();
    let state = |function: &Function| state(function.route, &implemented);
    let all: Vec<_> = GROUPS
        .iter()
        .flat_map(|(_, functions)| *functions)
        .collect();
    let counts = STATES.map(|wanted| {
        let count = all
            .iter()
            .filter(|function| state(function) == wanted)
            .count();
        format!("{count} {wanted}")
    });

    let mut reasons = reasons();
    let mut page = String::from(HEAD);
    writeln!(page, "\n{} functions: {}.", all.len(), counts.join(", ")).unwrap();
    for (group, functions) in GROUPS {
        write!(
            page,
            "\n## {group}\n\n| function | ioctl | state |\n|---|---|---|\n"
        )
        .unwrap();
        for function in *functions {
            let (name, call, state) = (function.name, call(function.route), state(function));
            let state = match state {
                PENDING => {
                    let why = reasons.remove(name);
                    format!(
                        "{state}: {}",
                        why.unwrap_or_else(|| panic!("why not {name}?"))
                    )
                }
                _ => state.to_owned(),
            };
            writeln!(page, "| {name} | {call} | {state} |").unwrap();
        }
    }
    assert!(reasons.is_empty(), "supported by now: {reasons:?}");
    page
}

#[test]
fn page_is_up_to_date() {
    let path = repository("Documentation/shim-functions.md");
    let expected = page();
    if std::env::var_os("OPENDXG_UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found
        .lines()
        .zip(expected.lines())
        .find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{} is out of date (first difference: {differs:?}); see the head of this test",
        path.display()
    );
}
