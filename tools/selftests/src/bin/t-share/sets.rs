// SPDX-License-Identifier: MIT OR Apache-2.0
//! ShareObjects: what may be shared, and how (RES-32 to RES-37).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, Device, Dxg, EventFd, Status, SyncFlags, SyncKind, SyncObject};
use rustix::io::FdFlags;
use selftests::call::{refused, succeeds};
use selftests::leak::open_descriptors;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::poison::bytes;
use selftests::{ensure, ensure_eq, fails_with, fixture, Outcome, Suite};

const NT: SyncFlags = SyncFlags::SHARED.union(SyncFlags::NT_SECURITY_SHARING);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-32 every kind made for NT sharing can be shared", legal)
        .test("RES-33 objects made otherwise cannot", illegal_objects)
        .test(
            "RES-33 handles of other kinds, dead ones and numbers that are none",
            illegal_handles,
        )
        .test("RES-33 counts other than one object, null pointers", counts)
        .test(
            "RES-5 A6 memory that cannot be read or written makes no handle",
            memory,
        )
        .test("ABI-2.2 only the slot of the handle is written", only_slot)
        .test("RES-34 an opened handle can be shared again", again)
        .test("RES-37 the NT handle alone keeps the object", alone)
        .test(
            "RES-38 object attributes: empty, wrong, not there",
            attributes,
        )
        .test("RES-13 OBJ_INHERIT decides about close-on-exec", inherit)
}

/// A call that shares the handles of `objects`.
fn share(objects: &[u32], slot: &mut u64) -> D3DKMT_SHAREOBJECTS {
    let mut arg = D3DKMT_SHAREOBJECTS::zeroed();
    arg.ObjectCount = objects.len() as u32;
    arg.ObjectHandleArray = objects.as_ptr() as u64;
    arg.DesiredAccess = Access::ALL.bits();
    arg.pSharedNtHandle = (&raw mut *slot) as u64;
    arg
}

/// Nothing may be shared from these objects, and the slot stays as it was.
fn is_refused(raw: &Raw, objects: &[u32]) -> Outcome {
    let mut slot = u64::MAX;
    refused(
        raw,
        &mut share(objects, &mut slot),
        Status::INVALID_PARAMETER,
    )?;
    ensure_eq!(slot, u64::MAX);
    Ok(())
}

fn kinds() -> [SyncKind<'static>; 4] {
    [
        SyncKind::Mutex {
            initially_owned: true,
        },
        SyncKind::Semaphore {
            max_count: 9,
            initial_count: 2,
        },
        SyncKind::Fence { initial_value: 7 },
        SyncKind::MonitoredFence { initial_value: 7 },
    ]
}

fn object(device: &Device, kind: SyncKind<'_>, flags: SyncFlags) -> Outcome<SyncObject> {
    Ok(device.create_sync_object(kind, flags)?)
}

fn legal() -> Outcome {
    let device = fixture::device()?;
    for kind in kinds() {
        let object = object(&device, kind, NT)?;
        ensure_eq!(object.global_handle(), None);
        let shared = object.share(Access::ALL)?;
        let opened = device.open_sync_object(&shared, SyncFlags::empty())?;
        ensure!(opened.handle() != object.handle());
        Dxg::open()?.open_nt(&shared)?;
    }
    Ok(())
}

fn illegal_objects() -> Outcome {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for kind in kinds() {
        is_refused(
            &raw,
            &[object(&device, kind, SyncFlags::empty())?.handle().0],
        )?;
        if !matches!(kind, SyncKind::MonitoredFence { .. }) {
            let named = object(&device, kind, SyncFlags::SHARED)?;
            is_refused(&raw, &[named.handle().0])?;
            // Neither is it when it was opened by its global handle.
            let global = named.global_handle().ok_or("no global handle")?;
            let opened = Dxg::open()?.open_global(global)?;
            is_refused(&raw, &[opened.handle().0])?;
        }
    }
    let kind = SyncKind::CpuNotification {
        event: Some(&event),
    };
    is_refused(
        &raw,
        &[object(&device, kind, SyncFlags::empty())?.handle().0],
    )
}

