// SPDX-License-Identifier: GPL-2.0

//! The interrupt lock of an adapter: what runs at its device interrupt level runs one at a time
//! (gpu.md section 10.1, class I).
//!
//! A KMD takes it to report an interrupt (NotifyInterrupt). The OS part holds it over
//! UpdateMonitoredValues. So no MonitoredValue changes while an interrupt is reported (FEN-74). No
//! KMD has interrupts of hardware yet: nobody takes it in a hard interrupt.
//!
//! LOCK: a spinlock, inside of the locks of fences and those that a KMD holds when it reports.
//! Inside of it are only leaves of the KMD that it takes in UpdateMonitoredValues.

use super::class::DeviceInterrupt;
use crate::platform::{
    self,
    ShortLock, //
};

/// The interrupt lock of one adapter.
pub struct InterruptLock(ShortLock<()>);

impl InterruptLock {
    /// One that is free; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self(platform::short_lock!((), "ddi::InterruptLock")?))
    }

    /// Runs something at device interrupt level.
    ///
    /// Context: does not sleep. The caller does not have the lock.
    pub fn hold<T>(&self, run: impl FnOnce(&DeviceInterrupt) -> T) -> T {
        let _held = self.0.lock();

        run(&DeviceInterrupt::under_lock())
    }
}
