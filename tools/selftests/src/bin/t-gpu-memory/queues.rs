// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paging queues (MEM-10 to MEM-16).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, EventFd, ExecutionState, GpuMap, PagingPriority, ResidentFlags, Status};
use rustix::mm::{mprotect, MprotectFlags};
use selftests::call::{refused, succeeds};
use selftests::gpu::{is_in, one, reaches, Gpu, PAGE, READ_WRITE};
use selftests::rounds::{crowd, rounds};
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-10 a queue, its fence and the value of it", creation)
        .test("MEM-10 queues that are refused", refusals)
        .test("MEM-11 the fence is the driver's", protected)
        .test("MEM-11 the fence can be waited for by CPU and GPU", waited)
        .test("MEM-11 the value cannot be made writable", read_only)
        .test("MEM-12 MEM-13 operations have rising values", values)
        .test(
            "MEM-12 queues of a device, used by several threads",
            threads,
        )
        .test(
            "MEM-15 a queue is destroyed with operations in it",
            destroyed,
        )
        .test("MEM-15 the handle of a destroyed queue", gone)
        .test("MEM-16 the fence of a device in error", in_error)
}

fn creation() -> TestResult {
    let device = fixture::device()?;
    let priorities = [
        PagingPriority::BelowNormal,
        PagingPriority::Normal,
        PagingPriority::AboveNormal,
    ];
    let queues: Result<Vec<_>, _> = priorities
        .into_iter()
        .cycle()
        .take(9)
        .map(|priority| device.create_paging_queue_with(priority))
        .collect();
    for queue in &queues? {
        ensure_eq!(queue.fence().value(), 0);
        ensure!(queue.handle().0 != 0 && queue.fence().handle().0 != 0);
        ensure!(queue.handle() != queue.fence().handle());
        ensure_eq!(queue.fence().value_address() as usize % 8, 0);
    }
    Ok(())
}

fn refusals() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let mut good = D3DKMT_CREATEPAGINGQUEUE::zeroed();
    good.hDevice = device.handle().0;
    type Spoil = fn(&mut D3DKMT_CREATEPAGINGQUEUE);
    let spoilt: [(&str, Spoil); 7] = [
        ("priority 2", |arg| arg.Priority = 2),
        ("priority -2", |arg| arg.Priority = -2),
        ("priority max", |arg| arg.Priority = i32::MAX),
        ("adapter 1", |arg| arg.PhysicalAdapterIndex = 1),
        ("adapter max", |arg| arg.PhysicalAdapterIndex = u32::MAX),
        ("device 0", |arg| arg.hDevice = 0),
        ("no device", |arg| arg.hDevice += 0x40_0000),
    ];
    for (what, spoil) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
    }
    succeeds(&raw, &mut good)?;
    let mut destroy = D3DDDI_DESTROYPAGINGQUEUE::zeroed();
    for handle in [
        0,
        good.hPagingQueue + 0x40_0000,
        good.hDevice,
        good.hSyncObject,
    ] {
        destroy.hPagingQueue = handle;
        refused(&raw, &mut destroy, IP)?;
    }
    destroy.hPagingQueue = good.hPagingQueue;
    succeeds(&raw, &mut destroy)
}

fn protected() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let fence = gpu.paging().fence();
    fails_with(fence.signal(1), IP)?;
    fails_with(fence.signal_rewind(0), IP)?;
    fails_with(gpu.context().signal(&one(fence, 1)), IP)?;
    fails_with(fence.share(Access::ALL), IP)?;
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    destroy.hSyncObject = fence.handle().0;
    refused(&raw, &mut destroy, IP)?;
    ensure_eq!(fence.value(), 0);
    gpu.finish()
}

fn waited() -> TestResult {
    let gpu = Gpu::new()?;
    let event = EventFd::new()?;
    let fence = gpu.paging().fence();
    fence.wait(0)?;
    fence.wait_async(0, &event)?;
    ensure_eq!(event.take()?, 1);
    let buffer = gpu.buffer(PAGE)?;
    let value = fence.value();
    fence.wait(value)?;
    gpu.context().wait(&one(fence, value))?;
    gpu.finish()?;
    drop(buffer);
    Ok(())
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let queue = device.create_paging_queue()?;
    let page = (queue.fence().value_address() as usize & !0xfff) as *mut core::ffi::c_void;
    // SAFETY: must be refused; if not, the page only becomes writable.
    let writable = unsafe { mprotect(page, 4096, MprotectFlags::READ | MprotectFlags::WRITE) };
    ensure_eq!(writable, Err(rustix::io::Errno::ACCESS));
    Ok(())
}

