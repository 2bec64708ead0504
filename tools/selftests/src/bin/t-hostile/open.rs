// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening the device waits for the caller's address space, and nobody waits for that but its own
//! threads.

use std::fs::{File, OpenOptions};

use selftests::child::Child;
use selftests::fuse::{ends_beside, Stuck};
use selftests::{fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "an open that waits for its own address space stops no open of another device",
            others_open,
        )
        .test(
            "an open that waits for its own address space stops no other process",
            others_work,
        )
        .test(
            "an open that waits for its own address space can be killed",
            killed,
        )
}

/// A process whose second thread waits in its first open.
fn opener() -> TestResult<Stuck> {
    let stuck = Stuck::new(
        || Ok(()),
        |()| {
            let _ = File::open("/dev/dxg");
        },
    )?;
    stuck.until_in(libc::SYS_openat)?;
    Ok(stuck)
}

fn others_open() -> TestResult {
    let stuck = opener()?;
    let other = Child::spawn(|| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")?;
        Ok(())
    });
    match other {
        Ok(other) => ends_beside(stuck, other),
        Err(error) => Err(error),
    }
}

fn others_work() -> TestResult {
    let stuck = opener()?;
    let other = Child::spawn(|| {
        let fence = fixture::device()?.create_shareable_fence(0)?;
        fence.signal(1)?;
        Ok(fence.wait(1)?)
    });
    match other {
        Ok(other) => ends_beside(stuck, other),
        Err(error) => Err(error),
    }
}

fn killed() -> TestResult {
    opener()?.kill()
}
