// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exec: this program runs itself, as a helper that gets inherited descriptors.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use opendxg::raw;
use opendxg::raw::Errno;
use opendxg::uapi::*;
use opendxg::{Access, Dxg, NtHandle, SyncFlags};
use rustix::io::FdFlags;
use selftests::child::{in_child, Child, Gate};
use selftests::sharing::share_raw;
use selftests::{ensure, ensure_eq, fixture, program, Suite, TestResult};

const HELPER: &str = "--exec-helper";
/// What a helper has for a descriptor that must be closed.
const CLOSED: &str = "closed";
/// A helper that lives until its second descriptor, a pipe, is closed.
pub(crate) const LIVES: &str = "lives-until-closed";
/// `OBJ_INHERIT` of OBJECT_ATTRIBUTES.
const OBJ_INHERIT: u32 = 2;

/// Runs this program again with the two descriptors by number. Returns only an error.
fn become_helper(what: &str, device: BorrowedFd<'_>, nt: BorrowedFd<'_>) -> TestResult {
    let device = device.as_raw_fd().to_string();
    let nt = nt.as_raw_fd().to_string();
    Err(program::become_again(&[HELPER, what, &device, &nt]))
}

/// Runs this program again, for as long as the other end of `alive` is open. Returns only an
/// error.
pub(crate) fn become_living_helper(alive: &OwnedFd) -> TestResult {
    rustix::io::fcntl_setfd(alive, FdFlags::empty())?;
    become_helper(LIVES, alive.as_fd(), alive.as_fd())
}

/// Runs the helper if this program was started as one; its exit status.
pub(crate) fn as_helper() -> Option<i32> {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).map(String::as_str) != Some(HELPER) {
        return None;
    }
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<i32>().ok());
    match (number(3), number(4)) {
        (Some(device), Some(nt)) => match helper(&words[2], device, nt) {
            Ok(()) => Some(0),
            Err(error) => {
                eprintln!("in the helper: {error}");
                Some(1)
            }
        },
        _ => Some(2),
    }
}

fn helper(what: &str, device: i32, nt: i32) -> TestResult {
    if what == LIVES {
        // SAFETY: inherited for us, and nobody else in this program knows it.
        let alive = unsafe { OwnedFd::from_raw_fd(nt) };
        ensure_eq!(rustix::io::read(&alive, &mut [0u8; 1]), Ok(0));
        return Ok(());
    }
    // SAFETY: the numbers are only asked about.
    let is_open = |fd: i32| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    if what == CLOSED {
        ensure!(!is_open(device), "the device is open after exec");
        ensure!(!is_open(nt), "the NT handle is open after exec");
        return Ok(());
    }
    ensure!(is_open(device) && is_open(nt), "closed by exec");
    // SAFETY: inherited for us, and nobody else in this program knows them.
    let (device, nt) = unsafe { (OwnedFd::from_raw_fd(device), OwnedFd::from_raw_fd(nt)) };

    let raw = fixture::raw()?;
    let code = raw::code(DXG_NR_NOP, 0);
    ensure_eq!(raw.ioctl_on(&device, code, 0), Err(Errno::NOTTY));
    ensure_eq!(raw.ioctl(code, 0), Ok(0));

    let own = Dxg::open()?;
    let shown = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", device.as_raw_fd()))?;
    ensure!(
        shown.contains("dxg-process-handles:\t0\n"),
        "the old program's handles live on: {shown}"
    );
    let before = own.counters()?;
    drop(device);
    let after = own.counters()?;
    ensure_eq!(after.total_processes, before.total_processes - 1);

    let fence = fixture::device()?.open_fence(&nt, SyncFlags::empty())?;
    ensure_eq!(fence.value(), 1);
    fence.signal(2)?;
    Ok(())
}

/// Shares a fence with OBJ_INHERIT.
fn share_inherited(handle: u32) -> TestResult<NtHandle> {
    let attributes = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        Attributes: OBJ_INHERIT,
        ..OBJECT_ATTRIBUTES::default()
    };
    let attributes = (&raw const attributes) as u64;
    let raw = fixture::raw()?;
    Ok(share_raw(&raw, &[handle], Access::ALL.bits(), attributes)?.into())
}

fn closes_on_exec() -> TestResult {
    in_child(|| {
        let dxg = Dxg::open()?;
        let fence = fixture::device()?.create_shareable_fence(1)?;
        let nt = fence.share(Access::ALL)?;
        ensure!(rustix::io::fcntl_getfd(&nt)?.contains(FdFlags::CLOEXEC));
        become_helper(CLOSED, dxg.as_fd(), nt.as_fd())
    })
}

fn kept_over_exec() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(1)?;
    let nt = share_inherited(fence.handle().0)?;
    ensure!(!rustix::io::fcntl_getfd(&nt)?.contains(FdFlags::CLOEXEC));
    in_child(|| {
        let dxg = Dxg::open()?;
        core::mem::forget(fixture::device()?.create_fence(0)?);
        rustix::io::fcntl_setfd(&dxg, FdFlags::empty())?;
        become_helper("kept", dxg.as_fd(), nt.as_fd())
    })?;
    ensure_eq!(fence.value(), 2);
    Ok(())
}

/// A program that execs in the middle of waits: the sleeping threads and pending waits go with it.
fn exec_while_waiting() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(1)?;
    let nt = fence.share(Access::ALL)?;
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let dxg = Dxg::open()?;
        let own = fixture::device()?.open_fence(&nt, SyncFlags::empty())?;
        let event = opendxg::EventFd::new()?;
        own.wait_async(100, &event)?;
        std::thread::scope(|scope| {
            let (send, receive) = std::sync::mpsc::channel();
            let own = &own;
            scope.spawn(move || {
                let _ = send.send(selftests::task::me());
                own.wait(100)
            });
            let thread = receive.recv().map_err(|_| "no thread")?;
            selftests::task::until_blocked(thread)?;
            ready.open()?;
            become_helper(CLOSED, dxg.as_fd(), nt.as_fd())
        })
    })?;
    ready.wait()?;
    child.join()?;
    fence.signal(100)?;
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-13 device and NT handle are closed by exec",
            closes_on_exec,
        )
        .test(
            "RES-8 RES-13 kept over exec the device is ENOTTY, an OBJ_INHERIT handle works",
            kept_over_exec,
        )
        .test(
            "FEN-89 exec in the middle of waits leaves nothing behind",
            exec_while_waiting,
        )
}
