// SPDX-License-Identifier: MIT OR Apache-2.0
//! What importers do with dma-bufs of the module. The kernel takes it for a bug if an operation of
//! an exporter fails for another reason than want of memory, and says so in its log: the run of the
//! machine fails then.

use std::os::fd::{AsRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, Status};
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::io::Errno;
use selftests::call::refused;
use selftests::camera::Camera;
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{export, flags, Create, OpenResource, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-86 RES-90 a camera maps our memory in the kernel",
            captured,
        )
        .test(
            "RES-86 a camera gets no mapping of a read-only dma-buf",
            not_captured,
        )
        .test(
            "RES-22 RES-86 a dma-buf owns its pages: its file may shrink",
            owned,
        )
        .test(
            "RES-22 RES-86 a file that has shrunk is not exported",
            too_late,
        )
}

/// Captures a picture and ends.
fn capture(camera: &Camera, files: [&OwnedFd; 2], size: u64) -> TestResult {
    camera.request(2)?;
    for (index, file) in (0..).zip(files) {
        camera.queue(index, file, size)?;
    }
    camera.start()?;
    ensure_eq!(camera.picture()?, 0);
    camera.stop()?;
    camera.request(0)
}

fn captured() -> TestResult {
    let camera = Camera::open()?;
    let size = u64::from(camera.size).next_multiple_of(PAGE_SIZE);
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[size, size]).run()?;
    let file = export(made.raw(), made.first(), 0)?;
    let other = export(made.raw(), made.allocations[1], 0)?;
    capture(&camera, [&file, &other], size)?;
    let mapping = made.lock()?;
    ensure!(camera.colours(&mapping) >= 5, "no picture");
    mapping.unlock()
}

fn not_captured() -> TestResult {
    let camera = Camera::open()?;
    let size = u64::from(camera.size).next_multiple_of(PAGE_SIZE);
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[size]).run()?;
    let file = export(made.raw(), made.first(), OPENDXG_EXPORT_READ_ONLY)?;
    camera.request(2)?;
    ensure_eq!(camera.queue(0, &file, size), Err(Errno::FAULT));
    camera.request(0)?;
    made.lock()?.is_zero()
}

/// A file, an allocation over it, and the dma-buf.
fn section(device: &Device, size: u64) -> TestResult<(OwnedFd, OpenResource)> {
    let file = memfd_create("section", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, size)?;
    let made = Create::section(device, 0, file.as_raw_fd() as u64, size).run()?;
    Ok((file, made))
}

fn owned() -> TestResult {
    let camera = Camera::open()?;
    let size = u64::from(camera.size).next_multiple_of(PAGE_SIZE);
    let device = fixture::device()?;
    let (memory, made) = section(&device, size)?;
    let (other_memory, other_made) = section(&device, size)?;
    let file = export(made.raw(), made.first(), 0)?;
    let other = export(other_made.raw(), other_made.first(), 0)?;
    ftruncate(&memory, 0)?;
    ftruncate(&other_memory, 0)?;
    // Never touched before, and there.
    capture(&camera, [&file, &other], size)?;
    let mapping = made.lock()?;
    ensure!(camera.colours(&mapping) >= 5, "no picture");
    let seen = Region::of_file(&other, size as usize)?;
    seen.fill(1);
    other_made.lock()?.holds(1)?;
    mapping.unlock()
}

fn too_late() -> TestResult {
    let size = 4 * PAGE_SIZE;
    let device = fixture::device()?;
    let (memory, made) = section(&device, size)?;
    let watch = Watch::start()?;
    for left in [size - PAGE_SIZE, 0] {
        ftruncate(&memory, left)?;
        let mut arg = opendxg_export_dmabuf::zeroed();
        arg.allocation = made.first();
        refused(made.raw(), &mut arg, Status::INVALID_PARAMETER)?;
    }
    watch.unchanged()
}
