// SPDX-License-Identifier: GPL-2.0

//! Devices and contexts.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    ddi::queue::{
        Fault,
        FaultKind, //
    },
    dxgk::{
        context::{
            self,
            Class,
            Context,
            Scheduling, //
        },
        device::{
            Device,
            DeviceState,
            StatePart, //
        },
        handle::{
            HandleTarget,
            Reserved, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    sys::user,
    uapi::*, //
};

/// Bits of `D3DDDI_CREATECONTEXTFLAGS` that may be set.
pub(super) const CONTEXT_FLAGS: u32 = !D3DDDI_CREATECONTEXTFLAGS_Reserved;
/// Bits of `D3DKMT_CREATEDEVICEFLAGS` that may be set.
const DEVICE_FLAGS: u32 = !D3DKMT_CREATEDEVICEFLAGS_Reserved;

/// D3DKMTCreateDevice (0x02): makes a device. The legacy buffers of the answer do not exist: 0.
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEDEVICE,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.Flags & !DEVICE_FLAGS != 0)?;

    let adapter = call.process.handles.adapter(args.adapter_handle())?;

    adapter.check()?;

    let disable_gpu_timeout = args.Flags & D3DKMT_CREATEDEVICEFLAGS_DisableGpuTimeout != 0;
    let device = Device::new(adapter, call.process.clone(), disable_gpu_timeout)?;
    let reserved = call
        .process
        .handles
        .reserve(HandleTarget::Device(device), None)?;

    args.hDevice = reserved.handle();
    args.pCommandBuffer = 0;
    args.CommandBufferSize = 0;
    args.pAllocationList = 0;
    args.AllocationListSize = 0;
    args.pPatchLocationList = 0;
    args.PatchLocationListSize = 0;
    Ok(reserved)
}

/// D3DKMTDestroyDevice (0x19): destroys the device with everything that was made on it.
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYDEVICE) -> DxgResult {
    call.process.handles.device(args.hDevice)?.close_queues();
    call.process
        .handles
        .destroy(args.hDevice, |item| matches!(item, HandleTarget::Device(_)))
}

/// D3DKMTGetDeviceState (0x0e): asks about one part of the state of a device.
pub(super) fn state(call: Call<'_>, args: &mut D3DKMT_GETDEVICESTATE) -> DxgResult {
    let device = call.process.handles.device(args.hDevice)?;
    let part = match args.StateType {
        D3DKMT_DEVICESTATE_EXECUTION => StatePart::Execution,
        D3DKMT_DEVICESTATE_RESET => StatePart::Reset,
        D3DKMT_DEVICESTATE_PAGE_FAULT => StatePart::PageFault,
        D3DKMT_DEVICESTATE_PRESENT
        | D3DKMT_DEVICESTATE_PRESENT_DWM
        | D3DKMT_DEVICESTATE_PRESENT_QUEUE => StatePart::Presentation,
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };

    match device.state(part)? {
        DeviceState::Active => args.set_execution_state(D3DKMT_DEVICEEXECUTION_ACTIVE),
        DeviceState::Stopped => args.set_execution_state(D3DKMT_DEVICEEXECUTION_STOPPED),
        DeviceState::Hung => args.set_execution_state(D3DKMT_DEVICEEXECUTION_HUNG),
        DeviceState::Reset => args.set_execution_state(D3DKMT_DEVICEEXECUTION_RESET),
        DeviceState::OutOfMemory => {
            args.set_execution_state(D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY);
        }
        DeviceState::DmaFault => {
            args.set_execution_state(D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT);
        }
        DeviceState::DmaPageFault => {
            args.set_execution_state(D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT);
        }
        DeviceState::NeverReset => args.set_reset_state(0),
        DeviceState::NoPageFault => args.clear_page_fault_state(),
        DeviceState::Faulted(fault) => args.set_page_fault_state(page_fault_state(&fault)),
    }
    Ok(())
}

/// The record of a fault (GPU-67): the address that was accessed, or that of the packet.
fn page_fault_state(fault: &Fault) -> D3DKMT_DEVICEPAGEFAULT_STATE {
    let (address, error) = match fault.kind {
        FaultKind::PageFault { address, .. } => (address, DXGK_GENERAL_ERROR_PAGE_FAULT),
        FaultKind::IllegalPacket { .. } => (fault.packet, DXGK_GENERAL_ERROR_INVALID_INSTRUCTION),
    };

    D3DKMT_DEVICEPAGEFAULT_STATE {
        FaultedPipelineStage: DXGK_RENDER_PIPELINE_STAGE_UNKNOWN,
        PageFaultFlags: fault.flags,
        // Bit 0 says that this is a general code.
        FaultErrorCode: error << 1,
        FaultedVirtualAddress: address,
        ..user::zeroed()
    }
}

