// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page faults: what they are, and what the record says.

use opendxg::pm4::{Compare, Pm4};
use opendxg::uapi::{
    DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED, DXGK_PAGE_FAULT_FENCE_INVALID, DXGK_PAGE_FAULT_IOMMU,
    DXGK_PAGE_FAULT_WRITE,
};
use opendxg::{
    Access, EvictFlags, ExecutionState, GpuMap, GpuProtection, GpuReserve, MonitoredFence,
    Reservation, ResidentFlags, SyncFlags,
};
use selftests::child::in_child;
use selftests::gpu::{is_in, reaches, Gpu, BLOCK, NODES, PAGE, READ_WRITE};
use selftests::{ensure, ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-68 GPU-67 MEM-100 addresses where nothing is", nothing)
        .test("MEM-100 GPU-64 a store to what is read-only", read_only)
        .test("GPU-69 MEM-100 memory that is not resident", not_resident)
        .test("GPU-64 MEM-42 zeros, and a range without access", reserved)
        .test(
            "FEN-6 the GPU has no address of a fence without access",
            no_access,
        )
        .test(
            "FEN-6 an opening without access, of a fence that has it",
            opened_without,
        )
        .test(
            "FEN-133 a fence that is open without the right to signal",
            without_signal,
        )
        .test(
            "FEN-133 the GPU may store while one of the openings may",
            mixed,
        )
        .test(
            "FEN-125 the GPU reads the value of a hardware queue",
            progress,
        )
        .test(
            "FEN-8 MEM-101 what is beside a value belongs to the process",
            beside,
        )
        .test("GPU-67 commands that are not there", commands)
        .test("GPU-67 the first of two faults is told", first)
}

const END: u64 = 1 << 48;
/// Where nobody maps anything.
const NOWHERE: u64 = 0x6000_0000_0000;

fn nothing() -> TestResult {
    let addresses = [
        0,
        8,
        PAGE,
        BLOCK - 8,
        NOWHERE,
        END - 8,
        END,
        END + BLOCK,
        1 << 63,
        u64::MAX - 7,
    ];
    for (number, address) in addresses.into_iter().enumerate() {
        for write in [true, false] {
            let gpu = Gpu::node(NODES[number % 3])?;
            let word = gpu.buffer(PAGE)?;
            let commands = match write {
                true => Pm4::new().write64(address, 1),
                false => Pm4::new().move64(word.at(0), address),
            };
            let commands = Pm4::new()
                .set32(word.at(64), 1)
                .append(&commands)
                .set32(word.at(68), 1);
            gpu.fails(&commands, ExecutionState::DmaPageFault)
                .map_err(|error| format!("{address:#x}: {error}"))?;
            ensure_eq!((word.get64(0), word.read(64, 2)), (0, vec![1, 0]));
            let fault = gpu.device().page_fault()?;
            ensure_eq!(fault.address, address);
            let flags = fault.flags;
            ensure_eq!(flags & DXGK_PAGE_FAULT_WRITE != 0, write, "{flags:#x}");
            let never = DXGK_PAGE_FAULT_FENCE_INVALID
                | DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED
                | DXGK_PAGE_FAULT_IOMMU;
            ensure_eq!(flags & never, 0, "{flags:#x}");
        }
    }
    Ok(())
}

fn read_only() -> TestResult {
    for is_local in [false, true] {
        let gpu = Gpu::new()?;
        let word = match is_local {
            true => gpu.local_buffer(PAGE)?,
            false => gpu.buffer(PAGE)?,
        };
        word.set32(0, 5);
        let map = GpuMap {
            pages: 1,
            ..GpuMap::default()
        };
        let range = gpu.paging().map(Some(word.allocation()), &map)?;
        reaches(gpu.paging().fence(), range.value)?;
        gpu.run(&Pm4::new().move32(word.at(8), range.address))?;
        ensure_eq!(word.get32(8), 5);
        let write = Pm4::new().write(range.address + 16, &[1]);
        gpu.fails(&write, ExecutionState::DmaPageFault)?;
        ensure_eq!(word.get32(16), 0);
        let fault = gpu.device().page_fault()?;
        ensure_eq!(fault.address, range.address + 16);
        ensure!(fault.flags & DXGK_PAGE_FAULT_WRITE != 0);
    }
    Ok(())
}

