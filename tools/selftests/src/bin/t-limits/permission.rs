// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening by global handle: the same user in the same IPC namespace, or nobody can tell it from a
//! dead handle.

use opendxg::uapi::*;
use opendxg::{Access, Dxg, GlobalHandle, Status, SyncFlags, SyncKind, SyncObject};
use selftests::child::{in_child, Child, Gate};
use selftests::poison::{bytes, poisoned};
use selftests::user::{become_user, needs_root, unshare, OTHER, USER};
use selftests::{ensure_eq, fixture, module, skip, Suite, TestResult};

fn needs_root_and_default_access() -> TestResult {
    needs_root()?;
    let access = module::number("global_access")?;
    if access != 0 {
        skip!("the module was loaded with global_access={access}");
    }
    Ok(())
}

fn named() -> TestResult<(SyncObject, GlobalHandle)> {
    let mutex = SyncKind::Mutex {
        initially_owned: false,
    };
    let object = fixture::device()?.create_sync_object(mutex, SyncFlags::SHARED)?;
    let handle = object.global_handle().ok_or("no global handle")?;
    Ok((object, handle))
}

/// Tries to open by number; the status, and all bytes of the argument afterwards.
fn attempt(handle: GlobalHandle) -> TestResult<(Status, Vec<u8>)> {
    let mut arg: D3DKMT_OPENSYNCHRONIZATIONOBJECT = poisoned();
    arg.hSharedHandle = handle.0;
    let answer = fixture::raw()?.exec(&mut arg)?;
    arg.hSharedHandle = 0;
    Ok((answer, bytes(&arg).to_vec()))
}

fn is_refused_like_a_dead_one(handle: GlobalHandle) -> TestResult {
    let dead = {
        let (_object, dead) = named()?;
        dead
    };
    let refused = attempt(handle)?;
    ensure_eq!(refused.0, Status::INVALID_PARAMETER);
    ensure_eq!(refused, attempt(dead)?);
    Ok(())
}

fn by_another_user() -> TestResult {
    needs_root_and_default_access()?;
    let (object, handle) = named()?;
    in_child(|| {
        become_user(USER)?;
        is_refused_like_a_dead_one(handle)
    })?;
    drop(Dxg::open()?.open_global(handle)?);
    object.destroy()?;
    Ok(())
}

/// Runs `check` while a process of `USER` has an object with this number.
fn with_object_of_user(check: impl FnOnce(GlobalHandle) -> TestResult) -> TestResult {
    needs_root_and_default_access()?;
    let (reader, writer) = selftests::fds::pipe()?;
    let done = Gate::new()?;
    let owner = Child::spawn(|| {
        become_user(USER)?;
        let (_object, handle) = named()?;
        rustix::io::write(&writer, &handle.0.to_ne_bytes())?;
        done.wait()
    })?;
    let mut number = [0; 4];
    rustix::io::read(&reader, &mut number)?;
    let outcome = check(GlobalHandle(u32::from_ne_bytes(number)));
    done.open()?;
    owner.join()?;
    outcome
}

fn by_users() -> TestResult {
    with_object_of_user(|handle| {
        in_child(|| {
            become_user(OTHER)?;
            is_refused_like_a_dead_one(handle)
        })?;
        in_child(|| {
            become_user(USER)?;
            drop(Dxg::open()?.open_global(handle)?);
            Ok(())
        })?;
        // Root may, by CAP_IPC_OWNER.
        drop(Dxg::open()?.open_global(handle)?);
        Ok(())
    })
}

fn from_another_ipc_namespace() -> TestResult {
    with_object_of_user(|handle| {
        in_child(|| {
            unshare(libc::CLONE_NEWIPC)?;
            is_refused_like_a_dead_one(handle)
        })?;
        in_child(|| {
            unshare(libc::CLONE_NEWIPC)?;
            become_user(USER)?;
            is_refused_like_a_dead_one(handle)
        })
    })
}

fn descriptors_need_no_permission() -> TestResult {
    needs_root_and_default_access()?;
    let fence = fixture::device()?.create_shareable_fence(4)?;
    let nt = fence.share(Access::ALL)?;
    in_child(|| {
        become_user(OTHER)?;
        let own = fixture::device()?.open_fence(&nt, SyncFlags::empty())?;
        own.signal(5)?;
        Ok(())
    })?;
    ensure_eq!(fence.value(), 5);
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-103 another user's attempt looks like a dead handle",
            by_another_user,
        )
        .test(
            "RES-103 between two users, the same user, and root",
            by_users,
        )
        .test(
            "RES-103 another IPC namespace: a dead handle, for the same user and for root",
            from_another_ipc_namespace,
        )
        .test(
            "RES-104 whoever has an NT handle may open it",
            descriptors_need_no_permission,
        )
}