/// D3DKMTMarkDeviceAsError (0x26): puts a device in error (GPU-99). All reasons are one.
pub(super) fn mark_as_error(call: Call<'_>, args: &D3DKMT_MARKDEVICEASERROR) -> DxgResult {
    invalid_if(!matches!(
        args.Reason,
        D3DKMT_DEVICE_ERROR_REASON_GENERIC | D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR
    ))?;
    call.process.handles.device(args.hDevice)?.mark_as_error();
    Ok(())
}

/// What a context is made of, as both kinds of calls say it.
struct ContextRequest {
    device: u32,
    node: u32,
    engines: u32,
    scheduling: Scheduling,
    class: Class,
    disable_gpu_timeout: bool,
    private_data: (u64, u32),
}

/// The part that both kinds of contexts have in common.
fn create_context<'a>(call: Call<'a>, request: &ContextRequest) -> DxgResult<Reserved<'a>> {
    let (data, size) = request.private_data;

    invalid_if(data == 0 && size != 0)?;

    let parent = call.process.handles.parent(request.device)?;
    let adapter = &parent.device.adapter;

    invalid_if(request.node >= adapter.caps.nodes || !adapter.has_engines(request.engines))?;

    // What the KMD does not look at is not read. CAST: 32 bits fit a usize.
    let size = size.min(adapter.caps.context_data_size) as usize;
    let description = context::Description {
        scheduling: request.scheduling,
        class: request.class,
        node: request.node,
        engines: request.engines,
        disable_gpu_timeout: request.disable_gpu_timeout,
        private_data: user::read_bytes(data, size)?,
    };
    let context = Context::new(parent.device.clone(), &description)?;

    call.process
        .handles
        .reserve(HandleTarget::Context(context), Some(&parent))
}

/// D3DKMTCreateContextVirtual (0x04): a context whose work is submitted in packets, or to HW queues
/// if the client says so: kernels without D3DKMTCreateHwContext make HW contexts in this way.
pub(super) fn create_context_virtual<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATECONTEXTVIRTUAL,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.Flags & !CONTEXT_FLAGS != 0)?;

    let request = ContextRequest {
        device: args.hDevice,
        node: args.NodeOrdinal,
        engines: args.EngineAffinity,
        scheduling: if args.Flags & D3DDDI_CREATECONTEXTFLAGS_HwQueueSupported != 0 {
            Scheduling::HwQueues
        } else {
            Scheduling::Packets
        },
        class: Class::Context,
        disable_gpu_timeout: args.Flags & D3DDDI_CREATECONTEXTFLAGS_DisableGpuTimeout != 0,
        private_data: (args.pPrivateDriverData, args.PrivateDriverDataSize),
    };
    let reserved = create_context(call, &request)?;

    args.hContext = reserved.handle();
    Ok(reserved)
}

/// D3DKMTCreateHwContext (0x17): a context whose work is submitted to HW queues.
pub(super) fn create_hw_context<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEHWCONTEXT,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.Flags != 0)?;

    let request = ContextRequest {
        device: args.hDevice,
        node: args.NodeOrdinal,
        engines: args.EngineAffinity,
        scheduling: Scheduling::HwQueues,
        class: Class::HwContext,
        disable_gpu_timeout: false,
        private_data: (args.pPrivateDriverData, args.PrivateDriverDataSize),
    };
    let reserved = create_context(call, &request)?;

    args.hHwContext = reserved.handle();
    Ok(reserved)
}

fn destroy_kind(call: Call<'_>, handle: u32, class: Class) -> DxgResult {
    call.process.handles.destroy(
        handle,
        |item| matches!(item, HandleTarget::Context(context) if context.class == class),
    )
}

/// D3DKMTDestroyContext (0x05): destroys what D3DKMTCreateContextVirtual has made, and no other.
pub(super) fn destroy_context(call: Call<'_>, args: &D3DKMT_DESTROYCONTEXT) -> DxgResult {
    destroy_kind(call, args.hContext, Class::Context)
}

/// D3DKMTDestroyHwContext (0x1a): destroys what D3DKMTCreateHwContext has made, and no other.
pub(super) fn destroy_hw_context(call: Call<'_>, args: &D3DKMT_DESTROYHWCONTEXT) -> DxgResult {
    destroy_kind(call, args.hHwContext, Class::HwContext)
}
