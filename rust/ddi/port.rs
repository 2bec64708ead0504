// SPDX-License-Identifier: GPL-2.0

//! The OS part's side of one started KMD: the only way to call it.

use super::{
    callbacks::Callbacks,
    caps::StartInfo,
    class::{
        DeviceInterrupt,
        Passive, //
    },
    gate::{
        Gate,
        Inside,
        Resetting, //
    },
    types::{
        AllocationCookie,
        AllocationEndCookie,
        AllocationId,
        ContextCookie,
        CpuEventCookie,
        DeviceCookie,
        DoorbellCookie,
        FenceDoorbellCookie,
        HwQueueCookie,
        KmdError,
        KmdResult,
        NativeFenceCookie,
        OpenAllocationCookie,
        OpenNativeFenceCookie,
        ProcessCookie, //
    },
    Kmd, //
};
use crate::platform::{
    self,
    Boxed,
    Shared, //
};
use core::ops::Deref;

/// A KMD between StartDevice and RemoveDevice, which is its drop. What it makes holds the port, so
/// that RemoveDevice comes after the last destroy.
pub struct Port {
    gate: Gate,
    callbacks: Callbacks,
    kmd: Boxed<dyn Kmd>,
}

impl Port {
    /// Starts a KMD.
    pub fn start(
        mut kmd: Boxed<dyn Kmd>,
        class: &Passive,
        info: &StartInfo,
    ) -> KmdResult<Shared<Self>> {
        let gate = Gate::new().ok_or(KmdError::NoMemory)?;

        kmd.start_device(class, info)?;
        platform::shared(Self {
            gate,
            callbacks: info.callbacks.clone(),
            kmd,
        })
        .ok_or(KmdError::NoMemory)
    }

    /// Access to the entries of the KMD; DeviceRemoved once it was stopped, and while it is reset.
    pub fn enter(&self) -> KmdResult<Calls<'_>> {
        Ok(Calls {
            _inside: self.gate.enter()?,
            port: self,
        })
    }

    /// Access to the queries of the KMD, also while it is reset; DeviceRemoved once it was stopped.
    /// The caller calls only entries that are marked with (r).
    pub fn enter_to_query(&self) -> KmdResult<Calls<'_>> {
        Ok(Calls {
            _inside: self.gate.enter_to_query()?,
            port: self,
        })
    }

    /// Access to the resets of the whole adapter, which nothing but queries is inside of; `None`
    /// once it was stopped. One at a time.
    ///
    /// Context: may sleep, not inside.
    pub fn begin_reset(&self, _: &Passive) -> Option<Resets<'_>> {
        Some(Resets {
            _resetting: self.gate.begin_reset()?,
            port: self,
        })
    }

    /// Access to the destroys, whatever has become of the KMD. Waits while it is being stopped.
    pub(super) fn enter_to_destroy(&self, _: &Passive) -> Destroys<'_> {
        Destroys {
            _inside: self.gate.enter_to_destroy(),
            port: self,
        }
    }

    /// Access to the entries of the KMD for paging. Waits while it is being stopped; `None` once
    /// that is done, so that nothing runs any more.
    pub(super) fn enter_to_page(&self, _: &Passive) -> Option<Calls<'_>> {
        Some(Calls {
            _inside: self.gate.enter_to_page()?,
            port: self,
        })
    }

    /// Stops the KMD: waits for the calls inside, refuses all others but destroys and paging, and
    /// calls StopDevice. Nothing happens if it was stopped before.
    pub fn stop(&self, class: &Passive) {
        if let Some(_closed) = self.gate.close() {
            self.kmd.stop_device(class);
        }
    }

    /// Runs something of the OS part while no interrupt is reported, as
    /// [`Callbacks::synchronize_execution`].
    pub(super) fn synchronize<T>(&self, run: impl FnOnce(&DeviceInterrupt) -> T) -> Option<T> {
        self.callbacks.synchronize_execution(run)
    }

    /// Whether it has not been stopped.
    pub fn is_started(&self) -> bool {
        self.gate.is_open()
    }
}

impl Drop for Port {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.stop(&Passive::here());
    }
}

/// A call, or several calls, of the entries of a KMD. It is not stopped as long as this lives.
pub struct Calls<'a> {
    _inside: Inside<'a>,
    port: &'a Port,
}

impl Deref for Calls<'_> {
    type Target = dyn Kmd;

    fn deref(&self) -> &Self::Target {
        &*self.port.kmd
    }
}

/// A reset of the whole adapter. Nothing else is inside as long as this lives.
pub struct Resets<'a> {
    _resetting: Resetting<'a>,
    port: &'a Port,
}

impl Resets<'_> {
    /// ResetFromTimeout, and RestartFromTimeout if that has succeeded.
    pub fn reset(&self, class: &Passive) -> KmdResult {
        self.port.kmd.reset_from_timeout(class)?;
        self.port.kmd.restart_from_timeout(class)
    }
}

/// A destroy. Nothing else can be called through this, so that nothing else is after StopDevice.
pub(super) struct Destroys<'a> {
    _inside: Inside<'a>,
    port: &'a Port,
}

impl Destroys<'_> {
    /// DestroyProcess.
    pub(super) fn process(&self, class: &Passive, process: ProcessCookie) {
        self.port.kmd.destroy_process(class, process);
    }

    /// DestroyDevice.
    pub(super) fn device(&self, class: &Passive, device: DeviceCookie) {
        self.port.kmd.destroy_device(class, device);
    }

    /// DestroyContext.
    pub(super) fn context(&self, class: &Passive, context: ContextCookie) {
        self.port.kmd.destroy_context(class, context);
    }

    /// DestroyHwQueue.
    pub(super) fn hw_queue(&self, class: &Passive, queue: HwQueueCookie) {
        self.port.kmd.destroy_hw_queue(class, queue);
    }

    /// DestroyDoorbell.
    pub(super) fn doorbell(&self, class: &Passive, doorbell: DoorbellCookie) {
        self.port.kmd.destroy_doorbell(class, doorbell);
    }

    /// DestroyCpuEvent.
    pub(super) fn cpu_event(&self, class: &Passive, event: CpuEventCookie) {
        self.port.kmd.destroy_cpu_event(class, event);
    }

    /// CloseNativeFence.
    pub(super) fn open_native_fence(&self, class: &Passive, open: OpenNativeFenceCookie) {
        self.port.kmd.close_native_fence(class, open);
    }

    /// The end of a connection to a doorbell of a fence.
    pub(super) fn fence_doorbell(&self, class: &Passive, doorbell: FenceDoorbellCookie) {
        self.port.kmd.disconnect_fence_doorbell(class, doorbell);
    }

    /// DestroyNativeFence.
    pub(super) fn native_fence(&self, class: &Passive, fence: NativeFenceCookie) {
        self.port.kmd.destroy_native_fence(class, fence);
    }

    /// NotifyAllocationEnd, which a KMD is owed after StopDevice as well.
    pub(super) fn notify_allocation_end(
        &self,
        class: &Passive,
        end: AllocationEndCookie,
        id: AllocationId,
    ) {
        self.port.kmd.notify_allocation_end(class, end, id);
    }

    /// DestroyAllocation.
    pub(super) fn allocation(&self, class: &Passive, allocation: AllocationCookie) {
        self.port.kmd.destroy_allocation(class, allocation);
    }

    /// CloseAllocation.
    pub(super) fn open_allocation(&self, class: &Passive, open: OpenAllocationCookie) {
        self.port.kmd.close_allocation(class, open);
    }
}
