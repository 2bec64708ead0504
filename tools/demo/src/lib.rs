// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the Rust programs of the demo have in common.

pub mod alive;
pub mod drawing;
pub mod image_file;
pub mod link;
pub mod memory;
pub mod partner;
pub mod screen;
pub mod wakeups;

/// What every step of the demo returns: anything unexpected ends it.
pub type Result<T = (), E = Box<dyn std::error::Error>> = core::result::Result<T, E>;
