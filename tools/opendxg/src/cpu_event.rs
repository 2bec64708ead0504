// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU events: eventfds that the kernel-mode driver signals (`Documentation/cpu-events.md`).

use crate::adapter::Adapter;
use crate::device::Device;
use crate::event::EventFd;
use crate::raw::Argument;
use crate::sync_object::{SyncFlags, SyncKind, SyncObject};
use crate::uapi::*;
use crate::{calls, Result};

/// An event of this process that the driver of an adapter signals. Nobody else does, and no call
/// waits for it: the process waits for its eventfd.
#[derive(Debug)]
pub struct CpuEvent {
    object: SyncObject,
    device: Device,
}

impl Device {
    /// Makes a CPU event of an eventfd (D3DKMTCreateSynchronizationObject2, `SignalByKmd`).
    /// NOT_SUPPORTED if the adapter does not have the feature KMD_SIGNAL_CPU_EVENT.
    pub fn create_cpu_event(&self, event: &EventFd) -> Result<CpuEvent> {
        let kind = SyncKind::CpuNotification { event: Some(event) };
        let object = self.create_sync_object(kind, SyncFlags::SIGNAL_BY_KMD)?;
        Ok(CpuEvent {
            object,
            device: self.clone(),
        })
    }
}

impl Device {
    /// Gives data to the driver, about this device, which answers in place (D3DKMTEscape with
    /// D3DKMT_ESCAPE_DRIVERPRIVATE).
    pub fn private_escape(&self, data: &mut [u8]) -> Result<()> {
        let mut arg = D3DKMT_ESCAPE::zeroed();
        arg.hAdapter = self.adapter().handle().0;
        arg.hDevice = self.handle().0;
        arg.Type = D3DKMT_ESCAPE_DRIVERPRIVATE;
        calls::resource::escape(self.node(), arg, data).map(|_| ())
    }
}

impl CpuEvent {
    /// Tells the driver what the event is for, in words that the driver defines, and returns what
    /// the driver calls it (`hKmdCpuEvent`). D3DKMTEscape with the known escape CPUEVENTUSAGE. The
    /// adapter is not woken up for it.
    pub fn set_usage(&self, usage: [u32; 8]) -> Result<u64> {
        let head = [
            D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE,
            self.object.handle().0,
            0,
            0,
        ];
        let words = head.iter().chain(&usage);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        let mut arg = D3DKMT_ESCAPE::zeroed();
        arg.hAdapter = self.adapter().handle().0;
        arg.Type = D3DKMT_ESCAPE_DRIVERPRIVATE;
        arg.Flags =
            D3DDDI_ESCAPEFLAGS_DriverKnownEscape | D3DDDI_ESCAPEFLAGS_NoAdapterSynchronization;
        calls::resource::escape(self.adapter().node(), arg, &mut bytes)?;
        let mut name = [0; 8];
        name.copy_from_slice(&bytes[8..16]);
        Ok(u64::from_ne_bytes(name))
    }

    /// Its synchronisation object, which no call takes but its destroy.
    pub fn object(&self) -> &SyncObject {
        &self.object
    }

    /// The device that it was made on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn adapter(&self) -> &Adapter {
        self.device.adapter()
    }

    /// Destroys it and reports what the driver said. Nothing signals the eventfd afterwards.
    pub fn destroy(self) -> Result<()> {
        self.object.destroy()
    }
}
