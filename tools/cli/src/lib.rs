// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `opendxg`: what is alive in the module, who holds it and who waits for it.
//!
//! Everything that is shown comes from `/proc/PID/fdinfo` and, for root, debugfs. The only call to
//! the module lists the adapters, and no process has to answer: the command works while processes
//! are stopped or blocked. What root does to an adapter are calls, too. A timeline comes from the
//! tracepoints of the module.
//!
//! | Module | What |
//! |---|---|
//! | [`args`] | the command line |
//! | [`capture`] | a trace of the kernel around a command |
//! | [`control`] | what root does to an adapter |
//! | [`debugfs`] | the module's own counts of all processes, engines and queues |
//! | [`engines`] | the lines about engines and queues |
//! | [`top`] | how busy engines are, and with whose work |
//! | [`fdinfo`] | the lines that the module writes |
//! | [`refusals`] | the lines about refused calls, and the rules behind them |
//! | [`reports`] | the reports of what went wrong |
//! | [`proc`] | finds descriptors of the module in all processes |
//! | [`waiters`] | who is to blame for waits that do not end |
//! | [`world`] | puts them together: processes, objects, adapters |
//! | [`show`] | tables, and the same as JSON |

pub mod args;
pub mod capture;
pub mod control;
pub mod debugfs;
pub mod engines;
pub mod fdinfo;
pub mod proc;
pub mod refusals;
pub mod reports;
pub mod show;
pub mod table;
pub mod top;
pub mod waiters;
pub mod world;
