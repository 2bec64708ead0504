// SPDX-License-Identifier: GPL-2.0

//! Reading and writing the unions of argument structs.
//!
//! All members of these unions are plain integers or structs of them, and an argument struct is
//! fully initialised when it is copied in, so that every member may be read at any time.

use super::generated::*;
use crate::sys::user::{
    bare_pointer,
    zeroed, //
};

/// The members of `D3DDDI_SYNCHRONIZATIONOBJECTINFO2`, by type of object.
impl D3DDDI_SYNCHRONIZATIONOBJECTINFO2 {
    pub(crate) fn mutex(&self) -> D3DDDI_SYNCHRONIZATIONOBJECTINFO2_SynchronizationMutex {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.SynchronizationMutex }
    }

    pub(crate) fn semaphore(&self) -> D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.Semaphore }
    }

    pub(crate) fn fence(&self) -> D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Fence {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.Fence }
    }

    pub(crate) fn cpu_notification(&self) -> D3DDDI_SYNCHRONIZATIONOBJECTINFO2_CPUNotification {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.CPUNotification }
    }

    pub(crate) fn monitored_fence(&self) -> D3DDDI_SYNCHRONIZATIONOBJECTINFO2_MonitoredFence {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.MonitoredFence }
    }

    pub(crate) fn periodic(&self) -> D3DDDI_SYNCHRONIZATIONOBJECTINFO2_PeriodicMonitoredFence {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.PeriodicMonitoredFence }
    }

    /// Where the caller finds the value, seen from CPU and GPU.
    pub(crate) fn set_addresses(&mut self, cpu: u64, gpu: u64) {
        let mut fence = self.monitored_fence();

        fence.FenceValueCPUVirtualAddress = cpu;
        fence.FenceValueGPUVirtualAddress = gpu;
        self.__bindgen_anon_1.MonitoredFence = fence;
    }
}

impl D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 {
    pub(crate) fn engine_affinity(&self) -> u32 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.MonitoredFence.EngineAffinity }
    }

    /// Where the caller finds the value, seen from CPU and GPU.
    pub(crate) fn set_addresses(&mut self, cpu: u64, gpu: u64) {
        // SAFETY: Plain bytes, see the module.
        let mut fence = unsafe { self.__bindgen_anon_1.MonitoredFence };

        fence.FenceValueCPUVirtualAddress = cpu;
        fence.FenceValueGPUVirtualAddress = gpu;
        self.__bindgen_anon_1.MonitoredFence = fence;
    }
}

impl D3DKMT_CREATEDEVICE {
    /// The adapter; the union's kernel pointer is never looked at.
    pub(crate) fn adapter_handle(&self) -> u32 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.hAdapter }
    }
}

impl D3DKMT_GETDEVICESTATE {
    pub(crate) fn set_execution_state(&mut self, state: D3DKMT_DEVICEEXECUTION_STATE) {
        self.__bindgen_anon_1.ExecutionState = state;
    }

    pub(crate) fn set_reset_state(&mut self, state: D3DKMT_DEVICERESET_STATE) {
        self.__bindgen_anon_1.ResetState = state;
    }

    /// No fault to report.
    pub(crate) fn clear_page_fault_state(&mut self) {
        self.__bindgen_anon_1.PageFaultState = zeroed();
    }
}

impl D3DKMT_CREATEALLOCATION {
    /// Address of the standard allocation, or of the private driver data of the resource.
    pub(crate) fn description(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.pStandardAllocation }
    }

    /// Address of the allocation infos.
    pub(crate) fn infos(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        bare_pointer(unsafe { self.__bindgen_anon_2.pAllocationInfo2 })
    }
}

impl D3DDDI_ALLOCATIONINFO2 {
    /// Section handle or system memory.
    pub(crate) fn existing(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.pSystemMem }
    }

    /// The priority, if the flags say that there is one.
    pub(crate) fn priority(&self) -> Option<u32> {
        // SAFETY: Plain bytes, see the module.
        let priority = unsafe { self.__bindgen_anon_2.Priority };

        (self.Flags & D3DDDI_ALLOCATIONINFO2_Flags_OverridePriority != 0).then_some(priority)
    }
}

impl D3DKMT_OPENRESOURCE {
    /// Address of the allocation infos.
    pub(crate) fn infos(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.pOpenAllocationInfo2 }
    }
}
