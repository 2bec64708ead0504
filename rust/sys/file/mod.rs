// SPDX-License-Identifier: GPL-2.0

//! Files: the device node, objects behind descriptors, memory that can be taken away again.

pub(crate) mod attach;
pub(crate) mod chardev;
pub(crate) mod event_watch;
pub(crate) mod eventfd;
pub(crate) mod object_file;
pub(crate) mod revocable_file;
pub(crate) mod sync_file;
