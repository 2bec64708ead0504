// SPDX-License-Identifier: GPL-2.0

//! Contexts whose commands are patched with physical addresses, and such commands: no node takes
//! them (MEM-92). The arguments are checked as far as they name something, so that a client with a
//! mistake learns of that.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    device::CONTEXT_FLAGS, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        check_address,
        queued_sync_rules::MAX_BROADCAST, //
    },
    uapi::*, //
};

/// D3DKMTCreateContext (0x03): NOT_SUPPORTED.
pub(super) fn create_context(call: Call<'_>, args: &D3DKMT_CREATECONTEXT) -> DxgResult {
    invalid_if(args.Flags & !CONTEXT_FLAGS != 0)?;
    check_address(args.pPrivateDriverData, args.PrivateDriverDataSize)?;

    let device = call.process.handles.device(args.hDevice)?;
    let adapter = &device.adapter;

    invalid_if(args.NodeOrdinal >= adapter.caps.nodes)?;
    invalid_if(!adapter.has_engines(args.EngineAffinity))?;
    Err(Status::NOT_SUPPORTED.into())
}

/// D3DKMTRender (0x2d): NOT_SUPPORTED; INVALID_PARAMETER for allocations and patch locations, which
/// a context with virtual addresses does not have.
pub(super) fn render(call: Call<'_>, args: &D3DKMT_RENDER) -> DxgResult {
    invalid_if(args.Flags & D3DKMT_RENDERFLAGS_Reserved != 0)?;
    invalid_if(args.AllocationCount != 0 || args.PatchLocationCount != 0)?;
    invalid_if(args.BroadcastContextCount > MAX_BROADCAST)?;

    // CAST: at most 64.
    let others = args
        .BroadcastContext
        .get(..args.BroadcastContextCount as usize)
        .unwrap_or_default();

    call.process.handles.context(args.context())?;
    for other in others {
        call.process.handles.context(*other)?;
    }
    Err(Status::NOT_SUPPORTED.into())
}
