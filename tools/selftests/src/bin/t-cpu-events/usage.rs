// SPDX-License-Identifier: MIT OR Apache-2.0
//! The usage escape (cpu-events.md section 3), and requests for records.

use std::mem::offset_of;

use opendxg::raw::Argument;
use opendxg::soft_gpu::EventClass;
use opendxg::uapi::*;
use opendxg::{Status, SyncKind};
use selftests::call::{refused, succeeds};
use selftests::gpu::Gpu;
use selftests::memory::Page;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::{soft_enabled, Told};

const IP: Status = Status::INVALID_PARAMETER;
const KNOWN: u32 = D3DDDI_ESCAPEFLAGS_DriverKnownEscape;
const AT_ONCE: u32 = D3DDDI_ESCAPEFLAGS_NoAdapterSynchronization;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "CPU-12 CPU-13 CPU-14 the calls of compute-runtime",
            known_client,
        )
        .test("CPU-15 what is wrong, and changes nothing", wrong)
        .test("CPU-16 without DriverKnownEscape it is data", not_known)
        .test("CPU-18 CPU-42 usages that are refused", usages)
        .test("CPU-17 an adapter that sleeps", asleep)
        .test("CPU-44 requests for records that are refused", requests)
        .test(
            "CPU-18 CPU-44 nothing is done that cannot be answered",
            unanswered,
        )
        .test("CPU-11 CPU-12 CPU-15 the 48 bytes and the 32", layout)
}

/// The 48 bytes, and the escape about them.
fn escape(told: &Told, bytes: &mut [u8]) -> D3DKMT_ESCAPE {
    let mut arg = D3DKMT_ESCAPE::zeroed();
    arg.hAdapter = told.event.device().adapter().handle().0;
    arg.Flags = KNOWN | AT_ONCE;
    arg.pPrivateDriverData = bytes.as_mut_ptr() as u64;
    arg.PrivateDriverDataSize = bytes.len() as u32;
    arg
}

fn bytes(kind: u32, object: u32, class: u32) -> Vec<u8> {
    let words = [
        kind,
        object,
        0xdead_beef,
        0xdead_beef,
        class,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn of(told: &Told) -> Vec<u8> {
    bytes(2, told.event.object().handle().0, 1)
}

/// Created for an event, hDevice 0 in the escape, the name read back, waited for, destroyed.
fn known_client() -> TestResult {
    let raw = fixture::raw()?;
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, [0; 8])?;
    let mut data = of(&told);
    succeeds(&raw, &mut escape(&told, &mut data))?;
    ensure_eq!(data[8..16], told.name.to_ne_bytes());
    ensure_eq!(data[..8], of(&told)[..8]);
    ensure_eq!(data[16..], of(&told)[16..]);
    // With the device that it was made on.
    let mut arg = escape(&told, &mut data);
    arg.hDevice = gpu.device().handle().0;
    succeeds(&raw, &mut arg)
}

fn wrong() -> TestResult {
    let raw = fixture::raw()?;
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let told = Told::new(&gpu, [0; 8])?;
    let fence = gpu.device().create_fence(0)?;
    let good = of(&told);
    let with = |kind, object| bytes(kind, object, 1);
    let object = told.event.object().handle().0;
    let older = gpu.device().create_sync_object(
        SyncKind::CpuNotification {
            event: Some(&told.fd),
        },
        opendxg::SyncFlags::empty(),
    )?;
    for mut data in [
        with(3, object),
        with(5, object),
        with(u32::MAX, object),
        with(2, 0),
        with(2, u32::MAX),
        with(2, fence.handle().0),
        with(2, older.handle().0),
        with(2, gpu.device().handle().0),
    ] {
        let before = data.clone();
        refused(&raw, &mut escape(&told, &mut data), IP)?;
        ensure_eq!(data, before);
    }
    let changes: [fn(&mut D3DKMT_ESCAPE, &Gpu); 8] = [
        |arg, _| arg.hContext = 1,
        |arg, other| arg.hDevice = other.device().handle().0,
        |arg, _| arg.hDevice = 1,
        |arg, _| arg.hAdapter = 0,
        |arg, _| arg.Flags |= D3DDDI_ESCAPEFLAGS_HardwareAccess,
        |arg, _| arg.Flags |= D3DDDI_ESCAPEFLAGS_VirtualMachineData,
        |arg, _| arg.Flags |= 1 << 31,
        |arg, _| arg.PrivateDriverDataSize -= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut data = good.clone();
        let mut arg = escape(&told, &mut data);
        change(&mut arg, &other);
        refused(&raw, &mut arg, IP).map_err(|failure| format!("change {number}: {failure}"))?;
        ensure_eq!(data, good, "change {number}");
    }
    Ok(())
}

fn not_known() -> TestResult {
    let raw = fixture::raw()?;
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, [0; 8])?;
    let mut data = of(&told);
    let mut arg = escape(&told, &mut data);
    arg.Flags = 0;
    refused(&raw, &mut arg, IP)?;
    ensure_eq!(data, of(&told));
    Ok(())
}

fn usages() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(7))?;
    let traps = || gpu.run(&opendxg::pm4::Pm4::new().trap(1, 2));
    // Words that its classes do not have: it keeps the usage that it had.
    for word in 4..8 {
        let mut usage = EventClass::Trap.usage(8);
        usage[word] = 1;
        fails_with(told.event.set_usage(usage), IP)?;
    }
    traps()?;
    told.wait()?;
    let (records, _) = told.event.take_records(told.name)?;
    ensure_eq!(records[0].cookie, 7);
    // Others are stored, and never signalled.
    for class in [0, 8, 0x1000, 0x8000_0000] {
        told.event.set_usage([class, 1, 2, 3, 4, 5, 6, 7])?;
        traps()?;
    }
    // Another node.
    told.event
        .set_usage([EventClass::Trap as u32, 2, 0, 0, 0, 0, 0, 0])?;
    traps()?;
    let second = Told::new(&gpu, EventClass::Any.usage(0))?;
    traps()?;
    second.wait()?;
    told.is_silent()
}

