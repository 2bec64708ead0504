// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other types of objects: their own creation rules, and that CPU calls refuse them (section
//! 2.6).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, EventFd, FenceValues, SignalFlags, Status, SyncFlags, SyncKind, SyncObject};
use selftests::call::{refused, succeeds};
use selftests::{ensure_eq, fails_with, fds, fixture, Suite, TestResult};
use std::os::fd::{AsRawFd, OwnedFd};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-50 mutexes, semaphores, fences and notifications refuse CPU calls",
            cpu_calls,
        )
        .test(
            "FEN-51 one of them among monitored fences refuses the whole call",
            mixtures,
        )
        .test("FEN-50 they have no fence point", points)
        .test(
            "FEN-49 semaphores: 0 of 0 is legal, more than the maximum is not",
            semaphores,
        )
        .test(
            "CPU-3 FEN-21 the event of a notification: none, closed, another kind",
            events,
        )
        .test(
            "CPU-3 a notification keeps its event when the descriptor is closed",
            event_reference,
        )
        .test(
            "FEN-50 a periodic fence needs an adapter and a target",
            periodic,
        )
        .test(
            "FEN-52 destroying what is not a synchronisation object is refused",
            destroy,
        )
}

/// One object of each type that CPU calls refuse.
fn others(device: &Device, event: &EventFd) -> TestResult<Vec<SyncObject>> {
    let kinds = [
        SyncKind::Mutex {
            initially_owned: false,
        },
        SyncKind::Semaphore {
            max_count: 1,
            initial_count: 1,
        },
        SyncKind::Fence { initial_value: 9 },
        SyncKind::CpuNotification { event: Some(event) },
    ];
    kinds
        .into_iter()
        .map(|kind| Ok(device.create_sync_object(kind, SyncFlags::empty())?))
        .collect()
}

fn cpu_calls() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for object in others(&device, &event)? {
        for value in [0, 1, 9, u64::MAX] {
            let list = FenceValues::new().with(&object, value);
            let refuse = Status::INVALID_PARAMETER;
            fails_with(device.wait_any(&list), refuse)?;
            fails_with(device.wait_all(&list), refuse)?;
            fails_with(device.wait_all_async(&list, &event), refuse)?;
            fails_with(device.signal(&list, SignalFlags::empty()), refuse)?;
            fails_with(
                device.signal(&list, SignalFlags::ALLOW_FENCE_REWIND),
                refuse,
            )?;
        }
    }
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn mixtures() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    let fence = device.create_fence(5)?;
    for object in others(&device, &event)? {
        for position in 0..3 {
            let mut list = FenceValues::new();
            for index in 0..3 {
                match index == position {
                    true => list.push(&object, 1),
                    false => list.push(&fence, 6),
                }
            }
            let refuse = Status::INVALID_PARAMETER;
            fails_with(device.signal(&list, SignalFlags::empty()), refuse)?;
            ensure_eq!(fence.value(), 5, "signalled by a refused call");
            fails_with(device.wait_any_async(&list, &event), refuse)?;
            fails_with(device.wait_any(&list), refuse)?;
        }
    }
    fence.signal(6)?;
    ensure_eq!(event.take()?, 0, "a refused wait");
    Ok(())
}

fn points() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for object in others(&device, &event)? {
        fails_with(object.point(0), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn semaphores() -> TestResult {
    let device = fixture::device()?;
    for (max_count, initial_count, legal) in [
        (0, 0, true),
        (1, 0, true),
        (1, 1, true),
        (u32::MAX, u32::MAX, true),
        (0, 1, false),
        (1, 2, false),
        (u32::MAX - 1, u32::MAX, false),
    ] {
        let kind = SyncKind::Semaphore {
            max_count,
            initial_count,
        };
        let created = device.create_sync_object(kind, SyncFlags::empty());
        match legal {
            true => drop(created?),
            false => fails_with(created, Status::INVALID_PARAMETER)?,
        }
    }
    Ok(())
}

/// Creates a CPU notification with any event number.
fn notification(device: &Device, event: u64) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
    let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    arg.hDevice = device.handle().0;
    arg.Info.Type = D3DDDI_CPU_NOTIFICATION;
    arg.Info.__bindgen_anon_1.CPUNotification.Event = event;
    arg
}

fn events() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let closed = fds::closed_number()? as u64;
    for bad in [
        0,
        closed,
        u64::MAX,
        1 << 31,
        (1 << 32) | closed,
        i32::MAX as u64,
    ] {
        refused(
            &raw,
            &mut notification(&device, bad),
            Status::INVALID_HANDLE,
        )?;
    }
    let (reader, writer) = fds::pipe()?;
    let memory = fds::memfd()?;
    let shared = device
        .create_shareable_fence(0)?
        .share(opendxg::Access::ALL)?;
    let point = device.create_fence(0)?.point(1)?;
    let node = raw.fd()?;
    for fd in [
        reader.as_raw_fd(),
        writer.as_raw_fd(),
        memory.as_raw_fd(),
        shared.as_raw_fd(),
        point.as_raw_fd(),
        node.as_raw_fd(),
    ] {
        let mut arg = notification(&device, fd as u64);
        refused(&raw, &mut arg, Status::OBJECT_TYPE_MISMATCH)?;
    }
    Ok(())
}

fn event_reference() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    let kind = SyncKind::CpuNotification {
        event: Some(&event),
    };
    let object = device.create_sync_object(kind, SyncFlags::empty())?;
    drop(OwnedFd::from(event));
    object.destroy()?;
    Ok(())
}

fn periodic() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let kind = SyncKind::PeriodicMonitoredFence {
        adapter: device.adapter(),
        target_id: 0,
        time: 100,
    };
    let created = device.create_sync_object(kind, SyncFlags::empty());
    fails_with(created, Status::NOT_SUPPORTED)?;
    let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    arg.hDevice = device.handle().0;
    arg.Info.Type = D3DDDI_PERIODIC_MONITORED_FENCE;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}

fn destroy() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(opendxg::Access::ALL)?;
    let named =
        device.create_sync_object(SyncKind::Fence { initial_value: 0 }, SyncFlags::SHARED)?;
    let global = named.global_handle().ok_or("no global handle")?.0;
    let destroyed = device.create_fence(0)?.handle().0;
    for handle in [
        0,
        u32::MAX,
        0x4000_0000,
        destroyed,
        fence.handle().0 + 0x1000 * 0x40,
        fence.handle().0 | 1,
        global,
        shared.as_raw_fd() as u32,
        device.handle().0,
    ] {
        let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: handle,
        };
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    let handle = fence.into_raw().0;
    let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: handle,
    };
    succeeds(&raw, &mut arg)?;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}
