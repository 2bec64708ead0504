// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of the system in a buffer of a user (GPU-46), and those of fences that are none
//! (GPU-48).

use opendxg::pm4::{opcode, Pm4};
use opendxg::ExecutionState;
use selftests::gpu::{is_in, reaches, Gpu, NODES, PAGE};
use selftests::{ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-46 packets of the paging node are illegal", contexts)
        .test("GPU-46 the same in hardware queues", hw_queues)
        .test("GPU-46 the same in indirect buffers", indirect)
        .test("GPU-48 a fence packet without a fence is illegal", fences)
}

/// The packets of the paging node, which would change this memory.
fn privileged(address: u64) -> [Pm4; 2] {
    let [low, high] = [address as u32, (address >> 32) as u32];
    [
        Pm4::new().packet(opcode::PT_WRITE, &[1, low, high, 7, 0, 0, 0, 0]),
        Pm4::new().invalidate_tlbs(0xffff),
    ]
}

/// The nodes that take contexts, with the one that pages if it does.
fn nodes() -> TestResult<Vec<u32>> {
    let device = selftests::fixture::device()?;
    let paging = device.create_context(3).is_ok();
    Ok(NODES.into_iter().chain(paging.then_some(3)).collect())
}

fn contexts() -> TestResult {
    for node in nodes()? {
        for number in 0..2 {
            let gpu = Gpu::node(node)?;
            let word = gpu.buffer(PAGE)?;
            let [address, next] = [word.at(0), word.at(64)];
            let commands = privileged(address)[number].clone().set32(next, 1);
            gpu.fails(&commands, ExecutionState::DmaFault)?;
            ensure_eq!((word.get64(0), word.get32(64)), (0, 0), "node {node}");
        }
    }
    Ok(())
}

fn hw_queues() -> TestResult {
    for node in NODES {
        for number in 0..2 {
            let gpu = Gpu::node(node)?;
            let word = gpu.buffer(PAGE)?;
            let commands = gpu.commands(&privileged(word.at(0))[number])?;
            let context = gpu.device().create_hw_context(node)?;
            let queue = context.create_hw_queue()?;
            queue.submit(1, commands.address(), commands.length())?;
            reaches(queue.progress(), u64::MAX)?;
            is_in(gpu.device(), ExecutionState::DmaFault)?;
            ensure_eq!(word.get64(0), 0);
        }
    }
    Ok(())
}

fn indirect() -> TestResult {
    for number in 0..2 {
        let gpu = Gpu::new()?;
        let word = gpu.buffer(PAGE)?;
        let inner = gpu.commands(&privileged(word.at(0))[number])?;
        let outer = Pm4::new().indirect(inner.address(), inner.length().into());
        gpu.fails(&outer, ExecutionState::DmaFault)?;
        ensure_eq!(word.get64(0), 0);
    }
    Ok(())
}

fn fences() -> TestResult {
    for opcode in [opcode::SIGNAL_FENCE, opcode::WAIT_FENCE] {
        for node in NODES {
            let gpu = Gpu::node(node)?;
            let word = gpu.buffer(PAGE)?;
            let address = word.at(0);
            let [low, high] = [address as u32, (address >> 32) as u32];
            let words = [0, low, high, 1, 0, 0, u32::MAX, 0, 0];
            let commands = Pm4::new().packet(opcode, &words).set32(word.at(8), 1);
            gpu.fails(&commands, ExecutionState::DmaFault)?;
            ensure_eq!((word.get64(0), word.get64(8)), (0, 0), "no silent store");
        }
    }
    Ok(())
}
