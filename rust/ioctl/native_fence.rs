// SPDX-License-Identifier: GPL-2.0

//! Creating and opening native fences (fences.md section 3.9).

use super::{
    call::{
        nt_handle,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::sync::{
        fence_binding::FenceAddresses,
        opening::OpenSyncRequest, //
    },
    error::DxgResult,
    logic::{
        open_rules,
        sync_flags::{
            Contents,
            Creation, //
        },
        zeros, //
    },
    uapi::*, //
};

/// D3DKMTCreateNativeFence (0x4a): makes a native fence (FEN-116, FEN-117).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATENATIVEFENCE,
) -> DxgResult<impl Commit + 'a> {
    let info = &mut args.Info;

    zeros::check(args.Flags, &[&args.Reserved[..], &info.Reserved])?;
    zeros::check(
        info.PhysicalAdapterIndex,
        &[&info.NativeFenceMapping.Reserved],
    )?;

    let contents = Contents::NativeFence {
        value: info.InitialFenceValue,
        engines: info.EngineAffinity,
        ty: info.Type,
    };
    let creation = Creation::new(contents, info.Flags)?;
    let parent = call.process.handles.parent(args.hDevice)?;
    let new = call
        .process
        .create_native_fence(&parent, &creation, &mut args.PrivateDriverData)?;

    info.NativeFenceMapping = mapping(new.addresses);
    args.hSyncObject = new.reserved.handle();
    Ok(new.reserved)
}

/// D3DKMTOpenNativeFenceFromNtHandle (0x4b): opens one on a device, with the rights that flags
/// leave (FEN-134).
pub(super) fn open_nt<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENNATIVEFENCEFROMNTHANDLE,
) -> DxgResult<impl Commit + 'a> {
    open_rules::check_sync_flags(args.Flags)?;
    zeros::check(0, &[&args.Reserved[..], &args.NativeFenceMapping.Reserved])?;

    let parent = call.process.handles.parent(args.hDevice)?;
    let shared = nt_handle(args.hNtHandle)?;
    let request = OpenSyncRequest {
        parent: Some(&parent),
        flags: args.Flags,
        engines: args.EngineAffinity,
    };
    let opened =
        call.process
            .open_shared_native_fence(&shared, &request, &mut args.PrivateDriverData)?;

    args.NativeFenceMapping = mapping(opened.addresses);
    args.hSyncObject = opened.reserved.handle();
    Ok(opened.reserved)
}

/// D3DKMTGetNativeFenceLogDetail (0xb0): where packets of a process log what a HW queue does with
/// native fences (GPU-75).
pub(super) fn log_detail(call: Call<'_>, args: &mut D3DKMT_GETNATIVEFENCELOGDETAIL) -> DxgResult {
    zeros::check(args.Flags, &[&args.Reserved[..]])?;

    let detail = call.process.handles.hw_queue(args.hHwQueue)?.log_detail()?;

    args.WaitLogNumberOfEntries = detail.entries;
    args.SignalLogNumberOfEntries = detail.entries;
    args.WaitLogGpuBaseAddress = detail.waits;
    args.SignalLogGpuBaseAddress = detail.signals;
    Ok(())
}

/// Where the caller finds the two values.
fn mapping(addresses: Option<FenceAddresses>) -> D3DDDI_NATIVEFENCEMAPPING {
    let addresses = addresses.unwrap_or_default();

    D3DDDI_NATIVEFENCEMAPPING {
        CurrentValueCpuVa: addresses.user_cpu,
        CurrentValueGpuVa: addresses.process_gpu,
        MonitoredValueGpuVa: addresses.monitored_gpu,
        Reserved: [0; 32],
    }
}
