// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `install.sh` installs is enough to build and run the C program of the documentation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PREFIX: &str = "/opt/dxg";

fn source(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command and returns its output; a command that cannot be started fails the test.
fn output(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

#[track_caller]
fn run(command: &mut Command) {
    let output = output(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
}

fn install(name: &str) -> PathBuf {
    let destination = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&destination);
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libd3dkmt.so");
    run(Command::new("sh")
        .arg(source("install.sh"))
        .args(["--prefix", PREFIX, "--destdir"])
        .arg(&destination)
        .arg("--lib")
        .arg(library));
    destination.join(PREFIX.trim_start_matches('/'))
}

/// The first C program of the documentation.
fn example() -> String {
    let page = fs::read_to_string(source("../../Documentation/shim.md")).unwrap();
    let start = page.split_once("```c\n").expect("a C program").1;
    start.split_once("```").expect("its end").0.into()
}

#[test]
fn all_names_are_one_library() {
    let root = install("names");
    for name in ["libd3dkmt.so", "libdxg.so", "libdxg.so.1", "libdxcore.so"] {
        let target = fs::read_link(root.join("lib").join(name)).unwrap();
        assert_eq!(target, Path::new("libd3dkmt.so.1"), "{name}");
    }
    let module = fs::read_to_string(root.join("lib/pkgconfig/d3dkmt.pc")).unwrap();
    assert!(module.contains(&format!("prefix={PREFIX}\n")), "{module}");
    assert!(module.contains(env!("CARGO_PKG_VERSION")), "{module}");
    assert!(!module.contains('@'), "{module}");
}

#[test]
fn the_program_of_the_documentation_runs() {
    let root = install("program");
    let program = root.join("program");
    let text = root.join("program.c");
    fs::write(&text, example()).unwrap();
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(&text)
        .arg("-L")
        .arg(root.join("lib"))
        .args(["-ld3dkmt", "-o"])
        .arg(&program));
    let output = output(
        Command::new(&program)
            .env("LD_LIBRARY_PATH", root.join("lib"))
            .env("OPENDXG_DEVICE", "/dev/no-such-device"),
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*errors),
        (Some(1), "no adapters: 0xc0000001\n")
    );
}

#[test]
fn the_header_is_cplusplus_too() {
    let root = install("cplusplus");
    let text = root.join("program.cc");
    let call = "#include <d3dkmt.h>\n\
        int main() { return NT_SUCCESS(D3DKMTEnumAdapters2(nullptr)); }\n";
    fs::write(&text, call).unwrap();
    run(Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(&text)
        .arg("-L")
        .arg(root.join("lib"))
        .args(["-ld3dkmt", "-o"])
        .arg(root.join("program")));
}
