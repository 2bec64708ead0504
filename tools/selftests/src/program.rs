// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which test program this process runs, and how it runs itself once more, or another one. All
//! programs are one file with many names, so what leads to the file does not tell.

use std::ffi::CString;
use std::path::Path;

use crate::Failure;

/// The file of all programs, in the words of exec.
const FILE: &str = "/proc/self/exe";

/// The name that this program was called by.
pub fn name() -> String {
    let called = std::env::args().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Another process of this program.
pub fn again() -> std::process::Command {
    other(&name())
}

/// A process of another program.
pub fn other(name: &str) -> std::process::Command {
    use std::os::unix::process::CommandExt;

    let mut command = std::process::Command::new(FILE);
    command.arg0(name);
    command
}

/// Runs this program again in this process, with these arguments. Returns only an error.
pub fn become_again(arguments: &[&str]) -> Failure {
    let name = name();
    let words = [name.as_str()].into_iter().chain(arguments.iter().copied());
    let words: Vec<CString> = words.flat_map(CString::new).collect();
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(core::ptr::null());
    let file = CString::new(FILE).unwrap_or_default();
    // SAFETY: live strings and an array with a NULL at its end.
    unsafe { libc::execv(file.as_ptr(), pointers.as_ptr()) };
    std::io::Error::last_os_error().into()
}
