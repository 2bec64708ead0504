// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences that packets of one GPU alone use (`Documentation/native-fences.md`).

use core::ops::Deref;
use std::os::fd::AsFd;

use crate::calls::call;
use crate::device::Device;
use crate::handle::slot;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::sync_object::{SyncFlags, SyncObject};
use crate::uapi::*;
use crate::Result;

/// An open native fence of the type INTRA_GPU.
///
/// Its value has no address for the CPU, and calls that wait for it or signal it are refused. It
/// begins with 0, and never interrupts.
#[derive(Debug)]
pub struct IntraGpuFence {
    address: u64,
    monitored_address: u64,
    object: SyncObject,
}

impl IntraGpuFence {
    fn new(device: &Device, handle: u32, mapping: &D3DDDI_NATIVEFENCEMAPPING) -> Self {
        let owned = Owned::new(device.node(), handle, Kind::SyncObject);
        Self {
            address: mapping.CurrentValueGpuVa,
            monitored_address: mapping.MonitoredValueGpuVa,
            object: SyncObject::new(owned, Some(device.clone()), None),
        }
    }

    /// The address of CurrentValue for the GPU.
    pub fn gpu_address(&self) -> u64 {
        self.address
    }

    /// The address of MonitoredValue for the GPU, which may only read it.
    pub fn monitored_address(&self) -> u64 {
        self.monitored_address
    }

    /// Destroys the local handle and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.object.destroy()
    }
}

impl Deref for IntraGpuFence {
    type Target = SyncObject;

    fn deref(&self) -> &SyncObject {
        &self.object
    }
}

impl Device {
    /// Makes a native fence that packets alone use (D3DKMTCreateNativeFence with the type
    /// INTRA_GPU). INVALID_PARAMETER if the adapter does not offer that.
    pub fn create_intra_gpu_fence(&self, flags: SyncFlags) -> Result<IntraGpuFence> {
        let mut arg = D3DKMT_CREATENATIVEFENCE::zeroed();
        arg.hDevice = self.handle().0;
        arg.Info.Type = D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU;
        arg.Info.Flags = flags.bits();
        call(self.node(), &mut arg)?;
        let mapping = &arg.Info.NativeFenceMapping;
        Ok(IntraGpuFence::new(self, arg.hSyncObject, mapping))
    }

    /// Opens such a fence by its NT handle, on a device of its adapter.
    pub fn open_intra_gpu_fence(
        &self,
        handle: impl AsFd,
        flags: SyncFlags,
    ) -> Result<IntraGpuFence> {
        let mut arg = D3DKMT_OPENNATIVEFENCEFROMNTHANDLE::zeroed();
        arg.hNtHandle = slot(handle.as_fd());
        arg.hDevice = self.handle().0;
        arg.EngineAffinity = 1;
        arg.Flags = flags.bits();
        call(self.node(), &mut arg)?;
        let mapping = &arg.NativeFenceMapping;
        Ok(IntraGpuFence::new(self, arg.hSyncObject, mapping))
    }
}
