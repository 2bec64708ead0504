// SPDX-License-Identifier: MIT OR Apache-2.0
//! dma-bufs as allocations (RES-87, RES-22): our own ones, and what is the same for all others.
//! What each exporter could do otherwise is in `exporters.rs`.

use std::os::fd::{FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use rustix::io::Errno;
use selftests::blocked::Blocked;
use selftests::call::succeeds;
use selftests::dma_buf::{exporter, udmabuf, Vgem};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{export, flags, query_object, slot, Create, PAGE_SIZE};
use selftests::{ensure_eq, fixture, Suite, TestResult};

const PAGES: u32 = 8;
const SIZE: u64 = PAGES as u64 * PAGE_SIZE;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-87 our own: the same storage, the same dma-buf",
            our_own,
        )
        .test("RES-22 RES-87 sizes beyond the dma-buf", too_large)
        .test(
            "RES-89 RES-76 destroyed while a lock waits for the exporter's device",
            destroyed_while_busy,
        )
        .test(
            "RES-89 a signal while a lock waits for the exporter's device",
            signalled_while_busy,
        )
        .test(
            "RES-21 RES-87 a mapping of a dma-buf is no memory to pin",
            not_pinned,
        )
}

fn our_own() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[SIZE]).run()?;
    made.lock()?.fill(3);
    let file = export(made.raw(), made.first(), 0)?;
    let imported = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    imported.lock()?.holds(3)?;
    imported.lock()?.fill(4);
    made.lock()?.holds(4)?;
    // Exported again it is the module's dma-buf, not one around one.
    let again = export(imported.raw(), imported.first(), 0)?;
    ensure_eq!(exporter(&again)?, exporter(&file)?);
    Region::of_file(&again, SIZE as usize)?.holds(4)?;
    drop(again);
    // The import keeps the storage, without the dma-buf and without the original.
    drop(file);
    made.destroy()?;
    imported.lock()?.holds(4)?;
    imported.destroy()
}

fn too_large() -> TestResult {
    let device = fixture::device()?;
    let (file, _memory) = udmabuf(SIZE)?;
    let watch = Watch::start()?;
    for size in [SIZE + PAGE_SIZE, 1 << 40, u64::MAX & !0xfff] {
        Create::section(&device, 0, slot(&file), size)
            .is_refused(Status::INVALID_PARAMETER)
            .map_err(|error| format!("{size:#x} bytes: {error}"))?;
    }
    watch.unchanged()?;
    let made = Create::section(&device, 0, slot(&file), PAGE_SIZE).run()?;
    made.lock()?.set(0, 1);
    ensure_eq!(Region::of_file(&file, PAGE_SIZE as usize)?.get(0), 1);
    Ok(())
}

fn not_pinned() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[SIZE]).run()?;
    let file = export(made.raw(), made.first(), 0)?;
    let memory = Region::of_file(&file, SIZE as usize)?;
    memory.fill(1);
    for bits in [0, flags::READ_ONLY] {
        Create::over(&device, bits, memory.address(), SIZE)
            .is_refused(Status::INVALID_PARAMETER)?;
    }
    memory.holds(1)
}

fn destroyed_while_busy() -> TestResult {
    let vgem = Vgem::open()?;
    let buffer = vgem.create(PAGES)?;
    let file = vgem.export(buffer)?;
    for (bits, with_device) in [
        (0, false),
        (flags::RESOURCE, false),
        (0, true),
        (flags::RESOURCE, true),
    ] {
        let device = fixture::device()?;
        let made = Create::section(&device, bits, slot(&file), SIZE).run()?;
        let mut open = opendxg_open_weak::zeroed();
        let handle = if bits == 0 {
            made.first()
        } else {
            made.resource
        };
        (open.handle, open.handle_type) = (handle.into(), OPENDXG_HANDLE_LOCAL);
        succeeds(made.raw(), &mut open)?;
        // SAFETY: just made by the call.
        let weak = unsafe { OwnedFd::from_raw_fd(open.fd) };
        let fence = vgem.fence(buffer)?;
        let mut lock = D3DKMT_LOCK2::zeroed();
        (lock.hDevice, lock.hAllocation) = (made.device, made.first());
        let raw = made.raw().clone();
        let other = raw.clone();
        let locking = Blocked::new(move || other.exec(&mut lock))?;
        let local = || -> TestResult<u32> {
            let seen = query_object(&raw, slot(&weak), OPENDXG_HANDLE_WEAK)?;
            Ok(seen.local_references)
        };
        ensure_eq!(local()?, 1);
        // The handle is gone, whatever the call still does with the memory.
        if with_device {
            let mut destroy = D3DKMT_DESTROYDEVICE {
                hDevice: made.device,
            };
            made.leak();
            succeeds(&raw, &mut destroy)?;
        } else {
            made.destroy()?;
        }
        ensure_eq!(local()?, 0);
        locking.stays()?;
        vgem.signal(fence)?;
        // It finds that nothing is left to be locked.
        ensure_eq!(locking.join()?, Ok(Status::INVALID_PARAMETER));
    }
    vgem.close(buffer)
}

extern "C" fn nothing(_: libc::c_int) {}

/// A lock that waits is interrupted by a handler, and begins again if the handler asks for that.
fn signalled_while_busy() -> TestResult {
    let vgem = Vgem::open()?;
    let buffer = vgem.create(PAGES)?;
    let file = vgem.export(buffer)?;
    let device = fixture::device()?;
    let made = Create::section(&device, 0, slot(&file), SIZE).run()?;
    for restart in [true, false] {
        // SAFETY: zero bytes are an empty action; the handler does nothing.
        let done = unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            action.sa_flags = if restart { libc::SA_RESTART } else { 0 };
            libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut())
        };
        ensure_eq!(done, 0, "sigaction");
        let fence = vgem.fence(buffer)?;
        let mut lock = D3DKMT_LOCK2::zeroed();
        (lock.hDevice, lock.hAllocation) = (made.device, made.first());
        let raw = made.raw().clone();
        let locking = Blocked::new(move || raw.exec(&mut lock))?;
        locking.signal(libc::SIGALRM)?;
        if restart {
            locking.stays()?;
            vgem.signal(fence)?;
            ensure_eq!(locking.join()?, Ok(Status::SUCCESS));
            let mut unlock = D3DKMT_UNLOCK2::zeroed();
            (unlock.hDevice, unlock.hAllocation) = (made.device, made.first());
            succeeds(made.raw(), &mut unlock)?;
        } else {
            ensure_eq!(locking.join()?, Err(Errno::INTR));
            vgem.signal(fence)?;
        }
    }
    // An import waits for nothing.
    let fence = vgem.fence(buffer)?;
    Create::section(&device, 0, slot(&file), SIZE)
        .run()?
        .destroy()?;
    vgem.signal(fence)?;
    made.destroy()?;
    vgem.close(buffer)
}
