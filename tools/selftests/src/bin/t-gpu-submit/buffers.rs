// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command buffers that run (GPU-6, GPU-7, GPU-10, GPU-12).

use std::time::Duration;

use opendxg::pm4::{header, opcode, Atomic, Pm4};
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Context, ExecutionState, Status};
use selftests::call::{refused, succeeds};
use selftests::gpu::{is_in, one, Gpu, NODES, PAGE};
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

/// Bytes of the longest command buffer.
const LONGEST: u64 = 16 << 20;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-6 GPU-7 a buffer of one word, and one of a page", short)
        .slow(
            "GPU-6 the longest buffer",
            Duration::from_secs(120),
            longest,
        )
        .test("GPU-6 a buffer runs once in each context", broadcast)
        .test("GPU-6 private driver data are ignored", private_data)
        .test("GPU-2 GPU-3 contexts of each node and of each kind", nodes)
        .test(
            "GPU-5 an adapter that is not linked has one engine of each node",
            one_engine,
        )
        .test(
            "GPU-6 GPU-12 NullRendering executes nothing",
            null_rendering,
        )
        .test("GPU-10 a buffer is read when it is executed", late)
        .test("GPU-12 a device in error takes nothing", in_error)
}

fn short() -> TestResult {
    let gpu = Gpu::new()?;
    gpu.run(&Pm4::new().nop(0))?;
    gpu.run(&Pm4::new().filler())?;
    let buffer = gpu.buffer(PAGE)?;
    let page = Pm4::new().pad_to(1019).write(buffer.address(), &[9]);
    ensure_eq!(page.len(), 1024);
    gpu.run(&page)?;
    ensure_eq!(buffer.get32(0), 9);
    Ok(())
}

fn longest() -> TestResult {
    let gpu = Gpu::new()?;
    let target = gpu.buffer(PAGE)?;
    let commands = gpu.buffer(LONGEST)?;
    let words = LONGEST / 4;
    // NOPs that skip most of it; the last words are a packet.
    let last = Pm4::new().write(target.address(), &[7]);
    let (mut at, end) = (0, words - last.len() as u64);
    while at < end {
        let skipped = (end - at - 1).min(0x3ffe);
        match skipped {
            0 => commands.write(at * 4, Pm4::new().nop(0).words()),
            skipped => commands.set32(at * 4, header(opcode::NOP, skipped as usize)),
        }
        at += 1 + skipped;
    }
    commands.write(end * 4, last.words());
    gpu.context().submit(commands.address(), LONGEST as u32)?;
    gpu.finish()?;
    ensure_eq!(target.get32(0), 7);
    // One word less does without the last one of the packet, one word more is too long.
    fails_with(
        gpu.context().submit(commands.address(), LONGEST as u32 + 4),
        Status::INVALID_PARAMETER,
    )
}

fn broadcast() -> TestResult {
    let gpu = Gpu::new()?;
    let counter = gpu.buffer(PAGE)?;
    let commands = gpu.commands(&Pm4::new().atomic(Atomic::Add, counter.address(), 1, 0))?;
    let (address, length) = (commands.address(), commands.length());
    let mut expected = 0;
    let others: Result<Vec<Context>, _> = (1..64)
        .map(|index| gpu.device().create_context(NODES[index % 3]))
        .collect();
    let others = others?;
    for count in [1, 2, 3, 63] {
        let others: Vec<&Context> = others.iter().take(count).collect();
        gpu.context()
            .submit_broadcast(&others, address, length, &[])?;
        expected += 1 + count as u64;
        let fence = gpu.device().create_fence(0)?;
        gpu.context()
            .signal_broadcast(&others, &one(&fence, 1), opendxg::SignalFlags::empty())?;
        selftests::gpu::reaches(&fence, 1)?;
        ensure_eq!(counter.get64(0), expected, "{count} others");
    }
    gpu.works()
}

fn private_data() -> TestResult {
    let gpu = Gpu::node(1)?;
    let counter = gpu.buffer(PAGE)?;
    let commands = gpu.commands(&Pm4::new().atomic(Atomic::Add, counter.address(), 1, 0))?;
    let (address, length) = (commands.address(), commands.length());
    let sizes = [1, 3, 72, 4096, 65536];
    for size in sizes {
        let data = vec![0xab; size];
        gpu.context().submit_with(address, length, &data)?;
    }
    gpu.finish()?;
    ensure_eq!(counter.get64(0), sizes.len() as u64);
    fails_with(
        gpu.context().submit_with(address, length, &vec![0; 65537]),
        Status::INVALID_PARAMETER,
    )
}

