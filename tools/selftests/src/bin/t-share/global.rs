// SPDX-License-Identifier: MIT OR Apache-2.0
//! Global handles: numbers that hold nothing (RES-9 to RES-12, RES-103).

use std::os::fd::AsRawFd;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, Device, Dxg, Error, GlobalHandle, Status, SyncFlags, SyncKind, SyncObject};
use selftests::call::{refused, succeeds};
use selftests::child::{in_child, Child, Gate};
use selftests::leak::Watch;
use selftests::poison::{bytes, poisoned};
use selftests::{ensure, ensure_eq, fails_with, fixture, module, skip, Outcome, Suite};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-9 the form of a global handle", form)
        .test("RES-52 each opening has its own local handle", opening)
        .test("RES-10 a global handle dies with the last reference", dies)
        .test("RES-10 a global handle keeps nothing alive", holds_nothing)
        .test(
            "RES-10 it works in another process, which need not close",
            other_process,
        )
        .test("RES-10 it lives on in the other process", survives)
        .test(
            "RES-11 RES-52 what is no live global handle is refused",
            refusals,
        )
        .test("RES-11 a global handle is no descriptor", no_descriptor)
        .test("RES-12 dead values do not come back", stale)
        .test(
            "RES-103 another user is refused like a dead handle",
            other_user,
        )
}

fn named(device: &Device) -> Outcome<(SyncObject, GlobalHandle)> {
    let kind = SyncKind::Semaphore {
        max_count: 1,
        initial_count: 0,
    };
    let object = device.create_sync_object(kind, SyncFlags::SHARED)?;
    let global = object.global_handle().ok_or("no global handle")?;
    Ok((object, global))
}

fn open(handle: u32) -> D3DKMT_OPENSYNCHRONIZATIONOBJECT {
    // The reserved words are ignored.
    let mut arg: D3DKMT_OPENSYNCHRONIZATIONOBJECT = poisoned();
    arg.hSharedHandle = handle;
    arg
}

fn form() -> Outcome {
    let device = fixture::device()?;
    for _ in 0..100 {
        let (_, GlobalHandle(handle)) = named(&device)?;
        ensure!(
            handle & 0xc000_0000 != 0 && handle & 0x3f == 2,
            "{handle:#x}"
        );
    }
    Ok(())
}

fn opening() -> Outcome {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let (object, global) = named(&device)?;
    for step in 1..=3 {
        let mut arg = open(global.0);
        let before = bytes(&arg).to_vec();
        succeeds(&raw, &mut arg)?;
        ensure_eq!(arg.hSyncObject, object.handle().0 + step * 0x40);
        ensure_eq!(bytes(&arg)[8..], before[8..], "reserved words");
        let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: arg.hSyncObject,
        };
        succeeds(&raw, &mut destroy)?;
    }
    Ok(())
}

fn dies() -> Outcome {
    let dxg = Dxg::open()?;
    let device = fixture::device()?;
    let (object, global) = named(&device)?;
    let second = dxg.open_global(global)?;
    object.destroy()?;
    let third = dxg.open_global(global)?;
    second.destroy()?;
    third.destroy()?;
    fails_with(dxg.open_global(global), Status::INVALID_PARAMETER)
}

fn holds_nothing() -> Outcome {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    let (object, _) = named(&device)?;
    object.destroy()?;
    watch.unchanged()
}

fn other_process() -> Outcome {
    let device = fixture::device()?;
    let (object, global) = named(&device)?;
    let watch = Watch::start()?;
    in_child(move || {
        let dxg = Dxg::open()?;
        dxg.open_global(global)?.into_raw();
        // Exits without closing.
        Ok(())
    })?;
    watch.ends_clean()?;
    object.destroy()?;
    fails_with(Dxg::open()?.open_global(global), Status::INVALID_PARAMETER)
}

