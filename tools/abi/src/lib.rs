// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares `uapi/*.h` and `rust/uapi/generated.rs` with the tables in `Documentation/abi/`.
//!
//! The tables are facts about the interface: [`table`] reads them, [`check`] turns every row into
//! checks, [`c`] and [`rust`] write the checks as compile-time assertions, and [`compiler`] lets
//! the compilers judge them.

pub mod c;
pub mod check;
pub mod compiler;
pub mod generated;
pub mod rust;
pub mod table;

use std::path::PathBuf;

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .expect("tools/abi lies two levels below the root")
        .to_path_buf()
}
