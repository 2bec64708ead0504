// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each limit: reached, refused with its status, and usable again (RES-105).

use opendxg::{EventFd, Status};
use selftests::leak::Watch;
use selftests::sharing::{access, key, Client, How, Shape, Target};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, module, skip, Suite, TestResult};

/// Limits above this are not tried.
const REACHABLE: usize = 5000;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-105 shareable objects: NO_MEMORY", objects)
        .test("RES-105 global handles: NO_MEMORY", globals)
        .test(
            "RES-46 RES-105 names: NO_MEMORY, and no NT handle is made",
            names,
        )
        .test("RES-105 bytes of stores and blobs: QUOTA_EXCEEDED", store)
        .test(
            "RES-105 watches and weak references: QUOTA_EXCEEDED",
            watches,
        )
        .test("RES-105 contexts and HW queues: NO_MEMORY", queues)
        .test("RES-105 many threads at the limit never pass it", threads)
        .test(
            "RES-105 objects that are on their way out make nobody fail",
            on_their_way_out,
        )
}

/// The limit of a parameter, if it can be reached.
pub(crate) fn limit(parameter: &str) -> TestResult<usize> {
    let limit = module::number(parameter)?;
    let is_bytes = ["max_user_store", "max_user_queued_bytes"].contains(&parameter);
    if limit > REACHABLE && !is_bytes || limit > 10_000_000 {
        skip!("{parameter} is {limit}: load the module with a smaller one");
    }
    Ok(limit)
}

/// Makes things until one is refused with `status`, at exactly the limit, then gives one back and
/// takes it again.
fn reaches<T>(
    limit: usize,
    status: Status,
    mut make: impl FnMut(usize) -> opendxg::Result<T>,
) -> TestResult<Vec<T>> {
    let mut made = Vec::new();
    let refused = loop {
        match make(made.len()) {
            Ok(thing) => made.push(thing),
            Err(error) => break error,
        }
        ensure!(made.len() <= limit, "more than {limit}");
    };
    ensure_eq!(
        refused,
        opendxg::Error::Status(status),
        "after {}",
        made.len()
    );
    ensure_eq!(made.len(), limit);
    for _ in 0..3 {
        ensure!(make(made.len()).is_err());
    }
    made.pop();
    made.push(make(made.len())?);
    ensure!(make(made.len()).is_err());
    Ok(made)
}

/// Makes objects at the limit and destroys them with so much left to be ended that the driver's
/// worker does it.
fn on_their_way_out() -> TestResult {
    let limit = limit("max_user_objects")?;
    let client = Client::new()?;
    let event = EventFd::new()?;
    let rest: Vec<_> = (1..limit)
        .map(|_| client.create(Shape::Semaphore, How::Private))
        .collect::<opendxg::Result<_>>()?;
    for round in 0..50 {
        let fence = client.device().create_fence(0)?;
        for value in 1..=100 {
            fence.wait_async(value, &event)?;
        }
        fails_with(
            client.create(Shape::Semaphore, How::Private),
            Status::NO_MEMORY,
        )?;
        fence
            .destroy()
            .map_err(|error| format!("round {round}: {error}"))?;
    }
    drop(rest);
    let mut told = 0;
    selftests::time::eventually("every wait ends", || {
        told += event.take().unwrap_or(0);
        told == 5000
    })
}

fn objects() -> TestResult {
    let limit = limit("max_user_objects")?;
    let client = Client::new()?;
    let made = reaches(limit, Status::NO_MEMORY, |number| {
        client.create(Shape::NT[number % 5], How::Private)
    })?;
    let watch = Watch::start()?;
    for shape in Shape::ALL {
        for how in [How::Private, How::Nt] {
            fails_with(client.create(shape, how), Status::NO_MEMORY)?;
        }
    }
    watch.unchanged()?;
    // More handles of what is there are no more objects.
    client.dup_local(made[0].what(), made[0].handle())?;
    Ok(())
}

fn globals() -> TestResult {
    let limit = limit("max_user_globals")?;
    let client = Client::new()?;
    let made = reaches(limit, Status::NO_MEMORY, |number| {
        client.create(Shape::GLOBAL[number % 5], How::Global)
    })?;
    // An object without one may be made.
    client.create(Shape::Fence, How::Nt)?;
    client.open_global(Shape::GLOBAL[1], made[1].global())?;
    Ok(())
}

