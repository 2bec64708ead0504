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
