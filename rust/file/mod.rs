// SPDX-License-Identifier: GPL-2.0

//! From a descriptor to the object behind it.

pub(crate) mod device;
pub(crate) mod fence_point;
pub(crate) mod fence_stream;
pub(crate) mod notice;
pub(crate) mod nt_handle;
pub(crate) mod paging_log;
pub(crate) mod watch;
pub(crate) mod weak;
