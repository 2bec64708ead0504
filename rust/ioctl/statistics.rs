// SPDX-License-Identifier: GPL-2.0

//! What is told about memory and engines: budgets, segments, nodes.

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    ddi::caps::Luid,
    dxgk::{
        adapter::Adapter,
        engine_use::NodeUse,
        process::Process,
        vidmm::usage::GroupUsage, //
    },
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

/// The group of segments that are not the GPU's own.
const NON_LOCAL: usize = 1;

/// The process behind a process handle: the caller, or a pidfd of it. `None` if that process does
/// not have the device open. ACCESS_DENIED unless the caller may look at it (MEM-34).
pub(super) fn process(call: Call<'_>, slot: u64) -> DxgResult<Option<Arc<Process>>> {
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

/// The process behind a process handle, as [`process`] finds it, and an adapter that is there.
fn process_on(
    call: Call<'_>,
    slot: u64,
    adapter: u32,
) -> DxgResult<(Option<Arc<Process>>, Arc<Adapter>)> {
    let process = process(call, slot)?;
    let adapter = call.process.handles.adapter(adapter)?;

    adapter.check()?;
    Ok((process, adapter))
}

/// D3DKMTQueryVideoMemoryInfo (0x0a): what a process may use of a group of segments, and uses
/// (MEM-34, MEM-35).
pub(super) fn video_memory(call: Call<'_>, args: &mut D3DKMT_QUERYVIDEOMEMORYINFO) -> DxgResult {
    let group = paging_rules::check_video_memory_query(
        args.hAdapter,
        args.MemorySegmentGroup,
        args.PhysicalAdapterIndex,
    )?;
    let (process, adapter) = process_on(call, args.hProcess, args.hAdapter)?;
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
    let (process, adapter) = process_on(call, args.hProcess, args.hAdapter)?;

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

/// The process whose statistics are asked for.
struct Asked<'a> {
    call: Call<'a>,
    /// `None` if it does not have the device open: nothing of it is known.
    process: Option<Arc<Process>>,
}

impl<'a> Asked<'a> {
    fn new(call: Call<'a>, args: &D3DKMT_QUERYSTATISTICS) -> DxgResult<Self> {
        Ok(Self {
            call,
            process: process(call, args.hProcess)?,
        })
    }

    /// What it uses, as `usage` finds it. What it may use is what any process may.
    fn usage(
        &self,
        usage: impl FnOnce(&Process) -> DxgResult<GroupUsage>,
    ) -> DxgResult<GroupUsage> {
        match &self.process {
            Some(process) => usage(process),
            None => Ok(GroupUsage {
                usage: 0,
                ..usage(self.call.process)?
            }),
        }
    }
}

/// A time in units of 100 ns.
fn time(ns: u64) -> i64 {
    i64::try_from(ns / UNIT).unwrap_or(i64::MAX)
}

/// A count that is as large as it can be at most.
fn count(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Of an adapter: how many parts it has.
fn adapter_information(adapter: &Adapter, args: &mut D3DKMT_QUERYSTATISTICS) {
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION>();

    info.NbSegments = adapter.segment_count();
    info.NodeCount = adapter.caps.nodes;
    info.VidPnSourceCount = adapter.caps.video_present_sources;
    args.set_adapter_information(info);
}

/// Of a process: how many parts the adapter has, and what is resident in the system's memory.
fn process_information(
    call: Call<'_>,
    adapter: &Adapter,
    args: &mut D3DKMT_QUERYSTATISTICS,
) -> DxgResult {
    let asked = Asked::new(call, args)?;
    let system = asked.usage(|process| Ok(process.group_usage(adapter, NON_LOCAL)))?;
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_PROCESS_INFORMATION>();

    info.NodeCount = adapter.caps.nodes;
    info.VidPnSourceCount = adapter.caps.video_present_sources;
    info.SystemMemory.BytesAllocated = system.usage;
    args.set_process_information(info);
    Ok(())
}

/// Of a process on the adapter: how many parts that has.
fn process_adapter_information(
    call: Call<'_>,
    adapter: &Adapter,
    args: &mut D3DKMT_QUERYSTATISTICS,
) -> DxgResult {
    let _asked = Asked::new(call, args)?;
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER_INFORMATION>();

    info.NbSegments = adapter.segment_count();
    info.NodeCount = adapter.caps.nodes;
    info.VidPnSourceCount = adapter.caps.video_present_sources;
    args.set_process_adapter_information(info);
    Ok(())
}

/// Of a segment: how large it is, and how full.
fn segment_information(adapter: &Adapter, args: &mut D3DKMT_QUERYSTATISTICS) -> DxgResult {
    let segment = adapter.segment_usage(args.selector())?;
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION>();

    info.CommitLimit = segment.commit_limit;
    info.BytesCommitted = segment.used;
    info.BytesResident = segment.used;
    info.Aperture = segment.is_aperture.into();
    args.set_segment_information(info);
    Ok(())
}

/// Of a process in a segment: what is resident there.
fn process_segment_information(
    call: Call<'_>,
    adapter: &Adapter,
    args: &mut D3DKMT_QUERYSTATISTICS,
) -> DxgResult {
    let segment = args.selector();
    let asked = Asked::new(call, args)?;
    let usage = asked.usage(|process| process.segment_usage(adapter, segment))?;
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_INFORMATION>();

    info.BytesCommitted = usage.usage;
    info.MaximumWorkingSet = usage.budget;
    args.set_process_segment_information(info);
    Ok(())
}

/// Of a process in a group of segments: what it may use, and what it uses.
fn group_information(
    call: Call<'_>,
    adapter: &Adapter,
    args: &mut D3DKMT_QUERYSTATISTICS,
) -> DxgResult {
    let group = args.selector();

    invalid_if(group > 1)?;

    let asked = Asked::new(call, args)?;
    // CAST: 0 or 1.
    let usage = asked.usage(|process| Ok(process.group_usage(adapter, group as usize)))?;
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP_INFORMATION>();

    info.Budget = usage.budget;
    info.Requested = usage.usage;
    info.Usage = usage.usage;
    args.set_group_information(info);
    Ok(())
}

/// Of a node: how long it has run.
fn node_information(adapter: &Adapter, args: &mut D3DKMT_QUERYSTATISTICS) -> DxgResult {
    let node = adapter.node_status(args.selector())?;
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_NODE_INFORMATION>();

    info.GlobalInformation.RunningTime = time(node.busy_ns);
    info.GlobalInformation.ContextSwitch = count(node.switches);
    args.set_node_information(info);
    Ok(())
}

/// Of a process on a node: how long that has run for it, and its command buffers.
fn process_node_information(
    call: Call<'_>,
    adapter: &Adapter,
    args: &mut D3DKMT_QUERYSTATISTICS,
) -> DxgResult {
    let node = args.selector();

    invalid_if(node >= adapter.caps.nodes)?;

    let asked = Asked::new(call, args)?;
    let engines = asked
        .process
        .and_then(|process| process.gpu_processes.engines_on(adapter));
    let used = match engines {
        Some(engines) => engines.node(node)?,
        None => NodeUse::default(),
    };
    let mut info = user::zeroed::<D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION>();
    let [render, ..] = &mut info.PacketStatistics.QueuePacket;

    render.PacketSubmited = count(used.submitted);
    render.PacketCompleted = count(used.completed);
    info.RunningTime = time(used.busy_ns);
    info.ContextSwitch = count(used.switches);
    args.set_process_node_information(info);
    Ok(())
}

/// D3DKMTQueryStatistics (0x43): what is known of an adapter, its segments and its nodes, and of
/// what processes do there. What is not known is 0. The adapter is named by its LUID (MEM-106).
pub(super) fn statistics(call: Call<'_>, args: &mut D3DKMT_QUERYSTATISTICS) -> DxgResult {
    let luid = Luid {
        low: args.AdapterLuid.LowPart,
        high: args.AdapterLuid.HighPart,
    };
    let adapter = call.driver.adapter(luid).ok_or(Status::INVALID_PARAMETER)?;

    match args.Type {
        D3DKMT_QUERYSTATISTICS_ADAPTER => {
            adapter_information(&adapter, args);
            Ok(())
        }
        D3DKMT_QUERYSTATISTICS_PROCESS => process_information(call, &adapter, args),
        D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER => process_adapter_information(call, &adapter, args),
        D3DKMT_QUERYSTATISTICS_SEGMENT => segment_information(&adapter, args),
        D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT => process_segment_information(call, &adapter, args),
        D3DKMT_QUERYSTATISTICS_NODE => node_information(&adapter, args),
        D3DKMT_QUERYSTATISTICS_PROCESS_NODE => process_node_information(call, &adapter, args),
        D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP => group_information(call, &adapter, args),
        // There are no displays, and no sensors.
        D3DKMT_QUERYSTATISTICS_VIDPNSOURCE
        | D3DKMT_QUERYSTATISTICS_PROCESS_VIDPNSOURCE
        | D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER => Err(Status::NOT_SUPPORTED.into()),
        _ => Err(Status::INVALID_PARAMETER.into()),
    }
}
