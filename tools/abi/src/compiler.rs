// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compilers that judge a source file, which they read from standard input.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::c::{self, Dialect};
use crate::check::Check;
use crate::generated::Generated;
use crate::{root, rust};

/// A language as the compilers' drivers name it.
#[derive(Clone, Copy, Debug)]
pub enum Language {
    /// C or C++.
    C(Dialect),
    /// Rust.
    Rust,
}

/// A compiler for one target and one language.
#[derive(Clone, Copy, Debug)]
pub struct Compiler {
    /// The name in test names.
    pub name: &'static str,
    /// The program.
    pub program: &'static str,
    /// What selects the target and the standard.
    pub options: &'static [&'static str],
    /// The language.
    pub language: Language,
}

const C: Language = Language::C(Dialect::C);
const CPP: Language = Language::C(Dialect::Cpp);

/// Every compiler that judges the layouts.
pub const COMPILERS: [Compiler; 9] = [
    compiler("gcc", "gcc", &[], C),
    compiler("gcc-m32", "gcc", &["-m32"], C),
    compiler("clang", "clang", &[], C),
    compiler("clang-m32", "clang", &["-m32"], C),
    compiler("g++-c++17", "g++", &["-std=c++17"], CPP),
    compiler("g++-c++17-m32", "g++", &["-std=c++17", "-m32"], CPP),
    compiler("clang++-c++17", "clang++", &["-std=c++17"], CPP),
    compiler("clang-aarch64", "clang", &["--target=aarch64-linux-gnu"], C),
    compiler("rustc", "rustc", &["--edition=2021"], Language::Rust),
];

const fn compiler(
    name: &'static str,
    program: &'static str,
    options: &'static [&'static str],
    language: Language,
) -> Compiler {
    Compiler {
        name,
        program,
        options,
        language,
    }
}

impl Compiler {
    /// A C or C++ compiler with a standard of its own, for any other use than [`COMPILERS`].
    pub const fn standard(
        program: &'static str,
        options: &'static [&'static str],
        dialect: Dialect,
    ) -> Self {
        compiler(program, program, options, Language::C(dialect))
    }

    /// Whether the program and the headers of its target are there.
    pub fn is_available(&self) -> bool {
        let probe = match self.language {
            Language::C(_) => "#include <linux/types.h>\n#include <linux/ioctl.h>\n",
            Language::Rust => "#![no_std]\n",
        };
        self.compile(probe).is_ok()
    }

    /// The source file for `checks` in this compiler's language.
    pub fn source(&self, generated: &Generated, checks: &[Check]) -> String {
        match self.language {
            Language::C(dialect) => c::source(dialect, "dxg.h", checks),
            Language::Rust => {
                rust::source(generated, &root().join("rust/uapi/generated.rs"), checks)
            }
        }
    }

    /// Compiles `source` with every warning an error; the messages if it is refused.
    pub fn compile(&self, source: &str) -> Result<(), String> {
        self.compile_beside(source, &[])
    }

    /// Like [`Compiler::compile`], with headers of others, whose own warnings do not count.
    pub fn compile_beside(&self, source: &str, others: &[PathBuf]) -> Result<(), String> {
        let mut command = Command::new(self.program);
        let metadata = scratch();
        command.args(self.options);
        match self.language {
            Language::C(dialect) => command
                .args(["-Wall", "-Wextra", "-Wpadded", "-Werror", "-fsyntax-only"])
                .arg("-I")
                .arg(root().join("uapi"))
                .arg("-I")
                .arg(root().join("tools/shim/include"))
                .args(
                    others
                        .iter()
                        .flat_map(|other| [OsStr::new("-isystem"), other.as_os_str()]),
                )
                .args(match dialect {
                    Dialect::C => ["-x", "c", "-"],
                    Dialect::Cpp => ["-x", "c++", "-"],
                }),
            Language::Rust => command
                .args(["--crate-type=lib", "--crate-name=layout", "--emit=metadata"])
                .args(["-Dwarnings", "-", "-o"])
                .arg(&metadata),
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program))?;
        let mut input = child.stdin.take().expect("stdin is piped");
        // A compiler that stops early closes its end; its exit status tells.
        let _ = input.write_all(source.as_bytes());
        drop(input);
        let output = child
            .wait_with_output()
            .map_err(|error| format!("{}: {error}", self.program))?;
        let _ = std::fs::remove_file(&metadata);
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// A file for the metadata of a Rust crate that no other compilation writes.
fn scratch() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("abi-{}-{number}.rmeta", std::process::id());
    std::env::temp_dir().join(name)
}
