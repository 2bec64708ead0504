// SPDX-License-Identifier: GPL-2.0

//! Processes and threads: who calls, how it sleeps, and when it ends.

pub(crate) mod caller;
pub(crate) mod credentials;
pub(crate) mod group;
pub(crate) mod kthread;
pub(crate) mod memory_group;
pub(crate) mod mm_end;
pub(crate) mod sleep;
pub(crate) mod stamp;
pub(crate) mod thread;
pub(crate) mod thread_exit;
