// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may open a name (RES-45), and how many there may be (RES-46).

use std::os::fd::AsFd;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::child::{in_child, Child, Gate};
use selftests::rounds::is_brief;
use selftests::sharing::{access, Client, How, Shape, Target, What};
use selftests::user::{become_member, become_user, needs_root, OTHER, USER};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

const NAME: &str = r"\BaseNamedObjects\modes";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-45 owner, group, others and CAP_IPC_OWNER, every mode",
            every_mode,
        )
        .test("RES-45 without a mode 0600", default_mode)
        .test("RES-45 the rights asked for, one by one", rights)
        .test("RES-45 MAXIMUM_ALLOWED gives what the mode allows", maximum)
        .test("RES-45 modes with other bits, reserved members", bad_modes)
        .test(
            "RES-45 the capability counts in the right namespace only",
            user_namespace,
        )
}

/// Runs `check` while a process of `USER` has a `shape` of this mode under the name.
fn with_name(shape: Shape, mode: Option<u32>, check: impl FnOnce() -> TestResult) -> TestResult {
    needs_root()?;
    let (ready, done) = (Gate::new()?, Gate::new()?);
    let owner = Child::spawn(|| {
        become_user(USER)?;
        let client = Client::new()?;
        let object = client.create(shape, How::Nt)?;
        let mut name = selftests::sharing::Attributes::named(NAME);
        let all = shape.all_access();
        let _kept = client.share_mode(&[object.handle()], Some(&mut name), all, mode)?;
        // The owner itself: as the first of the three classes.
        let bits = mode.unwrap_or(0o600) >> 6;
        attempt(&client, shape, bits)?;
        ready.open()?;
        done.wait()
    })?;
    let outcome = ready.wait().and_then(|()| check());
    let _ = done.open();
    owner.join()?;
    outcome
}

/// The right to write of this kind of object.
fn write_right(shape: Shape) -> u32 {
    match shape.what() {
        What::Sync => access::SIGNAL,
        _ => access::WRITE,
    }
}

/// Demands that the caller can open exactly what the three bits allow.
fn attempt(client: &Client, shape: Shape, bits: u32) -> TestResult {
    let (read, write) = (bits & 4 != 0, bits & 2 != 0);
    let refuse = match read {
        true => Status::ACCESS_DENIED,
        false => Status::OBJECT_NAME_NOT_FOUND,
    };
    for (mask, allowed) in [
        (access::READ_CONTROL, read),
        (write_right(shape), write),
        (access::READ_CONTROL | write_right(shape), read && write),
    ] {
        let open = client.open_name(shape.what(), NAME, mask);
        match allowed {
            true => drop(open?),
            false => fails_with(open, refuse)?,
        }
    }
    Ok(())
}

fn every_mode() -> TestResult {
    for shape in [Shape::MonitoredFence, Shape::Resource] {
        // Each class with and without each right is in the first four.
        let modes = [
            0o000, 0o624, 0o240, 0o466, 0o600, 0o400, 0o200, 0o640, 0o620, 0o660, 0o604, 0o602,
            0o606, 0o644, 0o664, 0o666, 0o060, 0o006,
        ];
        for mode in modes
            .into_iter()
            .take(if is_brief() { 4 } else { usize::MAX })
        {
            with_name(shape, Some(mode), || {
                in_child(|| {
                    become_member(OTHER, USER)?;
                    attempt(&Client::new()?, shape, mode >> 3)
                })?;
                in_child(|| {
                    become_user(OTHER)?;
                    attempt(&Client::new()?, shape, mode)
                })?;
                in_child(|| {
                    become_user(USER)?;
                    attempt(&Client::new()?, shape, mode >> 6)
                })?;
                // Root has CAP_IPC_OWNER.
                attempt(&Client::new()?, shape, 6)
            })
            .map_err(|error| format!("{shape:?} {mode:o}: {error}"))?;
        }
    }
    Ok(())
}

