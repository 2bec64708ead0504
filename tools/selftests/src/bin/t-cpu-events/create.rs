// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creation, and what no call does with a CPU event (cpu-events.md sections 2 and 5).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use opendxg::raw::{code, Argument};
use opendxg::uapi::*;
use opendxg::{Access, EventFd, FenceValues, SignalFlags, Status, SyncFlags, SyncKind, SyncObject};
use rustix::io::Errno;
use selftests::call::{refused, succeeds};
use selftests::gpu::Gpu;
use selftests::memory::Page;
use selftests::poison::bytes;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("CPU-6 FEN-113 the feature is enabled", feature)
        .test("CPU-2 CPU-3 CPU-8 CPU-10 creation", creation)
        .test(
            "CPU-9 CPU-41 a creation that cannot be answered",
            unanswered,
        )
        .test("CPU-41 fdinfo shows the events of each device", shown)
        .test(
            "CPU-1 CPU-4 flags beside SignalByKmd, and other types",
            flags,
        )
        .test("CPU-2 CPU-3 bad devices and events", bad)
        .test("CPU-28 no call signals it or waits for it", uses)
        .test("CPU-5 without SignalByKmd queues signal it", older)
        .test(
            "CPU-10 a device has its limit, and others have theirs",
            limit,
        )
}

fn feature() -> TestResult {
    const KMD_SIGNAL_CPU_EVENT: u32 = 3;
    ensure!(fixture::adapter()?.feature(KMD_SIGNAL_CPU_EVENT)?.enabled);
    Ok(())
}

fn creation() -> TestResult {
    let device = fixture::device()?;
    let fd = EventFd::new()?;
    // One eventfd for several objects, several objects of a device.
    let one = device.create_cpu_event(&fd)?;
    let other = device.create_cpu_event(&fd)?;
    let (first, second) = (one.set_usage([0; 8])?, other.set_usage([0; 8])?);
    ensure!(first != 0 && second != 0 && first != second);
    // A generation and a number, and no address of the kernel's half.
    ensure!(first >> 63 == 0 && second >> 63 == 0);
    one.destroy()?;
    // The name of the one that is gone is not used again.
    let third = device.create_cpu_event(&fd)?;
    let name = third.set_usage([0; 8])?;
    ensure!(name != first && name != second);
    drop(fd);
    other.destroy()?;
    third.destroy()?;
    Ok(())
}

/// What fdinfo shows of an object: the end of its line, without what all objects have.
fn fdinfo(handle: u32) -> TestResult<Option<String>> {
    let begin = format!("dxg-handle:\t{handle:#010x} ");
    for entry in std::fs::read_dir("/proc/self/fdinfo")? {
        let text = std::fs::read_to_string(entry?.path()).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(&begin));
        if let Some(line) = line {
            return Ok(Some(line[begin.len()..].into()));
        }
    }
    Ok(None)
}

/// How many events a device has.
fn events_of(device: &opendxg::Device) -> TestResult<u32> {
    let line = fdinfo(device.handle().0)?.ok_or("no such device")?;
    let count = line.split_once("cpu-events=").ok_or("no count")?.1;
    Ok(count.parse().map_err(|_| "no number")?)
}

/// The handle does not fit into what the caller gave: no event is left, and nothing is signalled.
fn unanswered() -> TestResult {
    type Creation = D3DKMT_CREATESYNCHRONIZATIONOBJECT2;
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fd = EventFd::new()?;
    let event = fd.as_fd().as_raw_fd() as u64;
    const BY_KMD: u32 = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
    let arg = argument(device.handle().0, D3DDDI_CPU_NOTIFICATION, BY_KMD, event);
    let page = Page::beginning_with(bytes(&arg))?.read_only()?;
    for _ in 0..3 {
        let answer = raw.ioctl(code(Creation::NR, Creation::SIZE), page.address());
        ensure_eq!(answer, Err(Errno::FAULT));
    }
    ensure_eq!(events_of(&device)?, 0);
    device.create_cpu_event(&fd)?.destroy()?;
    Ok(())
}

/// How many there are, what each is for and how often it was signalled; and no address.
fn shown() -> TestResult {
    let gpu = Gpu::new()?;
    let (fd, other) = (EventFd::new()?, fixture::device()?);
    let events = [
        gpu.device().create_cpu_event(&fd)?,
        gpu.device().create_cpu_event(&fd)?,
    ];
    ensure_eq!((events_of(gpu.device())?, events_of(&other)?), (2, 0));
    events[1].set_usage([4, 1, 0, 0xcafe, 0, 0, 0, 0])?;
    // A usage that is refused is not shown.
    fails_with(events[1].set_usage([4, 1, 0, 0, 1, 0, 0, 0]), IP)?;
    gpu.run(&opendxg::pm4::Pm4::new().trap(1, 1).trap(1, 2))?;
    let mut heard = 0;
    while heard < 2 {
        heard += fd.wait(Some(selftests::time::soon()))?.unwrap_or(0);
    }
    for (event, expected) in events.iter().zip([
        " signals=0 late=0 usage=0x0,0x0,0x0,0x0,0x0,0x0,0x0,0x0",
        " signals=2 late=0 usage=0x4,0x1,0x0,0xcafe,0x0,0x0,0x0,0x0",
    ]) {
        let line = fdinfo(event.object().handle().0)?.ok_or("no such event")?;
        ensure!(line.ends_with(expected), "{line}");
        ensure!(!line.contains("ffff"), "{line}");
    }
    for (event, left) in events.into_iter().zip([1, 0]) {
        event.destroy()?;
        ensure_eq!(events_of(gpu.device())?, left);
    }
    Ok(())
}

