// SPDX-License-Identifier: GPL-2.0

//! Every difference between kernel releases, and nothing else.
//!
//! `DXG_KERNEL_7_3` is set by `rust/Kbuild` for Linux 7.3 and later.

use kernel::bindings;

/// This module, as the owner of our file operations.
#[cfg(not(DXG_KERNEL_7_3))]
pub(crate) const fn module() -> *mut bindings::module {
    crate::THIS_MODULE.as_ptr()
}

/// This module, as the owner of our file operations.
#[cfg(DXG_KERNEL_7_3)]
pub(crate) const fn module() -> *mut bindings::module {
    kernel::module::this_module::<crate::OpenDxg>().as_ptr()
}

/// A device that only reads.
#[cfg(not(DXG_KERNEL_7_3))]
pub(crate) const DMA_TO_DEVICE: bindings::dma_data_direction =
    bindings::dma_data_direction_DMA_TO_DEVICE;

/// A device that only reads.
#[cfg(DXG_KERNEL_7_3)]
pub(crate) const DMA_TO_DEVICE: bindings::dma_data_direction =
    bindings::dma_data_direction::DMA_TO_DEVICE;

/// A device that reads and writes.
#[cfg(not(DXG_KERNEL_7_3))]
pub(crate) const DMA_BIDIRECTIONAL: bindings::dma_data_direction =
    bindings::dma_data_direction_DMA_BIDIRECTIONAL;

/// A device that reads and writes.
#[cfg(DXG_KERNEL_7_3)]
pub(crate) const DMA_BIDIRECTIONAL: bindings::dma_data_direction =
    bindings::dma_data_direction::DMA_BIDIRECTIONAL;
