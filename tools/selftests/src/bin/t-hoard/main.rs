// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user who takes all that can be had, with the limits that the module has by itself: what it
//! costs the machine, and whether others notice. In a small machine this invoked the OOM
//! killer, which took others first.

use std::fs::{read_to_string, write, File};
use std::os::fd::{AsRawFd, OwnedFd};

use opendxg::raw::Raw;
use opendxg::{Device, Status};
use selftests::child::{in_child, Child, Gate};
use selftests::fds::memfd;
use selftests::region::Region;
use selftests::resource::{Create, OpenResource, PAGE_SIZE};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure, fixture, module, skip, Suite, TestResult};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(crate) fn main() {
    Suite::new("hoard")
        .test("a sparse section costs what was touched of it", sparse)
        .test(
            "sections of a sparse memfd: no OOM, and others live",
            sections,
        )
        .test("files: others can still open some", files)
        .run();
}

/// A number of a file like /proc/meminfo, in bytes.
fn meminfo(name: &str) -> TestResult<u64> {
    let text = read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| {
        let word = line.trim_start_matches(':').split_whitespace().next()?;
        word.parse::<u64>().ok()
    });
    Ok(number.ok_or_else(|| format!("no {name} in /proc/meminfo"))? * KIB)
}

/// What the kernel has taken for itself: tables of pages are in one of the two.
fn kernel_memory() -> TestResult<u64> {
    Ok(meminfo("VmallocUsed")? + meminfo("SUnreclaim")?)
}

/// A memfd of this size without a single page.
fn sparse_file(size: u64) -> TestResult<OwnedFd> {
    let file = memfd()?;
    rustix::fs::ftruncate(&file, size)?;
    Ok(file)
}

/// Runs a creation; `None` if it was refused with NO_MEMORY.
fn attempt(raw: &Raw, mut create: Create) -> TestResult<Option<OpenResource>> {
    let mut arg = create.argument();
    match raw.exec(&mut arg)? {
        Status::SUCCESS => Ok(Some(create.adopt(raw, &arg))),
        Status::NO_MEMORY => Ok(None),
        other => Err(format!("refused with {other}").into()),
    }
}

fn sparse() -> TestResult {
    let (device, raw) = (fixture::device()?, fixture::raw()?);
    let file = sparse_file(GIB)?;
    let before = kernel_memory()?;
    let mut made = Vec::new();
    for _ in 0..2 {
        let create = Create::section(&device, 0, file.as_raw_fd() as u64, GIB);
        match attempt(&raw, create)? {
            Some(one) => made.push(one),
            None => break,
        }
    }
    let claimed = made.len() as u64;
    if claimed == 0 {
        skip!("this machine is too small for 1 GiB of claims");
    }
    let grown = kernel_memory()?.saturating_sub(before) / claimed;
    println!("# {} KiB for each GiB that is claimed", grown / KIB);
    ensure!(grown < MIB, "{grown} bytes for each GiB");
    // A page in every 64 MiB: its table of slots, not that of all pages.
    let mapping = made[0].lock()?;
    for at in (0..GIB).step_by(64 * MIB as usize) {
        mapping.set(at as usize, 1);
    }
    let grown = kernel_memory()?.saturating_sub(before) / claimed;
    println!("# {} KiB with 16 pages touched", grown / KIB);
    ensure!(grown < MIB, "{grown} bytes for 16 pages");
    ensure!(mapping.get(64 * MIB as usize) == 1 && mapping.get(63 * MIB as usize) == 0);
    Ok(())
}

/// Somebody else's program with some memory, the first that an OOM killer would look at.
fn bystander(bytes: usize, done: &Gate) -> TestResult<Child> {
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        become_user(OTHER)?;
        let memory = Region::private(bytes)?;
        memory.fill(1);
        ready.open()?;
        done.wait()?;
        memory.holds(1)
    })?;
    ready.wait()?;
    Ok(child)
}

/// Claims as much as there is to claim, in ever smaller steps.
fn claim_all(device: &Device, raw: &Raw) -> TestResult<Vec<OpenResource>> {
    let file = sparse_file(64 * GIB)?;
    let mut made = Vec::new();
    for size in [64 * GIB, 8 * GIB, GIB, 128 * MIB] {
        for _ in 0..32 {
            let create = Create::section(device, 0, file.as_raw_fd() as u64, size);
            match attempt(raw, create)? {
                Some(one) => made.push(one),
                None => break,
            }
        }
    }
    Ok(made)
}

fn sections() -> TestResult {
    needs_root()?;
    let done = Gate::new()?;
    let other = bystander(100 * MIB as usize, &done)?;
    let attack = in_child(|| {
        become_user(USER)?;
        let (device, raw) = (fixture::device()?, fixture::raw()?);
        let before = kernel_memory()?;
        let made = claim_all(&device, &raw)?;
        let grown = kernel_memory()?.saturating_sub(before);
        println!("# {} sections, {} KiB", made.len(), grown / KIB);
        ensure!(grown < 16 * MIB, "{grown} bytes of kernel memory");
        // And what the machine has is not claimed many times over.
        ensure!(made.len() < 64, "no limit");
        Ok(())
    });
    let _ = done.open();
    other.join()?;
    attack
}

/// Sets the limit of files of the system until it is dropped.
struct FileMax(String);

const FILE_MAX: &str = "/proc/sys/fs/file-max";

impl FileMax {
    /// So many more than there are now.
    fn above_present(more: u64) -> TestResult<Self> {
        let used = read_to_string("/proc/sys/fs/file-nr")?;
        let used = used
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        let used: u64 = used.ok_or("file-nr is no number")?;
        let before = read_to_string(FILE_MAX)?.trim().to_owned();
        write(FILE_MAX, (used + more).to_string())?;
        Ok(Self(before))
    }
}

impl Drop for FileMax {
    fn drop(&mut self) {
        let _ = write(FILE_MAX, &self.0);
    }
}

fn files() -> TestResult {
    needs_root()?;
    if module::number("max_user_files").is_ok_and(|limit| limit != 0) {
        skip!("max_user_files is set");
    }
    let _limit = FileMax::above_present(4000)?;
    let (full, done) = (Gate::new()?, Gate::new()?);
    let hoarder = Child::spawn(|| {
        become_user(USER)?;
        let (device, raw) = (fixture::device()?, fixture::raw()?);
        let mut made = Vec::new();
        // The mapping of each is another file.
        let mut mappings = Vec::new();
        while let Some(one) = attempt(&raw, Create::sized(&device, 0, &[PAGE_SIZE]))? {
            if let Ok(mapping) = one.lock() {
                mappings.push(mapping);
            }
            made.push(one);
            ensure!(made.len() < 10_000, "no limit");
        }
        println!("# {} allocations, {} mappings", made.len(), mappings.len());
        full.open()?;
        done.wait()
    })?;
    let outcome = full.wait().and_then(|()| {
        in_child(|| {
            become_user(OTHER)?;
            let opened: Result<Vec<File>, _> =
                (0..500).map(|_| File::open("/proc/self/status")).collect();
            opened.map_err(|error| format!("somebody else: {error}"))?;
            Ok(())
        })
    });
    let _ = done.open();
    hoarder.join()?;
    outcome
}
