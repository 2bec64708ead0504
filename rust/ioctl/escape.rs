// SPDX-License-Identifier: GPL-2.0

//! Escape: the driver-specific calls that clients use (RES-68, abi.md section 6.8).

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::allocation_rules::MAX_PRIVATE_DATA,
    sys::user,
    uapi::*, //
};

/// D3DKMTEscape (0x0d): the escapes that clients are known to use.
pub(super) fn run(call: Call<'_>, args: &D3DKMT_ESCAPE) -> DxgResult {
    match args.Type {
        D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE => update_resource(call, args),
        D3DKMT_ESCAPE_SET_PRESENT_RECT_WINE => set_present_rect(call, args),
        D3DKMT_ESCAPE_DRIVERPRIVATE => driver_private(call, args),
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
    adapter.escape(args.Flags, &mut data)?;
    user::write_slice(args.pPrivateDriverData, &data)?;
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
