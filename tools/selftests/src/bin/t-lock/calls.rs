// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lock2 and Unlock2 as calls: what they return and refuse. Residency and priorities (MEM-9).

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Device, Status};
use selftests::call::{refused, succeeds};
use selftests::leak::Watch;
use selftests::memory::{Page, UNMAPPED};
use selftests::poison::{bytes, poisoned, POISON};
use selftests::resource::{flags, locked_again, Create, OpenResource, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const OK: Status = Status::SUCCESS;
const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-89 only pData is written", only_the_address)
        .test(
            "RES-89 flags, devices and allocations that are refused",
            refusals,
        )
        .test(
            "RES-89 locks nest, the last unlock ends the mapping",
            nesting,
        )
        .test("RES-89 unlocking what is not locked", not_locked)
        .test(
            "RES-89 RES-3 an address that cannot be written leaves no mapping",
            undone,
        )
        .test(
            "MEM-9 priorities are kept, by list and by resource",
            priorities,
        )
        .test("MEM-9 priorities: what is refused", bad_priorities)
        .test("MEM-9 residency, by list and by resource", residency)
        .test("MEM-9 residency: what is refused", bad_residency)
}

fn lock2(device: u32, allocation: u32) -> D3DKMT_LOCK2 {
    let mut arg: D3DKMT_LOCK2 = poisoned();
    (arg.hDevice, arg.hAllocation, arg.Flags) = (device, allocation, 0);
    arg
}

fn unlock2(device: u32, allocation: u32) -> D3DKMT_UNLOCK2 {
    D3DKMT_UNLOCK2 {
        hDevice: device,
        hAllocation: allocation,
    }
}

fn sample(device: &Device) -> TestResult<OpenResource> {
    Create::sized(device, flags::RESOURCE, &[2 * PAGE_SIZE, PAGE_SIZE]).run()
}

fn only_the_address() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    let mut arg = lock2(made.device, made.first());
    let before = bytes(&arg).to_vec();
    succeeds(&raw, &mut arg)?;
    ensure_eq!(bytes(&arg)[..16], before[..16]);
    ensure!(
        arg.pData % PAGE_SIZE == 0 && arg.pData != 0 && arg.pData >> 47 == 0,
        "{:#x}",
        arg.pData
    );
    succeeds(&raw, &mut unlock2(made.device, made.first()))
}

fn refusals() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    let watch = Watch::start()?;
    refused(&raw, &mut D3DKMT_LOCK2::zeroed(), IP)?;
    refused(&raw, &mut D3DKMT_UNLOCK2::zeroed(), IP)?;
    for bit in 0..32 {
        let mut arg = lock2(made.device, made.first());
        arg.Flags = 1 << bit;
        refused(&raw, &mut arg, IP)?;
    }
    let adapter = device.adapter().handle().0;
    for handle in [0, 1, u32::MAX, adapter, made.resource, made.first()] {
        refused(&raw, &mut lock2(handle, made.first()), IP)?;
        refused(&raw, &mut unlock2(handle, made.first()), IP)?;
    }
    for handle in [
        0,
        1,
        u32::MAX,
        adapter,
        made.resource,
        made.device,
        made.first() | 2,
        made.first() + 0x40_0000,
    ] {
        refused(&raw, &mut lock2(made.device, handle), IP)?;
        refused(&raw, &mut unlock2(made.device, handle), IP)?;
    }
    watch.unchanged()
}

/// Whether something is mapped at an address.
fn is_mapped(address: u64) -> TestResult<bool> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let holds = |line: &str| {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(start)?..number(end)?).contains(&address))
    };
    Ok(maps.lines().any(|line| holds(line) == Some(true)))
}

fn nesting() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    let (device, allocation) = (made.device, made.first());
    let (status, address) = locked_again(&raw, device, allocation)?;
    ensure_eq!(status, OK);
    ensure!(is_mapped(address)? && is_mapped(address + PAGE_SIZE)?);
    for _ in 0..3 {
        ensure_eq!(
            locked_again(&raw, device, allocation),
            Ok((OK, address)),
            "the same mapping"
        );
    }
    for _ in 0..3 {
        succeeds(&raw, &mut unlock2(device, allocation))?;
        ensure!(is_mapped(address)?, "mapped until the last unlock");
    }
    succeeds(&raw, &mut unlock2(device, allocation))?;
    ensure!(
        !is_mapped(address)? && !is_mapped(address + PAGE_SIZE)?,
        "mapped after the last unlock"
    );
    refused(&raw, &mut unlock2(device, allocation), IP)?;
    made.lock()?.fill(1);
    made.lock()?.holds(1)
}

