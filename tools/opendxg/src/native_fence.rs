// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences: monitored fences that the GPU waits for by itself, and that interrupt only when
//! somebody waits (`Documentation/native-fences.md`).

use core::ops::Deref;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use crate::device::Device;
use crate::fence::MonitoredFence;
use crate::handle::slot;
use crate::object::Object;
use crate::owned::{Kind, Owned};
use crate::queued::Named;
use crate::raw::Argument;
use crate::sync_object::{SyncFlags, SyncObject};
use crate::uapi::*;
use crate::value::FenceValue;
use crate::{calls, Result};

/// An open native fence with its mapped value.
///
/// All the methods of [`MonitoredFence`] are available as well.
#[derive(Debug)]
pub struct NativeFence {
    monitored_address: u64,
    driver_data: [u8; 64],
    /// Its number in all processes, once a trace has asked for it.
    object: OnceLock<Option<u64>>,
    fence: MonitoredFence,
}

impl NativeFence {
    fn new(
        device: &Device,
        handle: u32,
        value: FenceValue,
        mapping: D3DDDI_NATIVEFENCEMAPPING,
        driver_data: [u8; 64],
    ) -> Self {
        let owned = Owned::new(device.node(), handle, Kind::SyncObject);
        let object = SyncObject::new(owned, Some(device.clone()), None);
        Self {
            monitored_address: mapping.MonitoredValueGpuVa,
            driver_data,
            object: OnceLock::new(),
            fence: MonitoredFence::new(object, value, mapping.CurrentValueGpuVa),
        }
    }

    /// The address of MonitoredValue for the GPU, which may only read it.
    pub fn monitored_address(&self) -> u64 {
        self.monitored_address
    }

    /// Who this is in a trace. A handle keeps its object, so that it has to be asked only once.
    pub(crate) fn named(&self) -> Option<Named> {
        let object = self.object.get_or_init(|| Some(self.query().ok()?.id));
        Some(Named {
            handle: self.handle(),
            object: (*object)?,
        })
    }

    /// Destroys the local handle, and with it the mappings, and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.fence.destroy()
    }

    /// The object without the mapped value.
    pub fn into_object(self) -> SyncObject {
        self.fence.into_object()
    }

    /// What the driver has said about this opening.
    pub fn driver_data(&self) -> &[u8; 64] {
        &self.driver_data
    }
}

impl Deref for NativeFence {
    type Target = MonitoredFence;

    fn deref(&self) -> &MonitoredFence {
        &self.fence
    }
}

impl Device {
    /// Makes a native fence of this process (D3DKMTCreateNativeFence). NOT_SUPPORTED if the adapter
    /// does not have the feature NATIVE_FENCE.
    pub fn create_native_fence(&self, initial_value: u64) -> Result<NativeFence> {
        self.create_native_fence_with(initial_value, SyncFlags::empty())
    }

    /// Makes a native fence that can be shared by NT handle.
    pub fn create_shareable_native_fence(&self, initial_value: u64) -> Result<NativeFence> {
        let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING;
        self.create_native_fence_with(initial_value, flags)
    }

    /// Makes a native fence with any flags.
    pub fn create_native_fence_with(
        &self,
        initial_value: u64,
        flags: SyncFlags,
    ) -> Result<NativeFence> {
        let mut arg = D3DKMT_CREATENATIVEFENCE::zeroed();
        arg.hDevice = self.handle().0;
        arg.Info.InitialFenceValue = initial_value;
        arg.Info.Flags = flags.bits();
        let value = calls::create_native_fence(self.node(), &mut arg)?;
        let mapping = arg.Info.NativeFenceMapping;
        let data = arg.PrivateDriverData;
        Ok(NativeFence::new(
            self,
            arg.hSyncObject,
            value,
            mapping,
            data,
        ))
    }

    /// Opens a native fence by its NT handle (D3DKMTOpenNativeFenceFromNtHandle).
    ///
    /// `flags` may take rights away: [`SyncFlags::NO_SIGNAL`] or [`SyncFlags::NO_WAIT`].
    pub fn open_native_fence(&self, handle: impl AsFd, flags: SyncFlags) -> Result<NativeFence> {
        let mut arg = D3DKMT_OPENNATIVEFENCEFROMNTHANDLE::zeroed();
        arg.hNtHandle = slot(handle.as_fd());
        arg.hDevice = self.handle().0;
        arg.EngineAffinity = 1;
        arg.Flags = flags.bits();
        let value = calls::open_native_fence(self.node(), &mut arg)?;
        let mapping = arg.NativeFenceMapping;
        let data = arg.PrivateDriverData;
        Ok(NativeFence::new(
            self,
            arg.hSyncObject,
            value,
            mapping,
            data,
        ))
    }
}