/// One limit for contexts of both kinds and for HW queues.
fn queues() -> TestResult {
    let limit = limit("max_user_queues")?;
    let device = fixture::device()?;
    let parent = device.create_hw_context(0)?;
    let (mut contexts, mut queues) = (Vec::new(), Vec::new());
    for number in 1..limit {
        match number % 3 {
            0 => contexts.push(device.create_context(0)?),
            1 => contexts.push(device.create_hw_context(1)?),
            _ => queues.push(parent.create_hw_queue()?),
        }
    }
    fails_with(device.create_context(0), Status::NO_MEMORY)?;
    fails_with(device.create_hw_context(0), Status::NO_MEMORY)?;
    fails_with(parent.create_hw_queue(), Status::NO_MEMORY)?;
    // The end of each of them makes room for any of them.
    queues.pop();
    eventually("a queue has ended", || device.create_hw_context(0).is_ok())?;
    queues.push(parent.create_hw_queue()?);
    while contexts.pop().is_some() {
        eventually("a context has ended", || parent.create_hw_queue().is_ok())?;
    }
    Ok(())
}

fn names() -> TestResult {
    let limit = limit("max_user_names")?;
    let client = Client::new()?;
    let objects = [
        client.create(Shape::Fence, How::Nt)?,
        client.create(Shape::Resource, How::Nt)?,
    ];
    let shares = |object: usize| client.references(objects[object].target());
    let name = |number: usize| format!(r"\BaseNamedObjects\limit {number}");
    let made = reaches(limit, Status::NO_MEMORY, |number| {
        client.share_named(&objects[number % 2], &name(number))
    })?;
    ensure_eq!(
        shares(0)? + shares(1)?,
        limit as u32 + 2,
        "handles of refused shares"
    );
    let next = client.open_name(
        objects[limit % 2].what(),
        &name(limit),
        access::READ_CONTROL,
    );
    fails_with(next, Status::OBJECT_NAME_NOT_FOUND)?;
    // Opening a name takes none; a handle without a name may be made.
    client.open_name(objects[0].what(), &name(0), access::READ_CONTROL)?;
    client.share(&objects[0], 1)?;
    drop(made);
    client.share_named(&objects[0], &name(0))?;
    Ok(())
}

fn store() -> TestResult {
    let limit = limit("max_user_store")?;
    let client = Client::new()?;
    const ENTRY: usize = 10_000;
    let bytes = vec![1; ENTRY];
    let mut objects = vec![client.create(Shape::Resource, How::Private)?];
    let mut stored = 0;
    let refused = loop {
        let number = stored / ENTRY;
        if number / 20 >= objects.len() {
            objects.push(client.create(Shape::Fence, How::Private)?);
        }
        match client.set(
            objects[number / 20].target(),
            key((number % 20) as u8),
            0,
            &bytes,
        ) {
            Ok(_) => stored += ENTRY,
            Err(error) => break error,
        }
        ensure!(stored <= limit, "{stored} bytes stored");
    };
    ensure_eq!(refused, opendxg::Error::Status(Status::QUOTA_EXCEEDED));
    // Something may go to what an entry needs besides its bytes.
    ensure!(stored + 3 * ENTRY > limit, "refused at {stored} of {limit}");
    // Removing makes room; the dead give all back.
    client.delete_info(objects[0].target(), key(0), 0, 0).0?;
    client.set(objects[0].target(), key(0), 0, &bytes)?;
    let blob = vec![2; 60_000];
    ensure!(
        client.create_resource(How::Private, 1, &blob).is_err(),
        "a blob beyond the limit"
    );
    drop(objects);
    client.create_resource(How::Private, 1, &blob)?;
    Ok(())
}

fn watches() -> TestResult {
    let limit = limit("max_user_watches")?;
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let event = EventFd::new()?;
    let made = reaches(limit, Status::QUOTA_EXCEEDED, |number| match number % 2 {
        0 => client.open_weak(object.target()),
        _ => client.watch(object.target(), 1, 0, &event),
    })?;
    // They count until they are closed, dead object or not.
    let other = client.create(Shape::Fence, How::Private)?;
    object.destroy()?;
    fails_with(client.open_weak(other.target()), Status::QUOTA_EXCEEDED)?;
    drop(made);
    client.open_weak(other.target())?;
    ensure_eq!(
        client
            .query(Target::Local(other.handle()))?
            .object
            .references,
        1
    );
    Ok(())
}

fn threads() -> TestResult {
    let limit = limit("max_user_objects")?;
    let client = Client::new()?;
    let made = std::sync::Mutex::new(Vec::new());
    selftests::rounds::crowd(4, |index| {
        for number in 0..limit {
            match client.create(Shape::NT[(number + index) % 5], How::Private) {
                Ok(object) => made.lock().map_err(|_| "poisoned")?.push(object),
                Err(error) if error.status() == Status::NO_MEMORY => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    })?;
    ensure_eq!(made.into_inner().map_err(|_| "poisoned")?.len(), limit);
    Ok(())
}
