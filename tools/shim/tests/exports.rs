// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of functions, the built library and the C header agree with the list of functions that programs
//! expect.

use std::collections::BTreeSet;
use std::path::PathBuf;

use d3dkmt::functions::GROUPS;
use object::{Object, ObjectSymbol};

type Names = BTreeSet<String>;

fn source(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What programs expect.
fn expected() -> Names {
    let lines = include_str!("exports.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let names: Vec<_> = lines.map(String::from).collect();
    let unique: Names = names.iter().cloned().collect();
    assert_eq!(unique.len(), names.len(), "a name is listed twice");
    unique
}

#[track_caller]
fn assert_same(found: &Names, expected: &Names) {
    let missing: Vec<_> = expected.difference(found).collect();
    let unexpected: Vec<_> = found.difference(expected).collect();
    assert!(
        missing.is_empty() && unexpected.is_empty(),
        "missing {missing:?}, unexpected {unexpected:?}"
    );
}

#[test]
fn table() {
    let functions = GROUPS.iter().flat_map(|(_, functions)| *functions);
    assert_same(
        &functions.map(|function| function.name.into()).collect(),
        &expected(),
    );
}

#[test]
fn library() {
    // Cargo builds the shared library next to the tests.
    let tests = std::env::current_exe().unwrap();
    let path = tests.with_file_name("libd3dkmt.so");
    let bytes = std::fs::read(&path).unwrap();
    let library = object::File::parse(&*bytes).unwrap();
    let symbols = library
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition());
    let names = symbols
        .map(|symbol| symbol.name().unwrap().into())
        .collect();
    assert_same(&names, &expected());
}

/// The names with this prefix that a header declares.
fn declared(header: &str, prefix: &str) -> (String, Names) {
    let text = std::fs::read_to_string(source(header)).unwrap();
    let names = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.split_whitespace().last())
        .filter(|name| name.starts_with(prefix))
        .map(String::from)
        .collect();
    (text, names)
}

/// The names declared by the header, before the preprocessor renames some.
#[test]
fn header() {
    let (text, declared) = declared("include/d3dkmt.h", "D3DKMT");
    let renamed = text
        .lines()
        .filter(|line| line.starts_with("#define D3DKMT"));
    // Declared under the plain name, compiled as the other one.
    let renamed = renamed.count();
    let functions = expected().into_iter();
    let functions = functions.filter(|name| name.starts_with("D3DKMT"));
    let (sixteen, plain): (Names, Names) = functions.partition(|name| name.ends_with("16"));
    assert_same(&declared, &plain);
    assert_eq!(renamed, sixteen.len());
    for name in sixteen {
        assert!(text.contains(&name), "{name}");
    }
}

#[test]
fn header_of_additions() {
    let (_, declared) = declared("include/opendxg.h", "opendxg_");
    let additions = expected().into_iter();
    let additions = additions.filter(|name| name.starts_with("opendxg_"));
    assert_same(&declared, &additions.collect());
}