fn values() -> TestResult {
    let gpu = Gpu::new()?;
    let mut last = 0;
    for _ in 0..rounds(100) {
        let allocation = gpu.allocate_local(4 * PAGE)?;
        let map = GpuMap {
            pages: 4,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = gpu.paging().map(Some(&allocation), &map)?;
        let resident = gpu
            .paging()
            .make_resident(&[&allocation], ResidentFlags::empty())?;
        for value in [range.value, resident.value()?] {
            if value != 0 {
                ensure_eq!(value, last + 1, "the next value");
                last = value;
            }
        }
        // A value is never seen before it is given.
        ensure!(gpu.paging().fence().value() <= last);
    }
    reaches(gpu.paging().fence(), last)?;
    ensure_eq!(gpu.paging().fence().value(), last);
    Ok(())
}

fn threads() -> TestResult {
    let gpu = Gpu::new()?;
    let queues: Result<Vec<_>, _> = (0..2).map(|_| gpu.device().create_paging_queue()).collect();
    let queues = queues?;
    crowd(4, |index| {
        let queue = &queues[index % 2];
        for _ in 0..rounds(25) {
            let before = queue.fence().value();
            let buffer = selftests::gpu::Buffer::new(queue, gpu.allocate_local(PAGE)?, PAGE)?;
            ensure!(queue.fence().value() >= before);
            gpu.device()
                .evict(&[buffer.allocation()], opendxg::EvictFlags::empty())?;
        }
        Ok(())
    })
}

fn destroyed() -> TestResult {
    for _ in 0..rounds(20) {
        let gpu = Gpu::new()?;
        let queue = gpu.device().create_paging_queue()?;
        let allocation = gpu.allocate_local(16 * PAGE)?;
        let map = GpuMap {
            pages: 16,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = queue.map(Some(&allocation), &map)?;
        queue
            .make_resident(&[&allocation], ResidentFlags::empty())?
            .value()?;
        // Waits for both.
        queue.destroy()?;
        let commands = gpu.commands(&opendxg::pm4::Pm4::new().write(range.address, &[1]))?;
        gpu.submit(&commands)?;
        gpu.finish()?;
    }
    Ok(())
}

fn gone() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let allocation = gpu.allocate(PAGE)?;
    let queue = gpu.device().create_paging_queue()?;
    let (handle, fence) = (queue.handle().0, queue.fence().handle().0);
    queue.destroy()?;
    let list = [allocation.handle().0];
    let mut resident = D3DDDI_MAKERESIDENT::zeroed();
    resident.hPagingQueue = handle;
    resident.NumAllocations = 1;
    resident.AllocationList = list.as_ptr() as u64;
    refused(&raw, &mut resident, IP)?;
    let mut map = D3DDDI_MAPGPUVIRTUALADDRESS::zeroed();
    map.hPagingQueue = handle;
    map.hAllocation = allocation.handle().0;
    map.SizeInPages = 1;
    refused(&raw, &mut map, IP)?;
    let mut destroy = D3DDDI_DESTROYPAGINGQUEUE::zeroed();
    destroy.hPagingQueue = handle;
    refused(&raw, &mut destroy, IP)?;
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    destroy.hSyncObject = fence;
    refused(&raw, &mut destroy, IP)
}

fn in_error() -> TestResult {
    let gpu = Gpu::new()?;
    let event = EventFd::new()?;
    gpu.paging().fence().wait_async(1000, &event)?;
    gpu.device()
        .mark_as_error(D3DKMT_DEVICE_ERROR_REASON_GENERIC)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    ensure_eq!(gpu.paging().fence().value(), u64::MAX);
    fails_with(gpu.device().create_paging_queue(), Status::DEVICE_REMOVED)?;
    ensure!(gpu.device().execution_state()? != ExecutionState::Active);
    // Others go on.
    let other = Gpu::new()?;
    is_in(other.device(), ExecutionState::Active)?;
    other.buffer(PAGE)?;
    Ok(())
}
