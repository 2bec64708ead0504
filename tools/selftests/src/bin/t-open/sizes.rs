// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size rules of opening (RES-48), each member by itself, and what else is refused (RES-50).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, Device, Dxg, Status};
use selftests::call::refused;
use selftests::fds::closed_number;
use selftests::leak::Watch;
use selftests::memory::{KERNEL_HALF, UNMAPPED};
use selftests::region::Region;
use selftests::resource::{flags, Create, OpenGlobal, OpenNt, OpenResource, PAGE_SIZE};
use selftests::{ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-48 OpenResource: NumAllocations and the info array",
            || by_global(&COUNTS),
        )
        .test("RES-48 OpenResource: runtime data", || by_global(&RUNTIME))
        .test("RES-48 OpenResource: driver data", || by_global(&DRIVER))
        .test(
            "RES-48 OpenResourceFromNtHandle: NumAllocations and the info array",
            || by_nt(&NT_COUNTS),
        )
        .test("RES-48 OpenResourceFromNtHandle: runtime data", || {
            by_nt(&NT_RUNTIME)
        })
        .test("RES-48 OpenResourceFromNtHandle: driver data", || {
            by_nt(&NT_DRIVER)
        })
        .test(
            "RES-48 no runtime data size, no buffer: accepted by global handle",
            without_runtime,
        )
        .test("RES-48 a larger buffer for driver data is accepted", larger)
        .test("RES-48 the sizes of a standard allocation", standard)
        .test(
            "RES-50 by global handle: devices and handles that are none",
            global_refused,
        )
        .test(
            "RES-50 by NT handle: devices and handles that are none",
            nt_refused,
        )
        .test(
            "RES-50 RES-3 memory that cannot be written opens nothing",
            faults,
        )
}

type Spoil<T> = (&'static str, Status, fn(&mut T));

const COUNTS: [Spoil<D3DKMT_OPENRESOURCE>; 6] = [
    ("no allocation", IP, |arg| arg.NumAllocations = 0),
    ("one fewer", IP, |arg| arg.NumAllocations -= 1),
    ("one more", IP, |arg| arg.NumAllocations += 1),
    ("4097", IP, |arg| arg.NumAllocations = 4097),
    ("0xffffffff", IP, |arg| arg.NumAllocations = u32::MAX),
    ("no info array", IP, |arg| {
        arg.__bindgen_anon_1.pOpenAllocationInfo2 = 0
    }),
];

const RUNTIME: [Spoil<D3DKMT_OPENRESOURCE>; 3] = [
    ("one more", IP, |arg| arg.PrivateRuntimeDataSize += 1),
    ("one fewer", IP, |arg| arg.PrivateRuntimeDataSize -= 1),
    ("0xffffffff", IP, |arg| {
        arg.PrivateRuntimeDataSize = u32::MAX
    }),
];

const DRIVER: [Spoil<D3DKMT_OPENRESOURCE>; 5] = [
    ("one more of the resource", IP, |arg| {
        arg.ResourcePrivateDriverDataSize += 1
    }),
    ("0xffffffff of the resource", IP, |arg| {
        arg.ResourcePrivateDriverDataSize = u32::MAX
    }),
    ("one fewer of the allocations", Status::NO_MEMORY, |arg| {
        arg.TotalPrivateDriverDataBufferSize -= 1;
    }),
    ("none of the allocations", Status::NO_MEMORY, |arg| {
        arg.TotalPrivateDriverDataBufferSize = 0;
    }),
    ("one allocation's only", Status::NO_MEMORY, |arg| {
        arg.TotalPrivateDriverDataBufferSize /= 2;
    }),
];

const NT_COUNTS: [Spoil<D3DKMT_OPENRESOURCEFROMNTHANDLE>; 5] = [
    ("no allocation", IP, |arg| arg.NumAllocations = 0),
    ("one fewer", IP, |arg| arg.NumAllocations -= 1),
    ("one more", IP, |arg| arg.NumAllocations += 1),
    ("0xffffffff", IP, |arg| arg.NumAllocations = u32::MAX),
    ("no info array", IP, |arg| arg.pOpenAllocationInfo2 = 0),
];

const NT_RUNTIME: [Spoil<D3DKMT_OPENRESOURCEFROMNTHANDLE>; 5] = [
    ("no size", IP, |arg| arg.PrivateRuntimeDataSize = 0),
    ("one more", IP, |arg| arg.PrivateRuntimeDataSize += 1),
    ("one fewer", IP, |arg| arg.PrivateRuntimeDataSize -= 1),
    ("0xffffffff", IP, |arg| {
        arg.PrivateRuntimeDataSize = u32::MAX
    }),
    ("no buffer", IP, |arg| arg.pPrivateRuntimeData = 0),
];

const NT_DRIVER: [Spoil<D3DKMT_OPENRESOURCEFROMNTHANDLE>; 5] = [
    ("one more of the resource", IP, |arg| {
        arg.ResourcePrivateDriverDataSize += 1
    }),
    ("0xffffffff of the resource", IP, |arg| {
        arg.ResourcePrivateDriverDataSize = u32::MAX
    }),
    ("no buffer of the allocations", IP, |arg| {
        arg.pTotalPrivateDriverDataBuffer = 0
    }),
    ("one fewer of the allocations", Status::NO_MEMORY, |arg| {
        arg.TotalPrivateDriverDataBufferSize -= 1;
    }),
    ("none of the allocations", Status::NO_MEMORY, |arg| {
        arg.TotalPrivateDriverDataBufferSize = 0;
    }),
];

fn sample(device: &Device, bits: u32) -> TestResult<OpenResource> {
    Create::sized(device, bits, &[PAGE_SIZE; 2])
        .with_runtime(&[5; 0x58])
        .run()
}

/// Each refusal uses no handle and leaves nothing; afterwards the resource can be opened.
fn without_effect(refusals: impl FnOnce() -> TestResult) -> TestResult {
    let watch = Watch::start()?;
    let before = fixture::next_handle()?;
    refusals()?;
    ensure_eq!(
        fixture::next_handle()?,
        before + 0x40,
        "handle numbers used by refusals"
    );
    watch.unchanged()
}

fn by_global(spoilt: &[Spoil<D3DKMT_OPENRESOURCE>]) -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::GLOBAL)?;
    without_effect(|| {
        for &(what, status, spoil) in spoilt {
            let mut open = OpenGlobal::new(&device, made.global)?;
            spoil(&mut open.arg);
            open.is_refused(status)
                .map_err(|error| format!("{what}: {error}"))?;
        }
        Ok(())
    })?;
    OpenGlobal::new(&device, made.global)?.run()?.destroy()
}

