// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many objects and contexts one call takes, and what FromGpu2 refuses (FEN-43).

use opendxg::pm4::{Compare, Pm4};
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Context, EventFd, FenceValues, SignalFlags, Status, SyncFlags};
use selftests::call::{refused, succeeds};
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::memory::UNMAPPED;
use selftests::time::soon;
use selftests::{ensure_eq, fixture, Suite, TestResult};
use std::os::fd::AsRawFd;

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-43 FEN-18 many fences in one call", many_fences)
        .test(
            "FEN-44 FEN-20 a signal of many fences releases all their waits",
            many_waits,
        )
        .test("FEN-43 a signal of up to 64 contexts", many_contexts)
        .test(
            "FEN-43 FEN-35 what a signal of several contexts refuses",
            refusals,
        )
        .test("FEN-43 an event comes alone", event)
        .test("FEN-41 a signal at submission", at_submission)
        .test(
            "FEN-41 a TopOfPipeline fence comes when the buffers were fetched",
            top_of_pipeline,
        )
}

fn many_fences() -> TestResult {
    let gpu = Gpu::new()?;
    let fences: Result<Vec<_>, _> = (0..64).map(|_| gpu.device().create_fence(0)).collect();
    let fences = fences?;
    let list = |value: u64| {
        let mut list = FenceValues::new();
        for (index, fence) in (0..).zip(&fences) {
            list.push(fence, value + index);
        }
        list
    };
    gpu.context().wait(&list(1))?;
    gpu.context().signal(&list(100))?;
    let mark = gpu.mark()?;
    for (index, fence) in (0..).zip(&fences) {
        fence.signal(1 + index)?;
    }
    gpu.until(mark)?;
    for (index, fence) in (0..).zip(&fences) {
        ensure_eq!(fence.value(), 100 + index);
    }
    Ok(())
}

/// More than one signal releases by itself.
fn many_waits() -> TestResult {
    const FENCES: u64 = 128;
    const WAITS: u64 = 4;
    let gpu = Gpu::new()?;
    let event = EventFd::new()?;
    let fences: Result<Vec<_>, _> = (0..FENCES).map(|_| gpu.device().create_fence(0)).collect();
    let fences = fences?;
    let mut list = FenceValues::new();
    for fence in &fences {
        for value in 1..=WAITS {
            fence.wait_async(value, &event)?;
        }
        list.push(fence, WAITS);
    }
    gpu.context().signal(&list)?;
    let mut released = 0;
    while released < FENCES * WAITS {
        released += event.wait(Some(soon()))?.ok_or("some are not released")?;
    }
    ensure_eq!(released, FENCES * WAITS);
    gpu.finish()
}

