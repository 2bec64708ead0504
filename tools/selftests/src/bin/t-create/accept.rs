// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a success returns (RES-18), the flags that are accepted (RES-20), handle numbers (RES-6).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::uapi::*;
use opendxg::FdInfo;
use selftests::child::in_child;
use selftests::poison::POISON;
use selftests::region::Region;
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-19 a standard allocation of type CROSSADAPTER is memory of ours",
            cross_adapter,
        )
        .test(
            "RES-18 one existing heap, without and with a resource",
            existing_heap,
        )
        .test(
            "RES-18 RES-9 a global handle only where it is asked for",
            global,
        )
        .test("RES-18 sizes that are 0 stay 0", sizes)
        .test(
            "RES-6 the resource, then its allocations, +0x40 each",
            order,
        )
        .test("RES-20 every flag of the list is accepted", accepted)
        .test("RES-20 a back buffer is remembered", back_buffer)
        .test(
            "RES-20 Zeroed is an output: of new memory, and of no other",
            zeroed_flag,
        )
        .test(
            "RES-20 kernel-only and unsupported flags are refused",
            unsupported,
        )
        .test(
            "RES-27 new memory is zero, also with AllowNotZeroed",
            zeroed,
        )
        .test(
            "RES-27 what one process wrote is never seen by the next",
            never_seen,
        )
}

fn existing_heap() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(0x3000)?;
    for bits in [0, flags::RESOURCE] {
        let before = fixture::next_handle()?;
        let mut create = Create::over(&device, bits, memory.address(), 0x3000);
        let mut arg = create.argument();
        let made = create.run_argument(&mut arg)?;
        ensure_eq!(arg.hGlobalShare, 0);
        ensure_eq!(arg.hPrivateRuntimeResourceHandle, u64::from(POISON));
        ensure_eq!(arg.NumAllocations, 1);
        let mut next = before;
        if bits == 0 {
            ensure_eq!(arg.hResource, 0);
        } else {
            ensure_eq!(arg.hResource, next);
            next += 0x40;
        }
        ensure_eq!(made.first(), next);
        ensure_eq!(
            create.infos[0].GpuVirtualAddress,
            0,
            "not mapped for the GPU"
        );
        made.destroy()?;
    }
    Ok(())
}

fn global() -> TestResult {
    let device = fixture::device()?;
    for (bits, is_global) in [
        (0, false),
        (flags::RESOURCE, false),
        (flags::GLOBAL, true),
        (flags::NT, false),
    ] {
        let made = Create::sized(&device, bits, &[PAGE_SIZE]).run()?;
        let has_form = made.global & 0xc000_0000 != 0 && made.global & 0x3f == 2;
        ensure_eq!(has_form, is_global, "flags {bits:#x}: {:#x}", made.global);
        ensure!(
            is_global || made.global == 0,
            "flags {bits:#x}: {:#x}",
            made.global
        );
        made.destroy()?;
    }
    Ok(())
}

fn sizes() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(0x1000)?;
    let mut create = Create::over(&device, flags::RESOURCE, memory.address(), 0x1000);
    let mut arg = create.argument();
    create.run_argument(&mut arg)?.destroy()?;
    ensure_eq!(arg.PrivateRuntimeDataSize, 0);
    ensure_eq!(arg.PrivateDriverDataSize, 0);
    ensure_eq!(create.infos[0].PrivateDriverDataSize, 0);
    ensure_eq!(
        arg.Flags & !D3DKMT_CREATEALLOCATIONFLAGS_Zeroed,
        create.flags
    );
    Ok(())
}

fn order() -> TestResult {
    let device = fixture::device()?;
    for (bits, count) in [
        (flags::RESOURCE, 1),
        (flags::RESOURCE, 7),
        (0, 3),
        (flags::NT, 33),
    ] {
        let before = fixture::next_handle()?;
        let made = Create::sized(&device, bits, &vec![PAGE_SIZE; count]).run()?;
        made.is_in_order()?;
        let handles = count as u32 + u32::from(made.resource != 0);
        ensure_eq!(made.allocations.len(), count);
        ensure_eq!(made.allocations[count - 1], before + 0x40 * (handles - 1));
        made.destroy()?;
    }
    Ok(())
}

fn accepted() -> TestResult {
    let device = fixture::device()?;
    for bits in [
        D3DKMT_CREATEALLOCATIONFLAGS_SwapChainBackBuffer,
        D3DKMT_CREATEALLOCATIONFLAGS_CrossAdapter,
        D3DKMT_CREATEALLOCATIONFLAGS_AllowNotZeroed,
        D3DKMT_CREATEALLOCATIONFLAGS_PhysicallyContiguous,
        D3DKMT_CREATEALLOCATIONFLAGS_NoKmdAccess,
        D3DKMT_CREATEALLOCATIONFLAGS_ReadOnly,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateShared,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateShared | D3DKMT_CREATEALLOCATIONFLAGS_NonSecure,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateShared
            | D3DKMT_CREATEALLOCATIONFLAGS_RestrictSharedAccess,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateShared | D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing,
        flags::SHARED | flags::CROSS_ADAPTER | flags::NT_SECURITY,
    ] {
        let mut create = Create::sized(&device, flags::RESOURCE | bits, &[PAGE_SIZE]);
        create
            .run()
            .map_err(|error| format!("{bits:#x}: {error}"))?
            .destroy()?;
    }
    // Neither CreateShared nor CrossAdapter is needed with a standard allocation.
    let memory = Region::private(0x1000)?;
    for bits in [
        0,
        flags::READ_ONLY,
        flags::RESOURCE,
        flags::RESOURCE | flags::CROSS_ADAPTER,
    ] {
        Create::over(&device, bits, memory.address(), 0x1000)
            .run()?
            .destroy()?;
    }
    Ok(())
}

