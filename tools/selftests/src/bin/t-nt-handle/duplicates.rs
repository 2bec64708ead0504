// SPDX-License-Identifier: MIT OR Apache-2.0
//! DUP_NT (RES-17, RES-104).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use rustix::io::FdFlags;
use selftests::leak::Watch;
use selftests::sharing::{access, key, Client, How, Shape, Target};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-17 a new description with a subset of the rights",
            subset,
        )
        .test("RES-17 RES-104 never more rights", never_more)
        .test("RES-17 flags, and members that must be 0", flags)
        .test("RES-17 it lives on without the first", lives)
        .test("RES-17 of a set of three", triple)
}

fn subset() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (_object, fd) = client.shared(shape)?;
        let watch = Watch::start()?;
        for target in [Target::Nt(fd.as_fd()), Target::This(fd.as_fd())] {
            for mask in [
                access::READ_CONTROL,
                access::READ_CONTROL | 1,
                shape.all_access(),
            ] {
                let other = client.dup_nt(target, mask, 0)?;
                let seen = client.query(Target::Nt(other.as_fd()))?.object;
                ensure_eq!(seen.access, mask, "{shape:?}");
                // Another description, another share in the counters.
                ensure_eq!(watch.now()?.total_shares, watch.at_start().total_shares + 1);
                let written = client.set(Target::Nt(other.as_fd()), key(1), 0, b"x");
                match (mask, shape) {
                    (access::READ_CONTROL, _) => fails_with(written, Status::ACCESS_DENIED)?,
                    (mask, Shape::Resource) if mask & access::WRITE != 0 => drop(written?),
                    (mask, _) if mask & access::SIGNAL != 0 => drop(written?),
                    _ => fails_with(written, Status::ACCESS_DENIED)?,
                }
            }
        }
    }
    Ok(())
}

fn never_more() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share(&object, access::READ_CONTROL)?;
        for target in [Target::Nt(fd.as_fd()), Target::This(fd.as_fd())] {
            for mask in [
                1,
                access::READ_CONTROL | 1,
                shape.all_access(),
                access::GENERIC_ALL,
            ] {
                let more = client.dup_nt(target, mask, 0).map(|_| ());
                fails_with(more, Status::ACCESS_DENIED)?;
            }
            let same = client.dup_nt(target, 0, OPENDXG_DUP_SAME_ACCESS)?;
            let got = client.query(Target::Nt(same.as_fd()))?.object.access;
            ensure_eq!(got, access::READ_CONTROL);
        }
        // Nor by opening and sharing again.
        let opened = client.open(shape, &fd)?;
        let again = client.share(&opened, shape.all_access()).map(|_| ());
        fails_with(again, Status::ACCESS_DENIED)?;
    }
    Ok(())
}

fn flags() -> TestResult {
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Fence)?;
    let target = Target::Nt(fd.as_fd());
    for (flags, cloexec) in [(1, true), (3, false)] {
        let other = client.dup_nt(target, 0, flags)?;
        let set = rustix::io::fcntl_getfd(&other)?.contains(FdFlags::CLOEXEC);
        ensure_eq!(set, cloexec);
    }
    for flags in [4, 8, 1 << 31] {
        fails_with(client.dup_nt(target, 1, flags).map(|_| ()), REFUSE)?;
    }
    fails_with(
        client
            .dup_nt(target, 1, OPENDXG_DUP_SAME_ACCESS)
            .map(|_| ()),
        REFUSE,
    )?;
    fails_with(client.dup_nt(target, 0x0400_0000, 0).map(|_| ()), REFUSE)?;
    for bad in [
        Target::Local(object.handle()),
        Target::Global(object.handle()),
    ] {
        fails_with(client.dup_nt(bad, 1, 0).map(|_| ()), REFUSE)?;
    }
    let mut arg = opendxg_dup_nt::zeroed();
    (arg.handle, arg.handle_type) = (fd.as_raw_fd() as u64, OPENDXG_HANDLE_NT);
    (arg.access, arg.reserved) = (1, 1);
    fails_with(client.call(&mut arg), REFUSE)
}

fn lives() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let id = client.id(object.target())?;
        let other = client.dup_nt(Target::This(fd.as_fd()), 0, OPENDXG_DUP_SAME_ACCESS)?;
        object.destroy()?;
        drop(fd);
        let opened = client.open(shape, &other)?;
        ensure_eq!(client.id(opened.target())?, id);
    }
    Ok(())
}

fn triple() -> TestResult {
    let client = Client::new()?;
    let other = {
        let [resource, mutex, sync] = client.triple()?;
        let handles = [resource.handle(), mutex.handle(), sync.handle()];
        let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
        client.dup_nt(Target::Nt(fd.as_fd()), 0, OPENDXG_DUP_SAME_ACCESS)?
    };
    let opened = client.open_resource(&other)?;
    ensure!(opened.mutex.is_some() && opened.sync.is_some());
    Ok(())
}