fn not_resident() -> TestResult {
    for is_local in [false, true] {
        // Never made resident.
        let gpu = Gpu::new()?;
        let allocation = match is_local {
            true => gpu.allocate_local(PAGE)?,
            false => gpu.allocate(PAGE)?,
        };
        let map = GpuMap {
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = gpu.paging().map(Some(&allocation), &map)?;
        reaches(gpu.paging().fence(), range.value)?;
        let write = Pm4::new().write(range.address, &[1]);
        gpu.fails(&write, ExecutionState::DmaPageFault)?;
        ensure_eq!(gpu.device().page_fault()?.address, range.address);

        // And not any more.
        let gpu = Gpu::new()?;
        let word = match is_local {
            true => gpu.local_buffer(PAGE)?,
            false => gpu.buffer(PAGE)?,
        };
        let paging = gpu.paging();
        let twice = paging.make_resident(&[word.allocation()], ResidentFlags::empty())?;
        reaches(paging.fence(), twice.value()?)?;
        let write = Pm4::new().write(word.at(0), &[1]);
        for _ in 0..2 {
            gpu.run(&write)?;
            gpu.device()
                .evict(&[word.allocation()], EvictFlags::empty())?;
        }
        word.set32(0, 7);
        gpu.fails(&write, ExecutionState::DmaPageFault)?;
        ensure_eq!(gpu.device().page_fault()?.address, word.at(0));
        ensure_eq!(word.get32(0), 7);
    }
    Ok(())
}

fn reserved() -> TestResult {
    for protection in [GpuProtection::ZERO, GpuProtection::NO_ACCESS] {
        let gpu = Gpu::new()?;
        let word = gpu.buffer(PAGE)?;
        let map = GpuMap {
            pages: 2,
            protection,
            ..GpuMap::default()
        };
        let range = gpu.paging().map(None, &map)?;
        reaches(gpu.paging().fence(), range.value)?;
        word.fill(9);
        let commands =
            Pm4::new()
                .write64(range.address, u64::MAX)
                .copy(word.at(0), range.address, PAGE);
        if protection == GpuProtection::ZERO {
            gpu.run(&commands)?;
            word.holds(0..PAGE, 0)?;
        } else {
            gpu.fails(&commands, ExecutionState::DmaPageFault)?;
            word.holds(0..PAGE, 9)?;
        }
    }
    // A reservation ends where it ends.
    let gpu = Gpu::new()?;
    let reserve = GpuReserve {
        base: NOWHERE,
        size: BLOCK,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    };
    let range = gpu.paging().reserve(&reserve)?;
    reaches(gpu.paging().fence(), range.value)?;
    let fill = Pm4::new().fill(NOWHERE + BLOCK - 64, 1, 128);
    gpu.fails(&fill, ExecutionState::DmaPageFault)?;
    ensure_eq!(gpu.device().page_fault()?.address, NOWHERE + BLOCK);
    Ok(())
}

fn no_access() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu
        .device()
        .create_fence_with(3, SyncFlags::NO_GPU_ACCESS)?;
    ensure_eq!(fence.gpu_address(), 0);
    // Queued signals and waits work.
    gpu.context().wait(&selftests::gpu::one(&fence, 3))?;
    gpu.context().signal(&selftests::gpu::one(&fence, 4))?;
    gpu.finish()?;
    ensure_eq!(fence.value(), 4);
    // What it would be at does not belong to the GPU.
    let other = gpu.device().create_fence(0)?;
    ensure!(other.gpu_address() >= BLOCK);
    let store = Pm4::new().write64(fence.gpu_address(), 9);
    gpu.fails(&store, ExecutionState::DmaPageFault)?;
    Ok(())
}

/// A fence that others store to by GPU is opened without access for the GPU.
fn opened_without() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    let other = Gpu::new()?;
    let opened = other
        .device()
        .open_fence(&handle, SyncFlags::NO_GPU_ACCESS)?;
    ensure_eq!(opened.gpu_address(), 0);
    gpu.run(&Pm4::new().signal(fence.gpu_address(), 5))?;
    ensure_eq!(opened.value(), 5);
    other.context().wait(&selftests::gpu::one(&opened, 5))?;
    other.finish()
}

/// The GPU reads the value of a fence, and a store to it is a fault. That ends the device.
fn only_reads(gpu: &Gpu, fence: &MonitoredFence) -> TestResult {
    let (address, value) = (fence.gpu_address(), fence.value());
    let word = gpu.buffer(PAGE)?;
    gpu.run(&Pm4::new().move64(word.at(0), address))?;
    ensure_eq!(word.get64(0), value);
    let store = Pm4::new().write64(address, value + 1);
    gpu.fails(&store, ExecutionState::DmaPageFault)?;
    let fault = gpu.device().page_fault()?;
    ensure_eq!(fault.address, address);
    ensure!(fault.flags & DXGK_PAGE_FAULT_WRITE != 0);
    ensure_eq!(fence.value(), value);
    Ok(())
}

fn without_signal() -> TestResult {
    // The fences of a process have pages in common.
    let gpu = Gpu::new()?;
    let beside = gpu.device().create_fence(1)?;
    let fence = gpu.device().create_fence_with(3, SyncFlags::NO_SIGNAL)?;
    let more = gpu.device().create_fence(1)?;
    for stored in [&beside, &more] {
        gpu.run(&Pm4::new().write64(stored.gpu_address(), 2))?;
        ensure_eq!(stored.value(), 2);
    }
    only_reads(&gpu, &fence)?;
    // A fence of another process, which may signal it.
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_fence(5)?;
    for (access, flags) in [
        (Access::ALL, SyncFlags::NO_SIGNAL),
        (Access::WAIT, SyncFlags::empty()),
    ] {
        let handle = fence.share(access)?;
        in_child(|| {
            let gpu = Gpu::new()?;
            only_reads(&gpu, &gpu.device().open_fence(&handle, flags)?)
        })?;
    }
    gpu.run(&Pm4::new().write64(fence.gpu_address(), 6))?;
    ensure_eq!(fence.value(), 6);
    Ok(())
}

