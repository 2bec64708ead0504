// SPDX-License-Identifier: GPL-2.0

//! The core of the software GPU: what reads command buffers and carries them out.
//!
//! Pure, as `logic` is: no kernel crate, no `unsafe`, no panics, no locks, no floating point, no
//! recursion, and no memory but the translation cache, which is taken when an engine is made
//! (GPU-107). Memory, clock and interrupts are traits that the shell around it implements. Progress
//! is made only inside of [`command_processor::Engine::step`], by at most its budget, and depends
//! on nothing but the state and what the traits answer (GPU-108).
//!
//! - `memory`: what the core wants of physical memory; `shell`: the same for clock and interrupts;
//! - `fences`: the same for native fences; `log`: what is logged of them;
//! - `page_table`: formats of page tables; `translation`: from GPU virtual to physical addresses;
//! - `space`: memory as a queue sees it, through its page tables;
//! - `packet`: headers and the table of packets; `fields`: what is behind a header; `packets`: what
//!   that means;
//! - `operation`: what of a packet is still to be done; `queue`: where a queue has got to; `ring`:
//!   the same in a ring that its process fills;
//! - `command_processor`: the engine;
//! - `run_list`: which queue runs next.
//!
//! `Documentation/software-gpu.md` describes packets, tables and run list for those who use them.

pub mod command_processor;
pub mod fault;
pub mod fences;
mod fields;
pub mod log;
pub mod memory;
mod operation;
pub mod packet;
mod packets;
pub mod page_table;
pub mod queue;
pub mod ring;
pub mod run_list;
pub mod shell;
mod space;
pub mod translation;
