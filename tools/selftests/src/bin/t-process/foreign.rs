// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls on a descriptor that another process has opened.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use opendxg::raw::Errno;
use opendxg::raw::{self, Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Dxg, Status};
use selftests::child::in_child;
use selftests::memory::UNMAPPED;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Every call that the module implements, as ioctl codes.
fn implemented() -> TestResult<Vec<u32>> {
    let version = Dxg::open()?.version()?;
    let known = raw::CALLS.iter();
    let mut codes: Vec<u32> = known
        .filter(|(number, _, _)| version.implements(*number))
        .flat_map(|(number, size, _)| [raw::code(*number, *size), raw::exact_code(*number, *size)])
        .collect();
    codes.push(raw::code(DXG_NR_NOP, 0));
    codes.push(raw::exact_code(DXG_NR_NOP, 0));
    ensure!(
        codes.len() > 20,
        "only {} calls are implemented",
        codes.len()
    );
    Ok(codes)
}

/// Demands that every call is refused because of who calls, before its argument is looked at.
pub(crate) fn refuses_everything(raw: &Raw, fd: impl AsFd, codes: &[u32]) -> TestResult {
    for code in codes {
        for address in [UNMAPPED, 0] {
            let answer = raw.ioctl_on(&fd, *code, address);
            ensure_eq!(answer, Err(Errno::NOTTY), "{code:#x} at {address:#x}");
        }
    }
    Ok(())
}

fn forked_child_is_refused() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let (dxg, raw, codes) = (Dxg::open()?, fixture::raw()?, implemented()?);

    in_child(|| {
        refuses_everything(&raw, &dxg, &codes)?;
        let answer = fence.signal(9);
        ensure!(answer.is_err_and(|error| error.is_foreign_process()));
        Ok(())
    })?;
    ensure_eq!(fence.value(), 0);
    fence.signal(1)?;
    fence.wait(1)?;
    Ok(())
}

fn child_reopens() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;

    in_child(|| {
        let own = Dxg::open()?;
        // SAFETY: the argument holds no address.
        let raw = unsafe { own.raw() };
        // RES-7: the parent's number means nothing here, where no handle was made yet.
        let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
        destroy.hSyncObject = fence.handle().0;
        ensure_eq!(raw.exec(&mut destroy), Ok(Status::INVALID_PARAMETER));

        let fence = fixture::device()?.create_fence(3)?;
        fence.wait(3)?;
        fence.signal(4)?;
        ensure_eq!(fence.value(), 4);
        Ok(())
    })?;
    ensure_eq!(fence.value(), 0);
    fence.signal(1)?;
    Ok(())
}

/// What a cloned task does and found.
struct Cloned {
    fd: RawFd,
    code: u32,
    result: i32,
    errno: i32,
}

extern "C" fn call_in_clone(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the parent passes its own `Cloned` and waits; both share their memory.
    let cloned = unsafe { &mut *argument.cast::<Cloned>() };
    // SAFETY: the code is that of a call without an argument.
    cloned.result = unsafe { libc::ioctl(cloned.fd, cloned.code.into(), 0) };
    // SAFETY: the parent's `errno`, which the parent does not use meanwhile.
    cloned.errno = unsafe { *libc::__errno_location() };
    0
}

/// Runs the call that does nothing in a task made by clone with these flags.
fn call_from_clone(flags: libc::c_int) -> TestResult<Cloned> {
    let dxg = Dxg::open()?;
    let mut stack = vec![0u128; 4096];
    let mut cloned = Cloned {
        fd: dxg.as_fd().as_raw_fd(),
        code: raw::code(DXG_NR_NOP, 0),
        result: 0,
        errno: 0,
    };
    dxg.no_op()?;
    // SAFETY: a stack of its own, whose top is aligned; the argument outlives the task, which is
    // waited for below.
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        let argument = (&raw mut cloned).cast();
        libc::clone(call_in_clone, top, flags | libc::SIGCHLD, argument)
    };
    ensure!(pid > 0, "clone: {}", std::io::Error::last_os_error());
    selftests::task::reap(pid)?;
    dxg.no_op()?;
    Ok(cloned)
}

fn clones_are_refused(flags: libc::c_int) -> TestResult {
    let cloned = call_from_clone(flags)?;
    ensure_eq!((cloned.result, cloned.errno), (-1, libc::ENOTTY));
    Ok(())
}

fn threads_are_the_process() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    std::thread::scope(|scope| scope.spawn(|| fence.signal(1)).join())
        .map_err(|_| "panic in a thread")??;
    ensure_eq!(fence.value(), 1);
    Ok(())
}

fn opens_share_the_table() -> TestResult {
    let (first, second) = (fixture::device()?, Dxg::open()?);
    let fence = first.create_fence(0)?;
    // SAFETY: the arguments hold no address, and `fence` is not used after it is destroyed.
    let raw = unsafe { second.raw() };
    let mut state = D3DKMT_GETDEVICESTATE::zeroed();
    state.hDevice = first.handle().0;
    state.StateType = D3DKMT_DEVICESTATE_EXECUTION;
    ensure_eq!(raw.exec(&mut state), Ok(Status::SUCCESS));
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    destroy.hSyncObject = fence.handle().0;
    ensure_eq!(raw.exec(&mut destroy), Ok(Status::SUCCESS));
    fails_with(fence.destroy(), Status::INVALID_PARAMETER)
}

pub(crate) fn tests(suite: Suite) -> Suite {
    let vfork = libc::CLONE_VM | libc::CLONE_VFORK;
    suite
        .test(
            "RES-8 FEN-11 every call of a forked child on its parent's descriptor is ENOTTY",
            forked_child_is_refused,
        )
        .test(
            "RES-7 RES-8 a forked child opens the device again and has handles of its own",
            child_reopens,
        )
        .test("RES-8 after vfork the child is refused", move || {
            clones_are_refused(vfork)
        })
        .test("RES-8 CLONE_VM without CLONE_THREAD is refused", || {
            clones_are_refused(libc::CLONE_VM)
        })
        .test(
            "RES-8 CLONE_VM and CLONE_FILES without CLONE_THREAD is refused",
            || clones_are_refused(libc::CLONE_VM | libc::CLONE_FILES),
        )
        .test(
            "RES-8 all threads of a process use one descriptor",
            threads_are_the_process,
        )
        .test(
            "RES-7 two opens in one process share the handles",
            opens_share_the_table,
        )
}
