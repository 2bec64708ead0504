// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creation, opening, and where the two values are (FEN-55 to FEN-66, FEN-109 to FEN-123, FEN-132).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, ExecutionState, Status, SyncFlags};
use selftests::call;
use selftests::gpu::{Gpu, PAGE};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use crate::t_native_fences::{monitored_value, signal, waited};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-109 FEN-113 the features that there are", features)
        .test(
            "FEN-60 FEN-116 FEN-117 a native fence and where it is",
            creation,
        )
        .test("FEN-61 private fences share pages, 64 bytes apart", packed)
        .test("FEN-62 a shareable fence has pages of its own", own_pages)
        .test("FEN-66 a place that is used again", used_again)
        .test("FEN-59 MonitoredValue is read-only for the GPU", read_only)
        .test("FEN-116 FEN-131 what is refused", refused)
        .test("FEN-2 a refused creation takes no handle", no_handle)
        .test("FEN-120 FEN-134 open by NT handle", opened)
        .test("FEN-133 an opening that may not signal", no_signal)
        .test("FEN-132 other calls do not open one", other_calls)
        .test(
            "FEN-8 the value cannot be written by the process",
            not_written,
        )
}

fn features() -> TestResult {
    let adapter = fixture::adapter()?;
    for feature in [
        DXGK_FEATURE_HWSCH,
        DXGK_FEATURE_USER_MODE_SUBMISSION,
        DXGK_FEATURE_NATIVE_FENCE,
    ] {
        let answer = adapter.feature(feature)?;
        ensure!(
            answer.enabled && answer.version == 1,
            "feature {feature}: {answer:?}"
        );
    }
    Ok(())
}

fn creation() -> TestResult {
    let gpu = Gpu::new()?;
    for value in [0, 1, 1 << 63, u64::MAX] {
        let fence = gpu.device().create_native_fence(value)?;
        ensure_eq!(fence.value(), value);
        ensure!(fence.gpu_address() % 8 == 0 && fence.gpu_address() != 0);
        ensure!(fence.monitored_address() % 8 == 0 && fence.monitored_address() != 0);
        // FEN-60: never in one page.
        ensure!(fence.gpu_address() / PAGE != fence.monitored_address() / PAGE);
        // FEN-55: nobody waits.
        ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    }
    Ok(())
}

fn packed() -> TestResult {
    let gpu = Gpu::new()?;
    let fences = (0..64)
        .map(|value| gpu.device().create_native_fence(value))
        .collect::<Result<Vec<_>, _>>()?;
    let mut places: Vec<u64> = Vec::new();
    for (value, fence) in (0..).zip(&fences) {
        // FEN-61: the same stride in both pages.
        let place = fence.gpu_address() % PAGE;
        ensure_eq!(place % 64, 0);
        ensure_eq!(place, fence.monitored_address() % PAGE);
        ensure_eq!(fence.value(), value);
        places.push(fence.gpu_address());
    }
    places.sort_unstable();
    places.dedup();
    ensure_eq!(places.len(), 64);
    let pages: std::collections::BTreeSet<u64> = places.iter().map(|at| at / PAGE).collect();
    ensure!(pages.len() <= 2, "64 fences in {} pages", pages.len());
    // None of them is a monitored fence's.
    let monitored = gpu.device().create_fence(0)?;
    ensure!(!pages.contains(&(monitored.gpu_address() / PAGE)));
    Ok(())
}

fn own_pages() -> TestResult {
    let gpu = Gpu::new()?;
    let one = gpu.device().create_shareable_native_fence(1)?;
    let other = gpu.device().create_shareable_native_fence(2)?;
    let pages = [
        one.gpu_address() / PAGE,
        one.monitored_address() / PAGE,
        other.gpu_address() / PAGE,
        other.monitored_address() / PAGE,
    ];
    for (number, page) in pages.iter().enumerate() {
        ensure!(!pages[..number].contains(page), "{pages:x?}");
    }
    Ok(())
}

/// Fences that go while MonitoredValue is not that of nobody, or CurrentValue is something.
fn used_again() -> TestResult {
    let gpu = Gpu::new()?;
    let mut places = std::collections::BTreeSet::new();
    let mut again = 0;
    for round in 0..8 {
        let fences = (0..16)
            .map(|value| gpu.device().create_native_fence(round + value))
            .collect::<Result<Vec<_>, _>>()?;
        for (value, fence) in (round..).zip(&fences) {
            ensure_eq!(fence.value(), value);
            ensure_eq!(monitored_value(&gpu, fence)?, u64::MAX);
            again += usize::from(!places.insert(fence.gpu_address()));
            let _never = waited(fence, 1000)?;
            ensure_eq!(monitored_value(&gpu, fence)?, 999);
            fence.signal(500)?;
        }
    }
    ensure!(again != 0, "no place was used again");
    Ok(())
}

