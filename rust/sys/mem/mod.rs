// SPDX-License-Identifier: GPL-2.0

//! Memory: pages, pins, mappings and dma-bufs.

pub(crate) mod blocks;
pub(crate) mod dma_attachment;
pub(crate) mod dma_export;
pub(crate) mod dma_import;
pub(crate) mod dma_slots;
pub(crate) mod doorbell_pages;
pub(crate) mod local_memory;
pub(crate) mod mapping;
pub(crate) mod movable;
mod page_slots;
pub(crate) mod page_words;
pub(crate) mod pages;
pub(crate) mod physical;
pub(crate) mod pinned;
pub(crate) mod shmem;
pub(crate) mod shown;
pub(crate) mod shrinker;
pub(crate) mod system_pages;
pub(crate) mod value_page;
pub(crate) mod value_window;
