// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doorbells that are refused.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{DoorbellStatus, Status};
use selftests::call::refused;
use selftests::gpu::{Gpu, PAGE};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-19 what is no queue, ring or control page", handles)
        .test("GPU-14 GPU-19 rings that cannot be", rings)
        .test("GPU-19 a queue has one doorbell", one_each)
        .test("GPU-19 flags and private data", flags)
        .test("GPU-21 GPU-25 calls for what is no doorbell", calls)
}

fn handles() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let raw = fixture::raw()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let plain = context.create_hw_queue()?;
    let (ring, control) = (gpu.buffer(PAGE)?, gpu.buffer(PAGE)?);
    let foreign = other.buffer(PAGE)?;
    let not_resident = gpu.allocate(PAGE)?;
    let mut good = D3DKMT_CREATE_DOORBELL::zeroed();
    good.hHwQueue = queue.handle().0;
    good.hRingBuffer = ring.allocation().handle().0;
    good.hRingBufferControl = control.allocation().handle().0;
    for handle in [
        0,
        context.handle().0,
        gpu.device().handle().0,
        plain.handle().0,
    ] {
        let mut arg = good;
        arg.hHwQueue = handle;
        refused(&raw, &mut arg, IP).map_err(|error| format!("queue {handle:#x}: {error}"))?;
    }
    for handle in [
        0,
        queue.handle().0,
        foreign.allocation().handle().0,
        not_resident.handle().0,
    ] {
        let mut arg = good;
        arg.hRingBuffer = handle;
        refused(&raw, &mut arg, IP).map_err(|error| format!("ring {handle:#x}: {error}"))?;
        arg = good;
        arg.hRingBufferControl = handle;
        refused(&raw, &mut arg, IP).map_err(|error| format!("control {handle:#x}: {error}"))?;
    }
    queue
        .create_doorbell(ring.allocation(), control.allocation())?
        .destroy()?;
    Ok(())
}

fn rings() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let control = gpu.buffer(PAGE)?;
    for pages in [3, 5, 8192] {
        let ring = gpu.buffer(pages * PAGE)?;
        let made = queue.create_doorbell(ring.allocation(), control.allocation());
        fails_with(made, IP)?;
    }
    for pages in [1, 2, 4096] {
        let ring = gpu.buffer(pages * PAGE)?;
        queue
            .create_doorbell(ring.allocation(), control.allocation())?
            .destroy()?;
    }
    Ok(())
}

fn one_each() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    let (ring, control) = (gpu.buffer(PAGE)?, gpu.buffer(PAGE)?);
    let second = queue.create_doorbell(ring.allocation(), control.allocation());
    fails_with(second, IP)?;
    user.run(&opendxg::pm4::Pm4::new())?;
    ensure_eq!(user.doorbell().status(), DoorbellStatus::Connected);
    gpu.works()
}

fn flags() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let (ring, control) = (gpu.buffer(PAGE)?, gpu.buffer(PAGE)?);
    let mut good = D3DKMT_CREATE_DOORBELL::zeroed();
    good.hHwQueue = queue.handle().0;
    good.hRingBuffer = ring.allocation().handle().0;
    good.hRingBufferControl = control.allocation().handle().0;
    for bit in 2..32 {
        let mut arg = good;
        arg.Flags = 1 << bit;
        refused(&raw, &mut arg, IP).map_err(|error| format!("flag {bit}: {error}"))?;
    }
    let mut arg = good;
    arg.PrivateDriverDataSize = 8;
    refused(&raw, &mut arg, IP)?;
    for flag in [
        0,
        D3DKMT_CREATE_DOORBELL_FLAGS_RequireSecondaryCpuVA,
        D3DKMT_CREATE_DOORBELL_FLAGS_ResizeRingBufferOperation,
    ] {
        let mut arg = good;
        arg.Flags = flag;
        selftests::call::succeeds(&raw, &mut arg)?;
        let wants_secondary = flag == D3DKMT_CREATE_DOORBELL_FLAGS_RequireSecondaryCpuVA;
        ensure_eq!(arg.DoorbellSecondaryCPUVirtualAddress != 0, wants_secondary);
        let mut destroy = D3DKMT_DESTROY_DOORBELL::zeroed();
        destroy.hDoorbell = arg.hDoorbell;
        selftests::call::succeeds(&raw, &mut destroy)?;
    }
    Ok(())
}

fn calls() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    for handle in [0, queue.handle().0, gpu.device().handle().0] {
        let mut connect = D3DKMT_CONNECT_DOORBELL::zeroed();
        connect.hDoorbell = handle;
        refused(&raw, &mut connect, IP)?;
        let mut notify = D3DKMT_NOTIFY_WORK_SUBMISSION::zeroed();
        notify.hDoorbell = handle;
        refused(&raw, &mut notify, IP)?;
        let mut destroy = D3DKMT_DESTROY_DOORBELL::zeroed();
        destroy.hDoorbell = handle;
        refused(&raw, &mut destroy, IP)?;
    }
    for bit in 0..32 {
        let mut connect = D3DKMT_CONNECT_DOORBELL::zeroed();
        connect.hDoorbell = user.doorbell().handle().0;
        connect.Flags = 1 << bit;
        refused(&raw, &mut connect, IP)?;
    }
    ensure_eq!(user.doorbell().status(), DoorbellStatus::Retry);
    // Nobody asked for it, and it does no harm.
    user.doorbell().notify()?;
    user.run(&opendxg::pm4::Pm4::new())
}
