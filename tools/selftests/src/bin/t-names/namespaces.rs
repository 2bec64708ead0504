// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table of names for each IPC namespace (RES-44).

use opendxg::Status;
use selftests::child::{in_child, Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::sharing::{access, Client, How, Shape, Target};
use selftests::user::{needs_root, unshare};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

const NAME: &str = r"\BaseNamedObjects\namespaces";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-44 one name in two namespaces is two names", two_names)
        .test("RES-44 a handle travels, its name does not", handle_travels)
        .test(
            "RES-44 the namespace at the time of the call counts",
            at_call_time,
        )
        .test("RES-44 a namespace ends before its object", namespace_ends)
        .test(
            "RES-44 names are found by other processes of the namespace",
            same_namespace,
        )
}

fn missing(client: &Client, shape: Shape) -> TestResult {
    let open = client.open_name(shape.what(), NAME, access::READ_CONTROL);
    fails_with(open, Status::OBJECT_NAME_NOT_FOUND)
}

fn two_names() -> TestResult {
    needs_root()?;
    for shape in Shape::NT {
        let client = Client::new()?;
        let (object, _) = client.shared(shape)?;
        let _kept = client.share_named(&object, NAME)?;
        in_child(|| {
            unshare(libc::CLONE_NEWIPC)?;
            let client = Client::new()?;
            missing(&client, shape)?;
            let (other, _) = client.shared(shape)?;
            let _kept = client.share_named(&other, NAME)?;
            let found = client.open_name(shape.what(), NAME, shape.all_access())?;
            let opened = client.open(shape, &found)?;
            ensure_eq!(client.id(opened.target())?, client.id(other.target())?);
            Ok(())
        })?;
        let found = client.open_name(shape.what(), NAME, shape.all_access())?;
        let opened = client.open(shape, &found)?;
        ensure_eq!(client.id(opened.target())?, client.id(object.target())?);
    }
    Ok(())
}

fn handle_travels() -> TestResult {
    needs_root()?;
    for shape in Shape::NT {
        let (left, right) = socket_pair()?;
        let (sent, done) = (Gate::new()?, Gate::new()?);
        let other = Child::spawn(|| {
            unshare(libc::CLONE_NEWIPC)?;
            let client = Client::new()?;
            let object = client.create(shape, How::Nt)?;
            send(&left, client.share_named(&object, NAME)?)?;
            sent.open()?;
            done.wait()
        })?;
        sent.wait()?;
        let outcome = (|| -> TestResult {
            let client = Client::new()?;
            let fd = receive(&right)?;
            let opened = client.open(shape, &fd)?;
            client.query(opened.target())?;
            missing(&client, shape)?;
            // Here the name is free.
            let own = client.create(shape, How::Nt)?;
            client.share_named(&own, NAME)?;
            Ok(())
        })();
        done.open()?;
        other.join()?;
        outcome?;
    }
    Ok(())
}

fn at_call_time() -> TestResult {
    needs_root()?;
    in_child(|| {
        let client = Client::new()?;
        let object = client.create(Shape::MonitoredFence, How::Nt)?;
        let _kept = client.share_named(&object, NAME)?;
        unshare(libc::CLONE_NEWIPC)?;
        // The same process, node and device.
        missing(&client, Shape::MonitoredFence)?;
        let _second = client.share_named(&object, NAME)?;
        client.open_name(object.what(), NAME, 1)?;
        Ok(())
    })
}

fn namespace_ends() -> TestResult {
    needs_root()?;
    for shape in Shape::NT {
        let (left, right) = socket_pair()?;
        in_child(|| {
            unshare(libc::CLONE_NEWIPC)?;
            let client = Client::new()?;
            let object = client.create(shape, How::Nt)?;
            send(&left, client.share_named(&object, NAME)?)
        })?;
        // The last process of the namespace is gone; its id never comes back.
        let fd = receive(&right)?;
        let client = Client::new()?;
        let opened = client.open(shape, &fd)?;
        use std::os::fd::AsFd;
        ensure_eq!(client.query(Target::Nt(fd.as_fd()))?.name, NAME);
        for _ in 0..8 {
            in_child(|| {
                unshare(libc::CLONE_NEWIPC)?;
                missing(&Client::new()?, shape)
            })?;
        }
        missing(&client, shape)?;
        drop(fd);
        client.query(opened.target())?;
    }
    Ok(())
}

fn same_namespace() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, _) = client.shared(shape)?;
        let id = client.id(object.target())?;
        let _kept = client.share_named(&object, NAME)?;
        in_child(|| {
            let client = Client::new()?;
            let found = client.open_name(shape.what(), NAME, shape.all_access())?;
            let opened = client.open(shape, &found)?;
            ensure_eq!(client.id(opened.target())?, id);
            Ok(())
        })?;
    }
    Ok(())
}
