// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations over memory of the caller (RES-21).

use opendxg::uapi::*;
use opendxg::Status;
use rustix::mm::{mprotect, MprotectFlags};
use selftests::child::{in_child, Child, Gate};
use selftests::leak::Watch;
use selftests::memory::{KERNEL_HALF, UNMAPPED};
use selftests::region::Region;
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-21 the allocation is the caller's memory",
            the_same_memory,
        )
        .test(
            "RES-21 pSystemMem without a flag is the caller's memory",
            without_flag,
        )
        .test(
            "RES-21 pSystemMem without a flag: the same refusals and the same limit",
            without_flag_refused,
        )
        .test(
            "RES-21 fork: the parent keeps the pages, the child gets copies",
            fork,
        )
        .test(
            "RES-21 memory that is unmapped stays in the allocation",
            unmapped,
        )
        .test(
            "RES-21 memory that cannot be pinned is refused",
            cannot_be_pinned,
        )
        .test("RES-21 read-only memory needs ReadOnly", read_only)
        .test(
            "RES-21 a mapping of one of our allocations or fences is refused",
            our_own,
        )
        .test("RES-21 pinned memory counts against RLIMIT_MEMLOCK", limit)
        .test("RES-21 a killed process unpins", killed)
}

fn the_same_memory() -> TestResult {
    let device = fixture::device()?;
    let size = 16 * PAGE_SIZE;
    for memory in [
        Region::private(size as usize)?,
        Region::shared(size as usize)?,
    ] {
        memory.fill(1);
        let made = Create::over(&device, 0, memory.address(), size).run()?;
        let mapping = made.lock()?;
        mapping.holds(1)?;
        mapping.fill(2);
        memory.holds(2)?;
        memory.fill(3);
        mapping.holds(3)?;
        mapping.unlock()?;
        made.destroy()?;
        memory.holds(3)?;
        // A part in the middle.
        let made = Create::over(&device, 0, memory.address() + 2 * PAGE_SIZE, PAGE_SIZE).run()?;
        made.lock()?.set(5, 0xee);
        ensure_eq!(memory.get(2 * PAGE_SIZE as usize + 5), 0xee);
        made.destroy()?;
    }
    Ok(())
}

/// Existing clients give an address alone, and expect their own pages (two entries, one with
/// memory of the module).
fn without_flag() -> TestResult {
    let device = fixture::device()?;
    let size = 4 * PAGE_SIZE;
    let memory = Region::private(size as usize)?;
    memory.fill(1);
    for bits in [0, flags::RESOURCE, flags::NT] {
        let parts = [(memory.address(), size), (0, PAGE_SIZE)];
        let mut create = Create::sized_over(&device, bits, &parts);
        let mut arg = create.argument();
        let made = create.run_argument(&mut arg)?;
        ensure_eq!(
            arg.Flags & D3DKMT_CREATEALLOCATIONFLAGS_Zeroed,
            0,
            "it is not all zero"
        );
        let mapping = made.lock_nth(0)?;
        mapping.holds(1)?;
        mapping.fill(2);
        memory.holds(2)?;
        memory.fill(1);
        mapping.holds(1)?;
        made.lock_nth(1)?.is_zero()?;
        mapping.unlock()?;
        made.destroy()?;
        memory.holds(1)?;
    }
    Ok(())
}

fn without_flag_refused() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(4 * PAGE_SIZE as usize)?;
    let address = memory.address();
    let made = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
    let mapping = made.lock()?;
    let watch = Watch::start()?;
    for (address, size) in [
        (address + 8, PAGE_SIZE),
        (address, 1 << 30),
        (mapping.address(), PAGE_SIZE),
        (UNMAPPED, PAGE_SIZE),
        (KERNEL_HALF, PAGE_SIZE),
    ] {
        Create::sized_over(&device, 0, &[(address, size)])
            .is_refused(IP)
            .map_err(|error| format!("{size:#x} bytes at {address:#x}: {error}"))?;
    }
    watch.unchanged()?;
    let place = address as usize as *mut _;
    // SAFETY: our own mapping, of which nobody holds a borrow.
    unsafe { mprotect(place, PAGE_SIZE as usize, MprotectFlags::READ) }?;
    Create::sized_over(&device, 0, &[(address, PAGE_SIZE)]).is_refused(IP)?;
    Create::sized_over(&device, flags::READ_ONLY, &[(address, PAGE_SIZE)])
        .run()?
        .destroy()
}

fn fork() -> TestResult {
    let device = fixture::device()?;
    let size = 4 * PAGE_SIZE;
    let memory = Region::private(size as usize)?;
    memory.fill(10);
    let made = Create::over(&device, 0, memory.address(), size).run()?;
    let (written, checked) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        memory.holds(10)?;
        written.wait()?;
        // The parent wrote, but not here.
        memory.holds(10)?;
        memory.fill(30);
        checked.open()
    })?;
    memory.fill(20);
    let mapping = made.lock()?;
    mapping.holds(20)?;
    written.open()?;
    checked.wait()?;
    child.join()?;
    mapping.holds(20)?;
    memory.fill(40);
    mapping.holds(40)?;
    mapping.fill(50);
    memory.holds(50)
}

fn unmapped() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(PAGE_SIZE as usize)?;
    memory.fill(7);
    let made = Create::over(&device, 0, memory.address(), PAGE_SIZE).run()?;
    drop(memory);
    made.lock()?.holds(7)?;
    made.destroy()
}