fn read_only() -> TestResult {
    for flags in [
        SyncFlags::empty(),
        SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING,
    ] {
        let gpu = Gpu::new()?;
        let keeps = flags | SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;
        let fence = gpu.device().create_native_fence_with(1, keeps)?;
        let store = Pm4::new().write64(fence.monitored_address(), 0);
        gpu.fails(&store, ExecutionState::DmaPageFault)?;
        let other = Gpu::new()?;
        let another = other.device().create_native_fence(1)?;
        ensure_eq!(monitored_value(&other, &another)?, u64::MAX);
        ensure_eq!(fence.value(), 1);
    }
    Ok(())
}

/// A request that is granted.
fn granted(gpu: &Gpu) -> D3DKMT_CREATENATIVEFENCE {
    let mut arg = D3DKMT_CREATENATIVEFENCE::zeroed();
    arg.hDevice = gpu.device().handle().0;
    arg
}

fn refused() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let changes: [fn(&mut D3DKMT_CREATENATIVEFENCE); 14] = [
        |arg| arg.hDevice = 0,
        |arg| arg.hDevice = 0x1234_0000,
        |arg| arg.Flags = 1,
        |arg| arg.Reserved[27] = 1,
        |arg| arg.Info.Reserved[0] = 1,
        |arg| arg.Info.PhysicalAdapterIndex = 1,
        |arg| arg.Info.NativeFenceMapping.Reserved[31] = 1,
        // There is no third type.
        |arg| arg.Info.Type = u32::MAX,
        |arg| arg.Info.Type = 2,
        |arg| arg.Info.EngineAffinity = 2,
        // Without NtSecuritySharing there is no sharing.
        |arg| arg.Info.Flags = SyncFlags::SHARED.bits(),
        |arg| arg.Info.Flags = SyncFlags::NT_SECURITY_SHARING.bits(),
        |arg| arg.Info.Flags = (SyncFlags::NO_SIGNAL | SyncFlags::NO_WAIT).bits(),
        |arg| arg.Info.Flags = SyncFlags::SIGNAL_BY_KMD.bits(),
    ];
    for change in changes {
        let mut arg = granted(&gpu);
        change(&mut arg);
        call::refused(&raw, &mut arg, IP)?;
    }
    Ok(())
}

fn no_handle() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let first = gpu.device().create_native_fence(0)?;
    let mut arg = granted(&gpu);
    arg.Info.Type = 2;
    call::refused(&raw, &mut arg, IP)?;
    let second = gpu.device().create_native_fence(0)?;
    ensure_eq!(
        (second.handle().0 >> 6) & 0xff_ffff,
        ((first.handle().0 >> 6) & 0xff_ffff) + 1
    );
    Ok(())
}

fn opened() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::on(&gpu.device().adapter().create_device()?, 0)?;
    let fence = gpu.device().create_shareable_native_fence(5)?;
    let handle = fence.share(Access::ALL)?;
    let again = other
        .device()
        .open_native_fence(&handle, SyncFlags::empty())?;
    ensure_eq!(again.value(), 5);
    ensure_eq!(again.value_address(), fence.value_address());
    ensure_eq!(again.gpu_address(), fence.gpu_address());
    ensure_eq!(again.monitored_address(), fence.monitored_address());
    // FEN-122: one opening goes, the other one works.
    fence.destroy()?;
    other.run(&signal(&again, 6))?;
    ensure_eq!(again.value(), 6);
    again.wait(6)?;
    Ok(())
}

fn no_signal() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(5)?;
    let handle = fence.share(Access::ALL)?;
    drop(fence);
    let quiet = other
        .device()
        .open_native_fence(&handle, SyncFlags::NO_SIGNAL)?;
    fails_with(quiet.signal(6), Status::ACCESS_DENIED)?;
    other.fails(&signal(&quiet, 6), ExecutionState::DmaPageFault)
}

fn other_calls() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(5)?;
    let handle = fence.share(Access::ALL)?;
    fails_with(gpu.device().open_fence(&handle, SyncFlags::empty()), IP)?;
    // And the call for native ones opens nothing else.
    let monitored = gpu.device().create_shareable_fence(5)?;
    let handle = monitored.share(Access::ALL)?;
    fails_with(
        gpu.device().open_native_fence(&handle, SyncFlags::empty()),
        IP,
    )?;
    Ok(())
}

fn not_written() -> TestResult {
    use rustix::mm::{mprotect, MprotectFlags};

    let gpu = Gpu::new()?;
    for flags in [
        SyncFlags::empty(),
        SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING,
    ] {
        let fence = gpu.device().create_native_fence_with(1, flags)?;
        let page = (fence.value_address() as usize & !0xfff) as *mut core::ffi::c_void;
        // SAFETY: must be refused; if not, the page only becomes writable.
        let writable = unsafe { mprotect(page, 4096, MprotectFlags::READ | MprotectFlags::WRITE) };
        ensure!(writable.is_err());
    }
    Ok(())
}
