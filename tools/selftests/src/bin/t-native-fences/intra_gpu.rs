// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences that packets of one GPU alone use (FEN-130).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, EventFd, ExecutionState, IntraGpuFence, SignalFlags, Status, SyncFlags};
use selftests::child::in_child;
use selftests::gpu::{one, Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{call, ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use crate::t_native_fences::Counts;

const IP: Status = Status::INVALID_PARAMETER;
const SHARED: SyncFlags = SyncFlags::SHARED.union(SyncFlags::NT_SECURITY_SHARING);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-130 FEN-57 an INTRA_GPU fence and where it is",
            creation,
        )
        .test("FEN-130 what is refused at the creation", refused)
        .test("FEN-130 an adapter that does not offer it", not_offered)
        .test("FEN-130 packets signal it and wait for it", packets)
        .test("FEN-130 it never interrupts", no_interrupts)
        .test("FEN-130 calls that wait or signal are refused", calls)
        .test("FEN-130 FEN-62 FEN-120 it is shared", shared)
        .test("FEN-130 it is not opened elsewhere", not_elsewhere)
        .test("FEN-130 FEN-66 a place that is used again", used_again)
}

/// CurrentValue and MonitoredValue, as the GPU reads them: no process may.
pub(crate) fn values(gpu: &Gpu, fence: &IntraGpuFence) -> TestResult<(u64, u64)> {
    let seen = gpu.buffer(PAGE)?;
    let load = Pm4::new().copy(seen.at(0), fence.gpu_address(), 8).copy(
        seen.at(8),
        fence.monitored_address(),
        8,
    );
    gpu.run(&load)?;
    Ok((seen.get64(0), seen.get64(8)))
}

fn signal(fence: &IntraGpuFence, value: u64) -> Pm4 {
    Pm4::new().signal_native(fence.gpu_address(), value)
}

fn wait(fence: &IntraGpuFence, value: u64) -> Pm4 {
    Pm4::new().wait_native(fence.gpu_address(), value)
}

/// What this process has mapped of the module.
fn mapped() -> TestResult<Vec<String>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let of_module = |line: &&str| line.contains("dxg");
    Ok(maps.lines().filter(of_module).map(str::to_owned).collect())
}

fn argument(gpu: &Gpu) -> D3DKMT_CREATENATIVEFENCE {
    let mut arg = D3DKMT_CREATENATIVEFENCE::zeroed();
    arg.hDevice = gpu.device().handle().0;
    arg.Info.Type = D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU;
    arg
}

fn creation() -> TestResult {
    let raw = fixture::raw()?;
    for flags in [SyncFlags::empty(), SHARED] {
        let gpu = Gpu::new()?;
        let before = mapped()?;
        let fence = gpu.device().create_intra_gpu_fence(flags)?;
        // FEN-57: the process has nothing more in its memory.
        ensure_eq!(mapped()?, before);
        ensure!(fence.gpu_address() % 8 == 0 && fence.gpu_address() != 0);
        ensure!(fence.monitored_address() % 8 == 0 && fence.monitored_address() != 0);
        ensure!(fence.gpu_address() / PAGE != fence.monitored_address() / PAGE);
        ensure_eq!(values(&gpu, &fence)?, (0, u64::MAX));
        // Fences of the other type are in other pages, which the process sees.
        let usual = gpu.device().create_native_fence(0)?;
        ensure!(usual.gpu_address() / PAGE != fence.gpu_address() / PAGE);
        let mut arg = argument(&gpu);
        arg.Info.Flags = flags.bits();
        call::succeeds(&raw, &mut arg)?;
        ensure_eq!(arg.Info.NativeFenceMapping.CurrentValueCpuVa, 0);
        // FEN-57: packets only read MonitoredValue.
        let store = Pm4::new().write64(fence.monitored_address(), 0);
        gpu.fails(&store, ExecutionState::DmaPageFault)?;
    }
    Ok(())
}