fn survives() -> Outcome {
    let device = fixture::device()?;
    let (object, global) = named(&device)?;
    let (opened, done) = (Gate::new()?, Gate::new()?);
    let other = Child::spawn(|| {
        let kept = Dxg::open()?.open_global(global)?;
        opened.open()?;
        done.wait()?;
        kept.destroy()?;
        Ok(())
    })?;
    opened.wait()?;
    object.destroy()?;
    let again = Dxg::open()?.open_global(global)?;
    again.destroy()?;
    done.open()?;
    other.join()?;
    fails_with(Dxg::open()?.open_global(global), Status::INVALID_PARAMETER)
}

fn refusals() -> Outcome {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let (object, GlobalHandle(global)) = named(&device)?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(Access::ALL)?;
    for bad in [
        0,
        2,
        u32::MAX,
        object.handle().0,
        object.handle().0 | 2,
        fence.handle().0 | 2,
        shared.as_raw_fd() as u32,
        global & 0x3fff_ffff,
        global ^ 2,
        global | 1,
        global | 4,
        global ^ 0x40,
        global ^ 0xc000_0000,
    ] {
        refused(&raw, &mut open(bad), Status::INVALID_PARAMETER)?;
    }
    // Nor does a global handle pass for a local one.
    let refuse = Status::INVALID_PARAMETER;
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: global,
    };
    refused(&raw, &mut destroy, refuse)?;
    let mut point = opendxg_fence_point::zeroed();
    point.sync_object = global;
    refused(&raw, &mut point, refuse)
}

fn no_descriptor() -> Outcome {
    let device = fixture::device()?;
    let (_object, global) = named(&device)?;
    // SAFETY: no descriptor has such a number.
    let result = unsafe { libc::close(global.0 as i32) };
    let error = std::io::Error::last_os_error().raw_os_error();
    ensure_eq!((result, error), (-1, Some(libc::EBADF)));
    Ok(())
}

fn stale() -> Outcome {
    let dxg = Dxg::open()?;
    let device = fixture::device()?;
    let (object, dead) = named(&device)?;
    object.destroy()?;
    let mut seen = vec![dead];
    for _ in 0..500 {
        let (object, global) = named(&device)?;
        ensure!(global != dead, "a value came back at once");
        fails_with(dxg.open_global(dead), Status::INVALID_PARAMETER)?;
        object.destroy()?;
        seen.push(global);
    }
    seen.sort();
    seen.dedup();
    ensure!(seen.len() > 490, "only {} of 501 values differ", seen.len());
    Ok(())
}

fn other_user() -> Outcome {
    if module::number("global_access")? != 0 {
        skip!("global handles are open to any user, or to none");
    }
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        skip!("needs root to become another user");
    }
    let device = fixture::device()?;
    let (_object, global) = named(&device)?;
    in_child(move || {
        // SAFETY: plain system calls of a process that ends soon.
        ensure!(unsafe { libc::setgid(65534) == 0 && libc::setuid(65534) == 0 });
        let dxg = Dxg::open()?;
        let raw = fixture::raw()?;
        let mut arg = open(global.0);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        // What this user made itself can be opened.
        let (_own, own) = named(&fixture::device()?)?;
        dxg.open_global(own)?;
        Ok(())
    })?;
    // Back home nothing changed; a privileged user may open what others made.
    Dxg::open()?.open_global(global)?;
    let (made, done) = (Gate::new()?, Gate::new()?);
    let (reader, writer) = selftests::fds::pipe()?;
    let other = Child::spawn(|| {
        // SAFETY: plain system calls of a process that ends soon.
        ensure!(unsafe { libc::setgid(65534) == 0 && libc::setuid(65534) == 0 });
        let (_object, global) = named(&fixture::device()?)?;
        rustix::io::write(&writer, &global.0.to_ne_bytes())?;
        made.open()?;
        done.wait()
    })?;
    made.wait()?;
    let mut number = [0; 4];
    rustix::io::read(&reader, &mut number)?;
    let opened = Dxg::open()?.open_global(GlobalHandle(u32::from_ne_bytes(number)));
    done.open()?;
    other.join()?;
    match opened {
        Ok(object) => Ok(object.destroy()?),
        Err(Error::Status(status)) => Err(format!("CAP_IPC_OWNER was refused: {status}").into()),
        Err(error) => Err(error.into()),
    }
}
