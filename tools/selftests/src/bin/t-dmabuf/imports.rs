// SPDX-License-Identifier: MIT OR Apache-2.0
//! dma-bufs as allocations (RES-87, RES-22): of the kernel's own exporters, and our own ones.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::blocked::Blocked;
use selftests::call::succeeds;
use selftests::child::in_child;
use selftests::dma_buf::{exporter, size, udmabuf, Vgem};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{export, flags, query_object, Create, OpenNt, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Outcome, Suite};

const PAGES: u32 = 8;
const SIZE: u64 = PAGES as u64 * PAGE_SIZE;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-87 udmabuf: the same bytes both ways", || {
            both_ways(from_udmabuf)
        })
        .test("RES-87 vgem: the same bytes both ways", || {
            both_ways(from_vgem)
        })
        .test(
            "RES-87 our own: the same storage, the same dma-buf",
            our_own,
        )
        .test("RES-87 the exporter is kept", || kept(from_udmabuf))
        .test("RES-87 the exporter is kept (vgem)", || kept(from_vgem))
        .test(
            "RES-87 an import is shared like any other allocation",
            || shared(from_udmabuf),
        )
        .test(
            "RES-87 an import of vgem is shared like any other allocation",
            || shared(from_vgem),
        )
        .test("RES-87 what is exported again is the exporter's", || {
            again(from_udmabuf)
        })
        .test("RES-22 RES-87 sizes beyond the dma-buf", too_large)
        .test(
            "RES-89 RES-76 destroyed while a lock waits for the exporter's device",
            destroyed_while_busy,
        )
        .test(
            "RES-21 RES-87 a mapping of a dma-buf is no memory to pin",
            not_pinned,
        )
}

/// Somebody else's dma-buf, and what keeps it usable.
type Maker = fn() -> Outcome<(OwnedFd, Box<dyn std::any::Any>)>;

fn from_udmabuf() -> Outcome<(OwnedFd, Box<dyn std::any::Any>)> {
    let (file, memory) = udmabuf(SIZE)?;
    ensure_eq!(exporter(&file)?, "udmabuf");
    Ok((file, Box::new(memory)))
}

fn from_vgem() -> Outcome<(OwnedFd, Box<dyn std::any::Any>)> {
    let vgem = Vgem::open()?;
    let handle = vgem.create(PAGES)?;
    let file = vgem.export(handle)?;
    ensure!(exporter(&file)? != "opendxg");
    Ok((file, Box::new(vgem)))
}

fn slot(fd: impl AsFd) -> u64 {
    fd.as_fd().as_raw_fd() as u64
}

fn both_ways(make: Maker) -> Outcome {
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(1);
    let device = fixture::device()?;
    for bits in [0, flags::RESOURCE, flags::GLOBAL] {
        let made = Create::section(&device, bits, slot(&file), SIZE).run()?;
        let ours = made.lock()?;
        ours.holds(1)?;
        ours.fill(2);
        theirs.holds(2)?;
        theirs.fill(1);
        ours.holds(1)?;
        ours.unlock()?;
        made.destroy()?;
    }
    Ok(())
}

fn our_own() -> Outcome {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[SIZE]).run()?;
    made.lock()?.fill(3);
    let file = export(made.raw(), made.first(), 0)?;
    let imported = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    imported.lock()?.holds(3)?;
    imported.lock()?.fill(4);
    made.lock()?.holds(4)?;
    // Exported again it is a dma-buf of ours, not one around one.
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

fn kept(make: Maker) -> Outcome {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    let (file, keep) = make()?;
    Region::of_file(&file, SIZE as usize)?.fill(5);
    let made = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    drop((file, keep));
    made.lock()?.holds(5)?;
    made.lock()?.fill(6);
    made.lock()?.holds(6)?;
    made.destroy()?;
    device.destroy()?;
    watch.ends_clean()
}

fn shared(make: Maker) -> Outcome {
    let device = fixture::device()?;
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(7);
    let made = Create::section(&device, flags::NT, slot(&file), SIZE).run()?;
    let nt = made.share()?;
    made.destroy()?;
    in_child(|| {
        let device = fixture::device()?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        opened.lock()?.holds(7)?;
        opened.lock()?.fill(8);
        opened.destroy()
    })?;
    theirs.holds(8)
}

fn again(make: Maker) -> Outcome {
    let device = fixture::device()?;
    let (file, _keep) = make()?;
    let made = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    let back = export(made.raw(), made.first(), 0)?;
    ensure_eq!(size(&back)?, SIZE);
    Region::of_file(&file, SIZE as usize)?.fill(9);
    Region::of_file(&back, SIZE as usize)?.holds(9)
}

fn too_large() -> Outcome {
    let device = fixture::device()?;
    let (file, _keep) = from_udmabuf()?;
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

fn not_pinned() -> Outcome {
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

fn destroyed_while_busy() -> Outcome {
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
        let local = || -> Outcome<u32> {
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
