// SPDX-License-Identifier: GPL-2.0

//! Escape: the driver-specific calls that clients use (RES-68, abi.md section 6.8).

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    ddi::types::Escape,
    dxgk::adapter::Adapter,
    error::{
        DxgResult,
        Status, //
    },
    logic::allocation_rules::MAX_PRIVATE_DATA,
    sys::{
        task::credentials::Credentials,
        user, //
    },
    uapi::*, //
};
use core::ops::Range;
use kernel::sync::Arc;

/// D3DKMTEscape (0x0d): the escapes that clients are known to use.
pub(super) fn run(call: Call<'_>, args: &D3DKMT_ESCAPE) -> DxgResult {
    match args.Type {
        D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE => update_resource(call, args),
        D3DKMT_ESCAPE_SET_PRESENT_RECT_WINE => set_present_rect(call, args),
        D3DKMT_ESCAPE_DRIVERPRIVATE => driver_private(call, args),
        D3DKMT_ESCAPE_TDRDBGCTRL => force_reset(call, args),
        _ => Err(Status::NOT_SUPPORTED.into()),
    }
}

/// Replaces the runtime data of the resource whose local handle is in `hContext`.
fn update_resource(call: Call<'_>, args: &D3DKMT_ESCAPE) -> DxgResult {
    let open_resource = call.process.handles.resource(args.hContext)?.what;

    invalid_if(args.PrivateDriverDataSize > MAX_PRIVATE_DATA)?;
    open_resource.check_may_write()?;

    // CAST: bounded above.
    let bytes = user::read_bytes(args.pPrivateDriverData, args.PrivateDriverDataSize as usize)?;

    open_resource.replace_runtime_data(bytes)
}

/// Keeps a rectangle with the resource whose local handle is in `hContext`.
fn set_present_rect(call: Call<'_>, args: &D3DKMT_ESCAPE) -> DxgResult {
    let open_resource = call.process.handles.resource(args.hContext)?.what;
    let mut rectangle = [0u32; 4];

    // CAST: 16 bytes.
    invalid_if(args.PrivateDriverDataSize != size_of_val(&rectangle) as u32)?;
    open_resource.check_may_write()?;
    user::read_slice(args.pPrivateDriverData, &mut rectangle)?;
    open_resource.resource().set_present_rect(rectangle);
    Ok(())
}

/// Escapes for the driver. Two that every driver knows are answered here: handles of guest and host
/// are the same, so translating one changes nothing.
fn driver_private(call: Call<'_>, args: &D3DKMT_ESCAPE) -> DxgResult {
    let adapter = call.process.handles.adapter(args.hAdapter)?;

    if args.Flags & D3DDDI_ESCAPEFLAGS_DriverKnownEscape != 0
        && args.PrivateDriverDataSize == USAGE_SIZE
    {
        return cpu_event_usage(call, args, &adapter);
    }
    invalid_if(args.PrivateDriverDataSize > adapter.caps.max_escape_size)?;

    // CAST: 32 bits fit a usize.
    let mut data = user::read_bytes(args.pPrivateDriverData, args.PrivateDriverDataSize as usize)?;

    if args.Flags == D3DDDI_ESCAPEFLAGS_DriverKnownEscape {
        match known_escape(&data) {
            Some((D3DDDI_DRIVERESCAPETYPE_TRANSLATEALLOCATIONHANDLE, handle)) => {
                return call.process.handles.allocation(handle).map(drop);
            }
            Some((D3DDDI_DRIVERESCAPETYPE_TRANSLATERESOURCEHANDLE, handle)) => {
                return call.process.handles.resource(handle).map(drop);
            }
            _ => {}
        }
    }

    adapter.check_escape()?;
    check_answerable(args, &data)?;

    let escape = Escape {
        flags: args.Flags,
        device: None,
        is_privileged: Credentials::may_administrate(),
        handles: None,
    };

    match args.hDevice {
        0 => adapter.escape(&escape, &mut data)?,
        device => {
            let device = call.process.handles.device(device)?;

            invalid_if(!Arc::ptr_eq(&device.adapter, &adapter))?;
            device.escape(&escape, &mut data)?;
        }
    }
    user::write_slice(args.pPrivateDriverData, &data)?;
    Ok(())
}

/// Refuses what cannot be answered, before the KMD does something that stays done: it gives records
/// away (CPU-44), for example. The bytes that were read are written as they are.
fn check_answerable(args: &D3DKMT_ESCAPE, data: &[u8]) -> DxgResult {
    user::write_slice(args.pPrivateDriverData, data)?;
    Ok(())
}

/// Bytes of the usage escape.
// CAST: 48 bytes.
const USAGE_SIZE: u32 = size_of::<D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE>() as u32;

