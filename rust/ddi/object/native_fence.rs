// SPDX-License-Identifier: GPL-2.0

//! A native fence on an adapter, and one opening of it on a device.

use super::device::Device;
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        native_fence::{
            CreateNativeFenceArgs,
            CurrentValueUpdate,
            FenceUpdate,
            NativeFenceCallbacks,
            OpenNativeFenceArgs,
            PrivateData, //
        },
        port::{
            Calls,
            Port, //
        },
        types::{
            FenceDoorbellCookie,
            KmdError,
            KmdResult,
            NativeFenceCookie,
            OpenNativeFenceCookie, //
        }, //
    },
    platform::{
        self,
        Shared,
        Word64, //
    }, //
};

/// Why a value of a native fence was not updated by the driver. The caller stores it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotUpdated {
    /// It cannot be entered: the adapter is reset or stopped, and no engine runs.
    NotEntered,
    /// It has failed: its engines may not know of the value, now or ever (FEN-108).
    Failed,
}

/// What CreateNativeFence has made.
pub struct NativeFence {
    cookie: NativeFenceCookie,
    callbacks: Shared<dyn NativeFenceCallbacks>,
    port: Shared<Port>,
}

impl NativeFence {
    /// CreateNativeFence.
    pub fn create(
        port: &Shared<Port>,
        class: &Passive,
        fence: &CreateNativeFenceArgs<'_>,
        private_data: &mut PrivateData,
    ) -> KmdResult<Shared<Self>> {
        let fence = Self {
            cookie: port
                .enter()?
                .create_native_fence(class, fence, private_data)?,
            callbacks: fence.callbacks.clone(),
            port: port.clone(),
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(fence).ok_or(KmdError::NoMemory)
    }

    /// UpdateMonitoredValues, for this fence, while no interrupt is reported (FEN-74).
    ///
    /// Context: does not sleep.
    pub fn update_monitored_value(
        &self,
        value: u64,
        word: &Word64,
        current_value: &Word64,
    ) -> Result<(), NotUpdated> {
        let update = self.update(value, word, current_value);
        let calls = self.enter()?;

        self.port
            .synchronize(|class| calls.update_monitored_values(class, &[update]))
            .ok_or(NotUpdated::NotEntered)?
            .map_err(|_| NotUpdated::Failed)
    }

    /// UpdateCurrentValuesFromCpu, for this fence.
    ///
    /// Context: does not sleep.
    pub fn update_current_value(
        &self,
        class: &Dispatch,
        value: u64,
        word: &Word64,
        how: CurrentValueUpdate,
    ) -> Result<(), NotUpdated> {
        self.enter()?
            .update_current_values_from_cpu(class, &[self.update(value, word, word)], how)
            .map_err(|_| NotUpdated::Failed)
    }

    fn enter(&self) -> Result<Calls<'_>, NotUpdated> {
        self.port.enter().map_err(|_| NotUpdated::NotEntered)
    }

    fn update<'a>(
        &self,
        value: u64,
        word: &'a Word64,
        current_value: &'a Word64,
    ) -> FenceUpdate<'a> {
        FenceUpdate {
            fence: self.cookie,
            value,
            word,
            current_value,
        }
    }
}

impl Drop for NativeFence {
    fn drop(&mut self) {
        let class = Passive::here();

        self.port
            .enter_to_destroy(&class)
            .native_fence(&class, self.cookie);
        self.callbacks.destroyed();
    }
}

/// What OpenNativeFence has made.
pub struct OpenNativeFence {
    cookie: OpenNativeFenceCookie,
    fence: Shared<NativeFence>,
    _device: Shared<Device>,
}

impl OpenNativeFence {
    /// OpenNativeFence.
    pub fn open(
        fence: &Shared<NativeFence>,
        device: &Shared<Device>,
        class: &Passive,
        open: &OpenNativeFenceArgs,
        private_data: &mut PrivateData,
    ) -> KmdResult<Self> {
        let kmd = fence.port.enter()?;
        let cookie =
            kmd.open_native_fence(class, fence.cookie, device.cookie, open, private_data)?;

        Ok(Self {
            cookie,
            fence: fence.clone(),
            _device: device.clone(),
        })
    }
}

impl Drop for OpenNativeFence {
    fn drop(&mut self) {
        let class = Passive::here();

        self.fence
            .port
            .enter_to_destroy(&class)
            .open_native_fence(&class, self.cookie);
    }
}

/// A doorbell of a native fence that engines of another adapter ring (FEN-159). Neither of the two
/// fences is destroyed before this is.
pub struct ConnectedFenceDoorbell {
    cookie: FenceDoorbellCookie,
    rings: Shared<NativeFence>,
    _rung: Shared<NativeFence>,
}

impl ConnectedFenceDoorbell {
    /// Engines that store to `rings` ring the doorbell of `rung`.
    pub fn connect(
        rings: &Shared<NativeFence>,
        rung: &Shared<NativeFence>,
        class: &Passive,
    ) -> KmdResult<Self> {
        let doorbell = rung.port.enter()?.get_fence_doorbell(class, rung.cookie)?;
        let kmd = rings.port.enter()?;

        Ok(Self {
            cookie: kmd.connect_fence_doorbell(class, rings.cookie, &doorbell)?,
            rings: rings.clone(),
            _rung: rung.clone(),
        })
    }
}

impl Drop for ConnectedFenceDoorbell {
    fn drop(&mut self) {
        let class = Passive::here();

        self.rings
            .port
            .enter_to_destroy(&class)
            .fence_doorbell(&class, self.cookie);
    }
}
