// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers and the Rust types against the tables.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use abi::c::Dialect;
use abi::check::{self, Check, Layout};
use abi::compiler::{Compiler, Language, COMPILERS};
use abi::generated::Generated;
use abi::{root, table};
use libtest_mimic::{Arguments, Failed, Trial};

/// Standards in which each header must compile alone, the oldest and the newest, without an
/// extension.
const STANDARDS: [(&str, Compiler); 10] = [
    (
        "gcc-c89",
        standard("gcc", &["-std=c89", PEDANTIC], Dialect::C),
    ),
    (
        "gcc-c23",
        standard("gcc", &["-std=c23", PEDANTIC], Dialect::C),
    ),
    (
        "gcc-m32",
        standard("gcc", &["-std=c17", "-m32", PEDANTIC], Dialect::C),
    ),
    (
        "clang-c89",
        standard("clang", &["-std=c89", PEDANTIC], Dialect::C),
    ),
    (
        "clang-c23",
        standard("clang", &["-std=c23", PEDANTIC], Dialect::C),
    ),
    (
        "g++-c++98",
        standard("g++", &["-std=c++98", PEDANTIC], Dialect::Cpp),
    ),
    (
        "g++-c++26",
        standard("g++", &["-std=c++26", PEDANTIC], Dialect::Cpp),
    ),
    (
        "g++-m32",
        standard("g++", &["-std=c++98", "-m32", PEDANTIC], Dialect::Cpp),
    ),
    (
        "clang++-c++98",
        standard("clang++", &["-std=c++98", PEDANTIC], Dialect::Cpp),
    ),
    (
        "clang++-c++23",
        standard("clang++", &["-std=c++23", PEDANTIC], Dialect::Cpp),
    ),
];

const PEDANTIC: &str = "-Wpedantic";

const fn standard(
    program: &'static str,
    options: &'static [&'static str],
    dialect: Dialect,
) -> Compiler {
    Compiler::standard(program, options, dialect)
}

/// Picks one group of checks.
type Select = fn(&Facts) -> &Vec<Check>;

/// Everything the trials read.
struct Facts {
    rows: Vec<table::Row>,
    outside: Vec<table::Outside>,
    layout: Layout,
    ioctls: Vec<Check>,
    constants: Vec<Check>,
    generated: Generated,
}

impl Facts {
    fn read() -> Self {
        let directory = root().join("Documentation/abi");
        let rows = table::layout(&directory);
        let outside = table::outside(&directory);
        let text = std::fs::read_to_string(root().join("rust/uapi/generated.rs"))
            .expect("rust/uapi/generated.rs is readable");
        Self {
            layout: Layout::new(&rows, &outside),
            ioctls: check::ioctls(&table::ioctls(&directory)),
            constants: check::constants(&table::constants(&directory)),
            generated: Generated::parse(&text),
            rows,
            outside,
        }
    }

    fn all(&self) -> Vec<Check> {
        let parts = [&self.layout.checks, &self.ioctls, &self.constants];
        parts.into_iter().flatten().cloned().collect()
    }
}

/// Compiles the assertions of `checks`.
fn hold(compiler: &Compiler, facts: &Facts, checks: &[Check]) -> Result<(), Failed> {
    assert!(!checks.is_empty());
    compiler.compile(&compiler.source(&facts.generated, checks))?;
    Ok(())
}

/// A wrong number of each kind, alone, must be refused: the assertions do assert.
fn refuses_wrong_numbers(compiler: &Compiler, facts: &Facts) -> Result<(), Failed> {
    let mut kinds = Vec::new();
    for check in facts.all() {
        let kind = discriminant(&check.demand);
        if kinds.contains(&kind) {
            continue;
        }
        kinds.push(kind);
        hold(compiler, facts, std::slice::from_ref(&check))?;
        let wrong = check::spoil(&check);
        if hold(compiler, facts, &[wrong]).is_ok() {
            return Err(format!("accepts a wrong number for {}", check.origin).into());
        }
    }
    assert_eq!(kinds.len(), 3, "a size, a member and a value");
    Ok(())
}

/// Every row is checked, or of the program's text form, or of a struct that is listed as outside.
fn covers_every_row(facts: &Facts) -> Result<(), Failed> {
    let layout = &facts.layout;
    let (checked, program, outside) = (
        layout.checked.len(),
        layout.program.len(),
        layout.outside.len(),
    );
    println!(
        "coverage: {} rows: {checked} checked by {} assertions, {program} of the 4-byte text form, \
         {outside} of {} structs outside the headers; {} ioctl and {} constant assertions",
        facts.rows.len(),
        layout.checks.len(),
        facts.outside.len(),
        facts.ioctls.len(),
        facts.constants.len(),
    );
    if checked + program + outside != facts.rows.len() {
        return Err("a row is not accounted for".into());
    }
    let owners: BTreeSet<&str> = facts.rows.iter().map(|row| row.owner.as_str()).collect();
    for entry in &facts.outside {
        if !owners.contains(entry.owner.as_str()) {
            return Err(format!("outside.tsv: {} is not in the table", entry.owner).into());
        }
        if facts.generated.has_type(&entry.owner) {
            return Err(format!("outside.tsv: {} is in the headers", entry.owner).into());
        }
        if entry.reason.is_empty() {
            return Err(format!("outside.tsv: {} has no reason", entry.owner).into());
        }
    }
    Ok(())
}