fn not_locked() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    refused(&raw, &mut unlock2(made.device, made.first()), IP)?;
    let mapping = made.lock()?;
    // The other allocation is not locked.
    refused(&raw, &mut unlock2(made.device, made.allocations[1]), IP)?;
    mapping.unlock()?;
    refused(&raw, &mut unlock2(made.device, made.first()), IP)
}

fn mappings() -> TestResult<usize> {
    Ok(std::fs::read_to_string("/proc/self/maps")?.lines().count())
}

fn undone() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    let page = Page::beginning_with(bytes(&lock2(made.device, made.first())))?.read_only()?;
    let code = opendxg::raw::code(D3DKMT_LOCK2::NR, D3DKMT_LOCK2::SIZE);
    let before = mappings()?;
    for _ in 0..5 {
        ensure_eq!(
            raw.ioctl(code, page.address()),
            Err(rustix::io::Errno::FAULT)
        );
    }
    ensure_eq!(mappings()?, before);
    refused(&raw, &mut unlock2(made.device, made.first()), IP)
}

const PRIORITIES: [u32; 5] = [
    D3DDDI_ALLOCATIONPRIORITY_MINIMUM,
    D3DDDI_ALLOCATIONPRIORITY_LOW,
    D3DDDI_ALLOCATIONPRIORITY_NORMAL,
    D3DDDI_ALLOCATIONPRIORITY_HIGH,
    D3DDDI_ALLOCATIONPRIORITY_MAXIMUM,
];

fn set(device: u32, resource: u32, list: &[u32], values: &[u32]) -> D3DKMT_SETALLOCATIONPRIORITY {
    let mut arg = D3DKMT_SETALLOCATIONPRIORITY::zeroed();
    (arg.hDevice, arg.hResource) = (device, resource);
    arg.phAllocationList = if list.is_empty() {
        0
    } else {
        list.as_ptr() as u64
    };
    arg.AllocationCount = list.len() as u32;
    arg.pPriorities = values.as_ptr() as u64;
    arg
}

fn get(
    device: u32,
    resource: u32,
    list: &[u32],
    values: &mut [u32],
) -> D3DKMT_GETALLOCATIONPRIORITY {
    let mut arg = D3DKMT_GETALLOCATIONPRIORITY::zeroed();
    (arg.hDevice, arg.hResource) = (device, resource);
    arg.phAllocationList = if list.is_empty() {
        0
    } else {
        list.as_ptr() as u64
    };
    arg.AllocationCount = list.len() as u32;
    arg.pPriorities = values.as_mut_ptr() as u64;
    arg
}

fn read_priorities(raw: &Raw, made: &OpenResource) -> TestResult<Vec<u32>> {
    let mut values = vec![POISON; made.allocations.len()];
    succeeds(
        raw,
        &mut get(made.device, 0, &made.allocations, &mut values),
    )?;
    Ok(values)
}

fn priorities() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    ensure_eq!(
        read_priorities(&raw, &made)?,
        [D3DDDI_ALLOCATIONPRIORITY_NORMAL; 2]
    );
    for pair in PRIORITIES.windows(2) {
        succeeds(&raw, &mut set(made.device, 0, &made.allocations, pair))?;
        ensure_eq!(read_priorities(&raw, &made)?, pair);
    }
    // By resource: one value for all.
    succeeds(
        &raw,
        &mut set(
            made.device,
            made.resource,
            &[],
            &[D3DDDI_ALLOCATIONPRIORITY_LOW],
        ),
    )?;
    ensure_eq!(
        read_priorities(&raw, &made)?,
        [D3DDDI_ALLOCATIONPRIORITY_LOW; 2]
    );
    // At creation.
    let mut create = Create::sized(&device, 0, &[PAGE_SIZE]);
    create.infos[0].Flags = D3DDDI_ALLOCATIONINFO2_Flags_OverridePriority;
    create.infos[0].__bindgen_anon_2.Priority = D3DDDI_ALLOCATIONPRIORITY_HIGH;
    let high = create.run()?;
    ensure_eq!(
        read_priorities(&raw, &high)?,
        [D3DDDI_ALLOCATIONPRIORITY_HIGH]
    );
    Ok(())
}

