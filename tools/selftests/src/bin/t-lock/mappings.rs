// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a mapping is: shared, inherited, out of core dumps, read-only where it has to be (RES-89,
//! RES-108).

use core::ffi::c_void;

use rustix::io::Errno;
use rustix::mm::{mprotect, munmap, MprotectFlags};
use selftests::child::{in_child, Child};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{
    flags, Create, OpenGlobal, OpenNt, OpenResource, PAGE_SIZE, READ_ACCESS,
};
use selftests::sharing::share_raw;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-89 the mapping is shared and left out of core dumps",
            flags_of_the_mapping,
        )
        .test("RES-89 the mapping is inherited over fork", inherited)
        .test(
            "RES-89 every opener of a shared allocation may lock it",
            openers,
        )
        .test(
            "RES-89 RES-35 RES-108 opened read-only: mapped read-only, for ever",
            read_only,
        )
        .test(
            "RES-89 standard allocations can be locked as well",
            standard,
        )
        .test(
            "RES-89 a client that unmaps, or maps elsewhere, harms only itself",
            unmapped_by_client,
        )
        .test(
            "RES-89 a process that ends with locks leaves nothing",
            left_locked,
        )
        .test(
            "RES-89 large allocations are mapped as they are touched",
            large,
        )
}

fn sample(bits: u32) -> TestResult<OpenResource> {
    Create::sized(&fixture::device()?, bits, &[4 * PAGE_SIZE]).run()
}

/// The flags that the kernel shows for the mapping at an address.
fn vm_flags(address: u64) -> TestResult<Vec<String>> {
    let smaps = std::fs::read_to_string("/proc/self/smaps")?;
    let start = format!("{address:x}-");
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
    let flags = lines.find_map(|line| line.strip_prefix("VmFlags:"));
    let flags = flags.ok_or("no such mapping")?;
    Ok(flags.split_whitespace().map(String::from).collect())
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|other| other == flag)
}

fn flags_of_the_mapping() -> TestResult {
    let made = sample(0)?;
    let mapping = made.lock()?;
    let flags = vm_flags(mapping.address())?;
    for flag in ["rd", "wr", "sh", "dd"] {
        ensure!(has(&flags, flag), "{flag} is not in {flags:?}");
    }
    for flag in ["ex", "dc"] {
        ensure!(!has(&flags, flag), "{flag} is in {flags:?}");
    }
    Ok(())
}

fn inherited() -> TestResult {
    let made = sample(0)?;
    let mapping = made.lock()?;
    mapping.fill(1);
    in_child(|| {
        mapping.holds(1)?;
        mapping.fill(2);
        Ok(())
    })?;
    mapping.holds(2)?;
    // It stays in the child after the unlock, with the memory.
    let address = mapping.address();
    let size = mapping.size();
    let gate = selftests::child::Gate::new()?;
    let child = Child::spawn(|| {
        gate.wait()?;
        // SAFETY: inherited; nobody unmaps it in this process.
        let own = unsafe { Region::adopt(address, size) };
        own.holds(2)
    })?;
    mapping.unlock()?;
    gate.open()?;
    child.join()
}

fn openers() -> TestResult {
    let named = sample(flags::GLOBAL)?;
    let shared = sample(flags::NT)?;
    let nt = shared.share()?;
    let (first, second) = (named.lock()?, shared.lock()?);
    first.fill(1);
    second.fill(2);
    in_child(|| {
        let device = fixture::device()?;
        let opened = OpenGlobal::new(&device, named.global)?.run()?;
        let mapping = opened.lock()?;
        mapping.holds(1)?;
        mapping.fill(3);
        drop(mapping);
        let opened = OpenNt::new(&device, &nt)?.run()?;
        let mapping = opened.lock()?;
        mapping.holds(2)?;
        mapping.fill(4);
        Ok(())
    })?;
    first.holds(3)?;
    second.holds(4)
}

fn rights(mapping: &Region, rights: MprotectFlags) -> rustix::io::Result<()> {
    let start = mapping.address() as usize as *mut c_void;
    // SAFETY: a mapping that nobody borrows from.
    unsafe { mprotect(start, mapping.size(), rights) }
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let made = sample(flags::NT)?;
    made.lock()?.fill(5);
    let nt = share_raw(made.raw(), &[made.resource], READ_ACCESS, 0)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let mapping = opened.lock()?;
    mapping.holds(5)?;
    let flags = vm_flags(mapping.address())?;
    for flag in ["wr", "mw"] {
        ensure!(!has(&flags, flag), "{flag} is in {flags:?}");
    }
    ensure_eq!(
        rights(&mapping, MprotectFlags::READ | MprotectFlags::WRITE),
        Err(Errno::ACCESS)
    );
    rights(&mapping, MprotectFlags::READ)?;
    no_core();
    Child::spawn(|| {
        mapping.set(0, 1);
        Ok(())
    })?
    .dies_of(libc::SIGSEGV)?;
    // Nor does another way around it help.
    let own = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/proc/self/mem")?;
    let forced = std::os::unix::fs::FileExt::write_all_at(&own, &[1], mapping.address());
    ensure!(forced.is_err(), "written through /proc/self/mem");
    mapping.holds(5)
}

/// Children that die of a signal leave no file.
fn no_core() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a live struct.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

fn standard() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(4 * PAGE_SIZE as usize)?;
    memory.fill(7);
    let made = Create::over(
        &device,
        flags::READ_ONLY,
        memory.address(),
        memory.size() as u64,
    )
    .run()?;
    let mapping = made.lock()?;
    mapping.holds(7)?;
    let flags = vm_flags(mapping.address())?;
    ensure!(!has(&flags, "mw"), "{flags:?}");
    memory.fill(8);
    mapping.holds(8)
}

fn unmapped_by_client() -> TestResult {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[8 * PAGE_SIZE]).run()?;
    made.lock()?.fill(3);
    // All of it, and a part in the middle.
    for (offset, size) in [(0, 8 * PAGE_SIZE), (3 * PAGE_SIZE, 2 * PAGE_SIZE)] {
        let mapping = made.lock()?;
        let start = (mapping.address() + offset) as usize as *mut c_void;
        // SAFETY: nobody borrows from it.
        unsafe { munmap(start, size as usize) }?;
        let other = Region::private(size as usize)?;
        other.fill(4);
        mapping.unlock()?;
        other.holds(4)?;
        made.lock()?.holds(3)?;
    }
    // Rights may be given up; the next lock has them again.
    let mapping = made.lock()?;
    rights(&mapping, MprotectFlags::READ)?;
    mapping.unlock()?;
    made.lock()?.fill(5);
    made.lock()?.holds(5)?;
    made.destroy()?;
    device.destroy()?;
    watch.ends_clean()
}

fn left_locked() -> TestResult {
    let watch = Watch::start()?;
    for _ in 0..5 {
        in_child(|| {
            let made = sample(flags::RESOURCE)?;
            let mapping = made.lock()?;
            mapping.fill(1);
            mapping.leak();
            made.leak();
            Ok(())
        })?;
    }
    watch.ends_clean()
}

fn large() -> TestResult {
    let device = fixture::device()?;
    let size = 64 << 20;
    let made = Create::sized(&device, 0, &[size]).run()?;
    let mapping = made.lock()?;
    for at in (0..size as usize).step_by(1 << 20) {
        mapping.set_word(at, at as u32 + 1);
    }
    for at in (0..size as usize).step_by(1 << 20) {
        ensure_eq!(mapping.word(at), at as u32 + 1);
        ensure_eq!(mapping.word(at + 0x8000), 0);
    }
    Ok(())
}
