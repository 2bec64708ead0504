// SPDX-License-Identifier: MIT OR Apache-2.0

//! The machine of the tests in `tools/host`.

#[path = "../../host/src/tests/engine/machine.rs"]
mod machine;
#[path = "../../host/src/tests/engine/play.rs"]
pub(crate) mod play;
#[path = "../../host/src/tests/engine/play_ring.rs"]
pub(crate) mod play_ring;
#[path = "../../host/src/tests/engine/program.rs"]
mod program;
