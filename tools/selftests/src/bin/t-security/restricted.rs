// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resources that are more open, or less, than the rest (RES-103).

use std::os::fd::AsRawFd;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::child::{in_child, Child, Gate};
use selftests::fds::pidfd;
use selftests::sharing::{Client, How, Local, Shape};
use selftests::user::{become_user, needs_root, unshare, OTHER};
use selftests::{ensure_eq, fails_with, module, skip, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;
const RESTRICT: u32 = D3DKMT_CREATEALLOCATIONFLAGS_RestrictSharedAccess;
const NON_SECURE: u32 = D3DKMT_CREATEALLOCATIONFLAGS_NonSecure;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-103 NonSecure opens one resource to all users",
            non_secure,
        )
        .test(
            "RES-103 RestrictSharedAccess: the creator alone",
            restricted,
        )
        .test("RES-103 RestrictSharedAccess: admitted processes", admitted)
        .test("RES-103 CheckSharedResourceAccess tells the same", check)
        .test(
            "RES-103 CheckSharedResourceAccess knows the capability in the IPC namespace",
            check_owner,
        )
        .test("RES-103 ConfigureSharedResource refuses", refused)
}

fn create(client: &Client, flags: u32) -> opendxg::Result<Local> {
    client.create_resource_with(How::Global, flags, &[4096], b"")
}

fn check_access(client: &Client, resource: &Local, pid: u32) -> opendxg::Result<()> {
    let mut arg = D3DKMT_CHECKSHAREDRESOURCEACCESS::zeroed();
    (arg.hResource, arg.ClientPid) = (resource.handle(), pid);
    client.call(&mut arg).map(|_| ())
}

fn configure(client: &Client, resource: u32, process: i32, allow: u8) -> opendxg::Result<()> {
    let mut arg = D3DKMT_CONFIGURESHAREDRESOURCE::zeroed();
    (arg.hDevice, arg.hResource) = (client.device_handle(), resource);
    (arg.hProcess, arg.AllowAccess) = (process as u64, allow);
    client.call(&mut arg).map(|_| ())
}

fn non_secure() -> TestResult {
    needs_root()?;
    if module::parameter("allow_nonsecure")? != "Y" {
        skip!("the administrator does not allow it");
    }
    let client = Client::new()?;
    let resources = [create(&client, NON_SECURE)?, create(&client, 0)?];
    let [open, closed] = resources.each_ref().map(Local::global);
    in_child(|| {
        become_user(OTHER)?;
        let client = Client::new()?;
        client.open_global(Shape::Resource, open)?;
        fails_with(client.open_global(Shape::Resource, closed), REFUSE)
    })
}

fn restricted() -> TestResult {
    let client = Client::new()?;
    let resource = create(&client, RESTRICT)?;
    let global = resource.global();
    client.open_global(Shape::Resource, global)?;
    // The same user in another process.
    in_child(|| {
        let client = Client::new()?;
        fails_with(client.open_global(Shape::Resource, global), REFUSE)
    })
}

fn admitted() -> TestResult {
    let client = Client::new()?;
    let resource = create(&client, RESTRICT)?;
    let global = resource.global();
    let (go, done) = (Gate::new()?, Gate::new()?);
    let other = Child::spawn(|| {
        let client = Client::new()?;
        for allowed in [false, true, false] {
            go.wait()?;
            let open = client.open_global(Shape::Resource, global);
            match allowed {
                true => drop(open?),
                false => fails_with(open, REFUSE)?,
            }
            done.open()?;
        }
        Ok(())
    })?;
    let process = pidfd(other.pid())?;
    for allow in [None, Some(1), Some(0)] {
        if let Some(allow) = allow {
            configure(&client, resource.handle(), process.as_raw_fd(), allow)?;
        }
        go.open()?;
        done.wait()?;
    }
    other.join()
}

fn check() -> TestResult {
    let client = Client::new()?;
    let (own, other) = (std::process::id(), Gate::new()?);
    let done = Gate::new()?;
    let child = Child::spawn(|| {
        let _client = Client::new()?;
        other.open()?;
        done.wait()
    })?;
    other.wait()?;
    let outcome = (|| -> TestResult {
        let open = create(&client, 0)?;
        for pid in [own, child.pid() as u32] {
            check_access(&client, &open, pid)?;
        }
        let closed = create(&client, RESTRICT)?;
        check_access(&client, &closed, own)?;
        fails_with(check_access(&client, &closed, child.pid() as u32), REFUSE)?;
        let process = pidfd(child.pid())?;
        configure(&client, closed.handle(), process.as_raw_fd(), 1)?;
        check_access(&client, &closed, child.pid() as u32)?;
        for pid in [0, u32::MAX, 0x7fff_fff0] {
            fails_with(check_access(&client, &open, pid), REFUSE)?;
        }
        let unshared = client.create(Shape::Resource, How::Private)?;
        fails_with(check_access(&client, &unshared, own), REFUSE)
    })();
    done.open()?;
    child.join()?;
    outcome
}

/// The owner of an IPC namespace may open what users of namespaces below make in it, and the check
/// says so.
fn check_owner() -> TestResult {
    needs_root()?;
    let (done, checked) = (Gate::new()?, Gate::new()?);
    let (reader, writer) = selftests::fds::pipe()?;
    in_child(|| {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWIPC)?;
        // Who has no number makes no user namespace.
        for (file, line) in [
            ("setgroups", "deny"),
            ("uid_map", "0 0 1"),
            ("gid_map", "0 0 1"),
        ] {
            std::fs::write(format!("/proc/self/{file}"), line)?;
        }
        let owner = std::process::id();
        let below = Child::spawn(|| {
            unshare(libc::CLONE_NEWUSER)?;
            let client = Client::new()?;
            let open = create(&client, 0)?;
            check_access(&client, &open, owner)?;
            rustix::io::write(&writer, &open.global().to_ne_bytes())?;
            checked.open()?;
            done.wait()
        })?;
        if let Err(late) = checked.wait() {
            below.join()?;
            return Err(late);
        }
        let mut global = [0u8; 4];
        rustix::io::read(&reader, &mut global)?;
        Client::new()?.open_global(Shape::Resource, u32::from_ne_bytes(global))?;
        done.open()?;
        below.join()
    })
}

fn refused() -> TestResult {
    let client = Client::new()?;
    let closed = create(&client, RESTRICT)?;
    let open = create(&client, 0)?;
    let process = pidfd(std::process::id() as i32)?;
    let good = process.as_raw_fd();
    fails_with(configure(&client, open.handle(), good, 1), REFUSE)?;
    fails_with(configure(&client, 0, good, 1), REFUSE)?;
    fails_with(configure(&client, closed.allocations()[0], good, 1), REFUSE)?;
    fails_with(configure(&client, closed.handle(), good, 2), REFUSE)?;
    let file = selftests::fds::memfd()?;
    for bad in [file.as_raw_fd(), selftests::fds::closed_number()?] {
        let result = configure(&client, closed.handle(), bad, 1);
        ensure_eq!(result.is_err(), true);
    }
    Ok(())
}