fn cannot_be_pinned() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(4 * PAGE_SIZE as usize)?;
    let hole = memory.address() + 2 * PAGE_SIZE;
    // SAFETY: our own mapping, of which nobody holds a borrow.
    unsafe {
        mprotect(
            hole as usize as *mut _,
            PAGE_SIZE as usize,
            MprotectFlags::empty(),
        )
    }?;
    let watch = Watch::start()?;
    for (address, size) in [
        (UNMAPPED, PAGE_SIZE),
        (KERNEL_HALF, PAGE_SIZE),
        (u64::MAX & !0xfff, PAGE_SIZE),
        (u64::MAX & !0xfff, 2 * PAGE_SIZE),
        (0x7fff_ffff_f000, PAGE_SIZE),
        (memory.address(), 4 * PAGE_SIZE),
        (hole, PAGE_SIZE),
    ] {
        Create::over(&device, 0, address, size)
            .is_refused(IP)
            .map_err(|error| format!("{size:#x} bytes at {address:#x}: {error}"))?;
    }
    watch.unchanged()?;
    Create::over(&device, 0, memory.address(), 2 * PAGE_SIZE)
        .run()?
        .destroy()
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(PAGE_SIZE as usize)?;
    memory.fill(4);
    let place = memory.address() as usize as *mut _;
    // SAFETY: our own mapping, of which nobody holds a borrow.
    unsafe { mprotect(place, PAGE_SIZE as usize, MprotectFlags::READ) }?;
    Create::over(&device, 0, memory.address(), PAGE_SIZE).is_refused(IP)?;
    let made = Create::over(&device, flags::READ_ONLY, memory.address(), PAGE_SIZE).run()?;
    made.lock()?.holds(4)?;
    made.destroy()
}

fn our_own() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[4 * PAGE_SIZE]).run()?;
    let locked = made.lock()?;
    let fence = device.create_fence(1)?;
    let mut mapping = mapped_fence(&device)?;
    let watch = Watch::start()?;
    for bits in [0, flags::READ_ONLY] {
        Create::over(&device, bits, locked.address(), PAGE_SIZE)
            .is_refused(IP)
            .map_err(|error| format!("a page of an allocation, flags {bits:#x}: {error}"))?;
        Create::over(&device, bits, locked.address(), 4 * PAGE_SIZE).is_refused(IP)?;
        Create::over(&device, bits, mapping.page(), PAGE_SIZE)
            .is_refused(IP)
            .map_err(|error| format!("the page of a fence, flags {bits:#x}: {error}"))?;
    }
    watch.unchanged()?;
    mapping.end()?;
    ensure_eq!(fence.value(), 1);
    locked.unlock()?;
    made.destroy()
}

/// A fence by a raw call, to know where its value is mapped.
struct Mapping {
    handle: u32,
    address: u64,
}

fn mapped_fence(device: &opendxg::Device) -> TestResult<Mapping> {
    use opendxg::raw::Argument;
    let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    arg.hDevice = device.handle().0;
    arg.Info.Type = D3DDDI_MONITORED_FENCE;
    selftests::call::succeeds(&fixture::raw()?, &mut arg)?;
    // SAFETY: the arm of a monitored fence; all arms are integers.
    let address = unsafe {
        arg.Info
            .__bindgen_anon_1
            .MonitoredFence
            .FenceValueCPUVirtualAddress
    };
    ensure!(address != 0, "no mapping");
    Ok(Mapping {
        handle: arg.hSyncObject,
        address,
    })
}

impl Mapping {
    fn page(&self) -> u64 {
        self.address & !0xfff
    }

    fn end(&mut self) -> TestResult {
        use opendxg::raw::Argument;
        let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
        arg.hSyncObject = self.handle;
        selftests::call::succeeds(&fixture::raw()?, &mut arg)
    }
}

fn limit() -> TestResult {
    in_child(|| {
        let most = 16 * PAGE_SIZE;
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        // SAFETY: a live struct; then a process without privileges.
        unsafe {
            ensure_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit), 0);
            ensure_eq!(libc::setuid(1000), 0);
        }
        let device = fixture::device()?;
        let memory = Region::private(32 * PAGE_SIZE as usize)?;
        let create = |pages: u64| Create::over(&device, 0, memory.address(), pages * PAGE_SIZE);
        create(17).is_refused(Status::NO_MEMORY)?;
        let first = create(10).run()?;
        create(7).is_refused(Status::NO_MEMORY)?;
        let second = create(6).run()?;
        create(1).is_refused(Status::NO_MEMORY)?;
        first.destroy()?;
        create(10).run()?.destroy()?;
        second.destroy()?;
        create(16).run()?.destroy()
    })
}

/// Pinned pages of the system.
fn pinned() -> TestResult<i64> {
    // Each processor counts by itself for a while.
    std::fs::read("/proc/sys/vm/stat_refresh")?;
    let text = std::fs::read_to_string("/proc/vmstat")?;
    let count = |name: &str| -> Option<i64> {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    let pinned = count("nr_foll_pin_acquired ").ok_or("vmstat without nr_foll_pin_acquired")?;
    let released = count("nr_foll_pin_released ").ok_or("vmstat without nr_foll_pin_released")?;
    Ok(pinned - released)
}

fn killed() -> TestResult {
    let before = pinned()?;
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let device = fixture::device()?;
        let memory = Region::private(64 * PAGE_SIZE as usize)?;
        let made =
            Create::over(&device, flags::RESOURCE, memory.address(), 64 * PAGE_SIZE).run()?;
        made.lock()?.leak();
        ready.open()?;
        loop {
            std::thread::park();
        }
    })?;
    ready.wait()?;
    ensure!(pinned()? >= before + 64, "64 pages were pinned");
    child.kill()?;
    selftests::time::eventually("the pages are released", || {
        pinned().is_ok_and(|now| now <= before)
    })
}
