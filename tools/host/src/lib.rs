// SPDX-License-Identifier: MIT OR Apache-2.0

//! The module's pure rules on the host.
//!
//! `logic` is the very folder that Kbuild compiles into the module, included by path. It sees the
//! same two names as there: `crate::logic` and `crate::platform`. Only `platform` is ours: the
//! standard library's atomics, or loom's under `--cfg loom`.
//!
//! There is nothing here to call; the crate exists for its tests. How to run them and what each
//! kind shows is in `Documentation/testing-host.md`.

// What nobody uses is for the module's own build to report.
#[allow(dead_code)]
#[forbid(unsafe_code)]
#[path = "../../../rust/logic/mod.rs"]
mod logic;
#[cfg_attr(not(test), allow(dead_code))]
mod platform;

#[cfg(test)]
mod tests;
