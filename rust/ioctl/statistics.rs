// SPDX-License-Identifier: GPL-2.0

//! What is told about memory and engines: budgets, segments, nodes.

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    ddi::caps::Luid,
    dxgk::process::Process,
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        handle,
        paging_rules, //
    },
    sys::{
        task::{
            credentials::Credentials,
            group::ThreadGroup, //
        },
        user, //
    },
    uapi::*, //
};
use kernel::sync::Arc;

/// The handle of the calling process, as GetCurrentProcess gives it.
const CURRENT: u64 = u64::MAX;

/// Nanoseconds of a unit of time.
const UNIT: u64 = 100;

/// The process behind a process handle: the caller, or a pidfd of it. `None` if that process does
/// not have the device open. ACCESS_DENIED unless the caller may look at it (MEM-34).
fn process(call: Call<'_>, slot: u64) -> DxgResult<Option<Arc<Process>>> {
    if slot == 0 || slot == CURRENT {
        return Ok(Some(call.process.clone()));
    }

    let fd = handle::nt_fd(slot).ok_or(Status::INVALID_HANDLE)?;
    let group = ThreadGroup::by_pidfd(fd).ok_or(Status::INVALID_HANDLE)?;
    let (owner, _) = group.credentials().ok_or(Status::INVALID_HANDLE)?;

    if !Credentials::of_caller().may_inspect(&owner) {
        return Err(Status::ACCESS_DENIED.into());
    }
    Ok(call.driver.process_of(&group))
}

/// D3DKMTQueryVideoMemoryInfo (0x0a): what a process may use of a group of segments, and uses
/// (MEM-34, MEM-35).
pub(super) fn video_memory(call: Call<'_>, args: &mut D3DKMT_QUERYVIDEOMEMORYINFO) -> DxgResult {
    let group = paging_rules::check_video_memory_query(
        args.hAdapter,
        args.MemorySegmentGroup,
        args.PhysicalAdapterIndex,
    )?;
    let process = process(call, args.hProcess)?;
    let adapter = call.process.handles.adapter(args.hAdapter)?;

    adapter.check()?;

    let asked = process.as_ref().unwrap_or(call.process);
    let group = asked.group_usage(&adapter, group);

    args.Budget = group.budget;
    args.CurrentUsage = match process {
        Some(_) => group.usage,
        None => 0,
    };
    args.CurrentReservation = match process {
        Some(_) => group.reservation,
        None => 0,
    };
    args.AvailableForReservation = paging_rules::reservable(group.budget);
    Ok(())
}

/// D3DKMTChangeVideoMemoryReservation (0x16): has a part of a group of segments kept for a process
/// (MEM-37). One that does not have the device open cannot have any.
pub(super) fn reserve(call: Call<'_>, args: &D3DKMT_CHANGEVIDEOMEMORYRESERVATION) -> DxgResult {
    let group = paging_rules::check_video_memory_query(
        args.hAdapter,
        args.MemorySegmentGroup,
        args.PhysicalAdapterIndex,
    )?;
    let process = process(call, args.hProcess)?;
    let adapter = call.process.handles.adapter(args.hAdapter)?;

    adapter.check()?;
    process
        .ok_or(Status::INVALID_PARAMETER)?
        .reserve_memory(&adapter, group, args.Reservation)
}

/// D3DKMTFlushHeapTransitions (0x1f): there are none (MEM-98).
pub(super) fn flush_heap_transitions(
    call: Call<'_>,
    args: &D3DKMT_FLUSHHEAPTRANSITIONS,
) -> DxgResult {
    call.process.handles.adapter(args.hAdapter)?.check()
}

/// D3DKMTQueryStatistics (0x43): what is known of an adapter, its segments and its nodes. What is
/// not known is 0. The adapter is named by its LUID (MEM-106).
pub(super) fn statistics(call: Call<'_>, args: &mut D3DKMT_QUERYSTATISTICS) -> DxgResult {
    let luid = Luid {
        low: args.AdapterLuid.LowPart,
        high: args.AdapterLuid.HighPart,
    };
    let adapter = call.driver.adapter(luid).ok_or(Status::INVALID_PARAMETER)?;

    match args.Type {
        D3DKMT_QUERYSTATISTICS_ADAPTER => {
            let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION>();

            info.NbSegments = adapter.segment_count();
            info.NodeCount = adapter.caps.nodes;
            info.VidPnSourceCount = adapter.caps.video_present_sources;
            args.set_adapter_information(info);
        }
        D3DKMT_QUERYSTATISTICS_SEGMENT => {
            let segment = adapter.segment_usage(args.selector())?;
            let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION>();

            info.CommitLimit = segment.commit_limit;
            info.BytesCommitted = segment.used;
            info.BytesResident = segment.used;
            info.Aperture = segment.is_aperture.into();
            args.set_segment_information(info);
        }
        D3DKMT_QUERYSTATISTICS_NODE => {
            let node = adapter.node_status(args.selector())?;
            let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_NODE_INFORMATION>();

            info.GlobalInformation.RunningTime =
                i64::try_from(node.busy_ns / UNIT).unwrap_or(i64::MAX);
            info.GlobalInformation.ContextSwitch = u32::try_from(node.switches).unwrap_or(u32::MAX);
            args.set_node_information(info);
        }
        D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP => {
            let group = args.selector();

            invalid_if(group > 1)?;

            let process = process(call, args.hProcess)?;
            let asked = process.as_ref().unwrap_or(call.process);
            // CAST: 0 or 1.
            let usage = asked.group_usage(&adapter, group as usize);
            let mut info =
                user::zeroed::<D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP_INFORMATION>();

            info.Budget = usage.budget;
            if process.is_some() {
                info.Requested = usage.usage;
                info.Usage = usage.usage;
            }
            args.set_group_information(info);
        }
        D3DKMT_QUERYSTATISTICS_PROCESS..=D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER => {
            return Err(Status::NOT_SUPPORTED.into());
        }
        _ => return Err(Status::INVALID_PARAMETER.into()),
    }
    Ok(())
}
