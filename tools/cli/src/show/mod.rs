// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer to each command, as text or as JSON.

mod gpu;
mod json;
mod objects;
mod overview;
mod refusals;
mod report;
mod text;
mod waiters;

use crate::args::Command;
use crate::world::World;

pub use json::JSON_VERSION;

/// What to print, or why there is nothing.
pub fn answer(world: &World, command: &Command, json: bool) -> Result<String, String> {
    match json {
        true => json::as_json(world, command),
        false => text::as_text(world, command),
    }
}
