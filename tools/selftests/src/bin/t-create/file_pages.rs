// SPDX-License-Identifier: MIT OR Apache-2.0
//! What allocations over memory files do to the pages of the file, and to others who have it
//! (RES-22).

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{
    fallocate, fcntl_add_seals, ftruncate, memfd_create, FallocateFlags, MemfdFlags, Mode, OFlags,
    SealFlags,
};
use rustix::io::Errno;
use rustix::pipe::{splice, SpliceFlags};
use selftests::region::Region;
use selftests::resource::{flags, slot, Create, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, skip, Failure, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "L RES-22 a file lent for reading is sealed when it is given back",
            sealed,
        )
        .test(
            "L RES-22 holes in a file do not make an allocation more than it is",
            holes,
        )
        .test("L RES-22 a page of a file is kept without pins", plain)
}

const SIZE: u64 = 4 * PAGE_SIZE;

/// A file with something in it, and a descriptor that can only be read.
fn lent() -> TestResult<(OwnedFd, OwnedFd)> {
    let file = memfd_create("lent", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, SIZE)?;
    Region::of_file(&file, SIZE as usize)?.fill(1);
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let reading = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((file, reading))
}

fn seal(file: &OwnedFd) -> rustix::io::Result<()> {
    fcntl_add_seals(file, SealFlags::WRITE)
}

fn sealed() -> TestResult {
    let device = fixture::device()?;
    let borrow =
        |reading: &OwnedFd| Create::section(&device, flags::READ_ONLY, slot(reading), SIZE).run();
    // Before it is lent.
    let (file, reading) = lent()?;
    seal(&file)?;
    let made = borrow(&reading)?;
    made.lock()?.holds(1)?;
    made.destroy()?;
    // Meanwhile: not as long as somebody uses pages, but the weaker seal.
    let (file, reading) = lent()?;
    let made = borrow(&reading)?;
    made.lock()?.holds(1)?;
    ensure_eq!(seal(&file), Err(Errno::BUSY));
    fcntl_add_seals(&file, SealFlags::FUTURE_WRITE)?;
    made.destroy()?;
    selftests::time::eventually("the pages are given back", || seal(&file).is_ok())?;
    // The kernel's own way to use pages of a file that can be read does the same.
    let (file, reading) = lent()?;
    let (out, into) = selftests::fds::pipe()?;
    let mut from = 0;
    splice(
        &reading,
        Some(&mut from),
        &into,
        None,
        PAGE_SIZE as usize,
        SpliceFlags::empty(),
    )?;
    ensure_eq!(seal(&file), Err(Errno::BUSY));
    drop((out, into));
    seal(&file)?;
    Ok(())
}

/// What fdinfo says of the first allocation of a shared resource.
fn resident(nt: &OwnedFd) -> TestResult<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", nt.as_raw_fd()))?;
    let line = text
        .lines()
        .find(|line| line.starts_with("dxg-allocation:"));
    let word = line.and_then(|line| {
        line.split_whitespace()
            .find_map(|word| word.strip_prefix("resident="))
    });
    word.and_then(|number| number.parse().ok())
        .ok_or(Failure::Failed("no resident= in fdinfo".into()))
}

fn holes() -> TestResult {
    let device = fixture::device()?;
    let (file, _) = lent()?;
    let made = Create::section(&device, flags::NT, slot(&file), SIZE).run()?;
    let nt = made.share()?;
    let mapping = made.lock()?;
    mapping.holds(1)?;
    ensure_eq!(resident(&nt)?, SIZE);
    for seed in 2..8 {
        fallocate(
            &file,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            0,
            SIZE,
        )?;
        Region::of_file(&file, SIZE as usize)?.fill(seed);
        // It has the pages it took, and takes no others.
        mapping.holds(1)?;
    }
    ensure_eq!(resident(&nt)?, SIZE);
    mapping.unlock()?;
    let mapping = made.lock()?;
    mapping.holds(1)?;
    ensure_eq!(resident(&nt)?, SIZE);
    mapping.unlock()
}

/// How many pages are pinned in the whole machine.
fn pins() -> TestResult<i64> {
    // Brings what each processor has counted together.
    std::fs::read("/proc/sys/vm/stat_refresh")?;
    let text = std::fs::read_to_string("/proc/vmstat")?;
    let counter = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse::<i64>().ok())
    };
    match (
        counter("nr_foll_pin_acquired "),
        counter("nr_foll_pin_released "),
    ) {
        (Some(acquired), Some(released)) => Ok(acquired - released),
        _ => skip!("this kernel does not count pins"),
    }
}

/// A pin of a small page is 1024 references, and all users together may have more allocations of
/// one page than its count has room for.
fn plain() -> TestResult {
    const PAGES: u64 = 512;
    let file = memfd_create("pages", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, PAGES * PAGE_SIZE)?;
    let device = fixture::device()?;
    let made = Create::section(&device, 0, slot(&file), PAGES * PAGE_SIZE).run()?;
    let before = pins()?;
    let mapping = made.lock()?;
    mapping.fill(1);
    let more = pins()? - before;
    ensure!(more < PAGES as i64 / 2, "{more} pins more");
    mapping.holds(1)?;
    mapping.unlock()
}
