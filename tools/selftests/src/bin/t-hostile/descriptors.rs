// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that drops the last reference to something waits for nobody, and neither do the
//! kernel's own threads.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;
use selftests::child::{Child, Gate};
use selftests::fds::{self, poll_events, receive, send, socket_pair};
use selftests::fuse::{ends_beside, Stuck};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::time::eventually;
use selftests::user::needs_root;
use selftests::{ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-14 closing a descriptor of memory whose owner is stuck",
            closed_by_receiver,
        )
        .test(
            "RES-14 a socket takes a descriptor of memory along whose owner is stuck",
            closed_by_kernel,
        )
        .test(
            "RES-8 closing the last descriptor of a process that is stuck",
            closed_device,
        )
}

/// A page of this process, pinned, and nothing left of it but its NT handle.
fn pinned_page() -> TestResult<OwnedFd> {
    let device = fixture::device()?;
    let memory = Region::private(PAGE_SIZE as usize)?;
    let made = Create::over(&device, flags::NT, memory.address(), PAGE_SIZE).run()?;
    let handle = made.share()?;
    made.destroy()?;
    Ok(handle)
}

/// Another process closes the last copy of a descriptor, beside a process that is stuck.
fn closes(stuck: Stuck, fd: OwnedFd) -> TestResult {
    let gate = Gate::new()?;
    let closer = Child::spawn(|| {
        gate.wait()?;
        drop(fd);
        Ok(())
    });
    // The copy of this process went with the closure.
    match closer.and_then(|closer| gate.open().map(|()| closer)) {
        Ok(closer) => ends_beside(stuck, closer),
        Err(error) => Err(error),
    }
}

fn closed_by_receiver() -> TestResult {
    needs_root()?;
    let watch = Watch::start()?;
    let (ours, theirs) = socket_pair()?;
    let stuck = Stuck::new(
        || {
            send(&theirs, pinned_page()?)?;
            Ok(())
        },
        |()| {},
    )?;
    let fd = receive(&ours)?;
    ensure_eq!(watch.now()?.total_shares, watch.at_start().total_shares + 1);
    closes(stuck, fd)
}

/// A pair of sockets one of which holds itself and this descriptor, so that only the kernel's
/// garbage collector can close it once both are closed.
fn in_a_circle(fd: OwnedFd) -> TestResult<(OwnedFd, OwnedFd)> {
    let (sender, holder) = socket_pair()?;
    send(&sender, fd)?;
    send(&sender, &holder)?;
    Ok((sender, holder))
}

/// Has the kernel look for sockets that nobody can reach, as each close of a socket does.
fn collect() {
    drop(socket_pair());
}

fn closed_by_kernel() -> TestResult {
    needs_root()?;
    let watch = Watch::start()?;
    let stuck = Stuck::new(|| in_a_circle(pinned_page()?), drop)?;
    let freed = || -> TestResult {
        eventually("the kernel frees the memory", || {
            collect();
            let now = watch.now();
            now.is_ok_and(|now| now.total_shares == watch.at_start().total_shares)
        })?;
        // What others leave to the kernel's threads is freed too.
        let (reader, writer) = fds::pipe()?;
        drop(in_a_circle(writer)?);
        eventually("the kernel closes a pipe", || {
            collect();
            let events = poll_events(reader.as_fd(), core::time::Duration::ZERO);
            events.is_ok_and(|events| events.contains(PollFlags::HUP))
        })
    };
    let outcome = freed();
    drop(stuck);
    outcome
}

fn closed_device() -> TestResult {
    needs_root()?;
    let (ours, theirs) = socket_pair()?;
    let stuck = Stuck::new(
        || {
            let device = std::fs::File::open("/dev/dxg")?;
            // What there is belongs to the process, not to the descriptor that made it.
            let fence = fixture::device()?.create_shareable_fence(0)?;
            fence.into_raw();
            send(&theirs, &device)?;
            Ok(())
        },
        |()| {},
    )?;
    let fd = receive(&ours)?;
    closes(stuck, fd)
}
