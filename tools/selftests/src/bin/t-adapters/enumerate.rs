// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding and opening adapters (abi.md section 6.1).

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{AdapterFilter, Dxg, Luid, Status};
use selftests::call::{refused, succeeds};
use selftests::memory::{Page, UNMAPPED};
use selftests::poison::POISON;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// An entry that no call has written.
fn poisoned_entry() -> D3DKMT_ADAPTERINFO {
    D3DKMT_ADAPTERINFO {
        hAdapter: POISON,
        AdapterLuid: LUID {
            LowPart: POISON,
            HighPart: POISON as i32,
        },
        NumOfSources: POISON,
        bPrecisePresentRegionsPreferred: POISON,
    }
}

fn is_poisoned(entry: &D3DKMT_ADAPTERINFO) -> bool {
    entry.hAdapter == POISON && entry.AdapterLuid.LowPart == POISON
}

fn enum2(capacity: u32, adapters: u64) -> D3DKMT_ENUMADAPTERS2 {
    let mut arg = D3DKMT_ENUMADAPTERS2::zeroed();
    arg.NumAdapters = capacity;
    arg.pAdapters = adapters;
    arg
}

fn close(raw: &Raw, handle: u32) -> TestResult {
    succeeds(raw, &mut D3DKMT_CLOSEADAPTER { hAdapter: handle })
}

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "ABI-6.1 without an array EnumAdapters2 and 3 only count",
            count,
        )
        .test(
            "ABI-2.2 a short array is BUFFER_TOO_SMALL and changes nothing",
            too_small,
        )
        .test(
            "ABI-6.1 RES-6 every enumeration fills the array with fresh handles",
            fills,
        )
        .test(
            "RES-3 an array that cannot be written gives no handles",
            unwritable,
        )
        .test(
            "ABI-6.1 EnumAdapters3 lists adapters that render under every filter",
            filters,
        )
        .test("ABI-6.12 reserved filter bits are refused", filter_bits)
        .test(
            "ABI-6.1 adapters have different LUIDs, the same at every enumeration",
            luids,
        )
        .test(
            "ABI-6.1 OpenAdapterFromLuid gives a new handle each time",
            open_luid,
        )
        .test(
            "ABI-6.1 OpenAdapterFromLuid refuses a LUID nobody has",
            open_unknown,
        )
        .test(
            "FEN-52 CloseAdapter refuses what is not an open adapter",
            close_refused,
        )
}

fn count() -> TestResult {
    let raw = fixture::raw()?;
    let expected = Dxg::open()?.adapters()?.len() as u32;
    ensure!(expected >= 1, "there is no adapter");
    let before = fixture::next_handle()?;
    // Without an array the capacity means nothing.
    for capacity in [0, 1, POISON, u32::MAX] {
        let mut arg = enum2(capacity, 0);
        succeeds(&raw, &mut arg)?;
        ensure_eq!(arg.NumAdapters, expected);
        let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
        arg.Filter = AdapterFilter::all().bits();
        arg.NumAdapters = capacity;
        succeeds(&raw, &mut arg)?;
        ensure_eq!(arg.NumAdapters, expected);
    }
    ensure_eq!(fixture::next_handle()?, before + 0x40, "handles");
    Ok(())
}

fn too_small() -> TestResult {
    let raw = fixture::raw()?;
    let count = Dxg::open()?.adapter_count()?;
    let before = fixture::next_handle()?;
    for capacity in 0..count {
        let mut entries = vec![poisoned_entry(); count];
        let array = entries.as_mut_ptr() as u64;
        refused(
            &raw,
            &mut enum2(capacity as u32, array),
            Status::BUFFER_TOO_SMALL,
        )?;
        let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
        (arg.Filter, arg.NumAdapters, arg.pAdapters) = (3, capacity as u32, array);
        refused(&raw, &mut arg, Status::BUFFER_TOO_SMALL)?;
        ensure!(entries.iter().all(is_poisoned), "entries were written");
    }
    ensure_eq!(fixture::next_handle()?, before + 0x40, "handles");
    Ok(())
}

