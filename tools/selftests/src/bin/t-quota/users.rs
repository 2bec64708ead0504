// SPDX-License-Identifier: MIT OR Apache-2.0
//! One user at every limit, another one as free as before (RES-105, RES-106).

use opendxg::{EventFd, Status};
use selftests::child::{in_child, Child, Gate};
use selftests::sharing::{access, key, Client, How, Local, Shape};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_quota::limits::limit;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-105 user A at every limit, user B works", two_users)
        .test("RES-105 two processes of a user share its limits", one_user)
        .test("RES-105 what a killed process had is given back", killed)
}

/// Takes everything that there is for this user.
fn exhaust(client: &Client, kept: &mut Vec<Local>) -> TestResult<Vec<std::os::fd::OwnedFd>> {
    for parameter in [
        "max_user_objects",
        "max_user_names",
        "max_user_globals",
        "max_user_watches",
        "max_user_store",
    ] {
        limit(parameter)?;
    }
    let mut fds = Vec::new();
    while let Ok(object) = client.create(Shape::Fence, How::Global) {
        kept.push(object);
    }
    let named = client.create(Shape::Fence, How::Nt)?;
    for number in 0.. {
        match client.share_named(&named, &format!(r"\BaseNamedObjects\full {number}")) {
            Ok(fd) => fds.push(fd),
            Err(error) => {
                ensure_eq!(error.status(), Status::NO_MEMORY);
                break;
            }
        }
    }
    while let Ok(fd) = client.open_weak(named.target()) {
        fds.push(fd);
    }
    let bytes = vec![1; 10_000];
    'store: for object in kept.iter() {
        for number in 0..20 {
            if client.set(object.target(), key(number), 0, &bytes).is_err() {
                break 'store;
            }
        }
    }
    kept.push(named);
    while let Ok(object) = client.create(Shape::Semaphore, How::Nt) {
        kept.push(object);
    }
    Ok(fds)
}

/// A little of everything.
fn works(name: &str) -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Nt)?;
        client.set(object.target(), key(1), 0, &[1; 5000])?;
        client.open_weak(object.target())?;
        let event = EventFd::new()?;
        client.watch(object.target(), 1, 0, &event)?;
        if shape != Shape::KeyedMutex {
            let path = format!(r"\BaseNamedObjects\{name}");
            let fd = client.share_named(&object, &path)?;
            client.open(shape, &fd)?;
            client.open_name(shape.what(), &path, access::READ_CONTROL)?;
        }
    }
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        client.open_global(shape, object.global())?;
    }
    Ok(())
}

fn two_users() -> TestResult {
    needs_root()?;
    let (full, done) = (Gate::new()?, Gate::new()?);
    let greedy = Child::spawn(|| {
        become_user(USER)?;
        let client = Client::new()?;
        let mut kept = Vec::new();
        let _fds = exhaust(&client, &mut kept)?;
        ensure!(works("greedy").is_err(), "nothing is exhausted");
        full.open()?;
        done.wait()
    })?;
    let outcome = full.wait().and_then(|()| {
        in_child(|| {
            become_user(OTHER)?;
            works("other")
        })?;
        works("root")
    });
    let _ = done.open();
    greedy.join()?;
    outcome?;
    // Its things went with it.
    in_child(|| {
        become_user(USER)?;
        works("greedy")
    })
}

fn one_user() -> TestResult {
    needs_root()?;
    let (full, done) = (Gate::new()?, Gate::new()?);
    let greedy = Child::spawn(|| {
        become_user(USER)?;
        let client = Client::new()?;
        let mut kept = Vec::new();
        let _fds = exhaust(&client, &mut kept)?;
        full.open()?;
        done.wait()
    })?;
    let outcome = full.wait().and_then(|()| {
        in_child(|| {
            become_user(USER)?;
            let client = Client::new()?;
            let refused = client.create(Shape::Fence, How::Nt).err();
            ensure_eq!(refused.map(|error| error.status()), Some(Status::NO_MEMORY));
            Ok(())
        })
    });
    let _ = done.open();
    greedy.join()?;
    outcome
}

fn killed() -> TestResult {
    needs_root()?;
    for _ in 0..3 {
        let full = Gate::new()?;
        let greedy = Child::spawn(|| {
            become_user(USER)?;
            let client = Client::new()?;
            let mut kept = Vec::new();
            let _fds = exhaust(&client, &mut kept)?;
            full.open()?;
            std::thread::sleep(selftests::time::soon());
            Ok(())
        })?;
        full.wait()?;
        greedy.kill()?;
    }
    in_child(|| {
        become_user(USER)?;
        works("later")
    })
}
