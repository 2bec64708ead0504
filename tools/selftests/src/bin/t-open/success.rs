// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a successful opening returns (RES-49, RES-51, RES-54).

use std::os::fd::AsRawFd;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Access;
use selftests::call::succeeds;
use selftests::child::in_child;
use selftests::poison::POISON;
use selftests::resource::{
    flags, query_global, Create, OpenGlobal, OpenNt, ALL_ACCESS, PAGE_SIZE, READ_ACCESS, UNTOUCHED,
};
use selftests::sharing::share_raw;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-49 OpenResource: every output", by_global)
        .test("RES-49 OpenResourceFromNtHandle: every output", by_nt)
        .test(
            "RES-49 each open makes an open resource of its own",
            own_open_resources,
        )
        .test(
            "RES-49 RES-51 a plain resource has no mutex and no fence",
            plain,
        )
        .test("RES-51 a triple returns three handles", triple)
        .test(
            "RES-49 RES-10 another process sees the same bytes",
            other_process,
        )
        .test("RES-35 RES-49 an opening without WRITE", read_only)
        .test("RES-54 runtime data of every size survive", descriptors)
}

fn by_global() -> TestResult {
    let device = fixture::device()?;
    let runtime: Vec<u8> = (1..=0x68).collect();
    let made = Create::sized(
        &device,
        flags::GLOBAL,
        &[PAGE_SIZE, 2 * PAGE_SIZE, PAGE_SIZE],
    )
    .with_runtime(&runtime)
    .run()?;
    let before = fixture::next_handle()?;
    let mut open = OpenGlobal::new(&device, made.global)?;
    let mut own = [UNTOUCHED; 64];
    for info in &mut open.buffers.infos {
        info.pPrivateDriverData = own.as_mut_ptr() as u64;
        info.PrivateDriverDataSize = own.len() as u32;
    }
    let opened = open.run()?;
    opened.is_in_order()?;
    ensure_eq!(opened.resource, before);
    ensure_eq!(open.arg.hGlobalShare, made.global);
    ensure_eq!(open.arg.NumAllocations, 3);
    ensure_eq!(open.arg.PrivateRuntimeDataSize, 0x68);
    ensure_eq!(open.arg.ResourcePrivateDriverDataSize, 0);
    ensure_eq!(open.buffers.runtime, runtime);
    let mut sum = 0;
    for index in 0..3 {
        let data = open.buffers.driver_data(index)?;
        ensure_eq!(data.len(), size_of::<opendxg_allocation_data>());
        sum += data.len() as u32;
        ensure!(open.buffers.infos[index].GpuVirtualAddress == 0);
    }
    ensure_eq!(open.arg.TotalPrivateDriverDataBufferSize, sum);
    ensure_eq!(own, [UNTOUCHED; 64], "the caller's own buffers");
    made.lock_nth(1)?.fill(4);
    opened.lock_nth(1)?.holds(4)?;
    ensure_eq!(opened.lock_nth(1)?.size(), 0x2000);
    opened.destroy()?;
    made.lock_nth(1)?.holds(4)
}

fn by_nt() -> TestResult {
    let device = fixture::device()?;
    let runtime: Vec<u8> = (1..=0x58).collect();
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE; 2])
        .with_runtime(&runtime)
        .run()?;
    let nt = made.share()?;
    let before = fixture::next_handle()?;
    let mut open = OpenNt::new(&device, &nt)?;
    let resource_buffer = [UNTOUCHED; 16];
    open.arg.pResourcePrivateDriverData = resource_buffer.as_ptr() as u64;
    let opened = open.run()?;
    opened.is_in_order()?;
    ensure_eq!(opened.resource, before);
    ensure_eq!(open.arg.hNtHandle, nt.as_raw_fd() as u64);
    ensure_eq!(open.arg.NumAllocations, 2);
    ensure_eq!(open.arg.PrivateRuntimeDataSize, 0x58);
    ensure_eq!(open.arg.ResourcePrivateDriverDataSize, 0);
    ensure_eq!(open.buffers.runtime, runtime);
    let size = open.arg.TotalPrivateDriverDataBufferSize as usize;
    ensure_eq!(size, 2 * size_of::<opendxg_allocation_data>());
    ensure_eq!(resource_buffer, [UNTOUCHED; 16]);
    ensure!(open.buffers.driver_data(0)? != [UNTOUCHED; 48].as_slice());
    opened.destroy()
}

fn own_open_resources() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let global = made.global;
    let one = OpenGlobal::new(&device, global)?.run()?;
    let two = OpenGlobal::new(&device, global)?.run()?;
    ensure!(one.resource != two.resource && one.first() != two.first());
    made.destroy()?;
    one.destroy()?;
    two.lock()?.fill(1);
    two.lock()?.holds(1)?;
    OpenGlobal::new(&device, global)?.run()?.destroy()?;
    two.destroy()?;
    let mut arg = D3DKMT_QUERYRESOURCEINFO::zeroed();
    (arg.hDevice, arg.hGlobalShare) = (device.handle().0, global);
    let dead = opendxg::Status::INVALID_PARAMETER;
    selftests::call::refused(&fixture::raw()?, &mut arg, dead)
}