fn nodes() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let buffer = gpu.buffer(PAGE)?;
        gpu.run(&Pm4::new().write64(buffer.address(), u64::MAX - 5))?;
        ensure_eq!(buffer.get64(0), u64::MAX - 5, "node {node}");
        let context = gpu.device().create_hw_context(node)?;
        let queue = context.create_hw_queue()?;
        let commands = gpu.commands(&Pm4::new().write64(buffer.address(), 5))?;
        queue.submit(1, commands.address(), commands.length())?;
        selftests::gpu::reaches(queue.progress(), 1)?;
        ensure_eq!(buffer.get64(0), 5, "hardware queue of node {node}");
    }
    Ok(())
}

/// Engine 0, which a mask names by its bit 0; there is no other.
fn one_engine() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    for (engines, is_there) in [
        (0, true),
        (1, true),
        (2, false),
        (3, false),
        (1 << 31, false),
    ] {
        let mut options = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
        options.EngineAffinity = engines;
        match is_there {
            true => drop(device.create_context_with(options, &mut [])?),
            false => fails_with(
                device.create_context_with(options, &mut []),
                Status::INVALID_PARAMETER,
            )?,
        }
    }
    let raw = fixture::raw()?;
    for node in NODES {
        let mut clock = D3DKMT_QUERYCLOCKCALIBRATION::zeroed();
        clock.hAdapter = device.adapter().handle().0;
        clock.NodeOrdinal = node;
        clock.PhysicalAdapterIndex = 1;
        refused(&raw, &mut clock, Status::INVALID_PARAMETER)?;
        clock.PhysicalAdapterIndex = 0;
        succeeds(&raw, &mut clock)?;
    }
    Ok(())
}

fn null_rendering() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let buffer = gpu.buffer(PAGE)?;
    let commands = gpu.commands(&Pm4::new().write(buffer.address(), &[1]))?;
    let mut submit = D3DKMT_SUBMITCOMMAND::zeroed();
    submit.Commands = commands.address();
    submit.CommandLength = commands.length();
    submit.Flags = D3DKMT_SUBMITCOMMANDFLAGS_NullRendering;
    submit.BroadcastContextCount = 1;
    submit.BroadcastContext[0] = gpu.context().handle().0;
    succeeds(&raw, &mut submit)?;
    gpu.finish()?;
    ensure_eq!(buffer.get32(0), 0);
    gpu.device()
        .mark_as_error(D3DKMT_DEVICE_ERROR_REASON_GENERIC)?;
    refused(&raw, &mut submit, Status::DEVICE_REMOVED)
}

fn late() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let gate = gpu.device().create_fence(0)?;
    let commands = gpu.commands(&Pm4::new().write(buffer.address(), &[1]))?;
    gpu.context().wait(&one(&gate, 1))?;
    gpu.submit(&commands)?;
    let other = Pm4::new().write(buffer.address(), &[2]);
    commands.buffer().write(0, other.words());
    gate.signal(1)?;
    gpu.finish()?;
    ensure_eq!(buffer.get32(0), 2);
    Ok(())
}

fn in_error() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let commands = gpu.commands(&Pm4::new().write(buffer.address(), &[1]))?;
    gpu.finish()?;
    gpu.device()
        .mark_as_error(D3DKMT_DEVICE_ERROR_REASON_GENERIC)?;
    fails_with(
        gpu.context().submit(commands.address(), commands.length()),
        Status::DEVICE_REMOVED,
    )?;
    let fence = Gpu::new()?;
    fails_with(
        gpu.context().signal(&one(fence.done(), 1)),
        Status::DEVICE_REMOVED,
    )?;
    fails_with(
        gpu.context().wait(&one(fence.done(), 1)),
        Status::DEVICE_REMOVED,
    )?;
    fails_with(gpu.device().create_context(0), Status::DEVICE_REMOVED)?;
    ensure_eq!(fence.done().value(), 0);
    fence.run(&Pm4::new().nop(0))?;
    ensure_eq!(buffer.get32(0), 0);
    is_in(fence.device(), ExecutionState::Active)
}
