// SPDX-License-Identifier: GPL-2.0

//! A device: one client of an adapter.

use super::process::Process;
use crate::{
    ddi::{
        class::Passive,
        types::{
            CreateDeviceArgs,
            DeviceCookie,
            DeviceId,
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

impl Drop for Device {
    fn drop(&mut self) {
        let class = Passive::here();

        self.process
            .port
            .enter_to_destroy(&class)
            .device(&class, self.cookie);
    }
}
