// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adapter is removed while its engines work.

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Device, EventFd, ExecutionState, GpuMap, ResidentFlags, Status};
use selftests::blocked::Blocked;
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, one, reaches, Gpu, PAGE, READ_WRITE};
use selftests::hog::Hog;
use selftests::rounds::{crowd, rounds, seed, Dice};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_gpu_races::caller::Caller;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-96 GPU-99 removed whatever its engines do",
            Duration::from_secs(60),
            whatever,
        )
        .test("GPU-96 FEN-29 what is left of it takes nothing", statuses)
        .slow(
            "GPU-114 GPU-96 removed in the middle of calls",
            Duration::from_secs(60),
            calls,
        )
        .slow(
            "GPU-114 GPU-96 removed under processes that do everything",
            Duration::from_secs(60),
            processes,
        )
        .test("MEM-110 local memory of a removed adapter", local_memory)
        .test("GPU-96 the engines of others go on", others)
}

fn enabled(name: &str) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(name)?;
    soft.set("local_memory", &(16u64 << 20).to_string())?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

fn whatever() -> TestResult {
    let soft = enabled("gpu-whatever")?;
    for hog in Hog::ALL {
        let (gpu, busy) = {
            let gpu = Gpu::on(&soft.device()?, 1)?;
            let busy = hog.begin(&gpu)?;
            (gpu, busy)
        };
        if hog.runs() {
            busy.runs()?;
        }
        let mark = gpu.mark()?;
        let event = EventFd::new()?;
        gpu.done().wait_async(mark, &event)?;
        let sleeper = {
            let fence = gpu.device().create_fence(0)?;
            Blocked::new(move || fence.wait(1))?
        };
        soft.disable()?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "{hog:?}");
        sleeper.join()??;
        is_in(gpu.device(), ExecutionState::Stopped)?;
        drop((busy, gpu));
        soft.set("enabled", "1")?;
    }
    Ok(())
}

fn statuses() -> TestResult {
    const REMOVED: Status = Status::DEVICE_REMOVED;
    let soft = enabled("gpu-statuses")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let device = gpu.device();
    let word = gpu.buffer(PAGE)?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    let hw = device.create_hw_context(0)?;
    let queue = hw.create_hw_queue()?;
    let fence = device.create_fence(0)?;
    soft.disable()?;
    let context = gpu.context();
    fails_with(context.submit(nop.address(), nop.length()), REMOVED)?;
    fails_with(context.signal(&one(&fence, 1)), REMOVED)?;
    fails_with(context.wait(&one(&fence, 1)), REMOVED)?;
    fails_with(queue.submit(1, nop.address(), nop.length()), REMOVED)?;
    fails_with(hw.create_hw_queue(), REMOVED)?;
    fails_with(device.create_paging_queue(), REMOVED)?;
    let resident = gpu
        .paging()
        .make_resident(&[word.allocation()], ResidentFlags::empty());
    fails_with(resident, REMOVED)?;
    let map = GpuMap {
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    fails_with(gpu.paging().map(Some(word.allocation()), &map), REMOVED)?;
    for fence in [&fence, gpu.done(), queue.progress(), gpu.paging().fence()] {
        reaches(fence, u64::MAX)?;
    }
    queue.destroy()?;
    hw.destroy()?;
    Ok(())
}

/// Ends this process well when it looks at a mapping that a removal has revoked.
fn may_be_revoked() {
    extern "C" fn end(_signal: i32) {
        // SAFETY: ends this process, which is allowed in a signal handler.
        unsafe { libc::_exit(0) }
    }
    let handler: extern "C" fn(i32) = end;
    // SAFETY: the handler only ends the process.
    unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) };
}

/// Threads of a process call everything while the adapter goes.
fn calls() -> TestResult {
    let soft = enabled("gpu-calls")?;
    let mut dice = Dice::new(seed());
    for _ in 0..rounds(8) {
        let (luid, ready) = (soft.luid()?, Gate::new()?);
        let seed = u64::from(dice.below(u32::MAX));
        let child = Child::spawn(|| {
            may_be_revoked();
            let device = opendxg::Dxg::open()?.open_adapter(luid)?.create_device()?;
            ready.open()?;
            crowd(4, |part| {
                let mut caller = None;
                loop {
                    // One waits for its work, the others do not.
                    let call = match part {
                        0 => work(&device),
                        _ => call(&device, &mut caller, seed.wrapping_add(part as u64)),
                    };
                    match call {
                        Ok(()) => {}
                        // Every error is one of a device that goes.
                        Err(_) if device.execution_state()? == ExecutionState::Stopped => {
                            return Ok(());
                        }
                        Err(error) => return Err(error),
                    }
                }
            })
        })?;
        ready.wait()?;
        std::thread::sleep(Duration::from_micros(dice.below(60_000).into()));
        soft.disable()?;
        child.join()?;
        soft.set("enabled", "1")?;
    }
    Ok(())
}