fn default_mode() -> TestResult {
    for shape in Shape::NT {
        with_name(shape, None, || {
            in_child(|| {
                become_member(OTHER, USER)?;
                attempt(&Client::new()?, shape, 0)
            })?;
            in_child(|| {
                become_user(USER)?;
                attempt(&Client::new()?, shape, 6)
            })?;
            attempt(&Client::new()?, shape, 6)
        })?;
    }
    Ok(())
}

fn rights() -> TestResult {
    let shape = Shape::MonitoredFence;
    with_name(shape, Some(0o604), || {
        in_child(|| {
            become_user(OTHER)?;
            let client = Client::new()?;
            for mask in [access::READ_CONTROL, access::WAIT, access::GENERIC_READ] {
                client.open_name(shape.what(), NAME, mask)?;
            }
            for mask in [
                access::SIGNAL,
                access::WAIT | access::SIGNAL,
                access::GENERIC_WRITE,
                access::GENERIC_ALL,
                access::ALL_SYNC,
            ] {
                let open = client.open_name(shape.what(), NAME, mask);
                fails_with(open, Status::ACCESS_DENIED)
                    .map_err(|error| format!("{mask:#x}: {error}"))?;
            }
            // A mask that asks for nothing tells nothing about names that may not be seen.
            let open = client.open_name(shape.what(), r"\BaseNamedObjects\no", 0);
            ensure_eq!(open.is_err(), true);
            Ok(())
        })
    })
}

fn maximum() -> TestResult {
    for (shape, mode, granted) in [
        (Shape::MonitoredFence, 0o604, access::WAIT),
        (Shape::MonitoredFence, 0o606, access::WAIT | access::SIGNAL),
        (Shape::Resource, 0o604, 0),
        (Shape::Resource, 0o606, access::WRITE),
    ] {
        with_name(shape, Some(mode), || {
            in_child(|| {
                become_user(OTHER)?;
                let client = Client::new()?;
                let fd = client.open_name(shape.what(), NAME, access::MAXIMUM_ALLOWED)?;
                let got = client.query(Target::Nt(fd.as_fd()))?.object.access;
                ensure_eq!(got & 3, granted, "{shape:?} {mode:o}: {got:#x}");
                Ok(())
            })
        })?;
    }
    with_name(Shape::Resource, Some(0o600), || {
        in_child(|| {
            become_user(OTHER)?;
            let open = Client::new()?.open_name(What::Resource, NAME, access::MAXIMUM_ALLOWED);
            fails_with(open, Status::OBJECT_NAME_NOT_FOUND)
        })
    })
}

fn bad_modes() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    for mode in [0o1, 0o100, 0o777, 0o1000, 0o4666, 1 << 31, u32::MAX] {
        let mut name = selftests::sharing::Attributes::named(NAME);
        let handles = [object.handle()];
        let result = client.share_mode(&handles, Some(&mut name), 1, Some(mode));
        fails_with(result, Status::INVALID_PARAMETER)
            .map_err(|error| format!("{mode:o}: {error}"))?;
    }
    let handles = [object.handle()];
    let mut slot = 0u64;
    let mut arg = opendxg_share_objects::zeroed();
    arg.share.ObjectCount = 1;
    arg.share.ObjectHandleArray = handles.as_ptr() as u64;
    arg.share.pSharedNtHandle = (&raw mut slot) as u64;
    (arg.share.DesiredAccess, arg.mode, arg.reserved) = (1, 0o600, 1);
    fails_with(client.call(&mut arg), Status::INVALID_PARAMETER)
}

fn user_namespace() -> TestResult {
    // Root of a user namespace of its own has every capability there, and none here.
    with_name(Shape::MonitoredFence, Some(0o600), || {
        in_child(|| {
            become_user(OTHER)?;
            selftests::user::unshare(libc::CLONE_NEWUSER)?;
            attempt(&Client::new()?, Shape::MonitoredFence, 0)
        })
    })
}
