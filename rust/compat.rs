// SPDX-License-Identifier: GPL-2.0

//! Every difference between kernel releases, and nothing else.
//!
//! `DXG_KERNEL_7_3` is set by `rust/Kbuild` for Linux 7.3 and later.

use kernel::bindings;

/// What macros of the kernel name this module by.
#[cfg(not(DXG_KERNEL_7_3))]
pub(crate) use crate::THIS_MODULE;

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

/// Who writes to a buffer, as `dma_data_direction` has it.
#[cfg(not(DXG_KERNEL_7_3))]
pub(crate) mod dma {
    pub(crate) use kernel::bindings::{
        dma_data_direction as Direction,
        dma_data_direction_DMA_BIDIRECTIONAL as BIDIRECTIONAL,
        dma_data_direction_DMA_FROM_DEVICE as FROM_DEVICE,
        dma_data_direction_DMA_TO_DEVICE as TO_DEVICE, //
    };
}

/// Who writes to a buffer, as `dma_data_direction` has it.
#[cfg(DXG_KERNEL_7_3)]
pub(crate) mod dma {
    pub(crate) use kernel::bindings::dma_data_direction as Direction;

    pub(crate) const BIDIRECTIONAL: Direction = Direction::DMA_BIDIRECTIONAL;
    pub(crate) const FROM_DEVICE: Direction = Direction::DMA_FROM_DEVICE;
    pub(crate) const TO_DEVICE: Direction = Direction::DMA_TO_DEVICE;
}

/// A full barrier among the processors.
#[cfg(not(DXG_KERNEL_7_3))]
pub(crate) fn full_fence() {
    kernel::sync::barrier::smp_mb();
}

/// A full barrier among the processors.
#[cfg(DXG_KERNEL_7_3)]
pub(crate) fn full_fence() {
    kernel::sync::barrier::smp_mb(kernel::sync::barrier::Full);
}
