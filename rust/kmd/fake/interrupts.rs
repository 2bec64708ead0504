// SPDX-License-Identifier: GPL-2.0

//! How a double interrupts when a test tells it to.

use crate::{
    ddi::{
        callbacks::Callbacks,
        class::DeviceInterrupt, //
    },
    platform::{
        self,
        ShortLock, //
    }, //
};

/// The interrupt of one double, from its StartDevice on.
pub struct Interrupts(ShortLock<Callbacks>);

impl Interrupts {
    /// That of a double that was not started; `None` if there is no memory.
    pub(super) fn new() -> Option<Self> {
        Some(Self(platform::short_lock!(
            Callbacks::NONE,
            "fake::Interrupts"
        )?))
    }

    /// StartDevice.
    pub(super) fn start(&self, callbacks: &Callbacks) {
        *self.0.lock() = callbacks.clone();
    }

    /// Tells something at device interrupt level. Nothing before StartDevice: false.
    pub fn raise(&self, tell: impl FnOnce(&DeviceInterrupt)) -> bool {
        let callbacks = self.0.lock().clone();

        callbacks.synchronize_execution(tell).is_some()
    }
}
