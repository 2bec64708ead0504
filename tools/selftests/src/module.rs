// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loaded module: its parameters, taking it out and putting it back.

use std::ffi::CString;
use std::fs::{read_dir, read_to_string, File};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::io::Errno;

use crate::{program, Failure, TestResult};

const NAME: &str = "opendxg";
/// Where `tools/vm/run` puts the module file in the guest.
const FILE: &str = "/opendxg/opendxg.ko";

/// A parameter as the module shows it.
pub fn parameter(name: &str) -> TestResult<String> {
    let text = read_to_string(format!("/sys/module/{NAME}/parameters/{name}"))?;
    Ok(text.trim().into())
}

/// A parameter that is a number.
pub fn number(name: &str) -> TestResult<usize> {
    let text = parameter(name)?;
    text.parse()
        .map_err(|_| Failure::Failed(format!("parameter {name} is not a number: {text}")))
}

/// All parameters, in the form that loading takes.
pub fn parameters() -> TestResult<String> {
    let mut all = Vec::new();
    for entry in read_dir(format!("/sys/module/{NAME}/parameters"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        all.push(format!("{name}={}", parameter(&name)?));
    }
    Ok(all.join(" "))
}

/// Whether the module can be taken out and put back here: root, and the file is where the guest
/// has it.
pub fn is_replaceable() -> bool {
    // SAFETY: plain system call.
    Path::new(FILE).exists() && unsafe { libc::geteuid() } == 0
}

/// Set in a program that [`with_parameters`] runs.
const MARK: &str = "OPENDXG_TEST_PARAMETERS";

/// Runs `suite` with the module loaded with these parameters besides those it has: this program
/// runs itself once more, and loads the module as it was afterwards. Where the module cannot be
/// replaced, `suite` runs as things are.
pub fn with_parameters(parameters: &str, suite: impl FnOnce()) {
    if !is_replaceable() || std::env::var_os(MARK).is_some() {
        return suite();
    }
    let status = run_again(parameters).unwrap_or_else(|error| {
        println!("Bail out! the module cannot be loaded with {parameters}: {error}");
        1
    });
    std::process::exit(status);
}

fn run_again(more: &str) -> TestResult<i32> {
    let parameters = parameters()?;
    unload()?;
    load(&format!("{parameters} {more}"))?;
    let status = program::again()
        .args(std::env::args().skip(1))
        .env(MARK, more)
        .status();
    unload()?;
    load(&parameters)?;
    Ok(status?.code().unwrap_or(1))
}

/// Takes the module out.
pub fn unload() -> rustix::io::Result<()> {
    let name = CString::new(NAME).unwrap_or_default();
    // SAFETY: a live string.
    match unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// Puts the module back.
pub fn load(parameters: &str) -> TestResult {
    load_file(Path::new(FILE), parameters)
}

/// The same, with the error of the system.
pub fn try_load(parameters: &str) -> rustix::io::Result<()> {
    try_load_file(Path::new(FILE), parameters)
}

/// Loads a module.
pub fn load_file(path: &Path, parameters: &str) -> TestResult {
    Ok(try_load_file(path, parameters)?)
}

fn try_load_file(path: &Path, parameters: &str) -> rustix::io::Result<()> {
    let file = File::open(path).map_err(|error| errno_of(&error))?;
    let parameters = CString::new(parameters).unwrap_or_default();
    // SAFETY: an open file and a live string.
    let done = unsafe {
        let arguments = parameters.as_ptr();
        libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), arguments, 0)
    };
    if done != 0 {
        return Err(last_errno());
    }
    Ok(())
}

fn last_errno() -> Errno {
    errno_of(&std::io::Error::last_os_error())
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}
