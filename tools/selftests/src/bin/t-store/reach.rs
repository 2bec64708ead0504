// SPDX-License-Identifier: MIT OR Apache-2.0
//! One store for every handle and every process (RES-55, RES-62, RES-64, RES-66).

use std::os::fd::AsFd;

use opendxg::Status;
use selftests::child::{in_child, Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::sharing::{access, key, Client, How, Shape, Target};
use selftests::user::{become_user, needs_root, OTHER};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-55 one store behind every handle", every_handle)
        .test(
            "RES-55 another process sees it at once, before and after sharing",
            other_process,
        )
        .test(
            "RES-62 on the NT handle itself, without the device",
            without_device,
        )
        .test("RES-64 writing needs the right to write", rights)
        .test("RES-64 RES-109 the writer's user is told", writer)
        .test(
            "RES-66 entries outlive their writer and die with the object",
            life,
        )
        .test(
            "RES-55 the allocations of a resource have its store",
            allocations,
        )
        .test("RES-55 the members of a set of three have one each", triple)
}

fn every_handle() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let opened = client.open(shape, &fd)?;
        let duplicate = client.dup_local(shape.what(), object.handle())?;
        let targets = [
            object.target(),
            opened.target(),
            duplicate.target(),
            Target::Nt(fd.as_fd()),
            Target::This(fd.as_fd()),
        ];
        for (number, writer) in targets.iter().enumerate() {
            let value = [number as u8; 3];
            let generation = client.set(*writer, key(1), 1, &value)?;
            for reader in &targets {
                let entry = client.get(*reader, key(1), 1)?;
                ensure_eq!(entry.bytes, value, "{shape:?}: {writer:?} to {reader:?}");
                ensure_eq!(entry.generation, generation);
                ensure_eq!(client.entries(*reader)?.len(), 1);
            }
        }
    }
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        client.set(object.target(), key(1), 1, b"by number")?;
        let opened = client.open_global(shape, object.global())?;
        ensure_eq!(client.get(opened.target(), key(1), 1)?.bytes, b"by number");
    }
    Ok(())
}

fn other_process() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        client.set(object.target(), key(1), 0, b"before sharing")?;
        let fd = client.share(&object, shape.all_access())?;
        in_child(|| {
            let client = Client::new()?;
            let opened = client.open(shape, &fd)?;
            ensure_eq!(
                client.get(opened.target(), key(1), 0)?.bytes,
                b"before sharing"
            );
            client.set(opened.target(), key(2), 0, b"by the child")?;
            Ok(())
        })?;
        ensure_eq!(
            client.get(object.target(), key(2), 0)?.bytes,
            b"by the child"
        );
    }
    Ok(())
}

fn without_device() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        client.set(object.target(), key(1), 0, b"here")?;
        in_child(|| {
            // The inherited client is foreign here; calls on the NT handle do not need it.
            let target = Target::This(fd.as_fd());
            ensure_eq!(client.get(target, key(1), 0)?.bytes, b"here");
            client.set(target, key(2), 0, b"there")?;
            ensure_eq!(client.entries(target)?.len(), 2);
            client.delete_info(target, key(1), 0, 0).0?;
            ensure_eq!(client.query(target)?.object.generation, 3);
            Ok(())
        })?;
        ensure_eq!(client.get(object.target(), key(2), 0)?.bytes, b"there");
        fails_with(client.get(object.target(), key(1), 0), Status::NOT_FOUND)?;
    }
    Ok(())
}

