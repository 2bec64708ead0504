// SPDX-License-Identifier: GPL-2.0

//! The kernel's random numbers.

use kernel::bindings;

/// A random number from 0 to below `limit`; 0 for a limit of 0.
pub(crate) fn below(limit: u32) -> u32 {
    if limit == 0 {
        return 0;
    }

    // SAFETY: May be called in any context; the limit is not 0.
    unsafe { bindings::__get_random_u32_below(limit) }
}

/// A random number.
pub(crate) fn number() -> u32 {
    // SAFETY: May be called in any context.
    unsafe { bindings::get_random_u32() }
}