/// The escape with NoAdapterSynchronization leaves it asleep, the one without wakes it up.
fn asleep() -> TestResult {
    let raw = fixture::raw()?;
    let soft = soft_enabled("cpu-events")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    let told = Told::new(&gpu, [0; 8])?;
    soft.set("power_state", "D3")?;
    told.event.set_usage([0; 8])?;
    ensure_eq!(soft.get("power_state")?.trim(), "D3");
    let mut data = of(&told);
    let mut arg = escape(&told, &mut data);
    arg.Flags = KNOWN;
    succeeds(&raw, &mut arg)?;
    ensure_eq!(soft.get("power_state")?.trim(), "D0");
    Ok(())
}

fn requests() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Any.usage(0))?;
    ensure_eq!(told.event.take_records(told.name)?, (vec![], 0));
    for name in [0, 1, told.name + 1, told.name ^ (1 << 32), u64::MAX] {
        fails_with(told.event.take_records(name), IP)?;
    }
    let foreign = Told::new(&other, EventClass::Any.usage(0))?;
    // Those of another device.
    fails_with(told.event.take_records(foreign.name), IP)?;
    let good = {
        let mut bytes = vec![0; 792];
        bytes[..4].copy_from_slice(b"ODXR");
        bytes[4] = 1;
        bytes[8..16].copy_from_slice(&told.name.to_le_bytes());
        bytes
    };
    gpu.device().private_escape(&mut good.clone())?;
    // No device.
    fails_with(gpu.device().adapter().private_escape(&mut good.clone()), IP)?;
    for at in [4, 5, 16, 20, 24, 791] {
        let mut bad = good.clone();
        bad[at] += 1;
        fails_with(gpu.device().private_escape(&mut bad), IP)?;
    }
    fails_with(gpu.device().private_escape(&mut good[..791].to_vec()), IP)?;
    ensure!(told.event.take_records(told.name)?.0.is_empty());
    Ok(())
}

/// The buffer can be read and not written: the records stay, and so does the usage.
fn unanswered() -> TestResult {
    let raw = fixture::raw()?;
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(7))?;
    gpu.run(&opendxg::pm4::Pm4::new().trap(1, 2))?;
    told.wait()?;
    let mut request = vec![0; 792];
    request[..4].copy_from_slice(b"ODXR");
    request[4] = 1;
    request[8..16].copy_from_slice(&told.name.to_le_bytes());
    let page = Page::beginning_with(&request)?.read_only()?;
    let mut arg = escape(&told, &mut request);
    arg.hDevice = gpu.device().handle().0;
    arg.Flags = 0;
    arg.pPrivateDriverData = page.address();
    refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    ensure_eq!(told.one()?.detail, 2);
    // With another cookie.
    let mut usage = of(&told);
    usage[28] = 8;
    let page = Page::beginning_with(&usage)?.read_only()?;
    let mut arg = escape(&told, &mut usage);
    arg.pPrivateDriverData = page.address();
    refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    gpu.run(&opendxg::pm4::Pm4::new().trap(1, 3))?;
    told.wait()?;
    ensure_eq!(told.one()?.cookie, 7);
    Ok(())
}

/// Where everything is, and that each word is looked at.
fn layout() -> TestResult {
    type Usage = D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE;
    ensure_eq!((size_of::<D3DKMT_ESCAPE>(), size_of::<Usage>()), (32, 48));
    ensure_eq!(
        [
            offset_of!(D3DKMT_ESCAPE, hAdapter),
            offset_of!(D3DKMT_ESCAPE, hDevice),
            offset_of!(D3DKMT_ESCAPE, Type),
            offset_of!(D3DKMT_ESCAPE, Flags),
            offset_of!(D3DKMT_ESCAPE, pPrivateDriverData),
            offset_of!(D3DKMT_ESCAPE, PrivateDriverDataSize),
            offset_of!(D3DKMT_ESCAPE, hContext),
        ],
        [0, 4, 8, 12, 16, 24, 28]
    );
    ensure_eq!(
        [
            offset_of!(Usage, EscapeType),
            offset_of!(Usage, hSyncObject),
            offset_of!(Usage, hKmdCpuEvent),
            offset_of!(Usage, Usage),
        ],
        [0, 4, 8, 16]
    );
    let raw = fixture::raw()?;
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, [0; 8])?;
    // The event itself is the only word that may be anything (CPU-12).
    for byte in 0..48 {
        let mut data = of(&told);
        data[byte] = !data[byte];
        let mut arg = escape(&told, &mut data);
        let place = |failure| format!("byte {byte}: {failure}");
        match byte {
            0..8 => refused(&raw, &mut arg, IP).map_err(place)?,
            // Nodes, a queue, and what is reserved.
            20..28 | 32..48 => refused(&raw, &mut arg, IP).map_err(place)?,
            _ => succeeds(&raw, &mut arg).map_err(place)?,
        }
        if (8..20).contains(&byte) || (28..32).contains(&byte) {
            ensure_eq!(data[8..16], told.name.to_ne_bytes(), "byte {byte}");
        }
    }
    Ok(())
}
