// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told about processes: their memory, and what engines do for them (MEM-106).

use std::os::fd::AsFd;

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Adapter, MemoryGroup, ProcessNodeStatistics, StatisticsOf, Status};
use selftests::call::{refused, succeeds};
use selftests::child::{Child, Gate};
use selftests::fds::pidfd;
use selftests::gpu::{Gpu, NODES, PAGE};
use selftests::hog::Hog;
use selftests::time::eventually;
use selftests::user::{become_user, needs_root, OTHER};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-106 what engines do for a process", engines)
        .test("MEM-106 engines of other processes are not counted", others)
        .test("MEM-106 a process that is looked at from outside", outside)
        .test("MEM-106 the memory of a process by segment", segments)
        .test("MEM-106 an adapter as processes see it", parts)
        .test("MEM-34 statistics that are refused", refusals)
}

/// What a node has done for the caller.
fn own(adapter: &Adapter, node: u32) -> TestResult<ProcessNodeStatistics> {
    Ok(adapter.process_node_statistics(StatisticsOf::Caller, node)?)
}

fn engines() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let adapter = gpu.device().adapter().clone();
        let before = own(&adapter, node)?;
        let buffer = gpu.buffer(64 * PAGE)?;
        let copy = Pm4::new().copy(buffer.at(32 * PAGE), buffer.at(0), 32 * PAGE);
        for _ in 0..3 {
            gpu.run(&copy)?;
        }
        let after = own(&adapter, node)?;
        ensure_eq!(after.submitted - before.submitted, 3, "node {node}");
        ensure_eq!(after.completed - before.completed, 3, "node {node}");
        ensure!(after.running_time > before.running_time, "{after:?}");
        ensure!(after.switches > before.switches, "{after:?}");
        // It does not go back when the process has no device any more.
        drop((buffer, gpu));
        ensure_eq!(own(&adapter, node)?, after);
    }
    Ok(())
}

fn others() -> TestResult {
    let adapter = fixture::adapter()?;
    let before = own(&adapter, 0)?;
    let (ready, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::node(0)?;
        let busy = Hog::Loop.begin(&gpu)?;
        busy.runs()?;
        ready.open()?;
        done.wait()
    })?;
    ready.wait()?;
    ensure_eq!(own(&adapter, 0)?, before);
    done.open()?;
    child.join()
}

fn outside() -> TestResult {
    let adapter = fixture::adapter()?;
    let (ready, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::node(1)?;
        let _memory = gpu.local_buffer(5 * PAGE)?;
        let busy = Hog::Loop.begin(&gpu)?;
        busy.runs()?;
        ready.open()?;
        done.wait()
    })?;
    ready.wait()?;
    let process = pidfd(child.pid())?;
    let look = || adapter.process_node_statistics(StatisticsOf::Process(process.as_fd()), 1);
    let first = look()?;
    ensure_eq!((first.submitted, first.completed), (1, 0));
    eventually("its time goes on", || {
        look().is_ok_and(|now| now.running_time > first.running_time)
    })?;
    let idle = adapter.process_node_statistics(StatisticsOf::Process(process.as_fd()), 2)?;
    ensure_eq!(idle, ProcessNodeStatistics::default());
    let local = bytes(&adapter, StatisticsOf::Process(process.as_fd()), false)?;
    ensure!(local >= 5 * PAGE, "{local} bytes");
    done.open()?;
    child.join()?;
    // The process is gone: there is nothing that could be told of it.
    ensure!(look().is_err());
    Ok(())
}

/// What a process has in segments that are an aperture, or are not.
fn bytes(adapter: &Adapter, process: StatisticsOf<'_>, aperture: bool) -> TestResult<u64> {
    let (segments, _) = adapter.segment_and_node_count()?;
    let mut bytes = 0;
    for segment in 0..segments {
        if adapter.segment_statistics(segment)?.is_aperture == aperture {
            bytes += adapter.process_segment_bytes(process, segment)?;
        }
    }
    Ok(bytes)
}

fn segments() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let agree = || -> TestResult<[u64; 2]> {
        let local = bytes(adapter, StatisticsOf::Caller, false)?;
        let system = bytes(adapter, StatisticsOf::Caller, true)?;
        ensure_eq!(local, adapter.video_memory(MemoryGroup::Local)?.usage);
        ensure_eq!(system, adapter.video_memory(MemoryGroup::NonLocal)?.usage);
        Ok([local, system])
    };
    let before = agree()?;
    let buffers = (gpu.local_buffer(7 * PAGE)?, gpu.buffer(3 * PAGE)?);
    let [local, system] = agree()?;
    ensure_eq!(local, before[0] + 7 * PAGE);
    ensure_eq!(system, before[1] + 3 * PAGE);
    drop(buffers);
    ensure_eq!(agree()?, before);
    Ok(())
}

fn parts() -> TestResult {
    let gpu = Gpu::new()?;
    let _buffer = gpu.buffer(2 * PAGE)?;
    let adapter = gpu.device().adapter();
    let (segments, nodes) = adapter.segment_and_node_count()?;
    let raw = fixture::raw()?;
    let mut arg = asked(adapter, D3DKMT_QUERYSTATISTICS_PROCESS);
    succeeds(&raw, &mut arg)?;
    // SAFETY: the arm of the kind that was asked for; all arms are integers.
    let process = unsafe { arg.QueryResult.__bindgen_anon_1.ProcessInformation };
    ensure_eq!((process.NodeCount, process.VidPnSourceCount), (nodes, 0));
    let system = adapter.video_memory(MemoryGroup::NonLocal)?.usage;
    ensure!(system >= 2 * PAGE);
    ensure_eq!(process.SystemMemory.BytesAllocated, system);
    arg = asked(adapter, D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER);
    succeeds(&raw, &mut arg)?;
    // SAFETY: as above.
    let process = unsafe { arg.QueryResult.__bindgen_anon_1.ProcessAdapterInformation };
    ensure_eq!((process.NbSegments, process.NodeCount), (segments, nodes));
    Ok(())
}

/// A question about the caller.
fn asked(adapter: &Adapter, kind: u32) -> D3DKMT_QUERYSTATISTICS {
    let mut arg = D3DKMT_QUERYSTATISTICS::zeroed();
    (arg.Type, arg.AdapterLuid) = (kind, adapter.luid().into());
    arg
}

fn refusals() -> TestResult {
    needs_root()?;
    let adapter = fixture::adapter()?;
    let raw = fixture::raw()?;
    for kind in [
        D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT,
        D3DKMT_QUERYSTATISTICS_PROCESS_NODE,
    ] {
        let mut arg = asked(&adapter, kind);
        arg.__bindgen_anon_1.QueryNode.NodeId = 32;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    // Whoever may not look at a process learns nothing of it.
    let own = std::process::id() as i32;
    let child = Child::spawn(|| {
        become_user(OTHER)?;
        let process = pidfd(own)?;
        let adapter = fixture::adapter()?;
        let look = adapter.process_node_statistics(StatisticsOf::Process(process.as_fd()), 0);
        fails_with(look, Status::ACCESS_DENIED)
    })?;
    child.join()
}
