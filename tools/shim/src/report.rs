// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page `Documentation/shim-functions.md`, made from the table of functions.

use core::fmt::Write;

pub use crate::export::{Function, Route};
use crate::functions::GROUPS;

/// Numbers of the calls that the kernel module of this source tree implements.
///
/// A test in the virtual machine compares them with what the loaded module says of itself.
pub const IMPLEMENTED: &[u32] = &[
    0x01, 0x02, 0x04, 0x05, 0x09, 0x0e, 0x10, 0x14, 0x15, 0x17, 0x19, 0x1a, 0x1d, 0x29, 0x31, 0x3a,
    0x3d, 0x3e, 0x3f, 0x40, 0x49, 0x80, 0x81, 0x8f, 0xa2, 0xb8,
];

/// All exported functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    GROUPS.iter().flat_map(|(_, functions)| *functions)
}

/// What a caller can expect of a function today.
fn state(route: Route) -> &'static str {
    match route {
        Route::Direct(nr) | Route::Reopening(nr) | Route::Translated(nr)
            if !IMPLEMENTED.contains(&nr) =>
        {
            "not supported yet"
        }
        Route::Direct(_) | Route::Reopening(_) => "direct",
        Route::Translated(_) => "translated",
        Route::Answered => "answered",
        Route::Pending => "not supported yet",
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

/// The page as text.
pub fn page() -> String {
    let mut page = String::from(
        "# Functions of libd3dkmt.so\n\n\
        <!-- Made from tools/shim/src/functions.rs; a test compares. Do not edit: run\n\
        OPENDXG_UPDATE=1 cargo test -p opendxg-shim --test page -->\n\n\
        | state | meaning |\n|---|---|\n\
        | direct | the kernel runs the call with the caller's argument |\n\
        | translated | the library turns it into another call |\n\
        | answered | the library answers without the kernel |\n\
        | not supported yet | returns NOT_SUPPORTED until the kernel implements the call |\n\
        | not supported | returns NOT_SUPPORTED |\n\n",
    );
    let states = [
        "direct",
        "translated",
        "answered",
        "not supported yet",
        "not supported",
    ];
    let counts = states.map(|wanted| {
        let count = functions()
            .filter(|function| state(function.route) == wanted)
            .count();
        format!("{count} {wanted}")
    });
    let _ = writeln!(
        page,
        "{} functions: {}.",
        functions().count(),
        counts.join(", ")
    );
    for (group, functions) in GROUPS {
        let _ = write!(
            page,
            "\n## {group}\n\n| function | ioctl | state |\n|---|---|---|\n"
        );
        for function in *functions {
            let (call, state) = (call(function.route), state(function.route));
            let _ = writeln!(page, "| {} | {call} | {state} |", function.name);
        }
    }
    page
}
