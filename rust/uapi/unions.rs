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

impl D3DDDI_RESERVEGPUVIRTUALADDRESS {
    /// The handle of a paging queue, or of an adapter.
    pub(crate) fn queue_or_adapter(&self) -> u32 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.hPagingQueue }
    }

    /// The kind, with a paging queue.
    pub(crate) fn reservation_type(&self) -> u32 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_2.ReservationType }
    }

    /// Whether one of the members is set that must be 0 with an adapter.
    pub(crate) fn has_reserved(&self) -> bool {
        // SAFETY: Plain bytes, see the module.
        unsafe {
            self.__bindgen_anon_2.Reserved0 != 0
                || self.__bindgen_anon_3.Reserved1 != 0
                || self.__bindgen_anon_4.Reserved2 != 0
        }
    }

    /// What the caller waits for.
    pub(crate) fn set_fence_value(&mut self, value: u64) {
        self.__bindgen_anon_4.PagingFenceValue = value;
    }
}

impl D3DKMT_QUERYSTATISTICS {
    /// Which segment, node or group is asked about.
    pub(crate) fn selector(&self) -> u32 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.QuerySegment.SegmentId }
    }

    pub(crate) fn set_adapter_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.AdapterInformation = info;
    }

    pub(crate) fn set_process_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_PROCESS_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.ProcessInformation = info;
    }

    pub(crate) fn set_process_adapter_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.ProcessAdapterInformation = info;
    }

    pub(crate) fn set_process_segment_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.ProcessSegmentInformation = info;
    }

    pub(crate) fn set_process_node_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.ProcessNodeInformation = info;
    }

    pub(crate) fn set_segment_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.SegmentInformation = info;
    }

    pub(crate) fn set_node_information(&mut self, info: D3DKMT_QUERYSTATISTICS_NODE_INFORMATION) {
        self.QueryResult = zeroed();
        self.QueryResult.__bindgen_anon_1.NodeInformation = info;
    }

    pub(crate) fn set_group_information(
        &mut self,
        info: D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP_INFORMATION,
    ) {
        self.QueryResult = zeroed();
        self.QueryResult
            .__bindgen_anon_1
            .ProcessSegmentGroupInformation = info;
    }
}

impl D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION {
    pub(crate) fn map(&self) -> D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Map {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.Map }
    }

    pub(crate) fn map_protect(&self) -> D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_MapProtect {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.MapProtect }
    }

    pub(crate) fn unmap(&self) -> D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Unmap {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.Unmap }
    }

    pub(crate) fn copy(&self) -> D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Copy {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.Copy }
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

    /// What has faulted.
    pub(crate) fn set_page_fault_state(&mut self, state: D3DKMT_DEVICEPAGEFAULT_STATE) {
        self.__bindgen_anon_1.PageFaultState = state;
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

impl D3DKMT_RENDER {
    /// In which the commands would run.
    pub(crate) fn context(&self) -> u32 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.hContext }
    }
}

impl D3DKMT_OPENRESOURCE {
    /// Address of the allocation infos.
    pub(crate) fn infos(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.pOpenAllocationInfo2 }
    }
}

impl D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 {
    /// The value of a legacy fence, or the event.
    pub(crate) fn value(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.CpuEventHandle }
    }
}

impl D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 {
    /// The value of a legacy fence.
    pub(crate) fn value(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.Fence.FenceValue }
    }
}

impl D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU {
    /// Address of the values, or the value of a legacy fence.
    pub(crate) fn values(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.MonitoredFenceValueArray }
    }
}

impl D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 {
    /// Address of the values, the value of a legacy fence, or the event.
    pub(crate) fn values(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.MonitoredFenceValueArray }
    }
}

impl D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU {
    /// Address of the values, or the value of a legacy fence.
    pub(crate) fn values(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.MonitoredFenceValueArray }
    }
}

impl D3DKMT_RECLAIMALLOCATIONS2 {
    /// Where the results go; older callers call it `pDiscarded`.
    pub(crate) fn results(&self) -> u64 {
        // SAFETY: Plain bytes, see the module.
        unsafe { self.__bindgen_anon_1.pResults }
    }
}