fn argument(device: u32, kind: u32, flags: u32, event: u64) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
    let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    arg.hDevice = device;
    arg.Info.Type = kind;
    arg.Info.Flags = flags;
    if kind == D3DDDI_CPU_NOTIFICATION {
        arg.Info.__bindgen_anon_1.CPUNotification.Event = event;
    }
    arg
}

fn flags() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fd = EventFd::new()?;
    let event = fd.as_fd().as_raw_fd() as u64;
    const BY_KMD: u32 = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
    for bit in (0..32).filter(|bit| 1 << bit != BY_KMD) {
        let kind = D3DDDI_CPU_NOTIFICATION;
        let mut arg = argument(device.handle().0, kind, BY_KMD | (1 << bit), event);
        refused(&raw, &mut arg, IP)?;
    }
    for kind in [1, 2, 3, 5, 6] {
        refused(&raw, &mut argument(device.handle().0, kind, BY_KMD, 0), IP)?;
    }
    Ok(())
}

fn bad() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fd = EventFd::new()?;
    let event = fd.as_fd().as_raw_fd() as u64;
    const BY_KMD: u32 = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
    let node = std::fs::File::open("/dev/null")?;
    let closed = OwnedFd::from(EventFd::new()?);
    let number = closed.as_raw_fd() as u64;
    drop(closed);
    for (handle, event, status) in [
        (0, event, IP),
        (u32::MAX, event, IP),
        (device.adapter().handle().0, event, IP),
        (device.handle().0, 0, Status::INVALID_HANDLE),
        (device.handle().0, number, Status::INVALID_HANDLE),
        (device.handle().0, u64::MAX, Status::INVALID_HANDLE),
        (
            device.handle().0,
            node.as_raw_fd() as u64,
            Status::OBJECT_TYPE_MISMATCH,
        ),
    ] {
        let mut arg = argument(handle, D3DDDI_CPU_NOTIFICATION, BY_KMD, event);
        refused(&raw, &mut arg, status)?;
    }
    let mut arg = argument(device.handle().0, D3DDDI_CPU_NOTIFICATION, BY_KMD, event);
    succeeds(&raw, &mut arg)?;
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: arg.hSyncObject,
    };
    succeeds(&raw, &mut destroy)
}

/// Alone, and behind a fence that is good, which stays as it was.
fn uses() -> TestResult {
    let gpu = Gpu::new()?;
    let fd = EventFd::new()?;
    let event = gpu.device().create_cpu_event(&fd)?;
    let fence = gpu.device().create_fence(3)?;
    let object: &SyncObject = event.object();
    let lists: [Vec<&SyncObject>; 2] = [vec![object], vec![&fence, object]];
    for list in lists {
        let mut values = FenceValues::new();
        for object in list {
            values = values.with(object, 7);
        }
        fails_with(gpu.device().signal(&values, SignalFlags::empty()), IP)?;
        fails_with(gpu.device().wait_all(&values), IP)?;
        fails_with(gpu.device().wait_any(&values), IP)?;
        fails_with(gpu.context().signal(&values), IP)?;
        fails_with(gpu.context().wait(&values), IP)?;
        let context = gpu.device().create_hw_context(0)?;
        let queue = context.create_hw_queue()?;
        fails_with(queue.signal(&values), IP)?;
        fails_with(queue.wait(&values), IP)?;
    }
    ensure_eq!(fence.value(), 3);
    fails_with(gpu.context().signal_legacy(&[object], 0), IP)?;
    fails_with(gpu.context().wait_legacy(&[object], 0), IP)?;
    fails_with(object.share(Access::ALL), IP)?;
    fails_with(gpu.device().create_sync_file(object, 0), IP)?;
    ensure!(!matches!(fd.take(), Ok(1..)));
    gpu.finish()?;
    event.destroy()?;
    Ok(())
}

fn older() -> TestResult {
    let gpu = Gpu::new()?;
    let fd = EventFd::new()?;
    let kind = SyncKind::CpuNotification { event: Some(&fd) };
    let object = gpu.device().create_sync_object(kind, SyncFlags::empty())?;
    gpu.context().signal_legacy(&[&object], 0)?;
    gpu.finish()?;
    ensure_eq!(fd.wait(Some(selftests::time::soon()))?, Some(1));
    Ok(())
}

fn limit() -> TestResult {
    const MOST: usize = 1024;
    let device = fixture::device()?;
    let fd = EventFd::new()?;
    let mut events = Vec::new();
    for _ in 0..MOST {
        events.push(device.create_cpu_event(&fd)?);
    }
    fails_with(device.create_cpu_event(&fd), Status::NO_MEMORY)?;
    fixture::device()?.create_cpu_event(&fd)?.destroy()?;
    events.swap_remove(MOST / 2).destroy()?;
    events.push(device.create_cpu_event(&fd)?);
    fails_with(device.create_cpu_event(&fd), Status::NO_MEMORY)
}