fn mixed() -> TestResult {
    // The one that may comes later, on another device of the process.
    let gpu = Gpu::new()?;
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::NO_SIGNAL;
    let fence = gpu.device().create_fence_with(3, flags)?;
    let word = gpu.buffer(PAGE)?;
    gpu.run(&Pm4::new().move64(word.at(0), fence.gpu_address()))?;
    ensure_eq!(word.get64(0), 3);
    let handle = fence.share(Access::ALL)?;
    let other = Gpu::new()?;
    let writers = [gpu.device(), other.device(), gpu.device()];
    for (round, device) in writers.into_iter().enumerate() {
        let writer = device.open_fence(&handle, SyncFlags::empty())?;
        ensure_eq!(writer.gpu_address(), fence.gpu_address());
        let value = 4 + round as u64;
        gpu.run(&Pm4::new().write64(fence.gpu_address(), value))?;
        ensure_eq!(fence.value(), value);
    }
    only_reads(&gpu, &fence)?;
    // The one that may was first.
    let gpu = Gpu::new()?;
    let writer = gpu.device().create_shareable_fence(3)?;
    let fence = gpu
        .device()
        .open_fence(writer.share(Access::ALL)?, SyncFlags::NO_SIGNAL)?;
    gpu.run(&Pm4::new().write64(fence.gpu_address(), 4))?;
    ensure_eq!(fence.value(), 4);
    drop(writer);
    only_reads(&gpu, &fence)
}

fn progress() -> TestResult {
    let gpu = Gpu::new()?;
    let word = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let address = queue.progress().gpu_address();
    ensure!(address >= BLOCK, "{address:#x}");
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    for value in [5, 1 << 40] {
        queue.submit(value, nop.address(), nop.length())?;
        // A packet of another queue waits for it.
        gpu.run(
            &Pm4::new()
                .wait64(address, Compare::Equal, value, u64::MAX)
                .move64(word.at(0), address),
        )?;
        ensure_eq!(word.get64(0), value);
    }
    Ok(())
}

/// A process stores to the whole pages in which its fences are: values of other processes, and of
/// its paging queues, are elsewhere.
fn beside() -> TestResult {
    let gpu = Gpu::new()?;
    let kept: Result<Vec<_>, _> = (0..100).map(|_| gpu.device().create_fence(7)).collect();
    let kept = kept?;
    let paging = gpu.paging().fence().value();
    in_child(|| {
        let gpu = Gpu::new()?;
        for _ in 0..20 {
            let fence = gpu.device().create_fence(1)?;
            // To 8, which no fence of the driver has either.
            let page = fence.gpu_address() & !(PAGE - 1);
            let fill = (0..PAGE / 8).fold(Pm4::new(), |all, word| all.set64(page + 8 * word, 8));
            let commands = gpu.commands(&fill)?;
            gpu.submit(&commands)?;
            gpu.context()
                .submit(commands.address(), commands.length())?;
            reaches(&fence, 8)?;
            core::mem::forget(fence);
        }
        gpu.works()
    })?;
    ensure!(kept.iter().all(|fence| fence.value() == 7));
    ensure_eq!(gpu.paging().fence().value(), paging);
    gpu.run(&Pm4::new().nop(0))
}

fn commands() -> TestResult {
    for (address, length) in [(NOWHERE, 64), (0, 4), (END - 4, 4), (u64::MAX - 3, 4)] {
        let gpu = Gpu::new()?;
        // What is no address at all may be refused at once.
        if gpu.context().submit(address, length).is_err() {
            gpu.works()?;
            continue;
        }
        if let Ok(mark) = gpu.mark() {
            reaches(gpu.done(), mark)?;
        }
        is_in(gpu.device(), ExecutionState::DmaPageFault)?;
        let fault = gpu.device().page_fault()?;
        ensure_eq!(fault.address, address);
        ensure_eq!(fault.flags & DXGK_PAGE_FAULT_WRITE, 0);
    }
    // An indirect buffer.
    let gpu = Gpu::new()?;
    let indirect = Pm4::new().indirect(NOWHERE, 8);
    gpu.fails(&indirect, ExecutionState::DmaPageFault)?;
    ensure_eq!(gpu.device().page_fault()?.address, NOWHERE);
    Ok(())
}

fn first() -> TestResult {
    let gpu = Gpu::new()?;
    gpu.fails(
        &Pm4::new().write(NOWHERE, &[1]),
        ExecutionState::DmaPageFault,
    )?;
    let fault = gpu.device().page_fault()?;
    let _ = gpu.context().submit(NOWHERE + BLOCK, 4);
    let _ = gpu
        .device()
        .mark_as_error(opendxg::uapi::D3DKMT_DEVICE_ERROR_REASON_GENERIC);
    ensure_eq!(gpu.device().page_fault()?, fault);
    is_in(gpu.device(), ExecutionState::DmaPageFault)
}