/// Memory of the module, zero, which the kernel describes. t-many-adapters opens it on others.
fn cross_adapter() -> TestResult {
    let device = fixture::device()?;
    for bits in [0, flags::RESOURCE, flags::GLOBAL, flags::NT] {
        let mut create = Create::cross_adapter(&device, bits, 4 * PAGE_SIZE);
        let mut arg = create.argument();
        let made = create.run_argument(&mut arg)?;
        ensure_eq!(
            arg.Flags,
            create.flags | D3DKMT_CREATEALLOCATIONFLAGS_Zeroed
        );
        let mapping = made.lock()?;
        mapping.is_zero()?;
        mapping.fill(9);
        mapping.unlock()?;
        made.lock()?.holds(9)?;
        made.destroy()?;
    }
    Ok(())
}

fn back_buffer() -> TestResult {
    let device = fixture::device()?;
    for (bits, expected) in [
        (0, "0"),
        (D3DKMT_CREATEALLOCATIONFLAGS_SwapChainBackBuffer, "1"),
    ] {
        let made = Create::sized(&device, flags::NT | bits, &[PAGE_SIZE]).run()?;
        let nt = made.share()?;
        let info = FdInfo::read(nt.as_fd())?;
        ensure_eq!(info.get("dxg-back-buffer"), Some(expected));
    }
    Ok(())
}

fn zeroed_flag() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(0x1000)?;
    memory.fill(1);
    let file = selftests::fds::memfd()?;
    rustix::fs::ftruncate(&file, 0x1000)?;
    let number = file.as_raw_fd() as u64;
    let zeroed = D3DKMT_CREATEALLOCATIONFLAGS_Zeroed;
    for given in [0, zeroed, D3DKMT_CREATEALLOCATIONFLAGS_AllowNotZeroed] {
        for (mut create, expected) in [
            (Create::sized(&device, given, &[PAGE_SIZE]), zeroed),
            (Create::over(&device, given, memory.address(), 0x1000), 0),
            (Create::section(&device, given, number, 0x1000), 0),
        ] {
            let mut arg = create.argument();
            create.run_argument(&mut arg)?.destroy()?;
            ensure_eq!(arg.Flags & zeroed, expected, "flags {:#x}", create.flags);
            ensure_eq!(arg.Flags | zeroed, create.flags | zeroed, "other flags");
        }
    }
    Ok(())
}

fn unsupported() -> TestResult {
    let device = fixture::device()?;
    let reserved = (0..32)
        .map(|bit| 1 << bit)
        .filter(|bit| bit & D3DKMT_CREATEALLOCATIONFLAGS_Reserved != 0);
    let known = [
        D3DKMT_CREATEALLOCATIONFLAGS_CreateProtected,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateWriteCombined,
        D3DKMT_CREATEALLOCATIONFLAGS_CreateCached,
        D3DKMT_CREATEALLOCATIONFLAGS_OpenCrossAdapter,
        D3DKMT_CREATEALLOCATIONFLAGS_PartialSharedCreation,
        D3DKMT_CREATEALLOCATIONFLAGS_WriteWatch,
        D3DKMT_CREATEALLOCATIONFLAGS_SharedDisplayable,
    ];
    for bits in known.into_iter().chain(reserved) {
        Create::sized(&device, flags::RESOURCE | bits, &[PAGE_SIZE])
            .is_refused(opendxg::Status::INVALID_PARAMETER)
            .map_err(|error| format!("flag {bits:#x}: {error}"))?;
    }
    Ok(())
}

fn zeroed() -> TestResult {
    let device = fixture::device()?;
    let both = [0, D3DKMT_CREATEALLOCATIONFLAGS_AllowNotZeroed];
    // The module keeps the last file of up to 16 pages.
    for (bits, pages) in both
        .into_iter()
        .flat_map(|bits| [1, 16, 17, 64].map(|pages| (bits, pages)))
    {
        let size = pages * PAGE_SIZE;
        for seed in 1..5 {
            let made = Create::sized(&device, bits, &[size, size]).run()?;
            for index in 0..2 {
                let memory = made.lock_nth(index)?;
                memory.is_zero()?;
                memory.fill(seed);
            }
            made.destroy()?;
        }
    }
    Ok(())
}

fn never_seen() -> TestResult {
    let size = 256 * PAGE_SIZE;
    for seed in 0..3 {
        in_child(|| {
            let made = Create::sized(&fixture::device()?, flags::RESOURCE, &[size]).run()?;
            let memory = made.lock()?;
            memory.is_zero()?;
            memory.fill(seed);
            memory.leak();
            // Ends with the process.
            made.leak();
            Ok(())
        })?;
    }
    let made = Create::sized(&fixture::device()?, flags::RESOURCE, &[size]).run()?;
    let memory = made.lock()?;
    memory.is_zero()
}
