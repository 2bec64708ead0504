// SPDX-License-Identifier: MIT OR Apache-2.0

//! What every packet does.

mod atomics;
mod data;
mod fences;
mod flow;
mod headers;
mod logs;
mod paging;
mod signals;
mod submissions;
mod waits;

use crate::tests::engine::machine::Machine;
use crate::tests::engine::program::Program;

/// Runs a program on a new machine to its end.
fn run(program: Program) -> Machine {
    let mut machine = Machine::new();

    machine.done(&program.0);
    machine
}