/// The next of all calls.
fn call(device: &Device, caller: &mut Option<Caller>, seed: u64) -> TestResult {
    match caller {
        Some(caller) => caller.step()?,
        None => *caller = Some(Caller::new(device, seed)?),
    }
    Ok(())
}

fn work(device: &Device) -> TestResult {
    let node = 1;
    let gpu = Gpu::on(device, node)?;
    let memory = gpu.local_buffer(4 * PAGE)?;
    gpu.run(&Pm4::new().fill(memory.at(0), 1, 4 * PAGE))?;
    let context = device.create_hw_context(node)?;
    let queue = context.create_hw_queue()?;
    let commands = gpu.commands(&Pm4::new().set32(memory.at(0), 1))?;
    queue.submit(1, commands.address(), commands.length())?;
    reaches(queue.progress(), 1)?;
    let busy = Hog::Poll.begin(&gpu)?;
    busy.word().set32(0, 1);
    gpu.finish()?;
    device.evict(&[memory.allocation()], opendxg::EvictFlags::empty())?;
    Ok(())
}

fn processes() -> TestResult {
    let soft = enabled("gpu-processes")?;
    let mut dice = Dice::new(seed());
    for _ in 0..rounds(4) {
        let luid = soft.luid()?;
        let ready = Gate::new()?;
        let children: TestResult<Vec<Child>> = (0..3)
            .map(|number| {
                Child::spawn(|| {
                    may_be_revoked();
                    let device = opendxg::Dxg::open()?.open_adapter(luid)?.create_device()?;
                    let mut kept = Vec::new();
                    for hog in Hog::ALL {
                        let gpu = Gpu::on(&device, number)?;
                        kept.push((hog.begin(&gpu)?, gpu));
                    }
                    let end = device.create_fence(0)?;
                    ready.open()?;
                    end.wait(1)?;
                    ensure_eq!(device.execution_state()?, ExecutionState::Stopped);
                    core::mem::forget((kept, end));
                    Ok(())
                })
            })
            .collect();
        let mut children = children?;
        for _ in 0..3 {
            ready.wait()?;
        }
        std::thread::sleep(Duration::from_micros(dice.below(10_000).into()));
        // One is killed at the same time.
        let victim = children.pop().ok_or("no child")?;
        victim.signal(libc::SIGKILL)?;
        soft.disable()?;
        victim.kill()?;
        children.into_iter().try_for_each(Child::join)?;
        soft.set("enabled", "1")?;
    }
    Ok(())
}

fn local_memory() -> TestResult {
    let soft = enabled("gpu-memory")?;
    let gpu = Gpu::on(&soft.device()?, 2)?;
    let memory = gpu.local_buffer(16 * PAGE)?;
    gpu.run(&Pm4::new().fill(memory.at(0), 5, 16 * PAGE))?;
    memory.holds(0..16 * PAGE, 5)?;
    soft.disable()?;
    // The mapping may be gone: then it is SIGBUS for who looks, and that is in a child.
    Child::spawn(|| {
        may_be_revoked();
        ensure!([0, 5].contains(&memory.get32(0)));
        Ok(())
    })?
    .join()?;
    drop(memory);
    drop(gpu);
    // The next adapter has none of it.
    soft.set("enabled", "1")?;
    let gpu = Gpu::on(&soft.device()?, 2)?;
    for _ in 0..4 {
        gpu.local_buffer(16 * PAGE)?.holds(0..16 * PAGE, 0)?;
    }
    Ok(())
}

fn others() -> TestResult {
    let witness = Gpu::new()?;
    let word = witness.buffer(PAGE)?;
    let busy = Hog::Copies.begin(&Gpu::on(witness.device(), 1)?)?;
    for round in 1..=rounds(4) {
        let soft = enabled("gpu-others")?;
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let hog = Hog::Loop.begin(&gpu)?;
        hog.runs()?;
        soft.remove()?;
        witness.run(&Pm4::new().set32(word.at(0), round))?;
        ensure_eq!(word.get32(0), round);
    }
    ensure!(busy.parts() > 0);
    Ok(())
}
