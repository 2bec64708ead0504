// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects that are destroyed while engines, queues and other threads use them.

use std::sync::Mutex;
use std::time::Duration;

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{EvictFlags, ExecutionState, GpuMap, ResidentFlags, Status};
use selftests::call::succeeds;
use selftests::gpu::{one, reaches, Buffer, Gpu, NODES, PAGE, READ_WRITE};
use selftests::hog::Hog;
use selftests::resource::destruction;
use selftests::rounds::{crowd, rounds, seed, together, Dice};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-30 MEM-25 allocations that queued work uses",
            allocations,
        )
        .test(
            "MEM-25 GPU-97 an allocation under work that does not end",
            under_a_loop,
        )
        .slow(
            "FEN-46 contexts and queues of work that does not end",
            Duration::from_secs(60),
            contexts,
        )
        .test("MEM-49 mapped while its handle goes", mapped)
        .test("MEM-15 a paging queue in use by several threads", paging)
        .test("FEN-28 fences that queues wait for and signal", fences)
        .test(
            "MEM-58 MEM-23 evicted and made resident under work",
            residency,
        )
        .slow(
            "GPU-101 threads that make, use and destroy everything",
            Duration::from_secs(60),
            everything,
        )
}

fn allocations() -> TestResult {
    for round in 0..rounds(10) {
        let gpu = Gpu::node(round % 3)?;
        let sum = gpu.buffer(PAGE)?;
        let mut kept = Vec::new();
        for number in 0..20 {
            let source = match number % 2 {
                0 => gpu.buffer(PAGE)?,
                _ => gpu.local_buffer(PAGE)?,
            };
            source.set64(0, number);
            let commands = Pm4::new()
                .delay(20)
                .copy(sum.at(8 * number), source.at(0), 8);
            let commands = gpu.commands(&commands)?;
            gpu.submit(&commands)?;
            // Source and commands go now, though nothing of it need have run.
            drop(source);
            if number % 3 == 0 {
                drop(commands);
            } else {
                kept.push(commands);
            }
        }
        gpu.finish()?;
        for number in 0..20 {
            ensure_eq!(sum.get64(8 * number), number, "round {round}");
        }
    }
    Ok(())
}

/// The work never ends, so the allocation does not end behind it; it ends with the device.
fn under_a_loop() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let busy = Hog::Copies.begin(&gpu)?;
        busy.runs()?;
        let other = Gpu::on(gpu.device(), node)?;
        drop(busy);
        other.run(&Pm4::new().nop(0))?;
        ensure!(gpu.device().execution_state()? != ExecutionState::Stopped);
    }
    Ok(())
}

fn contexts() -> TestResult {
    for _ in 0..rounds(2) {
        let witness = Gpu::new()?;
        let device = fixture::device()?;
        for (number, hog) in (0..).zip(Hog::ALL) {
            let gpu = Gpu::on(&device, number % 3)?;
            let busy = hog.begin(&gpu)?;
            if number % 2 == 0 && hog.runs() {
                busy.runs()?;
            }
            // The context, then the memory; or the other way round.
            match number % 3 {
                0 => {
                    drop(gpu);
                    drop(busy);
                }
                _ => {
                    drop(busy);
                    drop(gpu);
                }
            }
            witness.run(&Pm4::new().nop(0))?;
        }
        // The same in a hardware queue.
        let gpu = Gpu::on(&device, 0)?;
        let word = gpu.buffer(PAGE)?;
        let add = Pm4::new()
            .atomic(Atomic::Add, word.at(0), 1, 0)
            .delay(u32::MAX);
        let commands = gpu.commands(&add)?;
        let context = device.create_hw_context(0)?;
        let queue = context.create_hw_queue()?;
        queue.submit(1, commands.address(), commands.length())?;
        queue.signal(&one(gpu.done(), 1))?;
        queue.destroy()?;
        context.destroy()?;
        witness.run(&Pm4::new().nop(0))?;
        ensure!(word.get64(0) <= 1);
    }
    Ok(())
}

/// Whatever was mapped meanwhile is gone with the allocation.
fn mapped() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let adapter = gpu.device().adapter();
    let map = GpuMap {
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    for round in 0..rounds(200) {
        let memory = gpu.allocate(PAGE)?;
        gpu.paging()
            .make_resident(&[&memory], ResidentFlags::empty())?
            .value()?;
        let addresses = Mutex::new(Vec::new());
        let (device, handle) = (gpu.device().handle().0, memory.handle().0);
        let show = || {
            // Until the handle is gone.
            while let Ok(range) = gpu.paging().map(Some(&memory), &map) {
                addresses
                    .lock()
                    .map_err(|_| "poisoned")?
                    .push(range.address);
            }
            Ok(())
        };
        together(vec![
            Box::new(show),
            Box::new(show),
            Box::new(|| {
                for _ in 0..round % 16 {
                    std::thread::yield_now();
                }
                succeeds(&raw, &mut destruction(device, 0, &[handle], 0))
            }),
        ])?;
        memory.into_raw();
        for address in addresses.into_inner().map_err(|_| "poisoned")? {
            fails_with(
                adapter.free_gpu_range(address, PAGE),
                Status::INVALID_PARAMETER,
            )?;
        }
    }
    Ok(())
}

