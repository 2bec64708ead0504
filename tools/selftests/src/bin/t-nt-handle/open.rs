// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening by NT handle (RES-52).

use std::os::fd::{AsRawFd, BorrowedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, Dxg, EventFd, Status, SyncFlags, SyncKind};
use selftests::call::{refused, succeeds};
use selftests::poison::{bytes, poisoned};
use selftests::{ensure, ensure_eq, fails_with, fds, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-52 zeroed arguments", zeroed)
        .test(
            "RES-52 FEN-53 descriptors that are closed or of another kind",
            foreign,
        )
        .test("RES-52 RES-107 exactly the outputs are written", outputs)
        .test("RES-6 each opening has its own handle", handles)
        .test("FEN-3 flags of an opening", flags)
        .test("FEN-5 the engine affinity of an opening", affinity)
        .test(
            "RES-52 without a device there is an opening, but no address",
            without_device,
        )
}

/// An opening with poisoned outputs.
fn opening(handle: u64, device: u32) -> D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 {
    let mut arg: D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 = poisoned();
    arg.hNtHandle = handle;
    arg.hDevice = device;
    arg.Flags = 0;
    arg.__bindgen_anon_1.MonitoredFence.EngineAffinity = 0;
    arg
}

/// The same without a device.
fn opening1(handle: u64) -> D3DKMT_OPENSYNCOBJECTFROMNTHANDLE {
    let mut arg: D3DKMT_OPENSYNCOBJECTFROMNTHANDLE = poisoned();
    arg.hNtHandle = handle;
    arg
}

fn zeroed() -> TestResult {
    let raw = fixture::raw()?;
    refused(
        &raw,
        &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE::zeroed(),
        Status::INVALID_HANDLE,
    )?;
    refused(
        &raw,
        &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2::zeroed(),
        Status::INVALID_PARAMETER,
    )?;
    let shared = fixture::device()?
        .create_shareable_fence(0)?
        .share(Access::ALL)?;
    refused(
        &raw,
        &mut opening(shared.slot(), 0),
        Status::INVALID_PARAMETER,
    )
}

fn foreign() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let named =
        device.create_sync_object(SyncKind::Fence { initial_value: 0 }, SyncFlags::SHARED)?;
    let global = named.global_handle().ok_or("no global handle")?.0;
    let closed = fds::closed_number()? as u64;
    let own = device.handle().0;
    for bad in [
        0,
        closed,
        u64::MAX,
        1 << 31,
        (1 << 32) | closed,
        i32::MAX as u64,
        u64::from(global),
        u64::from(fence.handle().0),
    ] {
        refused(&raw, &mut opening(bad, own), Status::INVALID_HANDLE)?;
        refused(&raw, &mut opening1(bad), Status::INVALID_HANDLE)?;
    }
    let event = EventFd::new()?;
    let (reader, writer) = fds::pipe()?;
    let memory = fds::memfd()?;
    let point = fence.point(1)?;
    let node = raw.fd()?;
    for fd in [
        event.as_raw_fd(),
        reader.as_raw_fd(),
        writer.as_raw_fd(),
        memory.as_raw_fd(),
        point.as_raw_fd(),
        node.as_raw_fd(),
    ] {
        let slot = fd as u64;
        refused(&raw, &mut opening(slot, own), Status::OBJECT_TYPE_MISMATCH)?;
        refused(&raw, &mut opening1(slot), Status::OBJECT_TYPE_MISMATCH)?;
        // The device comes first.
        refused(&raw, &mut opening(slot, 0), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn outputs() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(4)?;
    let shared = fence.share(Access::ALL)?;
    let mut arg = opening(shared.slot(), device.handle().0);
    let before = bytes(&arg).to_vec();
    succeeds(&raw, &mut arg)?;
    // hSyncObject 16..20, CPU address 24..32, GPU address 32..40.
    for (at, (old, new)) in before.iter().zip(bytes(&arg)).enumerate() {
        let written = matches!(at, 16..20 | 24..40);
        ensure!(
            written || old == new,
            "byte {at} changed: {old:#x} -> {new:#x}"
        );
    }
    // SAFETY: all arms are integers.
    let address = unsafe { arg.__bindgen_anon_1.MonitoredFence }.FenceValueCPUVirtualAddress;
    // SAFETY: the value is mapped there while the object is open.
    let value = unsafe { (address as *const u64).read_volatile() };
    ensure_eq!(value, 4);
    succeeds(
        &raw,
        &mut D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: arg.hSyncObject,
        },
    )
}

fn handles() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(4)?;
    let shared = fence.share(Access::ALL)?;
    let first = device.open_fence(&shared, SyncFlags::empty())?;
    let second = device.open_fence(&shared, SyncFlags::empty())?;
    let third = Dxg::open()?.open_nt(&shared)?;
    ensure_eq!(first.handle().0, fence.handle().0 + 0x40);
    ensure_eq!(second.handle().0, fence.handle().0 + 0x80);
    ensure_eq!(third.handle().0, fence.handle().0 + 0xc0);
    first.destroy()?;
    second.signal(9)?;
    ensure_eq!(fence.value(), 9);
    Ok(())
}

fn flags() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(4)?;
    let shared = fence.share(Access::ALL)?;
    let open = |bits: u32| {
        let mut arg = opening(shared.slot(), device.handle().0);
        arg.Flags = bits;
        arg
    };
    for flag in [
        SyncFlags::NO_SIGNAL,
        SyncFlags::NO_WAIT,
        SyncFlags::NO_GPU_ACCESS,
    ] {
        let mut arg = open(flag.bits());
        succeeds(&raw, &mut arg)?;
        ensure_eq!(arg.Flags, flag.bits(), "the flags are no output");
        let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: arg.hSyncObject,
        };
        succeeds(&raw, &mut destroy)?;
    }
    let both = SyncFlags::NO_SIGNAL | SyncFlags::NO_WAIT;
    refused(&raw, &mut open(both.bits()), Status::INVALID_PARAMETER)?;
    for bit in 8..32 {
        refused(&raw, &mut open(1 << bit), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn affinity() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let shared = device.create_shareable_fence(4)?.share(Access::ALL)?;
    for affinity in [2, 3, 1 << 31, u32::MAX] {
        let mut arg = opening(shared.slot(), device.handle().0);
        arg.__bindgen_anon_1.MonitoredFence.EngineAffinity = affinity;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn without_device() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let shared = device.create_shareable_fence(4)?.share(Access::ALL)?;
    let mut arg = opening1(shared.slot());
    let before = bytes(&arg).to_vec();
    succeeds(&raw, &mut arg)?;
    ensure_eq!(bytes(&arg)[..8], before[..8]);
    ensure_eq!(bytes(&arg)[12..], before[12..]);
    // It survives the devices of the process.
    drop(device);
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: arg.hSyncObject,
    };
    succeeds(&raw, &mut destroy)?;
    // SAFETY: a number that was checked to be closed; nothing is done with it but asking.
    let closed = unsafe { BorrowedFd::borrow_raw(fds::closed_number()?) };
    fails_with(Dxg::open()?.open_nt(closed), Status::INVALID_HANDLE)
}
