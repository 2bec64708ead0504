// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices and contexts.

use std::os::fd::AsFd;
use std::sync::Arc;

use crate::adapter::Adapter;
use crate::calls::{self, call};
use crate::fence::MonitoredFence;
use crate::handle::{slot, GlobalHandle, LocalHandle};
use crate::node::Node;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::sync_object::{SyncFlags, SyncKind, SyncObject};
use crate::uapi::*;
use crate::value::FenceValue;
use crate::{Error, Result, Status};

/// A device: what owns the work and the objects of one client on an adapter. Cheap to clone;
/// destroyed with the last clone and the last object made from it.
#[derive(Clone, Debug)]
pub struct Device(Arc<Inner>);

/// Dropped in this order: the device before its adapter.
#[derive(Debug)]
struct Inner {
    owned: Owned,
    adapter: Adapter,
}

impl Device {
    pub(crate) fn create(adapter: &Adapter) -> Result<Self> {
        let mut arg = D3DKMT_CREATEDEVICE::zeroed();
        arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
        call(adapter.node(), &mut arg)?;
        let owned = Owned::new(adapter.node(), arg.hDevice, Kind::Device);
        let adapter = adapter.clone();
        Ok(Self(Arc::new(Inner { owned, adapter })))
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.0.owned.node()
    }

    /// The adapter of this device.
    pub fn adapter(&self) -> &Adapter {
        &self.0.adapter
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.0.owned.handle()
    }

    /// Destroys the device and reports what the driver said. NOT destroyed, and `Ok`, while clones
    /// or objects still use it.
    pub fn destroy(self) -> Result<()> {
        Arc::into_inner(self.0).map_or(Ok(()), |inner| inner.owned.destroy())
    }

    /// Whether the device works, and if not, what happened to it.
    pub fn execution_state(&self) -> Result<ExecutionState> {
        let mut arg = D3DKMT_GETDEVICESTATE::zeroed();
        arg.hDevice = self.handle().0;
        arg.StateType = D3DKMT_DEVICESTATE_EXECUTION;
        call(self.node(), &mut arg)?;
        // SAFETY: the arm of the state type that was asked for; all arms are integers.
        Ok(unsafe { arg.__bindgen_anon_1.ExecutionState }.into())
    }

    /// The bad memory access that has stopped the device; all 0 if there was none.
    pub fn page_fault(&self) -> Result<PageFault> {
        let mut arg = D3DKMT_GETDEVICESTATE::zeroed();
        arg.hDevice = self.handle().0;
        arg.StateType = D3DKMT_DEVICESTATE_PAGE_FAULT;
        call(self.node(), &mut arg)?;
        // SAFETY: the arm of the state type that was asked for; all arms are integers.
        let fault = unsafe { arg.__bindgen_anon_1.PageFaultState };
        Ok(PageFault {
            address: fault.FaultedVirtualAddress,
            flags: fault.PageFaultFlags,
            error_code: fault.FaultErrorCode,
        })
    }

    /// Puts the device in error, for `reason` (`D3DKMT_DEVICE_ERROR_REASON_*`).
    pub fn mark_as_error(&self, reason: u32) -> Result<()> {
        let mut arg = D3DKMT_MARKDEVICEASERROR::zeroed();
        (arg.hDevice, arg.Reason) = (self.handle().0, reason);
        call(self.node(), &mut arg).map(|_| ())
    }

    /// Makes a context on an engine node.
    pub fn create_context(&self, node_ordinal: u32) -> Result<Context> {
        let mut arg = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
        arg.NodeOrdinal = node_ordinal;
        self.create_context_with(arg, &mut [])
    }

    /// Makes a context with every option; `hDevice` and the driver data members are filled in.
    pub fn create_context_with(
        &self,
        mut options: D3DKMT_CREATECONTEXTVIRTUAL,
        driver_data: &mut [u8],
    ) -> Result<Context> {
        options.hDevice = self.handle().0;
        let handle = calls::create_context_virtual(self.node(), options, driver_data)?;
        Ok(Context::new(self, handle, Kind::Context))
    }

    /// Makes a context for hardware queues on an engine node.
    pub fn create_hw_context(&self, node_ordinal: u32) -> Result<Context> {
        let mut arg = D3DKMT_CREATEHWCONTEXT::zeroed();
        arg.hDevice = self.handle().0;
        arg.NodeOrdinal = node_ordinal;
        let handle = calls::create_hw_context(self.node(), arg, &mut [])?;
        Ok(Context::new(self, handle, Kind::HwContext))
    }

    /// Makes a monitored fence of this process.
    pub fn create_fence(&self, initial_value: u64) -> Result<MonitoredFence> {
        self.create_fence_with(initial_value, SyncFlags::empty())
    }

    /// Makes a monitored fence that can be shared by NT handle.
    pub fn create_shareable_fence(&self, initial_value: u64) -> Result<MonitoredFence> {
        self.create_fence_with(
            initial_value,
            SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING,
        )
    }

