// SPDX-License-Identifier: GPL-2.0

//! What clients attach to objects: information, weak references and watches.

pub(crate) mod attachments;
pub(crate) mod store;
mod tests;
pub(crate) mod watch;
pub(crate) mod weak;
