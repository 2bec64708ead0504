// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of refusals of CreateAllocation, line by line and in its order (RES-19), and that a
//! refusal uses no handle number (RES-4).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, Status};
use selftests::call::refused;
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::{ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const IH: Status = Status::INVALID_HANDLE;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-19 RES-4 line 1: a zeroed struct, a bad device", || {
            without_effect(device)
        })
        .test(
            "RES-19 RES-4 line 2: flags that contradict each other",
            || without_effect(contradictions),
        )
        .test(
            "RES-19 RES-4 line 3: standard allocations that are not one",
            || without_effect(standard),
        )
        .test(
            "RES-19 RES-4 line 4: existing memory without StandardAllocation",
            || without_effect(not_standard),
        )
        .test("RES-19 RES-4 line 5: hResource that is no resource", || {
            without_effect(no_resource)
        })
        .test(
            "RES-19 RES-4 line 6: CreateResource with a resource",
            || without_effect(two_resources),
        )
        .test(
            "RES-19 RES-4 line 7: CreateShared without CreateResource",
            || without_effect(shared_alone),
        )
        .test(
            "RES-19 RES-4 line 8: a standard allocation for a resource",
            || without_effect(standard_added),
        )
        .test("RES-19 RES-4 RES-5 line 9: too many, too large", || {
            without_effect(too_much)
        })
        .test(
            "RES-19 RES-4 cross-adapter allocations that are not one",
            || without_effect(cross_adapter),
        )
        .test("RES-19 the order of the lines", || without_effect(order))
}

/// Runs refusals: no handle number is used, nothing is left, the device still works.
fn without_effect(refusals: impl Fn(&Device) -> TestResult) -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    let before = fixture::next_handle()?;
    let own = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    own.destroy()?;
    let middle = fixture::next_handle()?;
    ensure_eq!(middle, before + 3 * 0x40, "the probe itself");
    refusals(&device)?;
    ensure_eq!(
        fixture::next_handle()?,
        middle + 0x40,
        "handle numbers used by refusals"
    );
    watch.unchanged()?;
    Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE])
        .run()?
        .destroy()
}

fn page() -> TestResult<Region> {
    Region::private(0x2000)
}

/// A wrong version of a call that is otherwise right.
type Spoil = fn(&mut Create, &mut D3DKMT_CREATEALLOCATION);

fn device(device: &Device) -> TestResult {
    let raw = fixture::raw()?;
    refused(&raw, &mut D3DKMT_CREATEALLOCATION::zeroed(), IP)?;
    let mut create = Create::sized(device, flags::RESOURCE, &[PAGE_SIZE]);
    let adapter = device.adapter().handle().0;
    for handle in [
        0,
        1,
        u32::MAX,
        adapter,
        device.handle().0 | 2,
        device.handle().0 + 1,
        0x7fff_ffc0,
    ] {
        let mut arg = create.argument();
        arg.hDevice = handle;
        create.is_refused_with(&mut arg, IP)?;
    }
    Ok(())
}

fn contradictions(device: &Device) -> TestResult {
    let memory = page()?;
    for bits in [
        flags::NT_SECURITY,
        flags::RESOURCE | flags::NT_SECURITY,
        flags::RESOURCE | flags::CROSS_ADAPTER | flags::NT_SECURITY,
    ] {
        Create::sized(device, bits, &[PAGE_SIZE]).is_refused(IP)?;
        Create::over(device, bits, memory.address(), PAGE_SIZE).is_refused(IP)?;
    }
    Create::over(device, flags::SECTION, memory.address(), PAGE_SIZE).is_refused(IP)?;
    Create::over(device, 0x8000_0000, memory.address(), PAGE_SIZE).is_refused(IP)
}

