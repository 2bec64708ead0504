// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making monitored fences.

use opendxg::uapi::*;
use opendxg::{Status, SyncFlags};
use selftests::call::{refused, succeeds};
use selftests::poison::{bytes, poisoned};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-1 the initial value can be read at once, whatever it is",
            initial_values,
        )
        .test("FEN-1 RES-107 exactly the outputs are written", outputs)
        .test(
            "FEN-5 the engine affinity names physical adapters that exist",
            affinity,
        )
        .test(
            "FEN-6 without GPU access the GPU address is 0",
            no_gpu_access,
        )
        .test("FEN-13 shareable fences never share a page", own_pages)
}

fn initial_values() -> TestResult {
    let device = fixture::device()?;
    for value in [0, 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        for flags in [
            SyncFlags::empty(),
            SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING,
        ] {
            let fence = device.create_fence_with(value, flags)?;
            ensure_eq!(fence.value(), value, "initial value, {flags:?}");
        }
    }
    Ok(())
}

/// A creation of a monitored fence whose outputs are poisoned.
fn creation(device: u32) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
    let mut arg: D3DKMT_CREATESYNCHRONIZATIONOBJECT2 = poisoned();
    arg.hDevice = device;
    arg.Info.Type = D3DDDI_MONITORED_FENCE;
    arg.Info.Flags = 0;
    arg.Info.__bindgen_anon_1.MonitoredFence.InitialFenceValue = 9;
    arg.Info.__bindgen_anon_1.MonitoredFence.EngineAffinity = 0;
    arg
}

fn outputs() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let mut arg = creation(device.handle().0);
    let before = bytes(&arg).to_vec();
    succeeds(&raw, &mut arg)?;
    // CPU address 24..32, GPU address 32..40, handle 88..92; SharedHandle (80) only with Shared.
    let written = |at: usize| matches!(at, 24..40 | 88..92);
    for (at, (old, new)) in before.iter().zip(bytes(&arg)).enumerate() {
        ensure!(
            written(at) || old == new,
            "byte {at} changed: {old:#x} -> {new:#x}"
        );
    }
    // SAFETY: all arms are integers.
    let address = unsafe { arg.Info.__bindgen_anon_1.MonitoredFence }.FenceValueCPUVirtualAddress;
    ensure!(
        address != 0 && address % 8 == 0 && address >> 47 == 0,
        "{address:#x}"
    );
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: arg.hSyncObject,
    };
    succeeds(&raw, &mut destroy)
}

fn affinity() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    for affinity in [0, 1] {
        let mut arg = creation(device.handle().0);
        arg.Info.__bindgen_anon_1.MonitoredFence.EngineAffinity = affinity;
        succeeds(&raw, &mut arg)?;
        let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: arg.hSyncObject,
        };
        succeeds(&raw, &mut destroy)?;
    }
    for bit in 1..32 {
        for affinity in [1 << bit, 1 | (1 << bit)] {
            let mut arg = creation(device.handle().0);
            arg.Info.__bindgen_anon_1.MonitoredFence.EngineAffinity = affinity;
            refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        }
    }
    Ok(())
}

fn no_gpu_access() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let mut arg = creation(device.handle().0);
    arg.Info.Flags = SyncFlags::NO_GPU_ACCESS.bits();
    succeeds(&raw, &mut arg)?;
    // SAFETY: all arms are integers.
    let info = unsafe { arg.Info.__bindgen_anon_1.MonitoredFence };
    ensure_eq!(info.FenceValueGPUVirtualAddress, 0);
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: arg.hSyncObject,
    };
    succeeds(&raw, &mut destroy)
}

/// The page of an address.
fn page(address: *const u64) -> usize {
    address as usize & !(selftests::memory::PAGE - 1)
}

fn own_pages() -> TestResult {
    let device = fixture::device()?;
    let plain = device.create_fence(0)?;
    let shareable: Vec<_> = (0..16)
        .map(|value| device.create_shareable_fence(value))
        .collect::<Result<_, _>>()?;
    let mut pages: Vec<usize> = shareable
        .iter()
        .map(|fence| page(fence.value_address()))
        .collect();
    pages.push(page(plain.value_address()));
    let count = pages.len();
    pages.sort();
    pages.dedup();
    ensure_eq!(pages.len(), count, "different pages");
    for (value, fence) in (0..).zip(&shareable) {
        ensure_eq!(fence.value(), value);
        // Nothing of anybody else is readable beside the value.
        let start = page(fence.value_address()) as *const u64;
        for index in 0..512 {
            // SAFETY: within the mapped page of a live fence.
            let word = unsafe { start.add(index).read_volatile() };
            ensure!(
                word == 0 || word == value,
                "word {index} of the page: {word:#x}"
            );
        }
    }
    Ok(())
}
