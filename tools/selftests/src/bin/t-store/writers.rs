// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writers against each other (RES-56, RES-110).

use std::sync::atomic::{AtomicU32, Ordering};

use opendxg::uapi::OPENDXG_INFO_CREATE_ONLY;
use opendxg::{Error, Status};
use selftests::child::Child;
use selftests::rounds::{crowd, rounds};
use selftests::sharing::{key, Client, How, Item, Shape};
use selftests::{ensure_eq, Suite, TestResult};

/// Time for the races.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(120);

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "RES-110 two writers with one expected generation: one succeeds",
            LIMIT,
            one_wins,
        )
        .slow(
            "RES-110 CREATE_ONLY from many threads: one succeeds",
            LIMIT,
            one_creates,
        )
        .slow(
            "RES-56 a counter kept by expected generations loses nothing",
            LIMIT,
            counter,
        )
        .slow(
            "RES-110 kill -9 of a writer: the old state or the new one",
            LIMIT,
            killed,
        )
}

fn one_wins() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let mut generation = client.set(target, key(1), 0, b"0")?;
    for round in 0..rounds(300) {
        let won = AtomicU32::new(0);
        crowd(2, |index| {
            let bytes = [round as u8, index as u8];
            let item = Item::new(key(1), 0, &bytes).expecting(generation);
            match client.set_info(target, &[item]) {
                Ok(_) => won.fetch_add(1, Ordering::Relaxed),
                Err(Error::Status(Status::REVISION_MISMATCH)) => 0,
                Err(error) => return Err(error.into()),
            };
            Ok(())
        })?;
        ensure_eq!(won.into_inner(), 1, "round {round}");
        let entry = client.get(target, key(1), 0)?;
        ensure_eq!(entry.generation, generation + 1);
        generation = entry.generation;
    }
    Ok(())
}

fn one_creates() -> TestResult {
    let client = Client::new()?;
    for round in 0..rounds(200) {
        let object = client.create(Shape::Fence, How::Private)?;
        let won = AtomicU32::new(0);
        crowd(4, |index| {
            let bytes = [index as u8];
            let item = Item::new(key(1), 0, &bytes).flags(OPENDXG_INFO_CREATE_ONLY);
            match client.set_info(object.target(), &[item]) {
                Ok(_) => won.fetch_add(1, Ordering::Relaxed),
                Err(Error::Status(Status::OBJECT_NAME_COLLISION)) => 0,
                Err(error) => return Err(error.into()),
            };
            Ok(())
        })?;
        ensure_eq!(won.into_inner(), 1, "round {round}");
    }
    Ok(())
}

fn counter() -> TestResult {
    const WRITERS: u64 = 4;
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Resource)?;
    client.set(object.target(), key(1), 0, &0u64.to_ne_bytes())?;
    let each = u64::from(rounds(300));
    let write = |_| {
        Child::spawn(|| {
            let client = Client::new()?;
            let opened = client.open(Shape::Resource, &fd)?;
            let mut done = 0;
            while done < each {
                let entry = client.get(opened.target(), key(1), 0)?;
                let bytes: [u8; 8] = entry.bytes.try_into().map_err(|_| "size")?;
                let next = (u64::from_ne_bytes(bytes) + 1).to_ne_bytes();
                let item = Item::new(key(1), 0, &next).expecting(entry.generation);
                match client.set_info(opened.target(), &[item]) {
                    Ok(_) => done += 1,
                    Err(Error::Status(Status::REVISION_MISMATCH)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })
    };
    let writers = (0..WRITERS).map(write).collect::<TestResult<Vec<_>>>()?;
    writers.into_iter().try_for_each(Child::join)?;
    let entry = client.get(object.target(), key(1), 0)?;
    ensure_eq!(entry.bytes, (WRITERS * each).to_ne_bytes());
    ensure_eq!(entry.generation, WRITERS * each + 1);
    Ok(())
}

fn killed() -> TestResult {
    let client = Client::new()?;
    for round in 0..rounds(100) {
        let (object, fd) = client.shared(Shape::Resource)?;
        let writer = Child::spawn(|| {
            let client = Client::new()?;
            let opened = client.open(Shape::Resource, &fd)?;
            for value in (0..=255u8).cycle() {
                let bytes = vec![value; 5000];
                let items = [1, 2, 3].map(|number| Item::new(key(number), 0, &bytes));
                client.set_info(opened.target(), &items)?;
            }
            Ok(())
        })?;
        std::thread::sleep(std::time::Duration::from_micros(
            u64::from(round) * 171 % 8000,
        ));
        let _ = writer.kill();
        let generations = client.entries(object.target())?;
        let all = [1, 2, 3].map(|number| client.get(object.target(), key(number), 0).ok());
        let values: Vec<_> = all
            .iter()
            .map(|entry| {
                entry
                    .as_ref()
                    .map(|entry| (entry.bytes.clone(), entry.generation))
            })
            .collect();
        ensure_eq!(values[0], values[1], "{} entries", generations.len());
        ensure_eq!(values[1], values[2]);
        if let Some((bytes, _)) = &values[0] {
            ensure_eq!(bytes, &vec![bytes[0]; 5000]);
        }
    }
    Ok(())
}
