// SPDX-License-Identifier: GPL-2.0

//! The kernel, wrapped: the only folder with `unsafe`, apart from the wrapper of generated code in
//! `uapi`.
//!
//! Each file makes one kernel facility safe to use and holds no policy. Everything above sees
//! owning types and plain functions.

pub(crate) mod alloc;
pub(crate) mod array_vec;
pub(crate) mod dma_fence;
mod ffi;
pub(crate) mod file;
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) mod kunit;
pub(crate) mod lockdep;
pub(crate) mod mem;
pub(crate) mod params;
pub(crate) mod random;
pub(crate) mod seq;
pub(crate) mod shared;
pub(crate) mod small_vec;
pub(crate) mod sort;
pub(crate) mod stack_list;
pub(crate) mod strong_count;
pub(crate) mod task;
pub(crate) mod time;
pub(crate) mod trace;
pub(crate) mod user;
pub(crate) mod wait_queue;
pub(crate) mod work;
