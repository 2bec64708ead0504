// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a name lives, and races about it (RES-42).

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use opendxg::uapi::OBJ_OPENIF;
use opendxg::{Error, Status};
use selftests::child::in_child;
use selftests::fds::{receive, send, socket_pair};
use selftests::rounds::{crowd, rounds, together, Dice};
use selftests::sharing::{access, Attributes, Client, How, Shape, Target};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

/// Time for the races.
const LIMIT: Duration = Duration::from_secs(120);
const NAME: &str = r"\BaseNamedObjects\lifetime";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-42 the name dies with the last NT handle and may be given again",
            dies,
        )
        .test("RES-42 every copy of the handle keeps the name", copies)
        .test("RES-42 the name lives without any local handle", nt_only)
        .test("RES-42 a handle in a socket keeps the name", in_flight)
        .test(
            "RES-42 the name survives the process that gave it",
            survives_owner,
        )
        .slow(
            "RES-42 RES-110 open by name against the last close",
            LIMIT,
            race_close,
        )
        .slow(
            "RES-110 two ShareObjects with one name: one succeeds",
            LIMIT,
            race_share,
        )
        .slow(
            "RES-110 OBJ_OPENIF from many threads gives one object",
            LIMIT,
            race_open_if,
        )
}

fn is_free(client: &Client, shape: Shape) -> TestResult {
    let open = client.open_name(shape.what(), NAME, access::READ_CONTROL);
    fails_with(open, Status::OBJECT_NAME_NOT_FOUND)
}

fn dies() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        for _ in 0..3 {
            let first = client.share_named(&object, NAME)?;
            let second = client.open_name(shape.what(), NAME, shape.all_access())?;
            drop(first);
            let third = client.open_name(shape.what(), NAME, shape.all_access())?;
            drop((second, third));
            is_free(&client, shape)?;
        }
        // What it named is as good as before.
        client.query(object.target())?;
    }
    Ok(())
}

fn copies() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share_named(&object, NAME)?;
        let copy = fd.try_clone()?;
        drop(fd);
        let other = client.dup_nt(Target::Nt(copy.as_fd()), access::READ_CONTROL, 0)?;
        drop(copy);
        let found = client.open_name(shape.what(), NAME, access::READ_CONTROL)?;
        drop(other);
        client.open_name(shape.what(), NAME, access::READ_CONTROL)?;
        drop(found);
        is_free(&client, shape)?;
    }
    Ok(())
}

fn nt_only() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let id = client.id(object.target())?;
        let fd = client.share_named(&object, NAME)?;
        object.destroy()?;
        let found = client.open_name(shape.what(), NAME, shape.all_access())?;
        drop(fd);
        let opened = client.open(shape, &found)?;
        ensure_eq!(client.id(opened.target())?, id, "{shape:?}");
    }
    Ok(())
}

fn in_flight() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let (left, right) = socket_pair()?;
        send(&left, client.share_named(&object, NAME)?)?;
        client.open_name(shape.what(), NAME, access::READ_CONTROL)?;
        let arrived = receive(&right)?;
        client.open_name(shape.what(), NAME, access::READ_CONTROL)?;
        drop(arrived);
        is_free(&client, shape)?;
        // Not received at all.
        send(&left, client.share_named(&object, NAME)?)?;
        drop((left, right));
        let gone = || is_free(&client, shape).is_ok();
        selftests::time::eventually("the name dies with the socket", gone)?;
    }
    Ok(())
}

fn survives_owner() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (left, right) = socket_pair()?;
        in_child(|| {
            let client = Client::new()?;
            let (object, _) = client.shared(shape)?;
            send(&left, client.share_named(&object, NAME)?)
        })?;
        let found = client.open_name(shape.what(), NAME, shape.all_access())?;
        client.open(shape, &found)?;
        drop((found, receive(&right)?));
        is_free(&client, shape)?;
    }
    Ok(())
}