fn plain() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = made.share()?;
    let mut open = OpenNt::new(&device, &nt)?;
    (open.arg.hKeyedMutex, open.arg.hSyncObject) = (POISON, POISON);
    open.arg.KeyedMutexPrivateRuntimeDataSize = 20;
    let opened = open.run()?;
    ensure_eq!((open.arg.hKeyedMutex, open.arg.hSyncObject), (0, 0));
    ensure_eq!(open.arg.KeyedMutexPrivateRuntimeDataSize, 0);
    opened.destroy()
}

fn triple() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE; 2]).run()?;
    let fence = device.create_shareable_fence(0)?;
    let mut mutex = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
    mutex.Flags = D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
    succeeds(&raw, &mut mutex)?;
    let set = [made.resource, mutex.hKeyedMutex, fence.handle().0];
    let nt = share_raw(&raw, &set, ALL_ACCESS, 0)?;
    let mut open = OpenNt::new(&device, &nt)?;
    let mut initial = [0x66u8; 20];
    open.arg.pKeyedMutexPrivateRuntimeData = initial.as_mut_ptr() as u64;
    open.arg.KeyedMutexPrivateRuntimeDataSize = 20;
    let before = fixture::next_handle()?;
    let opened = open.run()?;
    opened.is_in_order()?;
    ensure_eq!(opened.resource, before);
    ensure_eq!(open.arg.KeyedMutexPrivateRuntimeDataSize, 20);
    ensure_eq!(initial, [0x66; 20], "the mutex buffer is input");
    let handles = [open.arg.hKeyedMutex, open.arg.hSyncObject];
    ensure!(
        handles
            .iter()
            .all(|handle| handle & 0x3f == 0 && *handle > opened.allocations[1]),
        "{handles:x?}"
    );
    ensure!(handles[0] != handles[1], "{handles:x?}");
    // The mutex took the initial data: acquiring copies them out.
    let mut out = [0u8; 20];
    let timeout = 0i64;
    let mut acquire = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
    acquire.hKeyedMutex = handles[0];
    acquire.pTimeout = (&raw const timeout) as u64;
    acquire.pPrivateRuntimeData = out.as_mut_ptr() as u64;
    acquire.PrivateRuntimeDataSize = 20;
    succeeds(&raw, &mut acquire)?;
    ensure_eq!(out, initial);
    let mut release = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
    release.hKeyedMutex = handles[0];
    succeeds(&raw, &mut release)?;
    fence.signal(5)?;
    for handle in [handles[0], mutex.hKeyedMutex] {
        let mut end = D3DKMT_DESTROYKEYEDMUTEX::zeroed();
        end.hKeyedMutex = handle;
        succeeds(&raw, &mut end)?;
    }
    let mut end = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    end.hSyncObject = handles[1];
    succeeds(&raw, &mut end)?;
    opened.destroy()
}

fn other_process() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::GLOBAL, &[8 * PAGE_SIZE])
        .with_runtime(&[3; 17])
        .run()?;
    let shared = Create::sized(&device, flags::NT, &[8 * PAGE_SIZE]).run()?;
    let nt = shared.share()?;
    made.lock()?.fill(1);
    shared.lock()?.fill(2);
    in_child(|| {
        let device = fixture::device()?;
        let mut open = OpenGlobal::new(&device, made.global)?;
        let opened = open.run()?;
        ensure_eq!(open.buffers.runtime, [3; 17]);
        opened.lock()?.holds(1)?;
        opened.lock()?.fill(11);
        opened.destroy()?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        opened.lock()?.holds(2)?;
        opened.lock()?.fill(22);
        opened.destroy()
    })?;
    made.lock()?.holds(11)?;
    shared.lock()?.holds(22)
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    made.lock()?.fill(5);
    let nt = share_raw(made.raw(), &[made.resource], READ_ACCESS, 0)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let mapping = opened.lock()?;
    mapping.holds(5)?;
    made.lock()?.fill(6);
    mapping.holds(6)?;
    mapping.unlock()?;
    // The fence of another set is not concerned.
    let fence = device.create_shareable_fence(0)?;
    fence.share(Access::ALL)?;
    opened.destroy()
}

fn descriptors() -> TestResult {
    let device = fixture::device()?;
    for size in [0usize, 1, 0x58, 0x68, 0x108, 0x1000, 0x1_0000] {
        let runtime: Vec<u8> = (0..size).map(|at| (at * 7 + size) as u8).collect();
        let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
            .with_runtime(&runtime)
            .run()?;
        let shared = Create::sized(&device, flags::NT, &[PAGE_SIZE])
            .with_runtime(&runtime)
            .run()?;
        let nt = shared.share()?;
        for _ in 0..2 {
            ensure_eq!(query_global(&device, made.global)?.runtime as usize, size);
            let mut open = OpenGlobal::new(&device, made.global)?;
            open.run()?.destroy()?;
            ensure!(
                open.buffers.runtime == runtime,
                "{size:#x} bytes by global handle"
            );
            let mut open = OpenNt::new(&device, &nt)?;
            open.run()?.destroy()?;
            ensure!(
                open.buffers.runtime == runtime,
                "{size:#x} bytes by NT handle"
            );
        }
    }
    Ok(())
}
