// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the client crate promises to safe programs: read-only memory cannot be written, inherited
//! objects are harmless, guards give back what they hold; and its examples run.

use std::process::Command;

use opendxg::{Access, Dxg, Error, Status, Timeout};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const SIZE: u64 = 8192;

pub(crate) fn main() {
    Suite::new("crate")
        .test(
            "RES-35 what was opened read-only is read, and not locked to write",
            read_only,
        )
        .test(
            "a child that closed all descriptors drops what it inherited, and keeps its own",
            inherited,
        )
        .test("a keyed mutex whose guard is dropped is as it was", guard)
        .test("CPU-46 the examples of the package run", examples)
        .run()
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let picture = device.new_resource().linear(SIZE).nt_shared().create()?;
    let own = &picture.allocations()[0];
    own.lock_write()?.fill(7);

    let nt_handle = picture.share(Access::READ_CONTROL)?;
    let opened = device.open_share(&nt_handle)?.resource;
    let theirs = &opened.allocations()[0];
    let mapping = theirs.lock()?;
    ensure_eq!(mapping.to_vec(), vec![7; SIZE as usize]);
    let refused = theirs.lock_write().map(drop);
    ensure_eq!(refused, Err(Error::Status(Status::ACCESS_DENIED)));
    // The refused lock was undone, this one was not.
    own.lock_write()?.write(4095, &[1, 2]);
    ensure!(
        mapping.to_vec()[4094..4098] == [7, 1, 2, 7],
        "the bytes are not those written"
    );

    let writable = picture.share(Access::RESOURCE_ALL)?;
    let opened = device.open_share(&writable)?.resource;
    opened.allocations()[0].lock_write()?.fill(9);
    ensure_eq!(mapping.to_vec(), vec![9; SIZE as usize]);
    Ok(())
}

fn inherited() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    // SAFETY: the child leaves by `_exit`, and this process has one thread.
    let status = unsafe {
        let child = libc::fork();
        ensure!(child >= 0, "fork failed");
        if child == 0 {
            libc::close_range(3, u32::MAX, 0);
            let run = std::panic::AssertUnwindSafe(|| in_child(device, fence));
            let result = std::panic::catch_unwind(run);
            libc::_exit(result.unwrap_or(100));
        }
        let mut status = -1;
        libc::waitpid(child, &mut status, 0);
        status
    };
    ensure_eq!(status, 0);
    Ok(())
}

/// The number of what went wrong, or 0.
fn in_child(device: opendxg::Device, inherited: opendxg::MonitoredFence) -> i32 {
    let Ok(own_device) = fixture::device() else {
        return 1;
    };
    // Until one has the number of the inherited one.
    let mut own = Vec::new();
    while own
        .last()
        .map(|fence: &opendxg::MonitoredFence| fence.handle())
        != Some(inherited.handle())
    {
        match own_device.create_fence(0) {
            Ok(fence) if own.len() < 100 => own.push(fence),
            _ => return 2,
        }
    }
    match inherited.signal(1) {
        Err(error) if error.is_foreign_process() => {}
        _ => return 3,
    }
    drop(inherited);
    drop(device);
    let is_alive = |fence: &opendxg::MonitoredFence| fence.signal(5).is_ok() && fence.value() == 5;
    match own.iter().all(is_alive) && own_device.create_fence(0).is_ok() {
        true => 0,
        false => 4,
    }
}

fn guard() -> TestResult {
    let dxg = Dxg::open()?;
    let mutex = dxg.create_keyed_mutex(3)?;
    let now = Timeout::After(std::time::Duration::ZERO);
    let held = mutex.lock(3, now)?;
    let refused = mutex.lock(4, now).map(drop);
    ensure!(refused.is_err(), "locked with the wrong key");
    drop(held);
    mutex.lock(3, now)?.release(4, 77)?;
    ensure_eq!(
        mutex.lock(3, now).map(drop),
        Err(Error::Status(Status::TIMEOUT))
    );
    let failing = std::panic::AssertUnwindSafe(|| {
        let _held = mutex.lock(4, now);
        std::panic::resume_unwind(Box::new(()));
    });
    ensure!(std::panic::catch_unwind(failing).is_err(), "no panic");
    ensure_eq!(mutex.lock(4, now)?.fence_value(), 77);
    Ok(())
}

fn examples() -> TestResult {
    for (name, line) in [
        ("example-adapters", "is software"),
        (
            "example-crash-report",
            "page fault of a store at 0x600000000000",
        ),
        ("example-crash-report", "a new device works"),
        (
            "example-crash-report-c",
            "page fault of a store at 0x600000000000",
        ),
        ("example-crash-report-c", "a new device works"),
        ("example-picture", "frame 8: 16384 bytes as drawn"),
    ] {
        let program = std::env::current_exe()?.with_file_name(name);
        let output = Command::new(program).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name}: {error}");
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(text.contains(line), "{name}: {text}");
    }
    Ok(())
}