fn by_nt(spoilt: &[Spoil<D3DKMT_OPENRESOURCEFROMNTHANDLE>]) -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::NT)?;
    let nt = made.share()?;
    without_effect(|| {
        for &(what, status, spoil) in spoilt {
            let mut open = OpenNt::new(&device, &nt)?;
            spoil(&mut open.arg);
            open.is_refused(status)
                .map_err(|error| format!("{what}: {error}"))?;
        }
        Ok(())
    })?;
    OpenNt::new(&device, &nt)?.run()?.destroy()
}

fn without_runtime() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::GLOBAL)?;
    for (size, is_null) in [(0, false), (0, true), (0x58, true)] {
        let mut open = OpenGlobal::new(&device, made.global)?;
        open.arg.PrivateRuntimeDataSize = size;
        if is_null {
            open.arg.pPrivateRuntimeData = 0;
        }
        open.run()?.destroy()?;
        let untouched = [selftests::resource::UNTOUCHED; 0x58];
        ensure_eq!(open.buffers.runtime, untouched, "nothing is copied");
    }
    Ok(())
}

fn larger() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::GLOBAL)?;
    let shared = sample(&device, flags::NT)?;
    let nt = shared.share()?;
    let mut big = vec![0u64; 1000];
    let mut open = OpenGlobal::new(&device, made.global)?;
    let exact = open.arg.TotalPrivateDriverDataBufferSize;
    open.arg.pTotalPrivateDriverDataBuffer = big.as_mut_ptr() as u64;
    open.arg.TotalPrivateDriverDataBufferSize = 8000;
    open.buffers.total = big;
    open.run()?.destroy()?;
    ensure_eq!(
        open.arg.TotalPrivateDriverDataBufferSize,
        exact,
        "bytes written"
    );
    let mut big = vec![0u64; 1000];
    let mut open = OpenNt::new(&device, &nt)?;
    open.arg.pTotalPrivateDriverDataBuffer = big.as_mut_ptr() as u64;
    open.arg.TotalPrivateDriverDataBufferSize = 8000;
    open.buffers.total = big;
    open.run()?.destroy()?;
    ensure_eq!(
        open.arg.TotalPrivateDriverDataBufferSize,
        exact,
        "bytes written"
    );
    Ok(())
}

fn standard() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(0x1000)?;
    let made = Create::over(&device, flags::GLOBAL, memory.address(), 0x1000).run()?;
    let mut open = OpenGlobal::new(&device, made.global)?;
    ensure_eq!(open.arg.ResourcePrivateDriverDataSize, 0);
    open.arg.ResourcePrivateDriverDataSize = 1;
    open.is_refused(IP)?;
    open.arg.ResourcePrivateDriverDataSize = 0;
    open.arg.PrivateRuntimeDataSize = 1;
    open.is_refused(IP)?;
    open.arg.PrivateRuntimeDataSize = 0;
    open.run()?.destroy()
}

