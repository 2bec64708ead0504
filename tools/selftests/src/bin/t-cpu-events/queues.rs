// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of one context or HW queue: Usage[2] (cpu-events.md section 8).

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::EventClass;
use opendxg::{ExecutionState, Status};
use selftests::gpu::{is_in, reaches, Gpu};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use super::Told;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("CPU-42 CPU-43 events of one context", contexts)
        .test("CPU-42 CPU-43 events of HW queues", hw_queues)
        .test("CPU-42 what is no queue of the device, and no node", bad)
}

/// This class, for what has this handle.
fn only(class: EventClass, handle: u32) -> [u32; 8] {
    let mut usage = class.usage(0);
    usage[2] = handle;
    usage
}

fn contexts() -> TestResult {
    let gpu = Gpu::new()?;
    let second = gpu.device().create_context(0)?;
    let trap = gpu.commands(&Pm4::new().trap(1, 1))?;
    let told = Told::new(&gpu, only(EventClass::Trap, gpu.context().handle().0))?;
    let not_told = Told::new(&gpu, only(EventClass::Any, second.handle().0))?;
    gpu.submit(&trap)?;
    gpu.finish()?;
    ensure_eq!(told.wait()?, 1);
    not_told.is_silent()?;
    second.submit(trap.address(), trap.length())?;
    ensure_eq!(not_told.wait()?, 1);
    told.is_silent()?;
    let records = [&told, &not_told].map(Told::one);
    let [first, other] = records;
    ensure!(first?.queue != other?.queue);
    // What puts the whole device in error is about each of its queues.
    gpu.device()
        .mark_as_error(opendxg::uapi::D3DKMT_DEVICE_ERROR_REASON_GENERIC)?;
    ensure_eq!(not_told.wait()?, 1);
    told.is_silent()
}

fn hw_queues() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queues = [context.create_hw_queue()?, context.create_hw_queue()?];
    let trap = gpu.commands(&Pm4::new().trap(1, 1))?;
    let each = [
        Told::new(&gpu, only(EventClass::Trap, queues[0].handle().0))?,
        Told::new(&gpu, only(EventClass::Trap, queues[1].handle().0))?,
    ];
    let both = Told::new(&gpu, only(EventClass::Trap, context.handle().0))?;
    let packets = Told::new(&gpu, only(EventClass::Any, gpu.context().handle().0))?;
    for (queue, told) in queues.iter().zip(&each) {
        queue.submit(1, trap.address(), trap.length())?;
        reaches(queue.progress(), 1)?;
        ensure_eq!((told.wait()?, both.wait()?), (1, 1));
    }
    for told in each.iter().chain([&packets]) {
        told.is_silent()?;
    }
    // A fault of one queue.
    let fault = gpu.commands(&Pm4::new().write(0x6000_0000_0000, &[1]))?;
    let [first, second] =
        [&queues[0], &queues[1]].map(|queue| only(EventClass::PageFault, queue.handle().0));
    let (first, second) = (Told::new(&gpu, first)?, Told::new(&gpu, second)?);
    queues[1].submit(2, fault.address(), fault.length())?;
    ensure_eq!(second.wait()?, 1);
    reaches(queues[1].progress(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::DmaPageFault)?;
    first.is_silent()
}

/// Nothing is changed by what is refused.
fn bad() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let told = Told::new(&gpu, EventClass::Trap.usage(7))?;
    let fence = gpu.device().create_fence(0)?;
    for handle in [
        1,
        u32::MAX,
        gpu.device().handle().0,
        fence.handle().0,
        other.context().handle().0,
    ] {
        for class in [EventClass::Any, EventClass::Trap] {
            let refused = told.event.set_usage(only(class, handle));
            fails_with(refused, Status::INVALID_PARAMETER)?;
        }
    }
    // The adapter is no queue.
    let refused = only(EventClass::Internal, gpu.context().handle().0);
    fails_with(told.event.set_usage(refused), Status::INVALID_PARAMETER)?;
    // No such node.
    let mut usage = EventClass::Trap.usage(0);
    usage[1] = 1 << 31;
    fails_with(told.event.set_usage(usage), Status::INVALID_PARAMETER)?;
    gpu.run(&Pm4::new().trap(1, 1))?;
    ensure_eq!(told.wait()?, 1);
    ensure_eq!(told.one()?.cookie, 7);
    Ok(())
}
