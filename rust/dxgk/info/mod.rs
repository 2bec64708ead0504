// SPDX-License-Identifier: GPL-2.0

//! Information that clients attach to objects, references that keep nothing alive, and watches.

pub(crate) mod attachments;
pub(crate) mod store;
pub(crate) mod watch;
pub(crate) mod weak;
