// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flags each type accepts at creation: every combination, against the text of the
//! specification.

use opendxg::raw::Raw;
use opendxg::uapi::*;
use opendxg::{EventFd, Status, SyncFlags};
use selftests::call::{refused, succeeds};
use selftests::poison::{poisoned, POISON};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};
use std::os::fd::AsRawFd;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-3 FEN-4 FEN-135 CPU-1 CPU-4 every combination of flags and types",
            matrix,
        )
        .test(
            "FEN-3 every reserved flag bit is refused for every type",
            reserved,
        )
        .test("FEN-49 type 0 and types above 6 are refused", types)
}

/// What FEN-3, FEN-4, FEN-135, CPU-1, CPU-4, CPU-6 and section 2.6 say about a creation with
/// otherwise good arguments.
fn expected(kind: u32, flags: SyncFlags) -> Status {
    let has = |flag: SyncFlags| flags.intersects(flag);
    let fence = kind == D3DDDI_MONITORED_FENCE || kind == D3DDDI_PERIODIC_MONITORED_FENCE;
    let notification = kind == D3DDDI_CPU_NOTIFICATION;
    let nt = has(SyncFlags::NT_SECURITY_SHARING);
    let shared = has(SyncFlags::SHARED);
    let of_fences = SyncFlags::TOP_OF_PIPELINE
        | SyncFlags::NO_SIGNAL
        | SyncFlags::NO_WAIT
        | SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;

    let refusals = [
        nt && !shared,
        flags.contains(SyncFlags::NO_SIGNAL | SyncFlags::NO_WAIT),
        has(SyncFlags::SIGNAL_BY_KMD) && !(notification && flags == SyncFlags::SIGNAL_BY_KMD),
        has(of_fences) && !fence,
        shared && !nt && fence,
        has(SyncFlags::CROSS_ADAPTER) && !(fence && nt),
        // Nobody could open it (RES-33).
        shared && notification,
    ];
    if refusals.contains(&true) {
        Status::INVALID_PARAMETER
    } else if kind == D3DDDI_PERIODIC_MONITORED_FENCE {
        // No video present target (section 2.6).
        Status::NOT_SUPPORTED
    } else {
        Status::SUCCESS
    }
}

/// A creation with good arguments for its type and poisoned outputs.
fn creation(
    device: &opendxg::Device,
    event: &EventFd,
    kind: u32,
    flags: u32,
) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
    let mut arg: D3DKMT_CREATESYNCHRONIZATIONOBJECT2 = poisoned();
    arg.hDevice = device.handle().0;
    arg.Info.Type = kind;
    arg.Info.Flags = flags;
    let info = &mut arg.Info.__bindgen_anon_1;
    match kind {
        D3DDDI_SYNCHRONIZATION_MUTEX => info.SynchronizationMutex.InitialState = 1,
        D3DDDI_SEMAPHORE => {
            info.Semaphore.MaxCount = 5;
            info.Semaphore.InitialCount = 2;
        }
        D3DDDI_FENCE => info.Fence.FenceValue = 7,
        D3DDDI_CPU_NOTIFICATION => info.CPUNotification.Event = event.as_raw_fd() as u64,
        D3DDDI_MONITORED_FENCE => {
            info.MonitoredFence.InitialFenceValue = 7;
            info.MonitoredFence.EngineAffinity = 0;
        }
        _ => {
            info.PeriodicMonitoredFence.hAdapter = device.adapter().handle().0;
            info.PeriodicMonitoredFence.VidPnTargetId = 0;
            info.PeriodicMonitoredFence.EngineAffinity = 0;
        }
    }
    arg
}

fn matrix() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let event = EventFd::new()?;
    let mut next = device.create_fence(0)?.handle().0 + 0x40;
    for kind in D3DDDI_SYNCHRONIZATION_MUTEX..=D3DDDI_PERIODIC_MONITORED_FENCE {
        for bits in 0..1 << 9 {
            let flags = SyncFlags::from_bits_retain(bits);
            let mut arg = creation(&device, &event, kind, bits);
            match expected(kind, flags) {
                Status::SUCCESS => {
                    succeeds(&raw, &mut arg)
                        .map_err(|failure| format!("type {kind}, {flags:?}: {failure}"))?;
                    // Refused ones in between consumed no handle (FEN-2).
                    ensure_eq!(arg.hSyncObject, next, "type {kind}, {flags:?}: handle");
                    next += 0x40;
                    check_shared_handle(&arg, kind, flags)?;
                    destroy(&raw, arg.hSyncObject)?;
                }
                status => refused(&raw, &mut arg, status)
                    .map_err(|failure| format!("type {kind}, {flags:?}: {failure}"))?,
            }
        }
    }
    Ok(())
}

/// RES-9: a global handle if Shared alone, 0 if NtSecuritySharing, untouched otherwise.
fn check_shared_handle(
    arg: &D3DKMT_CREATESYNCHRONIZATIONOBJECT2,
    kind: u32,
    flags: SyncFlags,
) -> TestResult {
    let handle = arg.Info.SharedHandle;
    if flags.contains(SyncFlags::NT_SECURITY_SHARING) {
        ensure_eq!(handle, 0, "type {kind}, {flags:?}");
    } else if flags.contains(SyncFlags::SHARED) {
        let is_global = handle & 0xc000_0000 != 0 && handle & 0x3f == 2;
        ensure!(
            is_global,
            "type {kind}, {flags:?}: global handle {handle:#x}"
        );
    } else {
        ensure_eq!(handle, POISON, "type {kind}, {flags:?}: shared handle");
    }
    Ok(())
}

fn destroy(raw: &Raw, handle: u32) -> TestResult {
    succeeds(
        raw,
        &mut D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: handle,
        },
    )
}

fn reserved() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for kind in D3DDDI_SYNCHRONIZATION_MUTEX..=D3DDDI_PERIODIC_MONITORED_FENCE {
        for bit in 9..32 {
            let mut arg = creation(&device, &event, kind, 1 << bit);
            refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        }
    }
    Ok(())
}

fn types() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for kind in [0, 7, 8, 9, POISON, 1 << 31, u32::MAX] {
        let mut arg = creation(&device, &event, kind, 0);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}
