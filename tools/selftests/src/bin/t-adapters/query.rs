// SPDX-License-Identifier: MIT OR Apache-2.0
//! What adapters say about themselves: QueryAdapterInfo, IsFeatureEnabled, QueryClockCalibration.

use std::path::Path;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{AdapterType, Status};
use rustix::time::{clock_gettime, ClockId};
use selftests::call::{refused, succeeds};
use selftests::memory::{Page, UNMAPPED};
use selftests::poison::POISON;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// The types that existing Linux clients ask for, with the size of the payload the kernel sees
/// (abi.md sections 6.10 and 7.5).
const ASKED: [(u32, usize); 11] = [
    (KMTQAITYPE_UMDRIVERNAME, 524),
    (KMTQAITYPE_ADAPTERGUID, 16),
    (KMTQAITYPE_DRIVERVERSION, 4),
    (KMTQAITYPE_ADAPTERTYPE, 4),
    (KMTQAITYPE_WDDM_2_0_CAPS, 4),
    (KMTQAITYPE_PHYSICALADAPTERCOUNT, 4),
    (KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, 28),
    (KMTQAITYPE_QUERYREGISTRY, 552),
    (KMTQAITYPE_ADAPTERTYPE_RENDER, 4),
    (KMTQAITYPE_DRIVER_DESCRIPTION, 8192),
    (KMTQAITYPE_WDDM_2_7_CAPS, 4),
];

/// Numbers that no known type has.
const UNKNOWN: [u32; 5] = [14, 36, 69, 1000, u32::MAX];

fn query_arg(adapter: u32, kind: u32, payload: u64, size: u32) -> D3DKMT_QUERYADAPTERINFO {
    let mut arg = D3DKMT_QUERYADAPTERINFO::zeroed();
    arg.hAdapter = adapter;
    arg.Type = kind as _;
    arg.pPrivateDriverData = payload;
    arg.PrivateDriverDataSize = size;
    arg
}

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "ABI-6.10 each asked type answers in exactly its payload",
            sizes,
        )
        .test(
            "ABI-6.10 a short, missing or unmapped payload is refused",
            bad_payloads,
        )
        .test(
            "ABI-6.10 an unknown type is INVALID_PARAMETER",
            unknown_types,
        )
        .test(
            "ABI-6.10 type 13: a driver model of at least 2800",
            driver_version,
        )
        .test(
            "ABI-6.10 types 15 and 57: renders, is software, does not display",
            adapter_type,
        )
        .test(
            "ABI-6.10 type 31: ids of physical adapter 0 and of no other",
            device_ids,
        )
        .test(
            "ABI-6.10 type 48: the driver store path in two steps",
            driver_store,
        )
        .test("ABI-6.10 type 65: a description", description)
        .test(
            "FEN-113 IsFeatureEnabled: known, unknown, closed adapter",
            features,
        )
        .test(
            "FEN-113 IsFeatureEnabled without an adapter: global features",
            global_features,
        )
        .test(
            "GPU-83 QueryClockCalibration samples both clocks together",
            clock,
        )
        .test(
            "GPU-5 GPU-83 QueryClockCalibration refuses nodes and adapters that are not there",
            bad_clock,
        )
}

fn sizes() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    for (kind, size) in ASKED {
        // Two bytes more than needed: the last two must stay.
        let mut payload = vec![0; size + 2];
        payload[size..].fill(0xa5);
        let (start, length) = (payload.as_mut_ptr() as u64, size as u32);
        succeeds(
            &raw,
            &mut query_arg(adapter.handle().0, kind, start, length),
        )?;
        ensure_eq!(
            payload[size..],
            [0xa5, 0xa5],
            "type {kind}: bytes behind the payload"
        );
        // Exactly the payload at the end of the mapped world.
        let page = Page::ending_with(&[])?;
        if size <= selftests::memory::PAGE {
            let start = page.end() - size as u64;
            succeeds(
                &raw,
                &mut query_arg(adapter.handle().0, kind, start, length),
            )?;
        }
    }
    Ok(())
}

fn bad_payloads() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    let handle = adapter.handle().0;
    for (kind, size) in ASKED {
        let mut payload = vec![0xa5; size];
        let start = payload.as_mut_ptr() as u64;
        for short in [0, 1, size as u32 - 1] {
            if (short as usize) < size {
                let mut arg = query_arg(handle, kind, start, short);
                refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
            }
        }
        ensure!(
            payload.iter().all(|&byte| byte == 0xa5),
            "type {kind}: payload changed"
        );
        let mut arg = query_arg(handle, kind, 0, size as u32);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        let mut arg = query_arg(handle, kind, UNMAPPED, size as u32);
        refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
        let page = Page::new()?.read_only()?;
        if size <= selftests::memory::PAGE {
            let mut arg = query_arg(handle, kind, page.address(), size as u32);
            refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
        }
    }
    Ok(())
}

