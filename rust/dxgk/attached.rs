// SPDX-License-Identifier: GPL-2.0

//! What can be attached to any object.

use kernel::prelude::*;

/// See the module.
#[pin_data]
pub(crate) struct Attached {}

impl Attached {
    /// Nothing attached.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {})
    }

    /// The object is dead: nothing resolves to it any more.
    pub(crate) fn die(&self) {}

    /// Everything of the object is gone: tells who wants to know, and lets go of the entries.
    pub(crate) fn finish(&self) {}
}
