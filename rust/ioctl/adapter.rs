// SPDX-License-Identifier: GPL-2.0

//! Adapters: finding them, opening them, asking them.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        adapter::{
            Adapter,
            Luid, //
        },
        handle::{
            reserved_handles::ReservedHandles,
            HandleTarget,
            Reserved, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        adapter_info::filter::Filter,
        feature, //
    },
    sys::user,
    uapi::*, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A new handle for an adapter; every open makes one.
fn open<'a>(call: Call<'a>, adapter: &Arc<Adapter>) -> DxgResult<Reserved<'a>> {
    call.process
        .handles
        .reserve(HandleTarget::Adapter(adapter.clone()), None)
}

/// D3DKMTOpenAdapterFromLuid (0x01): a new handle for an adapter.
pub(super) fn open_from_luid<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENADAPTERFROMLUID,
) -> DxgResult<impl Commit + 'a> {
    let luid = Luid {
        low: args.AdapterLuid.LowPart,
        high: args.AdapterLuid.HighPart,
    };
    let adapter = call.driver.adapter(luid).ok_or(Status::INVALID_PARAMETER)?;
    let reserved = open(call, &adapter)?;

    args.hAdapter = reserved.handle();
    Ok(reserved)
}

/// D3DKMTCloseAdapter (0x15): destroys a handle of an adapter. Devices that were made through it
/// stay usable.
pub(super) fn close(call: Call<'_>, args: &D3DKMT_CLOSEADAPTER) -> DxgResult {
    call.process.handles.destroy(args.hAdapter, |item| {
        matches!(item, HandleTarget::Adapter(_))
    })
}

/// The adapters that pass `filter`, with a fresh handle each. `capacity` is the number of entries
/// at `array`; without an array only the number is returned.
fn enumerate<'a>(
    call: Call<'a>,
    filter: Filter,
    array: u64,
    capacity: u32,
) -> DxgResult<(u32, Option<ReservedHandles<'a>>)> {
    if array == 0 {
        return Ok((call.driver.adapter_count(filter), None));
    }

    let adapters = call.driver.adapters(filter)?;
    // CAST: at most 16.
    let count = adapters.len() as u32;

    if capacity < count {
        return Err(Status::BUFFER_TOO_SMALL.into());
    }

    let mut handles = ReservedHandles::new(&call.process.handles, adapters.len())?;
    let mut entries = KVec::with_capacity(adapters.len(), GFP_KERNEL_ACCOUNT)?;

    for adapter in &adapters {
        let entry = D3DKMT_ADAPTERINFO {
            hAdapter: handles.reserve(HandleTarget::Adapter(adapter.clone()), None)?,
            AdapterLuid: LUID {
                LowPart: adapter.luid.low,
                HighPart: adapter.luid.high,
            },
            NumOfSources: adapter.caps.video_present_sources,
            bPrecisePresentRegionsPreferred: 0,
        };

        entries.push(entry, GFP_KERNEL_ACCOUNT)?;
    }
    user::write_slice(array, &entries)?;
    Ok((count, Some(handles)))
}

/// D3DKMTEnumAdapters2 (0x14): the adapters that render or display, each with a new handle.
pub(super) fn enumerate2<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_ENUMADAPTERS2,
) -> DxgResult<impl Commit + 'a> {
    let (count, handles) = enumerate(call, Filter::GRAPHICS, args.pAdapters, args.NumAdapters)?;

    args.NumAdapters = count;
    Ok(handles)
}

/// D3DKMTEnumAdapters3 (0x3e): the same with a filter.
pub(super) fn enumerate3<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_ENUMADAPTERS3,
) -> DxgResult<impl Commit + 'a> {
    let filter = Filter::decode(args.Filter)?;
    let (count, handles) = enumerate(call, filter, args.pAdapters, args.NumAdapters)?;

    args.NumAdapters = count;
    Ok(handles)
}

/// D3DKMTQueryAdapterInfo (0x09): the payload is copied in, answered in place and copied out.
pub(super) fn query_info(call: Call<'_>, args: &D3DKMT_QUERYADAPTERINFO) -> DxgResult {
    let adapter = call.process.handles.adapter(args.hAdapter)?;
    let size = adapter
        .info_size(args.Type)
        .ok_or(Status::INVALID_PARAMETER)?;
    // CAST: a u32 fits a usize.
    let given = args.PrivateDriverDataSize as usize;

    invalid_if(args.pPrivateDriverData == 0 || given < size.min)?;

    let mut payload = KVVec::from_elem(0u8, given.min(size.max), GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.pPrivateDriverData, &mut payload)?;
    adapter.query_info(args.Type, &mut payload)?;
    user::write_slice(args.pPrivateDriverData, &payload)?;
    Ok(())
}

/// D3DKMTIsFeatureEnabled (0x49): whether an adapter has a feature, or without one the system.
pub(super) fn is_feature_enabled(call: Call<'_>, args: &mut D3DKMT_ISFEATUREENABLED) -> DxgResult {
    let answer = match args.hAdapter {
        0 => feature::global_answer(args.FeatureId).ok_or(Status::INVALID_PARAMETER)?,
        handle => {
            let adapter = call.process.handles.adapter(handle)?;

            adapter.check()?;
            adapter.feature(args.FeatureId)
        }
    };

    args.Result.Version = answer.version;
    args.Result.Value = answer.value;
    Ok(())
}

/// D3DKMTQueryClockCalibration (0x3d): the clocks of a node and of the CPU at one moment.
pub(super) fn query_clock_calibration(
    call: Call<'_>,
    args: &mut D3DKMT_QUERYCLOCKCALIBRATION,
) -> DxgResult {
    let adapter = call.process.handles.adapter(args.hAdapter)?;
    let clock = adapter.calibrate_clock(args.NodeOrdinal, args.PhysicalAdapterIndex)?;

    args.ClockData = DXGK_GPUCLOCKDATA {
        GpuFrequency: clock.gpu_frequency,
        GpuClockCounter: clock.gpu_counter,
        CpuClockCounter: clock.cpu_counter,
        Flags: match clock.is_cmp_clock {
            true => DXGK_GPUCLOCKDATA_FLAGS_ContextManagementProcessor,
            false => 0,
        },
    };
    Ok(())
}
