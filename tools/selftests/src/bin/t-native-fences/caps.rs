// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a GPU may want of its native fences (NATIVE_FENCE_CAPS): how far they are from each other
//! in a page, and between which addresses they are.

use std::collections::BTreeSet;

use opendxg::{Access, Device, GpuReserve, NativeFence, Status, SyncFlags};
use selftests::child::in_child;
use selftests::gpu::{Gpu, BLOCK, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_native_fences::{is_told, monitored_value, signal, wait, waited};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let suite = [8, 16, 32, 128, 1024, 4096]
        .into_iter()
        .fold(suite, |suite, stride| {
            suite.test(
                format!("FEN-61 GPU-113 private fences {stride} bytes apart"),
                move || apart(stride),
            )
        });
    [
        // The first addresses that there are, some in the middle, the last ones.
        ("vram4", 0x1_0000, 0x20_0000),
        ("vram4", 0x7f_1234_5000, 0x7f_1235_5000),
        ("vram4", 0xffff_ff00_0000, 0),
        ("doc2", 0, 0x80_0000),
        ("doc2", 0x8000_0000, 0x8010_0000),
        ("uma", 0x4000_0000, 0x8000_0000),
    ]
    .into_iter()
    .fold(suite, |suite, (profile, minimum, maximum)| {
        suite.test(
            format!("FEN-65 fences are from {minimum:#x} to {maximum:#x}, {profile}"),
            move || bounded(profile, minimum, maximum),
        )
    })
    .test("FEN-65 no more fences than addresses", full)
}

/// What native fences do, on a device.
pub(crate) fn works(device: &Device, fence: &NativeFence) -> TestResult {
    let gpu = Gpu::on(device, 0)?;
    let other = Gpu::on(device, 1)?;
    let event = waited(fence, fence.value() + 2)?;
    ensure_eq!(monitored_value(&gpu, fence)?, fence.value() + 1);
    let next = fence.value() + 1;
    let commands = gpu.commands(&wait(fence, next).append(&signal(fence, next + 1)))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    other.run(&signal(fence, next))?;
    gpu.until(mark)?;
    is_told(&event)?;
    ensure_eq!(fence.value(), next + 1);
    ensure_eq!(monitored_value(&gpu, fence)?, u64::MAX);
    fence.signal(next + 2)?;
    Ok(())
}

fn apart(stride: u64) -> TestResult {
    let adapter = SoftAdapter::new(&format!("stride-{stride}"))?;
    adapter.set("fence_stride", &stride.to_string())?;
    adapter.set("enabled", "1")?;
    let device = adapter.device()?;
    let count = 2 * (PAGE / stride).min(64);
    let fences = (0..count)
        .map(|value| device.create_native_fence(value))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut places, mut pages) = (BTreeSet::new(), BTreeSet::new());
    for (value, fence) in (0..).zip(&fences) {
        let place = fence.gpu_address() % PAGE;
        ensure_eq!(place % stride, 0);
        ensure_eq!(fence.monitored_address() % PAGE, place);
        ensure_eq!(fence.value_address() as u64 % PAGE, place);
        ensure_eq!(fence.value(), value);
        ensure!(places.insert(fence.gpu_address()));
        pages.insert(fence.gpu_address() / PAGE);
    }
    ensure_eq!(pages.len(), 2);
    for fence in fences.iter().step_by(fences.len() / 2) {
        works(&device, fence)?;
    }
    // FEN-66: a place that is used again.
    drop(fences);
    for value in 0..count {
        let fence = device.create_native_fence(value)?;
        ensure_eq!(fence.value(), value);
        ensure!(pages.contains(&(fence.gpu_address() / PAGE)));
    }
    // Those of another adapter are as they always are.
    let other = SoftAdapter::enabled(&format!("stride-usual-{stride}"))?;
    let device = other.device()?;
    let fences = (0..65)
        .map(|value| device.create_native_fence(value))
        .collect::<Result<Vec<_>, _>>()?;
    let places = fences.iter().map(|fence| fence.gpu_address() % PAGE);
    ensure!(places.into_iter().all(|place| place % 64 == 0));
    Ok(())
}

/// An adapter whose native fences are between these addresses.
fn within(profile: &str, minimum: u64, maximum: u64) -> TestResult<SoftAdapter> {
    let adapter = SoftAdapter::new(&format!("fences-{profile}-{minimum}"))?;
    adapter.set("local_memory", "0")?;
    adapter.set("profile", profile)?;
    adapter.set("fence_addresses", &format!("{minimum}-{maximum}"))?;
    ensure_eq!(
        adapter.get("fence_addresses")?,
        format!("{minimum}-{maximum}")
    );
    adapter.set("enabled", "1")?;
    Ok(adapter)
}

fn bounded(profile: &str, minimum: u64, maximum: u64) -> TestResult {
    let adapter = within(profile, minimum, maximum)?;
    let device = adapter.device()?;
    let end = if maximum == 0 { u64::MAX } else { maximum };
    let check = |fence: &NativeFence| -> TestResult {
        for address in [fence.gpu_address(), fence.monitored_address()] {
            ensure!(
                address >= minimum && address < end && address != 0,
                "{address:#x}"
            );
        }
        Ok(())
    };
    let shared = device.create_shareable_native_fence(5)?;
    let handle = shared.share(Access::ALL)?;
    for fence in [&device.create_native_fence(7)?, &shared] {
        check(fence)?;
        works(&device, fence)?;
    }
    // Another process, and the progress fence of a queue.
    in_child(|| {
        let device = adapter.device()?;
        let fence = device.open_native_fence(&handle, SyncFlags::empty())?;
        check(&fence)?;
        works(&device, &fence)
    })?;
    let context = device.create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let progress = queue.progress().gpu_address();
    ensure!(queue.has_native_progress() && progress >= minimum && progress < end);
    // Clients get other addresses, and not these.
    let gpu = Gpu::on(&device, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    ensure!(buffer.at(0) < minimum || buffer.at(0) >= end);
    let taken = shared.gpu_address() & !(BLOCK - 1);
    let reserve = GpuReserve {
        base: taken,
        size: BLOCK,
        ..GpuReserve::default()
    };
    fails_with(gpu.paging().reserve(&reserve), Status::INVALID_PARAMETER)
}

/// Two pages, one of CurrentValue and one of MonitoredValue, beside one of monitored fences.
fn full() -> TestResult {
    let adapter = within("vram4", 0x10_0000, 0x10_3000)?;
    let device = adapter.device()?;
    let _monitored = Gpu::on(&device, 0)?;
    let fences = (0..64)
        .map(|value| device.create_native_fence(value))
        .collect::<Result<Vec<_>, _>>()?;
    fails_with(device.create_native_fence(64), Status::NO_MEMORY)?;
    fails_with(device.create_shareable_native_fence(0), Status::NO_MEMORY)?;
    for (value, fence) in (0..).zip(&fences) {
        ensure_eq!(fence.value(), value);
    }
    works(&device, &fences[63])?;
    drop(fences);
    works(&device, &device.create_native_fence(3)?)
}