fn fills() -> TestResult {
    let raw = fixture::raw()?;
    let count = Dxg::open()?.adapter_count()?;
    let mut next = fixture::next_handle()?;
    for spare in [0, 1, 5] {
        let mut entries = vec![poisoned_entry(); count + spare];
        let capacity = entries.len() as u32;
        let mut arg = enum2(capacity, entries.as_mut_ptr() as u64);
        succeeds(&raw, &mut arg)?;
        ensure_eq!(arg.NumAdapters as usize, count);
        let (filled, rest) = entries.split_at(count);
        for entry in filled {
            ensure_eq!(entry.hAdapter, next, "a handle of the array");
            ensure_eq!(entry.NumOfSources, 0);
            ensure_eq!(entry.bPrecisePresentRegionsPreferred, 0);
            next += 0x40;
        }
        ensure!(rest.iter().all(is_poisoned), "written beyond the adapters");
        for entry in filled {
            close(&raw, entry.hAdapter)?;
        }
    }
    Ok(())
}

fn unwritable() -> TestResult {
    let raw = fixture::raw()?;
    let count = Dxg::open()?.adapter_count()? as u32;
    let before = fixture::next_handle()?;
    let read_only = Page::new()?.read_only()?;
    // All but the last byte of the last entry can be written.
    let short = Page::new()?;
    let straddling = short.end() + 1 - u64::from(count) * size_of::<D3DKMT_ADAPTERINFO>() as u64;
    for array in [UNMAPPED, read_only.address(), straddling] {
        refused(&raw, &mut enum2(count, array), Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(fixture::next_handle()?, before + 0x40, "handles");
    Ok(())
}

fn filters() -> TestResult {
    let dxg = Dxg::open()?;
    let all: Vec<Luid> = dxg
        .adapters()?
        .iter()
        .map(|adapter| adapter.luid())
        .collect();
    for bits in 0..=AdapterFilter::all().bits() {
        let listed = dxg.adapters_filtered(AdapterFilter::from_bits_retain(bits))?;
        let listed: Vec<Luid> = listed.iter().map(|adapter| adapter.luid()).collect();
        ensure_eq!(listed, all, "filter {bits:#x}");
    }
    Ok(())
}

fn filter_bits() -> TestResult {
    let raw = fixture::raw()?;
    for bit in 2..64 {
        let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
        arg.Filter = 1 << bit;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn luids() -> TestResult {
    let dxg = Dxg::open()?;
    let first: Vec<Luid> = dxg
        .adapters()?
        .iter()
        .map(|adapter| adapter.luid())
        .collect();
    let again: Vec<Luid> = dxg
        .adapters()?
        .iter()
        .map(|adapter| adapter.luid())
        .collect();
    ensure_eq!(first, again);
    let mut different = first.clone();
    different.sort();
    different.dedup();
    ensure_eq!(different.len(), first.len(), "different LUIDs");
    Ok(())
}

fn open_luid() -> TestResult {
    let dxg = Dxg::open()?;
    for adapter in dxg.adapters()? {
        let first = dxg.open_adapter(adapter.luid())?;
        let second = dxg.open_adapter(adapter.luid())?;
        ensure_eq!(second.handle().0, first.handle().0 + 0x40);
        // One closes, the other one still works.
        first.close()?;
        ensure_eq!(second.device_ids(0)?, adapter.device_ids(0)?);
    }
    Ok(())
}

fn open_unknown() -> TestResult {
    let raw = fixture::raw()?;
    let known = fixture::adapter()?.luid();
    let high = known.high;
    for luid in [
        Luid { high: 0, low: 0 },
        Luid {
            high: !high,
            ..known
        },
        Luid {
            high,
            low: !known.low,
        },
        Luid {
            high: -1,
            low: u32::MAX,
        },
    ] {
        let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
        arg.AdapterLuid = luid.into();
        arg.hAdapter = POISON;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn close_refused() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let closed = fixture::adapter()?.handle().0;
    for handle in [
        0,
        u32::MAX,
        POISON,
        closed,
        closed | 2,
        closed + 0x1000,
        device.handle().0,
        fence.handle().0,
    ] {
        let mut arg = D3DKMT_CLOSEADAPTER { hAdapter: handle };
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    fails_with(
        fixture::adapter()?.query(u32::MAX, &mut [0; 4]),
        Status::INVALID_PARAMETER,
    )
}