fn paging() -> TestResult {
    for _ in 0..rounds(10) {
        let gpu = Gpu::new()?;
        let queue = gpu.device().create_paging_queue()?;
        let handle = queue.handle();
        let memory = gpu.allocate_local(16 * PAGE)?;
        let map = GpuMap {
            pages: 16,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let raw = fixture::raw()?;
        together(vec![
            Box::new(|| {
                for _ in 0..20 {
                    // The queue may be gone at any moment; so may its handle.
                    if queue.map(Some(&memory), &map).is_err() {
                        break;
                    }
                    let _ = queue.make_resident(&[&memory], ResidentFlags::empty());
                }
                Ok(())
            }),
            Box::new(|| {
                for _ in 0..20 {
                    let _ = gpu.device().evict(&[&memory], EvictFlags::empty());
                }
                Ok(())
            }),
            Box::new(|| {
                let mut arg: opendxg::uapi::D3DDDI_DESTROYPAGINGQUEUE =
                    opendxg::raw::Argument::zeroed();
                arg.hPagingQueue = handle.0;
                succeeds(&raw, &mut arg)?;
                Ok(())
            }),
        ])?;
        queue.into_raw();
        gpu.run(&Pm4::new().nop(0))?;
    }
    Ok(())
}

fn fences() -> TestResult {
    for round in 0..rounds(20) {
        let gpu = Gpu::node(round % 3)?;
        let other = Gpu::on(gpu.device(), (round + 1) % 3)?;
        let fence = gpu.device().create_fence(0)?;
        for value in 1..=10 {
            gpu.context().wait(&one(&fence, value))?;
            gpu.context().signal(&one(gpu.done(), value))?;
            other.context().signal(&one(&fence, value))?;
        }
        // With signals and waits of it in both queues, or with none left.
        if round % 2 == 0 {
            other.finish()?;
        }
        fence.destroy()?;
        other.finish()?;
        reaches(gpu.done(), 10)?;
    }
    Ok(())
}

/// A loop copies while its memory leaves and comes back: it faults, or it goes on; it never
/// touches anything else.
fn residency() -> TestResult {
    let witness = Gpu::node(1)?;
    let kept = witness.local_buffer(16 * PAGE)?;
    kept.fill(3);
    for round in 0..rounds(6) {
        let gpu = Gpu::node(round % 3)?;
        let busy = Hog::Copies.begin(&gpu)?;
        busy.runs()?;
        let memory = busy.word().allocation();
        gpu.device().evict(&[memory], EvictFlags::empty())?;
        let others: TestResult<Vec<Buffer>> =
            (0..4).map(|_| witness.local_buffer(4 * PAGE)).collect();
        let others = others?;
        if let Ok(mark) = gpu.mark() {
            reaches(gpu.done(), mark)?;
        }
        selftests::gpu::is_in(gpu.device(), ExecutionState::DmaPageFault)?;
        for other in &others {
            other.holds(0..4 * PAGE, 0)?;
        }
        kept.holds(0..16 * PAGE, 3)?;
    }
    Ok(())
}

fn everything() -> TestResult {
    let seed = seed();
    let device = fixture::device()?;
    crowd(4, |part| {
        let mut dice = Dice::new(seed ^ part as u64);
        for _ in 0..rounds(15) {
            let gpu = Gpu::on(&device, dice.below(3))?;
            let source = gpu.buffer(PAGE)?;
            let target = match dice.below(2) {
                0 => gpu.buffer(PAGE)?,
                _ => gpu.local_buffer(PAGE)?,
            };
            source.fill(part as u32 + 1);
            for _ in 0..dice.below(4) {
                let copy = Pm4::new().copy(target.at(0), source.at(0), PAGE);
                let commands = gpu.commands(&copy)?;
                gpu.submit(&commands)?;
            }
            if dice.below(2) == 0 {
                gpu.finish()?;
                ensure!([0, part as u32 + 1].contains(&target.get32(PAGE - 4)));
            }
            let context = device.create_hw_context(dice.below(3))?;
            let queue = context.create_hw_queue()?;
            let nop = gpu.commands(&Pm4::new().nop(0))?;
            queue.submit(1, nop.address(), nop.length())?;
            if dice.below(2) == 0 {
                reaches(queue.progress(), 1)?;
            }
        }
        Ok(())
    })?;
    selftests::gpu::is_in(&device, ExecutionState::Active)
}