/// CPUEVENTUSAGE: says what a CPU event is for, and asks what it is called towards the KMD (CPU-11
/// to CPU-18). The device is the one that the event was made on, which the caller may leave out.
fn cpu_event_usage(call: Call<'_>, args: &D3DKMT_ESCAPE, adapter: &Arc<Adapter>) -> DxgResult {
    const NO_SYNCHRONIZATION: u32 = D3DDDI_ESCAPEFLAGS_NoAdapterSynchronization;
    const FLAGS: u32 = D3DDDI_ESCAPEFLAGS_DriverKnownEscape | NO_SYNCHRONIZATION;

    let mut data = [0; size_of::<D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE>()];

    invalid_if(args.Flags & !FLAGS != 0 || args.hContext != 0)?;
    user::read_slice(args.pPrivateDriverData, &mut data)?;
    check_answerable(args, &data)?;

    let head = data.get(..KMD_CPU_EVENT.start).unwrap_or_default();
    let Some((D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE, handle)) = known_escape(head) else {
        return Err(Status::INVALID_PARAMETER.into());
    };
    let object = call.process.handles.sync_object(handle)?.object;
    let event = object.cpu_event().ok_or(Status::INVALID_PARAMETER)?;

    invalid_if(!object.header().is_of(adapter))?;
    if args.hDevice != 0 {
        let device = call.process.handles.device(args.hDevice)?;

        invalid_if(device.id() != event.device_id())?;
    }
    adapter.check()?;
    if let Some(place) = data.get_mut(KMD_CPU_EVENT) {
        place.copy_from_slice(&event.client()?.to_le_bytes());
    }
    if args.Flags & NO_SYNCHRONIZATION == 0 {
        adapter.power.up()?;
    }

    let usage = core::array::from_fn(|word| word_of(&data, word));
    let handles = call.process.handles.of_device(event.device_id());
    let escape = Escape {
        flags: args.Flags,
        device: None,
        is_privileged: Credentials::may_administrate(),
        handles: Some(&handles),
    };

    event.set_usage(&escape, &mut data, usage)?;
    user::write_slice(args.pPrivateDriverData, &data)?;
    Ok(())
}

/// Where `hKmdCpuEvent` is in the usage escape, and where `Usage` begins.
const KMD_CPU_EVENT: Range<usize> = 8..16;
const USAGE: usize = 16;

/// A word of `Usage`.
fn word_of(data: &[u8], word: usize) -> u32 {
    // OVERFLOW: eight words.
    let bytes = data.get(USAGE + word * 4..).and_then(<[u8]>::first_chunk);

    u32::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// Bytes of a request for a reset, without and with the node of an engine.
const RESET_SIZE: u32 = 4;
const ENGINE_RESET_SIZE: u32 = 8;

/// Resets the adapter or an engine of it, as if work there had hung (GPU-98): a
/// `D3DKMT_TDRDBGCTRLTYPE`, and for one engine the node behind it. For callers who may control the
/// machine. What only a kernel debugger can ask for is not supported.
fn force_reset(call: Call<'_>, args: &D3DKMT_ESCAPE) -> DxgResult {
    let adapter = call.process.handles.adapter(args.hAdapter)?;
    let mut request = [0u32; 2];
    let words = match args.PrivateDriverDataSize {
        RESET_SIZE => 1,
        ENGINE_RESET_SIZE => 2,
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };

    invalid_if(args.Flags != 0)?;
    if let Some(words) = request.get_mut(..words) {
        user::read_slice(args.pPrivateDriverData, words)?;
    }

    let [kind, node] = request;
    let node = match (kind, words) {
        (
            D3DKMT_TDRDBGCTRLTYPE_FORCETDR
            | D3DKMT_TDRDBGCTRLTYPE_UNCONDITIONAL
            | D3DKMT_TDRDBGCTRLTYPE_GPUTDR,
            1,
        ) => None,
        (D3DKMT_TDRDBGCTRLTYPE_ENGINETDR, 2) if node < adapter.caps.nodes => Some(node),
        (
            D3DKMT_TDRDBGCTRLTYPE_DISABLEBREAK
            | D3DKMT_TDRDBGCTRLTYPE_ENABLEBREAK
            | D3DKMT_TDRDBGCTRLTYPE_VSYNCTDR
            | D3DKMT_TDRDBGCTRLTYPE_FORCEDODTDR
            | D3DKMT_TDRDBGCTRLTYPE_FORCEDODVSYNCTDR,
            _,
        ) => return Err(Status::NOT_SUPPORTED.into()),
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };

    if !Credentials::may_administrate() {
        return Err(Status::ACCESS_DENIED.into());
    }
    adapter.check()?;
    adapter.force_reset(node);
    Ok(())
}

/// The type and the handle of `D3DDDI_DRIVERESCAPE_TRANSLATEALLOCATIONEHANDLE` and its like.
fn known_escape(data: &[u8]) -> Option<(u32, u32)> {
    let (kind, handle) = data.split_first_chunk()?;

    Some((
        u32::from_le_bytes(*kind),
        u32::from_le_bytes(handle.try_into().ok()?),
    ))
}