/// The headers have no number, code or status that the tables do not know.
fn knows_every_constant(facts: &Facts) -> Result<(), Failed> {
    let known: BTreeSet<String> = facts
        .all()
        .into_iter()
        .filter_map(|check| match check.demand {
            check::Demand::Value { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    let unknown: Vec<&String> = facts
        .generated
        .constants()
        .iter()
        .filter(|name| !known.contains(*name) && !name.starts_with('_'))
        .collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(format!("constants in no table: {unknown:?}").into())
    }
}

/// What bindgen makes of headers: the script that runs it, and the file that is committed.
const GENERATED: [(&str, &str); 2] = [
    ("tools/abi/bindgen.sh", "rust/uapi/generated.rs"),
    ("tools/abi/ffi.sh", "rust/sys/ffi.rs"),
];

/// bindgen makes exactly the committed file out of the headers.
fn regenerates_the_same(script: &str, output: &str) -> Result<(), Failed> {
    let stem = output.replace('/', "-");
    let fresh = std::env::temp_dir().join(format!("abi-{}-{stem}", std::process::id()));
    let status = Command::new(root().join(script))
        .arg(&fresh)
        .status()
        .map_err(|error| format!("{script}: {error}"))?;
    if !status.success() {
        return Err(format!("{script}: {status}").into());
    }
    let committed = std::fs::read_to_string(root().join(output))?;
    let made = std::fs::read_to_string(&fresh)?;
    std::fs::remove_file(&fresh)?;
    let difference = committed
        .lines()
        .zip(made.lines())
        .position(|(committed, made)| committed != made);
    match difference {
        _ if committed == made => Ok(()),
        Some(line) => Err(format!("{output} is stale from line {}; run {script}", line + 1).into()),
        None => Err(format!("{output} is stale; run {script}").into()),
    }
}

/// The headers that programs include, relative to where they are installed.
fn headers() -> Vec<PathBuf> {
    let mut headers = Vec::new();
    for top in ["uapi", "tools/shim/include"] {
        let top = root().join(top);
        for directory in [top.clone(), top.join("dxg"), top.join("opendxg")] {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            let files = entries.map(|entry| entry.path());
            let files = files.filter(|path| path.extension().is_some_and(|kind| kind == "h"));
            headers.extend(files.map(|path| path.strip_prefix(&top).unwrap().to_path_buf()));
        }
    }
    headers.sort();
    headers
}

/// Every header compiles alone, and twice in one file.
fn compiles_alone(compiler: &Compiler) -> Result<(), Failed> {
    let headers = headers();
    assert!(headers.len() > 25, "only {} headers", headers.len());
    for header in headers {
        let include = format!("#include \"{}\"\n", header.display());
        compiler
            .compile(&include.repeat(2))
            .map_err(|message| format!("{}: {message}", header.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let facts = Arc::new(Facts::read());
    let mut trials = Vec::new();
    let mut add =
        |name: String, skip: Option<String>, test: Box<dyn FnOnce(&Facts) -> _ + Send>| {
            let name = match &skip {
                Some(why) => format!("{name} # SKIP {why}"),
                None => name,
            };
            let facts = Arc::clone(&facts);
            trials.push(Trial::test(name, move || test(&facts)).with_ignored_flag(skip.is_some()));
        };
    let missing = |compiler: &Compiler| {
        (!compiler.is_available()).then(|| format!("{} does not work here", compiler.name))
    };

    add("coverage".into(), None, Box::new(covers_every_row));
    add("constants".into(), None, Box::new(knows_every_constant));
    let no_bindgen = Command::new("bindgen").arg("--version").output().is_err();
    for (script, output) in GENERATED {
        add(
            format!("regenerate/{output}"),
            no_bindgen.then(|| "bindgen is missing".into()),
            Box::new(move |_| regenerates_the_same(script, output)),
        );
    }
    for compiler in COMPILERS {
        let skip = missing(&compiler);
        let name = compiler.name;
        let parts: [(&str, Select); 3] = [
            ("layout", |facts| &facts.layout.checks),
            ("ioctls", |facts| &facts.ioctls),
            ("constants", |facts| &facts.constants),
        ];
        for (part, select) in parts {
            let test = move |facts: &Facts| hold(&compiler, facts, select(facts));
            add(format!("{part}/{name}"), skip.clone(), Box::new(test));
        }
        let test = move |facts: &Facts| refuses_wrong_numbers(&compiler, facts);
        add(format!("refusal/{name}"), skip, Box::new(test));
    }
    for (name, compiler) in STANDARDS {
        assert!(matches!(compiler.language, Language::C(_)));
        let test = move |_: &Facts| compiles_alone(&compiler);
        add(format!("alone/{name}"), missing(&compiler), Box::new(test));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
