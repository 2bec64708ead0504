// SPDX-License-Identifier: MIT OR Apache-2.0
//! `libd3dkmt.so`: the D3DKMT functions for C programs, on `/dev/dxg`.
//!
//! [`functions`] is the whole of it: a table with a row per exported function. Most rows pass
//! their argument to the kernel as it is. The few that do not are in the modules below, one per
//! subject.
//!
//! Rules for every function:
//! * Without a device it returns UNSUCCESSFUL; with a NULL argument INVALID_PARAMETER.
//! * Where the kernel has no such call (yet), NOT_SUPPORTED.
//! * It may be called from any thread.

mod adapter_info;
mod adapters;
mod allocations;
mod answers;
mod cleanup;
pub mod dxcore;
pub mod export;
pub mod functions;
mod library;
mod names;
mod notices;
mod security;
pub mod signatures;
mod sync_objects;
mod text;

/// Compiles the examples of the page. The crate that they use is a package of its own, without the
/// page.
#[cfg(doctest)]
#[doc = include_str!("../../../Documentation/metadata.md")]
struct MetadataPage;
