// SPDX-License-Identifier: GPL-2.0

//! A CPU event: an event of a process that the KMD signals.

use super::device::Device;
use crate::{
    ddi::{
        class::Passive,
        cpu_event::CreateCpuEventArgs,
        types::{
            CpuEventCookie,
            KmdResult, //
        }, //
    },
    platform::Shared, //
};

/// What CreateCpuEvent has made.
pub struct CpuEvent {
    cookie: CpuEventCookie,
    client: u64,
    device: Shared<Device>,
}

impl CpuEvent {
    /// CreateCpuEvent.
    pub fn create(
        device: &Shared<Device>,
        class: &Passive,
        event: &CreateCpuEventArgs<'_>,
    ) -> KmdResult<Self> {
        let kmd = device.process.port.enter()?;
        let made = kmd.create_cpu_event(class, device.cookie, event)?;

        Ok(Self {
            cookie: made.cookie,
            client: made.client,
            device: device.clone(),
        })
    }

    /// What the KMD calls it towards clients (`hKmdCpuEvent`).
    pub fn client(&self) -> u64 {
        self.client
    }
}

impl Drop for CpuEvent {
    fn drop(&mut self) {
        let class = Passive::here();

        self.device
            .process
            .port
            .enter_to_destroy(&class)
            .cpu_event(&class, self.cookie);
    }
}