fn illegal_handles() -> Outcome {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let context = device.create_context(0)?;
    let fence = device.create_shareable_fence(0)?;
    let dead = device.create_shareable_fence(0)?.handle().0;
    let named = object(
        &device,
        SyncKind::Fence { initial_value: 0 },
        SyncFlags::SHARED,
    )?;
    let global = named.global_handle().ok_or("no global handle")?.0;
    let shared = fence.share(Access::ALL)?;
    for handle in [
        0,
        u32::MAX,
        dead,
        global,
        fence.handle().0 | 2,
        shared.as_raw_fd() as u32,
        device.handle().0,
        device.adapter().handle().0,
        context.handle().0,
    ] {
        is_refused(&raw, &[handle])?;
    }
    Ok(())
}

fn counts() -> Outcome {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let (a, b) = (
        device.create_shareable_fence(0)?,
        device.create_shareable_fence(0)?,
    );
    let (a, b) = (a.handle().0, b.handle().0);
    // Sets of synchronisation objects alone.
    for set in [&[a, b][..], &[a, a], &[a, b, a], &[a, a, a], &[a, b, a, b]] {
        is_refused(&raw, set)?;
    }
    let objects = [a; 64];
    for count in [0, 2, 3, 4, 64, 1 << 30, 1 << 31, u32::MAX] {
        let mut slot = u64::MAX;
        let mut arg = share(&objects, &mut slot);
        arg.ObjectCount = count;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    let mut slot = u64::MAX;
    let mut arg = share(&[a], &mut slot);
    arg.ObjectHandleArray = 0;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    let mut arg = share(&[a], &mut slot);
    arg.pSharedNtHandle = 0;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    ensure_eq!(slot, u64::MAX);
    Ok(())
}

fn memory() -> Outcome {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let objects = [fence.handle().0];
    let watch = selftests::leak::Watch::start()?;
    let descriptors = open_descriptors()?;
    let page = Page::new()?;
    let read_only = Page::new()?.read_only()?;
    let mut slot = u64::MAX;
    for array in [UNMAPPED, KERNEL_HALF, u64::MAX, page.end() - 3] {
        let mut arg = share(&objects, &mut slot);
        arg.ObjectHandleArray = array;
        refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(slot, u64::MAX);
    for output in [
        UNMAPPED,
        KERNEL_HALF,
        u64::MAX,
        page.end() - 7,
        read_only.address(),
    ] {
        let mut arg = share(&objects, &mut slot);
        arg.pSharedNtHandle = output;
        refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(open_descriptors()?, descriptors, "descriptors");
    watch.unchanged()
}

fn only_slot() -> Outcome {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let objects = [fence.handle().0];
    let mut slot = u64::MAX;
    let arg = share(&objects, &mut slot);
    let page = Page::beginning_with(bytes(&arg))?.read_only()?;
    let code = opendxg::raw::code(D3DKMT_SHAREOBJECTS::NR, D3DKMT_SHAREOBJECTS::SIZE);
    let result = raw.ioctl(code, page.address());
    if result.is_err() {
        ensure_eq!(slot, u64::MAX, "the slot after {result:?}");
    }
    ensure_eq!(result, Ok(0), "with the argument in read-only memory");
    // SAFETY: the call made the descriptor for us.
    drop(unsafe { OwnedFd::from_raw_fd(slot as i32) });
    Ok(())
}

fn again() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(3)?;
    let first = fence.share(Access::ALL)?;
    let opened = device.open_fence(&first, SyncFlags::empty())?;
    drop(first);
    fence.destroy()?;
    let second = opened.share(Access::ALL)?;
    drop(opened);
    let last = device.open_fence(&second, SyncFlags::empty())?;
    ensure_eq!(last.value(), 3);
    Ok(())
}

fn alone() -> Outcome {
    let device = fixture::device()?;
    for kind in kinds() {
        let object = object(&device, kind, NT)?;
        let shared = object.share(Access::ALL)?;
        object.destroy()?;
        for _ in 0..3 {
            device
                .open_sync_object(&shared, SyncFlags::empty())?
                .destroy()?;
        }
    }
    let fence = device.create_shareable_fence(1)?;
    let shared = fence.share(Access::ALL)?;
    fence.signal(8)?;
    fence.destroy()?;
    ensure_eq!(device.open_fence(&shared, SyncFlags::empty())?.value(), 8);
    Ok(())
}

/// Shares with these attributes; the result is the status or the descriptor.
fn share_with(
    raw: &Raw,
    handle: u32,
    attributes: &OBJECT_ATTRIBUTES,
) -> Outcome<Result<OwnedFd, Status>> {
    let objects = [handle];
    let mut slot = u64::MAX;
    let mut arg = share(&objects, &mut slot);
    arg.pObjectAttributes = (&raw const *attributes) as u64;
    let status = raw.exec(&mut arg)?;
    if status != Status::SUCCESS {
        ensure_eq!(slot, u64::MAX);
        return Ok(Err(status));
    }
    // SAFETY: the call made the descriptor for us.
    Ok(Ok(unsafe { OwnedFd::from_raw_fd(slot as i32) }))
}

/// Attributes without a name.
fn unnamed() -> OBJECT_ATTRIBUTES {
    OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        ..Default::default()
    }
}

fn attributes() -> Outcome {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let share_with =
        |attributes: &OBJECT_ATTRIBUTES| share_with(&raw, fence.handle().0, attributes);
    ensure!(share_with(&unnamed())?.is_ok(), "unnamed");
    for length in [0, 24, 47, 49, u32::MAX] {
        let attributes = OBJECT_ATTRIBUTES {
            Length: length,
            ..unnamed()
        };
        ensure_eq!(
            share_with(&attributes)?.err(),
            Some(Status::INVALID_PARAMETER),
            "length {length}"
        );
    }
    for bit in 0..32 {
        if (0x1ff2 >> bit) & 1 == 0 {
            let attributes = OBJECT_ATTRIBUTES {
                Attributes: 1 << bit,
                ..unnamed()
            };
            ensure_eq!(
                share_with(&attributes)?.err(),
                Some(Status::INVALID_PARAMETER),
                "bit {bit}"
            );
        }
    }
    let objects = [fence.handle().0];
    let mut slot = u64::MAX;
    let page = Page::new()?;
    for address in [UNMAPPED, KERNEL_HALF, page.end() - 47] {
        let mut arg = share(&objects, &mut slot);
        arg.pObjectAttributes = address;
        refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    }
    Ok(())
}

fn inherit() -> Outcome {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_shareable_fence(0)?;
    for (bits, cloexec) in [(0, true), (0x2, false), (0x40, true), (0x42, false)] {
        let attributes = OBJECT_ATTRIBUTES {
            Attributes: bits,
            ..unnamed()
        };
        let fd = share_with(&raw, fence.handle().0, &attributes)?;
        let fd = fd.map_err(|status| format!("attributes {bits:#x}: {status}"))?;
        let flags = rustix::io::fcntl_getfd(&fd)?;
        ensure_eq!(
            flags.contains(FdFlags::CLOEXEC),
            cloexec,
            "attributes {bits:#x}"
        );
    }
    let shared = fence.share(Access::ALL)?;
    ensure!(
        rustix::io::fcntl_getfd(&shared)?.contains(FdFlags::CLOEXEC),
        "without attributes"
    );
    fails_with(
        fence.share(Access::from_bits_retain(4)),
        Status::INVALID_PARAMETER,
    )?;
    let mut slot = 0;
    succeeds(&raw, &mut share(&[fence.handle().0], &mut slot))?;
    // SAFETY: the call made the descriptor for us.
    drop(unsafe { OwnedFd::from_raw_fd(slot as i32) });
    Ok(())
}