fn rights() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        client.set(object.target(), key(1), 0, b"x")?;
        let mut masks = vec![access::READ_CONTROL, access::GENERIC_READ];
        if shape != Shape::Resource {
            masks.push(access::WAIT);
        }
        for mask in masks {
            let fd = client.share(&object, mask)?;
            let opened = client.open(shape, &fd)?;
            for target in [
                opened.target(),
                Target::Nt(fd.as_fd()),
                Target::This(fd.as_fd()),
            ] {
                ensure_eq!(client.get(target, key(1), 0)?.bytes, b"x");
                ensure_eq!(client.entries(target)?.len(), 1);
                let refuse = Status::ACCESS_DENIED;
                fails_with(client.set(target, key(1), 0, b"y"), refuse)?;
                fails_with(client.set(target, key(2), 0, b"y"), refuse)?;
                fails_with(client.delete_info(target, key(1), 0, 0).0, refuse)?;
            }
            // A duplicate of a handle has no more rights than that handle.
            let duplicate = client.dup_local(shape.what(), opened.handle())?;
            let result = client.set(duplicate.target(), key(1), 0, b"y");
            fails_with(result, Status::ACCESS_DENIED)?;
        }
        let writable = match shape {
            Shape::Resource => access::WRITE,
            _ => access::SIGNAL,
        };
        let fd = client.share(&object, writable)?;
        client.set(Target::Nt(fd.as_fd()), key(1), 0, b"z")?;
        client.set(client.open(shape, &fd)?.target(), key(1), 0, b"z")?;
    }
    Ok(())
}

fn writer() -> TestResult {
    needs_root()?;
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Resource)?;
    client.set(object.target(), key(1), 0, b"by root")?;
    in_child(|| {
        become_user(OTHER)?;
        let client = Client::new()?;
        let opened = client.open(Shape::Resource, &fd)?;
        ensure_eq!(client.get(opened.target(), key(1), 0)?.writer, 0);
        client.set(opened.target(), key(2), 0, b"by the user")?;
        Ok(())
    })?;
    ensure_eq!(client.get(object.target(), key(2), 0)?.writer, OTHER);
    let writers: Vec<u32> = client
        .entries(object.target())?
        .iter()
        .map(|entry| entry.writer_uid)
        .collect();
    ensure_eq!(writers, [0, OTHER]);
    Ok(())
}

fn life() -> TestResult {
    for shape in Shape::NT {
        let (left, right) = socket_pair()?;
        let (sent, done) = (Gate::new()?, Gate::new()?);
        let writer = Child::spawn(|| {
            let client = Client::new()?;
            let (object, fd) = client.shared(shape)?;
            client.set(object.target(), key(1), 0, b"left behind")?;
            send(&left, &fd)?;
            sent.open()?;
            done.wait()
        })?;
        sent.wait()?;
        writer.kill()?;
        let client = Client::new()?;
        let fd = receive(&right)?;
        let opened = client.open(shape, &fd)?;
        ensure_eq!(
            client.get(opened.target(), key(1), 0)?.bytes,
            b"left behind"
        );
        drop(done);
    }
    Ok(())
}

fn allocations() -> TestResult {
    let client = Client::new()?;
    let resource = client.create_resource(How::Nt, 3, b"")?;
    client.set(resource.target(), key(1), 0, b"container")?;
    for (number, allocation) in resource.allocations().iter().enumerate() {
        let target = Target::Local(*allocation);
        ensure_eq!(client.get(target, key(1), 0)?.bytes, b"container");
        client.set(target, key(10 + number as u8), 0, b"part")?;
    }
    ensure_eq!(client.entries(resource.target())?.len(), 4);
    Ok(())
}

fn triple() -> TestResult {
    let client = Client::new()?;
    let members = client.triple()?;
    for (number, member) in members.iter().enumerate() {
        client.set(member.target(), key(1), 0, &[number as u8])?;
    }
    let handles = members.each_ref().map(|member| member.handle());
    let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    // The handle itself is about the resource; each member has its own.
    ensure_eq!(client.get(Target::Nt(fd.as_fd()), key(1), 0)?.bytes, [0]);
    let opened = client.open_resource(&fd)?;
    let mutex = opened.mutex.ok_or("no mutex")?;
    let sync = opened.sync.ok_or("no sync object")?;
    ensure_eq!(client.get(mutex.target(), key(1), 0)?.bytes, [1]);
    ensure_eq!(client.get(sync.target(), key(1), 0)?.bytes, [2]);
    Ok(())
}
