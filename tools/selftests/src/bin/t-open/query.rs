// SPDX-License-Identifier: MIT OR Apache-2.0
//! QueryResourceInfo and QueryResourceInfoFromNtHandle (RES-47).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, Device, Dxg, EventFd, Status};
use selftests::call::{refused, succeeds};
use selftests::fds::closed_number;
use selftests::leak::Watch;
use selftests::memory::UNMAPPED;
use selftests::poison::{bytes, poisoned};
use selftests::region::Region;
use selftests::resource::{flags, query_global, query_nt, Create, OpenResource, Shape, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const DRIVER_DATA: u32 = size_of::<opendxg_allocation_data>() as u32;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-47 the sizes, by both kinds of handles", sizes)
        .test("RES-47 the sizes of a standard allocation", standard)
        .test(
            "RES-47 runtime data are never written, only the sizes are",
            never_written,
        )
        .test("RES-47 by global handle: what is refused", global_refused)
        .test("RES-47 by NT handle: what is refused", nt_refused)
        .test("RES-47 after all local handles are gone", no_local_handles)
        .test("RES-47 a query leaves nothing behind", nothing_left)
}

fn sizes() -> TestResult {
    let device = fixture::device()?;
    for (runtime, count) in [(0, 1), (1, 2), (0x58, 7), (0x108, 64)] {
        let expected = Shape {
            runtime,
            total: count * DRIVER_DATA,
            resource_driver: 0,
            allocations: count,
        };
        let sizes = vec![PAGE_SIZE; count as usize];
        let data = vec![1; runtime as usize];
        let named = Create::sized(&device, flags::GLOBAL, &sizes)
            .with_runtime(&data)
            .run()?;
        ensure_eq!(query_global(&device, named.global)?, expected);
        let shared = Create::sized(&device, flags::NT, &sizes)
            .with_runtime(&data)
            .run()?;
        ensure_eq!(query_nt(&device, &shared.share()?)?, expected);
    }
    Ok(())
}

fn standard() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(0x3000)?;
    let named = Create::over(&device, flags::GLOBAL, memory.address(), 0x3000).run()?;
    let shape = query_global(&device, named.global)?;
    ensure!(shape.total > 0 && shape.total < 0x400, "{shape:?}");
    ensure_eq!(
        (shape.resource_driver, shape.allocations, shape.runtime),
        (0, 1, 0)
    );
    let shared = Create::over(&device, flags::NT, memory.address(), 0x3000).run()?;
    ensure_eq!(query_nt(&device, &shared.share()?)?, shape);
    Ok(())
}

fn never_written() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let named = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(&[9; 40])
        .run()?;
    let shared = Create::sized(&device, flags::NT, &[PAGE_SIZE])
        .with_runtime(&[9; 40])
        .run()?;
    let nt = shared.share()?;
    let mut buffer = [0x77u8; 64];
    for (address, size) in [
        (buffer.as_mut_ptr() as u64, 40),
        (buffer.as_mut_ptr() as u64, 64),
        (buffer.as_mut_ptr() as u64, 0),
        (0, 40),
        (UNMAPPED, 40),
        (u64::MAX, u32::MAX),
    ] {
        let mut arg: D3DKMT_QUERYRESOURCEINFO = poisoned();
        (arg.hDevice, arg.hGlobalShare) = (device.handle().0, named.global);
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (address, size);
        let mut expected = arg;
        expected.PrivateRuntimeDataSize = 40;
        expected.TotalPrivateDriverDataSize = DRIVER_DATA;
        expected.ResourcePrivateDriverDataSize = 0;
        expected.NumAllocations = 1;
        succeeds(&raw, &mut arg)?;
        ensure_eq!(bytes(&arg), bytes(&expected));

        let mut arg: D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE = poisoned();
        (arg.hDevice, arg.hNtHandle) = (device.handle().0, nt.as_raw_fd() as u64);
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (address, size);
        let mut expected = arg;
        expected.PrivateRuntimeDataSize = 40;
        expected.TotalPrivateDriverDataSize = DRIVER_DATA;
        expected.ResourcePrivateDriverDataSize = 0;
        expected.NumAllocations = 1;
        succeeds(&raw, &mut arg)?;
        ensure_eq!(bytes(&arg), bytes(&expected));
    }
    ensure_eq!(buffer, [0x77; 64]);
    Ok(())
}

/// Numbers that are no handle of a device.
fn no_devices(device: &Device, made: &OpenResource) -> [u32; 6] {
    let adapter = device.adapter().handle().0;
    [
        0,
        1,
        u32::MAX,
        adapter,
        made.resource,
        device.handle().0 | 2,
    ]
}

fn global_refused() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let sync = device.create_sync_object(
        opendxg::SyncKind::Fence { initial_value: 0 },
        opendxg::SyncFlags::SHARED,
    )?;
    let sync_global = sync.global_handle().ok_or("no global handle")?.0;
    let dead = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let dead_global = dead.global;
    dead.destroy()?;
    let ask = |device: u32, global: u32| {
        let mut arg: D3DKMT_QUERYRESOURCEINFO = poisoned();
        (arg.hDevice, arg.hGlobalShare) = (device, global);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{device:#x} {global:#x}: {error}"))
    };
    for number in no_devices(&device, &made) {
        ask(number, made.global)?;
    }
    for number in [
        0,
        2,
        u32::MAX,
        made.resource,
        made.first(),
        made.global & !2,
        made.global ^ 0x40,
        made.global | 1,
        sync_global,
        dead_global,
        3,
    ] {
        ask(device.handle().0, number)?;
    }
    refused(&raw, &mut D3DKMT_QUERYRESOURCEINFO::zeroed(), IP)?;
    Ok(())
}

fn nt_refused() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let named = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let nt = made.share()?;
    let fence = device.create_shareable_fence(0)?.share(Access::ALL)?;
    let (node, event, file) = (Dxg::open()?, EventFd::new()?, selftests::fds::memfd()?);
    let ask = |device: u32, fd: u64, status: Status| {
        let mut arg: D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE = poisoned();
        (arg.hDevice, arg.hNtHandle) = (device, fd);
        refused(&raw, &mut arg, status).map_err(|error| format!("{device:#x} {fd:#x}: {error}"))
    };
    for number in no_devices(&device, &made) {
        ask(number, nt.as_raw_fd() as u64, IP)?;
    }
    let closed = closed_number()? as u64;
    let (high, global) = ((1 << 32) | nt.as_raw_fd() as u64, u64::from(named.global));
    for number in [0, closed, u64::MAX, high, global, 1 << 31] {
        ask(device.handle().0, number, Status::INVALID_HANDLE)?;
    }
    // Files that are not NT handles at all, and one of another type.
    for fd in [node.as_fd(), event.as_fd(), file.as_fd(), fence.as_fd()] {
        ask(
            device.handle().0,
            fd.as_raw_fd() as u64,
            Status::OBJECT_TYPE_MISMATCH,
        )?;
    }
    Ok(())
}

fn no_local_handles() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE; 3])
        .with_runtime(&[1; 8])
        .run()?;
    let nt = made.share()?;
    let before = query_nt(&device, &nt)?;
    made.destroy()?;
    ensure_eq!(query_nt(&device, &nt)?, before);
    Ok(())
}

fn nothing_left() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = made.share()?;
    let watch = Watch::start()?;
    let before = fixture::next_handle()?;
    for _ in 0..10 {
        query_nt(&device, &nt)?;
    }
    ensure_eq!(fixture::next_handle()?, before + 0x40);
    watch.unchanged()
}