fn unknown_types() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    let mut payload = [0xa5u8; 64];
    for kind in UNKNOWN {
        let start = payload.as_mut_ptr() as u64;
        let mut arg = query_arg(adapter.handle().0, kind, start, 64);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    ensure_eq!(payload, [0xa5; 64]);
    Ok(())
}

fn driver_version() -> TestResult {
    let adapter = fixture::adapter()?;
    let version = adapter.driver_version()?;
    ensure!((2800..=3200).contains(&version), "version {version}");
    ensure_eq!(adapter.query_u32(KMTQAITYPE_DRIVERVERSION_RENDER)?, version);
    Ok(())
}

fn adapter_type() -> TestResult {
    let adapter = fixture::adapter()?;
    let kind = adapter.adapter_type()?;
    ensure!(kind.contains(AdapterType::RENDER_SUPPORTED | AdapterType::SOFTWARE_DEVICE));
    ensure!(!kind.intersects(AdapterType::DISPLAY_SUPPORTED | AdapterType::PARAVIRTUALIZED));
    ensure_eq!(
        adapter.query_u32(KMTQAITYPE_ADAPTERTYPE_RENDER)?,
        kind.bits()
    );
    Ok(())
}

fn device_ids() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    ensure_eq!(adapter.physical_adapter_count()?, 1);
    let ids = adapter.device_ids(0)?;
    ensure!(ids.vendor != 0 && ids.device != 0, "{ids:?}");
    for absent in [1, u32::MAX] {
        let mut payload = [absent, 0, 0, 0, 0, 0, 0];
        let start = payload.as_mut_ptr() as u64;
        let kind = KMTQAITYPE_PHYSICALADAPTERDEVICEIDS;
        let mut arg = query_arg(adapter.handle().0, kind, start, 28);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        ensure_eq!(payload, [absent, 0, 0, 0, 0, 0, 0]);
    }
    Ok(())
}

/// Offsets in the kernel's form of D3DDDI_QUERYREGISTRY_INFO.
mod registry {
    pub(super) const QUERY_TYPE: usize = 0;
    pub(super) const OUTPUT_SIZE: usize = 536;
    pub(super) const STATUS: usize = 540;
    pub(super) const VALUE: usize = 544;
    /// Struct without a value.
    pub(super) const SIZE: usize = 552;
    pub(super) const DRIVER_STORE_PATH: u32 = 2;
    pub(super) const BUFFER_OVERFLOW: u32 = 1;
}

fn driver_store() -> TestResult {
    let adapter = fixture::adapter()?;
    let mut payload = vec![0; registry::SIZE];
    let kind = registry::DRIVER_STORE_PATH.to_ne_bytes();
    payload[registry::QUERY_TYPE..][..4].copy_from_slice(&kind);
    adapter.query(KMTQAITYPE_QUERYREGISTRY, &mut payload)?;
    let word = |payload: &[u8], at: usize| {
        u32::from_ne_bytes([
            payload[at],
            payload[at + 1],
            payload[at + 2],
            payload[at + 3],
        ])
    };
    ensure_eq!(word(&payload, registry::STATUS), registry::BUFFER_OVERFLOW);
    let size = word(&payload, registry::OUTPUT_SIZE) as usize;
    ensure!((2..1000).contains(&size) && size % 2 == 0, "size {size}");

    payload.resize(registry::SIZE + size, 0);
    adapter.query(KMTQAITYPE_QUERYREGISTRY, &mut payload)?;
    ensure_eq!(word(&payload, registry::STATUS), 0);
    ensure_eq!(word(&payload, registry::OUTPUT_SIZE) as usize, size);
    let units = payload[registry::VALUE..][..size].chunks_exact(2);
    let units: Vec<u16> = units
        .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]))
        .collect();
    let (last, text) = units.split_last().ok_or("no text")?;
    ensure_eq!(*last, 0, "terminator");
    let path = String::from_utf16(text).map_err(|_| "not UTF-16")?;
    ensure!(Path::new(&path).exists(), "{path} does not exist");
    Ok(())
}

fn description() -> TestResult {
    let text = fixture::adapter()?.description()?;
    ensure!(
        !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' '),
        "{text:?}"
    );
    Ok(())
}

