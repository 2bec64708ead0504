// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of functions, the built library and the C header agree with the list of functions
//! that programs expect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The names declared by the header. Some lead to a symbol of another name.
#[test]
fn header() {
    let (text, declared) = declared("include/d3dkmt.h", "D3DKMT");
    let renamed = text.matches("__asm__(\"D3DKMT").count();
    let functions = expected().into_iter();
    let functions = functions.filter(|name| name.starts_with("D3DKMT"));
    let (sixteen, plain): (Names, Names) = functions.partition(|name| name.ends_with("16"));
    assert_same(&declared, &plain);
    assert_eq!(renamed, sixteen.len());
    for name in sixteen {
        assert!(text.contains(&format!("__asm__(\"{name}\")")), "{name}");
    }
}

/// A program that calls the functions under their plain names reaches the forms with 16-bit
/// text. No macro changes the names, so members and texts of a program keep theirs.
#[test]
fn plain_names_lead_to_16_bit_text() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (text, object) = (directory.join("plain.cc"), directory.join("plain.o"));
    let program = "#include <d3dkmt.h>\n\
        #define TEXT_OF(name) #name\n\
        #define TEXT(name) TEXT_OF(name)\n\
        struct table { NTSTATUS (*D3DKMTQueryAdapterInfo)(const D3DKMT_QUERYADAPTERINFO *); };\n\
        static_assert(sizeof TEXT(D3DKMTQueryAdapterInfo) == sizeof \"D3DKMTQueryAdapterInfo\", \"\");\n\
        void fill(table *functions) { functions->D3DKMTQueryAdapterInfo = &D3DKMTQueryAdapterInfo; }\n\
        NTSTATUS open(D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME *args) \
        { return D3DKMTOpenAdapterFromGdiDisplayName(args); }\n";
    std::fs::write(&text, program).unwrap();
    let output = Command::new("c++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-c", "-I"])
        .arg(source("include"))
        .arg("-I")
        .arg(source("../../uapi"))
        .arg(&text)
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let bytes = std::fs::read(&object).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let needed = object.symbols().filter(|symbol| symbol.is_undefined());
    let needed = needed.map(|symbol| symbol.name().unwrap().to_string());
    let needed: Names = needed.filter(|name| name.starts_with("D3DKMT")).collect();
    let wanted = [
        "D3DKMTQueryAdapterInfo16",
        "D3DKMTOpenAdapterFromGdiDisplayName16",
    ];
    assert_same(&needed, &wanted.map(String::from).into());
}

#[test]
fn header_of_additions() {
    let (_, declared) = declared("include/opendxg.h", "opendxg_");
    let additions = expected().into_iter();
    let additions = additions.filter(|name| name.starts_with("opendxg_"));
    assert_same(&declared, &additions.collect());
}