fn race_close() -> TestResult {
    let client = Client::new()?;
    for shape in [Shape::MonitoredFence, Shape::Resource] {
        let object = client.create(shape, How::Nt)?;
        let id = client.id(object.target())?;
        let (mut found, mut missed) = (0, 0);
        for round in 0..rounds(100) {
            let fd = client.share_named(&object, NAME)?;
            let opened = std::sync::Mutex::new(None);
            together(vec![
                Box::new(move || {
                    Dice::new(round.into()).dawdle();
                    drop(fd);
                    Ok(())
                }),
                Box::new(|| {
                    Dice::new((round + 7).into()).dawdle();
                    let result = client.open_name(shape.what(), NAME, shape.all_access());
                    *opened.lock().map_err(|_| "poisoned")? = Some(result);
                    Ok(())
                }),
            ])?;
            match opened.into_inner().map_err(|_| "poisoned")? {
                Some(Ok(fd)) => {
                    found += 1;
                    ensure_eq!(client.id(Target::Nt(fd.as_fd()))?, id);
                    client.open(shape, &fd)?;
                    client.open_name(shape.what(), NAME, 1)?;
                }
                Some(Err(Error::Status(Status::OBJECT_NAME_NOT_FOUND))) => missed += 1,
                other => return Err(format!("{other:?}").into()),
            }
            is_free(&client, shape)?;
        }
        println!("# {shape:?}: found {found}, missed {missed}");
    }
    Ok(())
}

fn race_share() -> TestResult {
    const MANY: usize = 4;
    let client = Client::new()?;
    let objects: Vec<_> = (0..MANY)
        .map(|number| client.create(Shape::NT[number], How::Nt))
        .collect::<Result<_, _>>()?;
    for round in 0..rounds(60) {
        let won = std::sync::Mutex::new(Vec::new());
        crowd(MANY, |index| {
            Dice::new(u64::from(round) * 10 + index as u64).dawdle();
            match client.share_named(&objects[index], NAME) {
                Ok(fd) => won.lock().map_err(|_| "poisoned")?.push((index, fd)),
                Err(Error::Status(Status::OBJECT_NAME_COLLISION)) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(())
        })?;
        let won = won.into_inner().map_err(|_| "poisoned")?;
        ensure_eq!(won.len(), 1, "winners of round {round}");
        let found = client.open_name(objects[won[0].0].what(), NAME, 1)?;
        let id = client.id(Target::Nt(found.as_fd()))?;
        ensure_eq!(id, client.id(objects[won[0].0].target())?);
    }
    Ok(())
}

fn race_open_if() -> TestResult {
    const MANY: usize = 4;
    let client = Client::new()?;
    for round in 0..rounds(100) {
        let created = AtomicU32::new(0);
        let kept = std::sync::Mutex::new(Vec::new());
        crowd(MANY, |index| {
            let object = client.create(Shape::MonitoredFence, How::Nt)?;
            Dice::new(u64::from(round) * 10 + index as u64).dawdle();
            let mut attributes = Attributes::named(NAME).bits(OBJ_OPENIF);
            let handles = [object.handle()];
            let (fd, status) =
                client.share_with(&handles, Some(&mut attributes), access::ALL_SYNC)?;
            match status {
                Status::SUCCESS => created.fetch_add(1, Ordering::Relaxed),
                Status::OBJECT_NAME_EXISTS => 0,
                other => return Err(format!("{other}").into()),
            };
            kept.lock().map_err(|_| "poisoned")?.push(fd);
            Ok(())
        })?;
        ensure_eq!(created.into_inner(), 1, "creators of round {round}");
        let kept = kept.into_inner().map_err(|_| "poisoned")?;
        let id = client.id(Target::Nt(kept[0].as_fd()))?;
        for fd in &kept {
            ensure!(client.id(Target::Nt(fd.as_fd()))? == id, "two objects");
        }
    }
    Ok(())
}