fn refused() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let changes: [fn(&mut D3DKMT_CREATENATIVEFENCE); 5] = [
        |arg| arg.Info.InitialFenceValue = 1,
        |arg| arg.Info.InitialFenceValue = u64::MAX,
        |arg| arg.Info.Flags = (SHARED | SyncFlags::CROSS_ADAPTER).bits(),
        |arg| arg.Info.Flags = SyncFlags::SHARED.bits(),
        |arg| arg.Info.EngineAffinity = 2,
    ];
    for change in changes {
        let mut arg = argument(&gpu);
        change(&mut arg);
        call::refused(&raw, &mut arg, IP)?;
    }
    call::succeeds(&raw, &mut argument(&gpu))
}

fn not_offered() -> TestResult {
    for (attribute, has_native_fences) in [("intra_gpu_fences", true), ("native_fences", false)] {
        let adapter = SoftAdapter::new(&format!("no-{attribute}"))?;
        adapter.set(attribute, "0")?;
        adapter.set("enabled", "1")?;
        let device = adapter.device()?;
        fails_with(device.create_intra_gpu_fence(SyncFlags::empty()), IP)?;
        ensure_eq!(device.create_native_fence(0).is_ok(), has_native_fences);
    }
    Ok(())
}

fn packets() -> TestResult {
    let one = Gpu::new()?;
    let other = Gpu::on(one.device(), 1)?;
    for flags in [SyncFlags::empty(), SHARED] {
        let fence = one.device().create_intra_gpu_fence(flags)?;
        // They go to and fro, each with what the other one has done.
        let mut here = Pm4::new();
        let mut there = Pm4::new();
        for turn in 0..32 {
            here = here
                .append(&signal(&fence, 2 * turn + 1))
                .append(&wait(&fence, 2 * turn + 2));
            there = there
                .append(&wait(&fence, 2 * turn + 1))
                .append(&signal(&fence, 2 * turn + 2));
        }
        let (here, there) = (one.commands(&here)?, other.commands(&there)?);
        one.submit(&here)?;
        let mark = one.mark()?;
        ensure!(!one.is_done(mark));
        other.submit(&there)?;
        one.until(mark)?;
        other.finish()?;
        ensure_eq!(values(&one, &fence)?, (64, u64::MAX));
    }
    Ok(())
}

fn no_interrupts() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_intra_gpu_fence(SyncFlags::empty())?;
    let before = Counts::of(&gpu)?;
    let mut signals = Pm4::new();
    for value in (1..200).chain([u64::MAX - 1, u64::MAX]) {
        signals = signals.append(&signal(&fence, value));
    }
    gpu.run(&signals)?;
    let after = Counts::of(&gpu)?;
    ensure_eq!(after.interrupts(), before.interrupts());
    ensure_eq!(after.monitored_updates(), before.monitored_updates());
    ensure_eq!(values(&gpu, &fence)?, (u64::MAX, u64::MAX));
    Ok(())
}

fn calls() -> TestResult {
    let gpu = Gpu::new()?;
    let usual = gpu.device().create_native_fence(1)?;
    let event = EventFd::new()?;
    for flags in [SyncFlags::empty(), SHARED] {
        let fence = gpu.device().create_intra_gpu_fence(flags)?;
        let (device, context) = (gpu.device(), gpu.context());
        gpu.run(&signal(&fence, 5))?;
        let before = Counts::of(&gpu)?;
        // A value that is there, one that is not, and a list with a fence that would do.
        for value in [5, 9] {
            let alone = one(&fence, value);
            let second = one(&usual, 1).with(&fence, value);
            for list in [&alone, &second] {
                fails_with(device.wait_all(list), IP)?;
                fails_with(device.wait_any(list), IP)?;
                fails_with(device.wait_any_async(list, &event), IP)?;
                fails_with(device.wait_all_async(list, &event), IP)?;
                fails_with(context.wait(list), IP)?;
                fails_with(device.signal(list, SignalFlags::empty()), IP)?;
                fails_with(context.signal(list), IP)?;
            }
            fails_with(fence.point(value), IP)?;
            fails_with(fence.stream(value), IP)?;
            fails_with(fence.signal_on_event(value, &event, false), IP)?;
            fails_with(device.create_sync_file(&fence, value), IP)?;
        }
        // Nothing has come of it.
        ensure_eq!(values(&gpu, &fence)?, (5, u64::MAX));
        ensure_eq!(usual.value(), 1);
        let after = Counts::of(&gpu)?;
        ensure_eq!(after.interrupts(), before.interrupts());
        ensure_eq!(after.get("waits-added"), before.get("waits-added"));
        gpu.run(&signal(&fence, 6).append(&wait(&fence, 6)))?;
    }
    Ok(())
}

