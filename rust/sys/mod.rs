// SPDX-License-Identifier: GPL-2.0

//! The kernel, wrapped: the only folder with `unsafe`.
//!
//! Each file makes one kernel facility safe to use and holds no policy. Everything above sees
//! owning types and plain functions.

pub(crate) mod attach;
pub(crate) mod caller;
pub(crate) mod chardev;
pub(crate) mod dma_export;
pub(crate) mod dma_import;
pub(crate) mod eventfd;
mod ffi;
pub(crate) mod group;
pub(crate) mod mapping;
pub(crate) mod mm_end;
pub(crate) mod object_file;
mod page_slots;
pub(crate) mod pages;
pub(crate) mod params;
pub(crate) mod pinned;
pub(crate) mod random;
pub(crate) mod seq;
pub(crate) mod shmem;
pub(crate) mod sleep;
pub(crate) mod sort;
pub(crate) mod thread;
pub(crate) mod thread_exit;
pub(crate) mod time;
pub(crate) mod trace;
pub(crate) mod user;
pub(crate) mod value_page;
pub(crate) mod wait_queue;
pub(crate) mod window_file;
pub(crate) mod work;