fn standard(device: &Device) -> TestResult {
    let memory = page()?;
    let spoilt: [(&str, Spoil); 17] = [
        ("driver data size 1", |_, arg| arg.PrivateDriverDataSize = 1),
        ("driver data size 48", |_, arg| {
            arg.PrivateDriverDataSize = 48
        }),
        ("no allocation", |_, arg| arg.NumAllocations = 0),
        ("two allocations", |create, arg| {
            create.infos.push(create.infos[0]);
            arg.NumAllocations = 2;
            arg.__bindgen_anon_2.pAllocationInfo2 = create.infos.as_mut_ptr() as u64;
        }),
        ("0xffffffff allocations", |_, arg| {
            arg.NumAllocations = u32::MAX
        }),
        ("no info array", |_, arg| {
            arg.__bindgen_anon_2.pAllocationInfo2 = 0
        }),
        ("no description", |_, arg| {
            arg.__bindgen_anon_1.pStandardAllocation = 0
        }),
        ("type 0", |create, _| create.standard.Type = 0),
        ("type 2", |create, _| create.standard.Type = 2),
        ("type 3", |create, _| create.standard.Type = 3),
        ("size 0x1100", |create, _| {
            create.standard.ExistingHeapData.Size = 0x1100
        }),
        ("size 0", |create, _| {
            create.standard.ExistingHeapData.Size = 0
        }),
        ("size 4095", |create, _| {
            create.standard.ExistingHeapData.Size = 4095
        }),
        ("flags of the description", |create, _| {
            create.standard.Flags = 1
        }),
        ("neither memory nor section", |_, arg| {
            arg.Flags &= !flags::SYSTEM_MEMORY
        }),
        ("no memory", |create, _| {
            create.infos[0].__bindgen_anon_1.pSystemMem = 0
        }),
        ("unaligned memory", |create, _| {
            // SAFETY: an arm of integers.
            unsafe { create.infos[0].__bindgen_anon_1.pSystemMem += 0x800 };
        }),
    ];
    for (what, spoil) in spoilt {
        for bits in [0, flags::RESOURCE] {
            let mut create = Create::over(device, bits, memory.address(), PAGE_SIZE);
            let mut arg = create.argument();
            spoil(&mut create, &mut arg);
            refused(&fixture::raw()?, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
        }
    }
    // Beyond the end of all addresses, and more than any machine has.
    for size in [u64::MAX & !0xfff, 1 << 63, 1 << 52, 1 << 40] {
        Create::over(device, 0, memory.address(), size).is_refused(IP)?;
    }
    Ok(())
}

fn cross_adapter(device: &Device) -> TestResult {
    let memory = page()?;
    let address = memory.address();
    let mut existing = Create::cross_adapter(device, flags::RESOURCE, PAGE_SIZE);
    existing.infos[0].__bindgen_anon_1.pSystemMem = address;
    existing.is_refused(IP)?;
    for kind in [flags::SYSTEM_MEMORY, flags::SECTION] {
        for address in [0, address] {
            let bits = flags::RESOURCE | kind;
            let mut create = Create::cross_adapter(device, bits, PAGE_SIZE);
            create.infos[0].__bindgen_anon_1.pSystemMem = address;
            create.is_refused(IP)?;
        }
    }
    for size in [0, 1, 0x1100, u64::MAX & !0xfff] {
        Create::cross_adapter(device, flags::RESOURCE, size).is_refused(IP)?;
    }
    Create::cross_adapter(device, 0, 1 << 60).is_refused(Status::NO_MEMORY)?;
    for count in [0, 2] {
        let mut create = Create::cross_adapter(device, flags::RESOURCE, PAGE_SIZE);
        create.infos.push(create.infos[0]);
        let mut arg = create.argument();
        arg.NumAllocations = count;
        create.is_refused_with(&mut arg, IP)?;
    }
    let mut create = Create::cross_adapter(device, flags::RESOURCE, PAGE_SIZE);
    let mut arg = create.argument();
    arg.PrivateDriverDataSize = 8;
    create.is_refused_with(&mut arg, IP)
}

fn not_standard(device: &Device) -> TestResult {
    for kind in [flags::SYSTEM_MEMORY, flags::SECTION] {
        for bits in [0, flags::RESOURCE, flags::NT] {
            Create::sized(device, kind | bits, &[PAGE_SIZE]).is_refused(IP)?;
        }
    }
    Ok(())
}

/// Numbers that are no handle of a resource.
fn strangers(device: &Device) -> [u32; 7] {
    let device_handle = device.handle().0;
    let adapter = device.adapter().handle().0;
    [
        0x1ead_beed,
        1,
        u32::MAX,
        device_handle,
        adapter,
        device_handle | 2,
        0x7fff_ffc0,
    ]
}

fn no_resource(device: &Device) -> TestResult {
    let memory = page()?;
    for handle in strangers(device) {
        for bits in [0, flags::RESOURCE] {
            let mut create = Create::sized(device, bits, &[PAGE_SIZE]);
            create.resource = handle;
            create
                .is_refused(IH)
                .map_err(|error| format!("{handle:#x}: {error}"))?;
            let mut create = Create::over(device, bits, memory.address(), PAGE_SIZE);
            create.resource = handle;
            create
                .is_refused(IH)
                .map_err(|error| format!("standard, {handle:#x}: {error}"))?;
        }
    }
    Ok(())
}

/// Runs refusals that concern an existing resource.
fn with_resource(device: &Device, bits: u32, refusals: impl Fn(u32) -> TestResult) -> TestResult {
    let own = Create::sized(device, bits, &[PAGE_SIZE]).run()?;
    let before = fixture::next_handle()?;
    refusals(own.resource)?;
    ensure_eq!(
        fixture::next_handle()?,
        before + 0x40,
        "handle numbers used by refusals"
    );
    own.destroy()
}

fn two_resources(_: &Device) -> TestResult {
    elsewhere(|device| {
        with_resource(device, flags::RESOURCE, |resource| {
            let mut create = Create::sized(device, flags::RESOURCE, &[PAGE_SIZE]);
            create.resource = resource;
            create.is_refused(IP)
        })
    })
}

fn shared_alone(device: &Device) -> TestResult {
    let memory = page()?;
    for bits in [flags::SHARED, flags::SHARED | flags::NT_SECURITY] {
        Create::sized(device, bits, &[PAGE_SIZE]).is_refused(IP)?;
        Create::over(device, bits, memory.address(), PAGE_SIZE).is_refused(IP)?;
    }
    Ok(())
}

fn standard_added(_: &Device) -> TestResult {
    let memory = page()?;
    elsewhere(|device| {
        with_resource(device, flags::RESOURCE, |resource| {
            let mut create = Create::over(device, 0, memory.address(), PAGE_SIZE);
            create.resource = resource;
            create.is_refused(IP)
        })
    })
}

/// Runs `body` in a child process, whose handle numbers are its own: it may use some up.
fn elsewhere(body: impl FnOnce(&Device) -> TestResult) -> TestResult {
    selftests::child::in_child(|| body(&fixture::device()?))
}

fn too_much(device: &Device) -> TestResult {
    let mut create = Create::sized(device, flags::RESOURCE, &[PAGE_SIZE]);
    for count in [4097, 0x1_0000, u32::MAX / 96 + 1, u32::MAX] {
        let mut arg = create.argument();
        arg.NumAllocations = count;
        create
            .is_refused_with(&mut arg, IP)
            .map_err(|error| format!("{count}: {error}"))?;
    }
    const MOST: usize = 64 << 10;
    let bytes = vec![7u8; MOST + 1];
    for size in [MOST + 1, u32::MAX as usize] {
        let mut arg = create.argument();
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) =
            (bytes.as_ptr() as u64, size as u32);
        create.is_refused_with(&mut arg, IP)?;
        let mut arg = create.argument();
        arg.__bindgen_anon_1.pPrivateDriverData = bytes.as_ptr() as u64;
        arg.PrivateDriverDataSize = size as u32;
        create.is_refused_with(&mut arg, IP)?;
        let mut arg = create.argument();
        create.infos[0].pPrivateDriverData = bytes.as_ptr() as u64;
        create.infos[0].PrivateDriverDataSize = size as u32;
        create.is_refused_with(&mut arg, IP)?;
    }
    // A size without bytes.
    let mut arg = create.argument();
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (0, 16);
    create.is_refused_with(&mut arg, Status::ACCESS_VIOLATION)
}