fn bad_priorities() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    let values = [D3DDDI_ALLOCATIONPRIORITY_HIGH; 2];
    let mut out = [POISON; 2];
    let list = &made.allocations;
    refused(
        &raw,
        &mut set(made.device, made.resource, list, &values),
        IP,
    )?;
    refused(
        &raw,
        &mut get(made.device, made.resource, list, &mut out),
        IP,
    )?;
    refused(&raw, &mut set(made.device, 0, &[], &values), IP)?;
    refused(&raw, &mut get(made.device, 0, &[], &mut out), IP)?;
    for device in [0, u32::MAX, made.resource] {
        refused(&raw, &mut set(device, 0, list, &values), IP)?;
        refused(&raw, &mut get(device, 0, list, &mut out), IP)?;
    }
    for bad in [0, u32::MAX, made.resource, made.device] {
        refused(&raw, &mut set(made.device, 0, &[list[0], bad], &values), IP)?;
        refused(
            &raw,
            &mut get(made.device, 0, &[list[0], bad], &mut out),
            IP,
        )?;
    }
    for count in [4097, u32::MAX] {
        let mut arg = set(made.device, 0, list, &values);
        arg.AllocationCount = count;
        refused(&raw, &mut arg, IP)?;
    }
    let mut arg = set(made.device, 0, list, &values);
    arg.pPriorities = UNMAPPED;
    refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    let mut arg = get(made.device, 0, list, &mut out);
    arg.pPriorities = UNMAPPED;
    refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    ensure_eq!(out, [POISON; 2]);
    // A refusal changed nothing.
    ensure_eq!(
        read_priorities(&raw, &made)?,
        [D3DDDI_ALLOCATIONPRIORITY_NORMAL; 2]
    );
    Ok(())
}

fn ask(
    device: u32,
    resource: u32,
    list: &[u32],
    out: &mut [u32],
) -> D3DKMT_QUERYALLOCATIONRESIDENCY {
    let mut arg = D3DKMT_QUERYALLOCATIONRESIDENCY::zeroed();
    (arg.hDevice, arg.hResource) = (device, resource);
    arg.phAllocationList = if list.is_empty() {
        0
    } else {
        list.as_ptr() as u64
    };
    arg.AllocationCount = list.len() as u32;
    arg.pResidencyStatus = out.as_mut_ptr() as u64;
    arg
}

fn residency() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    for index in 0..2 {
        made.lock_nth(index)?.fill(index as u32);
    }
    // Nobody has made it resident, although its bytes are there.
    let absent = D3DKMT_ALLOCATIONRESIDENCYSTATUS_NOTRESIDENT;
    let mut out = [POISON; 3];
    succeeds(&raw, &mut ask(made.device, 0, &made.allocations, &mut out))?;
    ensure_eq!(out, [absent, absent, POISON]);
    let mut out = [POISON; 2];
    succeeds(&raw, &mut ask(made.device, made.resource, &[], &mut out))?;
    ensure_eq!(out, [absent, POISON], "one value for the resource");
    Ok(())
}

fn bad_residency() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device)?;
    let list = &made.allocations;
    let mut out = [POISON; 2];
    refused(
        &raw,
        &mut ask(made.device, made.resource, list, &mut out),
        IP,
    )?;
    refused(&raw, &mut ask(made.device, 0, &[], &mut out), IP)?;
    for device in [0, u32::MAX, made.resource] {
        refused(&raw, &mut ask(device, 0, list, &mut out), IP)?;
    }
    for bad in [0, u32::MAX, made.resource, made.device] {
        refused(
            &raw,
            &mut ask(made.device, 0, &[list[0], bad], &mut out),
            IP,
        )?;
    }
    for count in [4097, u32::MAX] {
        let mut arg = ask(made.device, 0, list, &mut out);
        arg.AllocationCount = count;
        refused(&raw, &mut arg, IP)?;
    }
    let mut arg = ask(made.device, 0, list, &mut out);
    arg.pResidencyStatus = UNMAPPED;
    refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    ensure_eq!(out, [POISON; 2]);
    Ok(())
}
