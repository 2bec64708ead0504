// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structs, flags and numbers of the C headers `d3dkmthk.h` and `dxg.h`, generated from them
//! and shared with the kernel module.
//!
//! Addresses and NT handles are plain `u64`, handles `u32`, and the names are those of the
//! headers.

pub use generated::*;

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
mod generated {
    // A link to the file that the module is compiled with; a package holds a copy.
    include!("uapi/generated.rs");
}