/// Two conditions at once: the status is that of the line further up.
fn order(device: &Device) -> TestResult {
    let memory = page()?;
    let bogus = 0x1ead_beed;
    let both: [(&str, Status, u32, Spoil); 9] = [
        ("line 1 before 5", IP, 0, |_, arg| arg.hDevice = 0),
        (
            "line 2 (NtSecuritySharing) before 5",
            IP,
            flags::NT_SECURITY,
            |_, _| {},
        ),
        (
            "line 2 (reserved bits) before 5",
            IP,
            0x8000_0000,
            |_, _| {},
        ),
        (
            "line 2 (both kinds of memory) before 5",
            IP,
            flags::SECTION,
            |_, _| {},
        ),
        ("line 3 (type) before 5", IP, 0, |create, _| {
            create.standard.Type = 2
        }),
        ("line 3 (count) before 5", IP, 0, |_, arg| {
            arg.NumAllocations = 2
        }),
        ("line 5 before 6", IH, flags::RESOURCE, |_, _| {}),
        ("line 5 before 7", IH, flags::SHARED, |_, _| {}),
        ("line 5 before 8", IH, 0, |_, _| {}),
    ];
    for (what, status, bits, spoil) in both {
        let mut create = Create::over(device, bits, memory.address(), PAGE_SIZE);
        create.resource = bogus;
        let mut arg = create.argument();
        spoil(&mut create, &mut arg);
        refused(&fixture::raw()?, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    // Line 4 before 5; 5 before 9.
    let mut create = Create::sized(device, flags::SYSTEM_MEMORY, &[PAGE_SIZE]);
    create.resource = bogus;
    create.is_refused(IP)?;
    let mut create = Create::sized(device, 0, &[PAGE_SIZE]);
    create.resource = bogus;
    let mut arg = create.argument();
    arg.NumAllocations = 4097;
    create.is_refused_with(&mut arg, IH)
}