    /// Makes a monitored fence with any flags.
    pub fn create_fence_with(
        &self,
        initial_value: u64,
        flags: SyncFlags,
    ) -> Result<MonitoredFence> {
        let kind = SyncKind::MonitoredFence { initial_value };
        let mut arg = kind.argument(self.handle(), flags);
        let value = calls::create_monitored_fence(self.node(), &mut arg)?;
        // SAFETY: the arm of the kind that was made; all arms are integers.
        let arm = unsafe { arg.Info.__bindgen_anon_1.MonitoredFence };
        let address = arm.FenceValueGPUVirtualAddress;
        Ok(MonitoredFence::new(self.adopt_object(&arg), value, address))
    }

    /// Makes a synchronisation object of any kind.
    ///
    /// For monitored fences prefer [`Device::create_fence`], which gives access to the mapped
    /// value.
    pub fn create_sync_object(&self, kind: SyncKind<'_>, flags: SyncFlags) -> Result<SyncObject> {
        let mut arg = kind.argument(self.handle(), flags);
        call(self.node(), &mut arg)?;
        Ok(self.adopt_object(&arg))
    }

    fn adopt_object(&self, arg: &D3DKMT_CREATESYNCHRONIZATIONOBJECT2) -> SyncObject {
        let owned = Owned::new(self.node(), arg.hSyncObject, Kind::SyncObject);
        let global = GlobalHandle(arg.Info.SharedHandle);
        let global = (global.0 != 0).then_some(global);
        SyncObject::new(owned, Some(self.clone()), global)
    }

    /// Opens a monitored fence by its NT handle.
    ///
    /// `flags` may take rights away: [`SyncFlags::NO_SIGNAL`] or [`SyncFlags::NO_WAIT`].
    pub fn open_fence(&self, handle: impl AsFd, flags: SyncFlags) -> Result<MonitoredFence> {
        let (arg, value) = self.open_from_nt_handle(handle, flags)?;
        let object = self.adopt_opened(&arg);
        // SAFETY: all arms are integers, and were 0.
        let arm = unsafe { arg.__bindgen_anon_1.MonitoredFence };
        let address = arm.FenceValueGPUVirtualAddress;
        match value {
            Some(value) => Ok(MonitoredFence::new(object, value, address)),
            // Another kind of object: closed again by dropping it.
            None => Err(Error::Status(Status::OBJECT_TYPE_MISMATCH)),
        }
    }

    /// Opens a synchronisation object of any kind by its NT handle.
    pub fn open_sync_object(&self, handle: impl AsFd, flags: SyncFlags) -> Result<SyncObject> {
        let (arg, _) = self.open_from_nt_handle(handle, flags)?;
        Ok(self.adopt_opened(&arg))
    }

    fn open_from_nt_handle(
        &self,
        handle: impl AsFd,
        flags: SyncFlags,
    ) -> Result<(D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2, Option<FenceValue>)> {
        let mut arg = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2::zeroed();
        arg.hNtHandle = slot(handle.as_fd());
        arg.hDevice = self.handle().0;
        arg.Flags = flags.bits();
        let value = calls::open_from_nt_handle(self.node(), &mut arg)?;
        Ok((arg, value))
    }

    fn adopt_opened(&self, arg: &D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2) -> SyncObject {
        let owned = Owned::new(self.node(), arg.hSyncObject, Kind::SyncObject);
        SyncObject::new(owned, Some(self.clone()), None)
    }
}

/// Whether a device works, and if not, what happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutionState {
    /// It works.
    Active,
    /// It was reset.
    Reset,
    /// It did not answer in time.
    Hung,
    /// It was stopped.
    Stopped,
    /// It ran out of memory.
    OutOfMemory,
    /// It made a bad memory access.
    DmaFault,
    /// It made a memory access that could not be paged in.
    DmaPageFault,
    /// A state this crate does not know.
    Other(u32),
}

impl From<u32> for ExecutionState {
    fn from(state: u32) -> Self {
        match state {
            D3DKMT_DEVICEEXECUTION_ACTIVE => Self::Active,
            D3DKMT_DEVICEEXECUTION_RESET => Self::Reset,
            D3DKMT_DEVICEEXECUTION_HUNG => Self::Hung,
            D3DKMT_DEVICEEXECUTION_STOPPED => Self::Stopped,
            D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY => Self::OutOfMemory,
            D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT => Self::DmaFault,
            D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT => Self::DmaPageFault,
            other => Self::Other(other),
        }
    }
}

/// The bad memory access that has stopped a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageFault {
    /// The address that the GPU accessed.
    pub address: u64,
    /// `DXGK_PAGE_FAULT_*`.
    pub flags: u32,
    /// `DXGK_FAULT_ERROR_CODE`.
    pub error_code: u32,
}

/// A context: a queue of work on one engine node. Destroyed when dropped.
#[derive(Debug)]
pub struct Context {
    owned: Owned,
    device: Device,
}

impl Context {
    fn new(device: &Device, handle: LocalHandle, kind: Kind) -> Self {
        Self {
            owned: Owned::new(device.node(), handle.0, kind),
            device: device.clone(),
        }
    }

    /// The device of this context.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// Destroys the context and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}
