// SPDX-License-Identifier: GPL-2.0

//! A device: one client of an adapter.

use super::process::Process;
use crate::{
    ddi::{
        class::Passive,
        types::{
            CreateDeviceArgs,
            DeviceCookie,
            DeviceError,
            DeviceId,
            Escape,
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Shared,
        Turns, //
    }, //
};

/// What CreateDevice has made.
pub struct Device {
    pub(super) cookie: DeviceCookie,
    /// One call for the device at a time (GPU-101).
    pub(super) turns: Turns,
    pub(super) process: Shared<Process>,
}

impl Device {
    /// CreateDevice.
    pub fn create(
        process: &Shared<Process>,
        class: &Passive,
        id: DeviceId,
    ) -> KmdResult<Shared<Self>> {
        let turns = platform::turns().ok_or(KmdError::NoMemory)?;
        let args = CreateDeviceArgs {
            id,
            process: process.cookie,
            is_system: process.is_system,
        };
        let device = Self {
            cookie: process.port.enter()?.create_device(class, &args)?,
            turns,
            process: process.clone(),
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(device).ok_or(KmdError::NoMemory)
    }
}

impl Device {
    /// Escape, about this device.
    pub fn escape(&self, class: &Passive, escape: &Escape<'_>, data: &mut [u8]) -> KmdResult {
        let escape = Escape {
            device: Some(self.cookie),
            ..*escape
        };

        self.process.port.enter()?.escape(class, &escape, data)
    }

    /// NotifyDeviceError. Nothing happens if the KMD is stopped.
    pub fn notify_error(&self, class: &Passive, why: DeviceError) {
        if let Ok(kmd) = self.process.port.enter() {
            kmd.notify_device_error(class, self.cookie, why);
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let class = Passive::here();

        self.process
            .port
            .enter_to_destroy(&class)
            .device(&class, self.cookie);
    }
}