fn global_refused() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::GLOBAL)?;
    let shared = sample(&device, flags::NT)?;
    let nt = shared.share()?;
    let dead = sample(&device, flags::GLOBAL)?;
    let dead_global = dead.global;
    dead.destroy()?;
    refused(&fixture::raw()?, &mut D3DKMT_OPENRESOURCE::zeroed(), IP)?;
    without_effect(|| {
        let mut open = OpenGlobal::new(&device, made.global)?;
        let adapter = device.adapter().handle().0;
        for number in [0, 1, u32::MAX, adapter, made.resource, made.global] {
            open.arg.hDevice = number;
            open.is_refused(IP)?;
        }
        open.arg.hDevice = device.handle().0;
        let strangers = [
            0,
            2,
            u32::MAX,
            made.resource,
            made.first(),
            made.global & !2,
            made.global | 1,
            made.global ^ 0x40,
            dead_global,
            nt.as_raw_fd() as u32,
            shared.resource,
        ];
        for number in strangers {
            open.arg.hGlobalShare = number;
            open.is_refused(IP)
                .map_err(|error| format!("{number:#x}: {error}"))?;
        }
        Ok(())
    })
}

fn nt_refused() -> TestResult {
    let device = fixture::device()?;
    let named = sample(&device, flags::GLOBAL)?;
    let made = sample(&device, flags::NT)?;
    let nt = made.share()?;
    let fence = device.create_shareable_fence(0)?.share(Access::ALL)?;
    let (node, file) = (Dxg::open()?, selftests::fds::memfd()?);
    refused(
        &fixture::raw()?,
        &mut D3DKMT_OPENRESOURCEFROMNTHANDLE::zeroed(),
        IP,
    )?;
    without_effect(|| {
        let mut open = OpenNt::new(&device, &nt)?;
        let adapter = device.adapter().handle().0;
        for number in [0, 1, u32::MAX, adapter, made.resource, named.global] {
            open.arg.hDevice = number;
            open.is_refused(IP)?;
        }
        open.arg.hDevice = device.handle().0;
        let closed = closed_number()? as u64;
        let high = (1 << 32) | nt.as_raw_fd() as u64;
        for number in [
            0,
            closed,
            u64::MAX,
            high,
            u64::from(named.global),
            u64::from(made.resource),
        ] {
            open.arg.hNtHandle = number;
            open.is_refused(Status::INVALID_HANDLE)
                .map_err(|error| format!("{number:#x}: {error}"))?;
        }
        for fd in [node.as_fd(), file.as_fd(), fence.as_fd()] {
            open.arg.hNtHandle = fd.as_raw_fd() as u64;
            open.is_refused(Status::OBJECT_TYPE_MISMATCH)?;
        }
        Ok(())
    })
}

fn faults() -> TestResult {
    let device = fixture::device()?;
    let named = sample(&device, flags::GLOBAL)?;
    let made = sample(&device, flags::NT)?;
    let nt = made.share()?;
    let fault = Status::ACCESS_VIOLATION;
    let raw = fixture::raw()?;
    without_effect(|| {
        for address in [UNMAPPED, KERNEL_HALF, u64::MAX & !0xfff] {
            let spoilt: [fn(&mut D3DKMT_OPENRESOURCE, u64); 3] = [
                |arg, address| arg.__bindgen_anon_1.pOpenAllocationInfo2 = address,
                |arg, address| arg.pPrivateRuntimeData = address,
                |arg, address| arg.pTotalPrivateDriverDataBuffer = address,
            ];
            for spoil in spoilt {
                let mut open = OpenGlobal::new(&device, named.global)?;
                spoil(&mut open.arg, address);
                // Buffers before the bad one may have been written.
                refused(&raw, &mut open.arg, fault)?;
            }
            let spoilt: [fn(&mut D3DKMT_OPENRESOURCEFROMNTHANDLE, u64); 3] = [
                |arg, address| arg.pOpenAllocationInfo2 = address,
                |arg, address| arg.pPrivateRuntimeData = address,
                |arg, address| arg.pTotalPrivateDriverDataBuffer = address,
            ];
            for spoil in spoilt {
                let mut open = OpenNt::new(&device, &nt)?;
                spoil(&mut open.arg, address);
                refused(&raw, &mut open.arg, fault)?;
            }
        }
        Ok(())
    })
}