fn shared() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_intra_gpu_fence(SHARED)?;
    let handle = fence.share(Access::ALL)?;
    let again = gpu
        .device()
        .adapter()
        .create_device()?
        .open_intra_gpu_fence(&handle, SyncFlags::empty())?;
    // FEN-120: one place in a process.
    ensure_eq!(again.gpu_address(), fence.gpu_address());
    ensure_eq!(again.monitored_address(), fence.monitored_address());
    let waits = gpu.commands(&wait(&fence, 3).append(&signal(&fence, 4)))?;
    gpu.submit(&waits)?;
    let mark = gpu.mark()?;
    in_child(|| {
        let gpu = Gpu::new()?;
        let before = mapped()?;
        let fence = gpu
            .device()
            .open_intra_gpu_fence(&handle, SyncFlags::empty())?;
        ensure_eq!(mapped()?, before);
        fails_with(
            gpu.device().signal(&one(&fence, 3), SignalFlags::empty()),
            IP,
        )?;
        gpu.run(&signal(&fence, 3).append(&wait(&fence, 4)))?;
        ensure_eq!(values(&gpu, &fence)?, (4, u64::MAX));
        Ok(())
    })?;
    gpu.until(mark)?;
    // One that may not be signalled is not.
    let quiet = Gpu::new()?;
    fence.destroy()?;
    again.destroy()?;
    let fence = quiet
        .device()
        .open_intra_gpu_fence(&handle, SyncFlags::NO_SIGNAL)?;
    ensure_eq!(values(&quiet, &fence)?, (4, u64::MAX));
    quiet.fails(&signal(&fence, 5), ExecutionState::DmaPageFault)
}

fn not_elsewhere() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let fence = gpu.device().create_intra_gpu_fence(SHARED)?;
    let handle = fence.share(Access::ALL)?;
    // As another kind of object, on the same adapter.
    let open = gpu.device().open_sync_object(&handle, SyncFlags::empty());
    fails_with(open, IP)?;
    // Without a device.
    let mut arg = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE::zeroed();
    arg.hNtHandle = {
        use std::os::fd::{AsFd, AsRawFd};
        u64::try_from(handle.as_fd().as_raw_fd()).unwrap_or(u64::MAX)
    };
    call::refused(&raw, &mut arg, IP)?;
    // On other adapters, with such fences and without.
    for native_fences in ["1", "0"] {
        let adapter = SoftAdapter::new(&format!("elsewhere-{native_fences}"))?;
        adapter.set("native_fences", native_fences)?;
        adapter.set("enabled", "1")?;
        let device = adapter.device()?;
        let open = device.open_sync_object(&handle, SyncFlags::empty());
        fails_with(open, IP)?;
        let open = device.open_intra_gpu_fence(&handle, SyncFlags::empty());
        ensure!(open.is_err());
    }
    Ok(())
}

fn used_again() -> TestResult {
    let gpu = Gpu::new()?;
    // The page stays as long as a fence is in it.
    let keeps = gpu.device().create_intra_gpu_fence(SyncFlags::empty())?;
    let page = |address: u64| address / PAGE;
    for _ in 0..4 {
        let fences = (0..32)
            .map(|_| gpu.device().create_intra_gpu_fence(SyncFlags::empty()))
            .collect::<Result<Vec<_>, _>>()?;
        for fence in &fences {
            ensure_eq!(fence.gpu_address() % 64, 0);
            ensure_eq!(fence.gpu_address() % PAGE, fence.monitored_address() % PAGE);
            // 128 of them, and a page has less room.
            ensure_eq!(page(fence.gpu_address()), page(keeps.gpu_address()));
        }
        ensure_eq!(values(&gpu, &fences[31])?, (0, u64::MAX));
        gpu.run(&signal(&fences[31], 7).append(&signal(&fences[0], 8)))?;
        ensure_eq!(values(&gpu, &fences[0])?, (8, u64::MAX));
        ensure_eq!(values(&gpu, &fences[1])?, (0, u64::MAX));
    }
    Ok(())
}
