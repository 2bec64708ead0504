// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolving and opening against the last close (RES-73, RES-10, RES-110).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use opendxg::{Error, EventFd, Status};
use selftests::rounds::{rounds, together, Dice, Part};
use selftests::sharing::{key, Client, How, Shape};
use selftests::stress::Figure;
use selftests::{ensure_eq, Failure, Suite, TestResult};

/// Threads against the one that ends the object.
const MANY: usize = 8;

pub(crate) fn tests(suite: Suite) -> Suite {
    let limit = Duration::from_secs(200);
    suite
        .stress(
            "RES-73 RES-110 8 resolvers against the last close",
            limit,
            // The specification says no number; as many as of openers.
            Figure::new(60 * Shape::ALL.len() as u32, 1_000_000),
            resolve,
        )
        .stress(
            "RES-10 RES-110 8 openers by global handle against the last close",
            limit,
            Figure::new(60 * Shape::GLOBAL.len() as u32, 1_000_000),
            open,
        )
        .slow(
            "RES-74 RES-110 watches against the last close",
            limit,
            watch,
        )
        .slow("RES-110 GET_INFO against the last close", limit, get)
}

/// Runs `attempt` in many threads while another one ends a new object of each kind.
fn race(
    shapes: &[Shape],
    how: How,
    count: u32,
    attempt: impl Fn(&Client, Shape, u32, &std::os::fd::OwnedFd) -> opendxg::Result<()> + Sync,
    dead: Status,
) -> TestResult {
    let client = Client::new()?;
    for shape in shapes {
        let (worked, missed) = (AtomicU64::new(0), AtomicU64::new(0));
        for round in 0..count {
            let object = client.create(*shape, how)?;
            let weak = client.open_weak(object.target())?;
            let (global, handle) = (object.global(), object.handle());
            let object = Mutex::new(Some(object));
            let mut parts: Vec<Part<'_>> = vec![Box::new(|| {
                Dice::new(round.into()).dawdle();
                let object = object.lock().map_err(|_| "poisoned")?.take();
                Ok(object.ok_or("no object")?.destroy()?)
            })];
            for index in 0..MANY {
                let (client, attempt, weak) = (&client, &attempt, &weak);
                let (worked, missed) = (&worked, &missed);
                parts.push(Box::new(move || {
                    Dice::new(u64::from(round) * 100 + index as u64).dawdle();
                    let number = if global == 0 { handle } else { global };
                    match attempt(client, *shape, number, weak) {
                        Ok(()) => worked.fetch_add(1, Ordering::Relaxed),
                        Err(Error::Status(status)) if status == dead => {
                            missed.fetch_add(1, Ordering::Relaxed)
                        }
                        Err(error) => return Err(Failure::from(error)),
                    };
                    Ok(())
                }));
            }
            together(parts)?;
            let end = client.resolve_weak(shape.what(), &weak).map(|_| ());
            ensure_eq!(end, Err(Error::Status(Status::NOT_FOUND)), "{shape:?}");
        }
        let (worked, missed) = (worked.into_inner(), missed.into_inner());
        println!("# {shape:?}: {worked} worked, {missed} too late");
    }
    Ok(())
}

fn resolve(figure: Figure) -> TestResult {
    race(
        &Shape::ALL,
        How::Private,
        figure.rounds().div_ceil(Shape::ALL.len() as u32),
        |client, shape, _, weak| {
            let resolved = client.resolve_weak(shape.what(), weak)?;
            // A whole object, not one that is half gone.
            client.set(resolved.target(), key(1), 0, b"alive")?;
            resolved.destroy()
        },
        Status::NOT_FOUND,
    )
}

fn open(figure: Figure) -> TestResult {
    race(
        &Shape::GLOBAL,
        How::Global,
        figure.rounds().div_ceil(Shape::GLOBAL.len() as u32),
        |client, shape, global, _| {
            let opened = client.open_global(shape, global)?;
            client.set(opened.target(), key(1), 0, b"alive")?;
            opened.destroy()
        },
        Status::INVALID_PARAMETER,
    )
}

fn watch() -> TestResult {
    race(
        &[Shape::MonitoredFence, Shape::Resource],
        How::Private,
        rounds(60),
        |client, _, handle, _| {
            let event = EventFd::new()?;
            let target = selftests::sharing::Target::Local(handle);
            let watch = client.watch(target, 1, 0, &event)?;
            // A watch that was made tells, whenever the object dies.
            let told = event.wait(Some(selftests::time::soon()))?;
            drop(watch);
            told.map(|_| ()).ok_or(Error::Protocol("no notice"))
        },
        Status::INVALID_PARAMETER,
    )
}

fn get() -> TestResult {
    race(
        &[Shape::Semaphore, Shape::Resource],
        How::Private,
        rounds(60),
        |client, _, handle, _| {
            let target = selftests::sharing::Target::Local(handle);
            client.set(target, key(1), 0, &[5; 3000])?;
            let entry = client.get(target, key(1), 0)?;
            match entry.bytes == [5; 3000] {
                true => Ok(()),
                false => Err(Error::Protocol("a mixture")),
            }
        },
        Status::INVALID_PARAMETER,
    )
}
