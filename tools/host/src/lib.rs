// SPDX-License-Identifier: MIT OR Apache-2.0

//! The module's pure rules on the host.
//!
//! `ddi`, `engine`, `kmd` and `logic` are the very folders that Kbuild compiles into the module,
//! included by path. They see the same names as there: each other and `crate::platform`. Only
//! `platform` is of this crate: the standard library's atomics, or loom's under `--cfg loom`.
//!
//! There is nothing here to call; the crate exists for its tests. How to run them and what each
//! kind shows is in `Documentation/testing-host.md`.

// What nobody uses is for the module's own build to report.
#[allow(dead_code)]
#[cfg_attr(not(test), allow(unused_imports))]
#[forbid(unsafe_code)]
#[path = "../../../rust/ddi/mod.rs"]
mod ddi;
#[allow(dead_code)]
#[forbid(unsafe_code)]
#[path = "../../../rust/engine/mod.rs"]
mod engine;
#[allow(dead_code)]
#[forbid(unsafe_code)]
#[path = "../../../rust/kmd/mod.rs"]
mod kmd;
#[allow(dead_code)]
#[forbid(unsafe_code)]
#[path = "../../../rust/logic/mod.rs"]
mod logic;
#[cfg_attr(not(test), allow(dead_code))]
mod physical;
#[cfg_attr(not(test), allow(dead_code))]
mod platform;
#[cfg_attr(not(test), allow(dead_code))]
mod thread;

#[cfg(test)]
mod tests;
