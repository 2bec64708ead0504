// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a forked child inherits: mappings of fence values.

use std::time::{Duration, Instant};

use opendxg::{Device, Dxg, MonitoredFence};
use selftests::child::{Child, Gate};
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Reads the value until it is there.
fn poll_for(fence: &MonitoredFence, value: u64) -> TestResult {
    let end = Instant::now() + soon();
    while fence.value() != value {
        ensure!(
            Instant::now() < end,
            "saw {} instead of {value}",
            fence.value()
        );
        std::thread::yield_now();
    }
    Ok(())
}

fn child_sees_later_signals(fence: &MonitoredFence) -> TestResult {
    let seen = Gate::new()?;
    let child = Child::spawn(|| {
        for value in 1..=20 {
            poll_for(fence, value)?;
            seen.open()?;
        }
        Ok(())
    })?;
    for value in 1..=20 {
        fence.signal(value)?;
        seen.wait()?;
    }
    child.join()
}

/// What the fence shows in the child while the parent destroys it.
const LAST: u64 = 0x5eed;

/// The parent destroys `fence` while a child reads it, and makes many others, whose values must
/// never show up in the child.
fn destroyed_while_read(device: &Device, fence: MonitoredFence, shareable: bool) -> TestResult {
    let (reading, destroyed) = (Gate::new()?, Gate::new()?);
    fence.signal(LAST)?;
    let address = fence.value_address();
    let child = Child::spawn(|| {
        ensure_eq!(fence.value(), LAST);
        reading.open()?;
        destroyed.wait()?;
        let end = Instant::now() + Duration::from_millis(50);
        while Instant::now() < end {
            // SAFETY: mapped in this process by the fork; nobody here unmaps it.
            ensure_eq!(unsafe { address.read_volatile() }, LAST);
        }
        Ok(())
    })?;
    reading.wait()?;
    fence.destroy()?;
    let others = (1..=130).map(|value| match shareable {
        true => device.create_shareable_fence(value),
        false => device.create_fence(value),
    });
    let others = others.collect::<Result<Vec<_>, _>>()?;
    destroyed.open()?;
    let outcome = child.join();
    drop(others);
    outcome
}

fn owner_killed_while_child_reads() -> TestResult {
    let (ready, dead) = (Gate::new()?, Gate::new()?);
    let (mut result, writer) = {
        let (reader, writer) = selftests::fds::pipe()?;
        (std::fs::File::from(reader), std::fs::File::from(writer))
    };
    selftests::task::adopt_orphans()?;
    let before = Dxg::open()?.counters()?;

    let owner = Child::spawn(|| {
        let fence = fixture::device()?.create_shareable_fence(LAST)?;
        selftests::task::fork_survivor(|| {
            ready.open()?;
            dead.wait()?;
            ensure_eq!(fence.value(), LAST);
            std::io::Write::write_all(&mut &writer, &std::process::id().to_ne_bytes())?;
            Ok(())
        })?;
        loop {
            std::thread::park();
        }
    })?;
    ready.wait()?;
    owner.kill()?;

    // The survivor still has the descriptor and the mapping; nothing else may be left.
    let after = Dxg::open()?.counters()?;
    ensure_eq!(after.total_objects, before.total_objects);
    ensure_eq!(after.total_handles, before.total_handles);
    dead.open()?;
    let mut pid = [0; 4];
    std::io::Read::read_exact(&mut result, &mut pid)?;
    selftests::task::reap(i32::from_ne_bytes(pid))
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-11 a forked child sees later signals of a private fence",
            || child_sees_later_signals(&fixture::device()?.create_fence(0)?),
        )
        .test(
            "FEN-11 a forked child sees later signals of a shareable fence",
            || child_sees_later_signals(&fixture::device()?.create_shareable_fence(0)?),
        )
        .test(
            "FEN-12 a shareable fence is destroyed while a forked child reads it",
            || {
                let device = fixture::device()?;
                let fence = device.create_shareable_fence(0)?;
                destroyed_while_read(&device, fence, true)
            },
        )
        .test(
            "FEN-12 FEN-13 the last fence of a common page is destroyed while a child reads it",
            || {
                let device = fixture::device()?;
                let fence = device.create_fence(0)?;
                destroyed_while_read(&device, fence, false)
            },
        )
        .test(
            "FEN-12 FEN-89 kill -9 of the owner while a forked child reads the value",
            owner_killed_while_child_reads,
        )
}