fn features() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    for id in 0..100 {
        let feature = adapter.feature(id)?;
        ensure!(
            !feature.enabled || feature.known && feature.supported_by_driver,
            "feature {id}: {feature:?}"
        );
        ensure_eq!(
            feature.enabled,
            feature.version != 0,
            "feature {id}: has a version"
        );
    }
    ensure!(
        adapter.feature(DXGK_FEATURE_NATIVE_FENCE)?.known,
        "native fences are known"
    );
    // The two places that tell of native fences agree.
    let caps = adapter.query_u32(KMTQAITYPE_WDDM_3_1_CAPS)?;
    ensure_eq!(
        caps & 1 != 0,
        adapter.feature(DXGK_FEATURE_NATIVE_FENCE)?.enabled
    );
    for unknown in [6, 44, 64, 0x1000_0000, u32::MAX] {
        let mut arg = D3DKMT_ISFEATUREENABLED::zeroed();
        (arg.hAdapter, arg.FeatureId) = (adapter.handle().0, unknown);
        (arg.Result.Version, arg.Result.Value) = (0xaaaa, 0xaaaa);
        succeeds(&raw, &mut arg)?;
        ensure_eq!(
            (arg.Result.Version, arg.Result.Value),
            (0, 0),
            "feature {unknown:#x}"
        );
    }
    let closed = adapter.handle().0;
    adapter.close()?;
    let mut arg = D3DKMT_ISFEATUREENABLED::zeroed();
    (arg.hAdapter, arg.Result.Value) = (closed, 0xaaaa);
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}

/// hAdapter 0: a feature of the system as a whole. One of a driver needs an adapter.
fn global_features() -> TestResult {
    let raw = fixture::raw()?;
    for (id, expected) in [
        (0x1000_0000, Status::SUCCESS),
        (0x1000_0025, Status::SUCCESS),
        (0x3000_0000, Status::SUCCESS),
        (u32::MAX, Status::SUCCESS),
        (DXGK_FEATURE_NATIVE_FENCE, Status::INVALID_PARAMETER),
        (47, Status::INVALID_PARAMETER),
    ] {
        let mut arg = D3DKMT_ISFEATUREENABLED::zeroed();
        arg.FeatureId = id;
        (arg.Result.Version, arg.Result.Value) = (0xaaaa, 0xaaaa);
        let status = raw.exec(&mut arg)?;
        ensure_eq!(status, expected, "feature {id:#x}");
        // None has a name yet.
        let untouched = if status.is_success() { 0 } else { 0xaaaa };
        ensure_eq!(
            (arg.Result.Version, arg.Result.Value),
            (untouched, untouched),
            "feature {id:#x}"
        );
    }
    Ok(())
}

fn clock() -> TestResult {
    let adapter = fixture::adapter()?;
    let first = adapter.clock_calibration(0)?;
    let begin = clock_gettime(ClockId::Monotonic);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let end = clock_gettime(ClockId::Monotonic);
    let second = adapter.clock_calibration(0)?;
    ensure!(first.gpu_frequency > 0);
    ensure_eq!(first.gpu_frequency, second.gpu_frequency);
    ensure!(
        second.cpu_clock_counter > first.cpu_clock_counter,
        "the CPU clock stands still"
    );
    // Between the samples lie at least the 50 ms, by the GPU's own frequency.
    let slept = (end.tv_sec - begin.tv_sec) as f64 + (end.tv_nsec - begin.tv_nsec) as f64 / 1e9;
    let ticks = second
        .gpu_clock_counter
        .checked_sub(first.gpu_clock_counter);
    let seconds = ticks.ok_or("the GPU clock runs backwards")? as f64 / first.gpu_frequency as f64;
    ensure!(
        seconds >= slept * 0.999,
        "GPU clock: {seconds} s between samples {slept} s apart"
    );
    ensure!(
        seconds < slept + 60.0,
        "GPU clock: {seconds} s between samples {slept} s apart"
    );
    Ok(())
}

fn bad_clock() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    for (handle, node, physical) in [
        (0, 0, 0),
        (POISON, 0, 0),
        (adapter.handle().0, 0xffff, 0),
        (adapter.handle().0, u32::MAX, 0),
        (adapter.handle().0, 0, 1),
        (adapter.handle().0, 0, u32::MAX),
    ] {
        let mut arg = D3DKMT_QUERYCLOCKCALIBRATION::zeroed();
        arg.hAdapter = handle;
        arg.NodeOrdinal = node;
        arg.PhysicalAdapterIndex = physical;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}