fn many_contexts() -> TestResult {
    let gpu = Gpu::new()?;
    let others: Result<Vec<Context>, _> = (0..63u32)
        .map(|index| gpu.device().create_context(index % 3))
        .collect();
    let others = others?;
    let others: Vec<&Context> = others.iter().collect();
    let fence = gpu.device().create_fence(0)?;
    gpu.context()
        .signal_broadcast(&others, &one(&fence, 5), SignalFlags::empty())?;
    reaches(&fence, 5)
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let raw = fixture::raw()?;
    let fence = gpu.device().create_fence(0)?;
    let (handles, values) = ([fence.handle().0], [7u64]);
    let contexts = [gpu.context().handle().0, other.context().handle().0];
    let mut good = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2::zeroed();
    good.ObjectCount = 1;
    good.ObjectHandleArray = handles.as_ptr() as u64;
    good.BroadcastContextCount = 1;
    good.BroadcastContextArray = contexts.as_ptr() as u64;
    good.__bindgen_anon_1.MonitoredFenceValueArray = values.as_ptr() as u64;
    type Spoil = fn(&mut D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2);
    let spoilt: [(&str, Spoil, Status); 12] = [
        ("no context", |arg| arg.BroadcastContextCount = 0, IP),
        (
            "contexts of two devices",
            |arg| arg.BroadcastContextCount = 2,
            IP,
        ),
        ("66 contexts", |arg| arg.BroadcastContextCount = 66, IP),
        ("contexts at NULL", |arg| arg.BroadcastContextArray = 0, IP),
        (
            "contexts unreadable",
            |arg| arg.BroadcastContextArray = UNMAPPED,
            Status::ACCESS_VIOLATION,
        ),
        ("no object", |arg| arg.ObjectCount = 0, IP),
        ("objects at NULL", |arg| arg.ObjectHandleArray = 0, IP),
        (
            "objects unreadable",
            |arg| arg.ObjectHandleArray = UNMAPPED,
            Status::ACCESS_VIOLATION,
        ),
        (
            "values at NULL",
            |arg| arg.__bindgen_anon_1.MonitoredFenceValueArray = 0,
            IP,
        ),
        (
            "values unreadable",
            |arg| arg.__bindgen_anon_1.MonitoredFenceValueArray = UNMAPPED,
            Status::ACCESS_VIOLATION,
        ),
        ("flag 3", |arg| arg.Flags = 1 << 3, IP),
        ("flag 31", |arg| arg.Flags = 1 << 31, IP),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    gpu.finish()?;
    ensure_eq!(fence.value(), 0);
    succeeds(&raw, &mut good)?;
    reaches(&fence, 7)
}

fn event() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let event = EventFd::new()?;
    let contexts = [gpu.context().handle().0];
    let handles = [gpu.done().handle().0];
    let mut good = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2::zeroed();
    good.Flags = D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent;
    good.BroadcastContextCount = 1;
    good.BroadcastContextArray = contexts.as_ptr() as u64;
    good.__bindgen_anon_1.CpuEventHandle = event.as_raw_fd() as u64;
    let mut arg = good;
    arg.ObjectCount = 1;
    arg.ObjectHandleArray = handles.as_ptr() as u64;
    refused(&raw, &mut arg, IP)?;
    let mut arg = good;
    arg.__bindgen_anon_1.CpuEventHandle = 999;
    refused(&raw, &mut arg, Status::INVALID_HANDLE)?;
    let node = std::fs::File::open("/dev/null")?;
    arg.__bindgen_anon_1.CpuEventHandle = node.as_raw_fd() as u64;
    refused(&raw, &mut arg, Status::OBJECT_TYPE_MISMATCH)?;
    succeeds(&raw, &mut good)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    Ok(())
}

fn at_submission() -> TestResult {
    let gpu = Gpu::new()?;
    let (gate, fence) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let flags = SignalFlags::SIGNAL_AT_SUBMISSION;
    gpu.context()
        .signal_broadcast(&[], &one(&fence, 1), flags)?;
    reaches(&fence, 1)?;
    // Not before the waits in front of it.
    gpu.context().wait(&one(&gate, 1))?;
    gpu.context()
        .signal_broadcast(&[], &one(&fence, 2), flags)?;
    selftests::time::a_while();
    ensure_eq!(fence.value(), 1);
    gate.signal(1)?;
    reaches(&fence, 2)
}

/// The software GPU fetches a packet when it executes it: the last one here after the wait.
fn top_of_pipeline() -> TestResult {
    let gpu = Gpu::new()?;
    let word = gpu.buffer(PAGE)?;
    let fence = gpu
        .device()
        .create_fence_with(0, SyncFlags::TOP_OF_PIPELINE)?;
    let commands = Pm4::new()
        .wait32(word.address(), Compare::Equal, 1, u32::MAX)
        .nop(0);
    let commands = gpu.commands(&commands)?;
    gpu.submit(&commands)?;
    gpu.context().signal(&one(&fence, 1))?;
    selftests::time::a_while();
    ensure_eq!(fence.value(), 0);
    word.set32(0, 1);
    reaches(&fence, 1)?;
    gpu.finish()
}
