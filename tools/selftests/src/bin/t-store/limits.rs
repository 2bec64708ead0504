// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a store (RES-64).

use std::os::fd::AsFd;

use opendxg::uapi::*;
use opendxg::Status;
use selftests::fds::memfd;
use selftests::sharing::{key, Client, How, Item, Shape};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

const ENTRIES: u8 = 64;
const BYTES: usize = 256 << 10;
const ENTRY: usize = 64 << 10;
const FILES: u8 = 8;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-64 64 entries", entries)
        .test("RES-64 256 KiB", bytes)
        .test("RES-64 8 attached files", files)
        .test("RES-64 limits are of each object", each)
}

fn entries() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    for number in 0..ENTRIES {
        client.set(target, key(number / 2), u32::from(number % 2), b"")?;
    }
    let more = Status::QUOTA_EXCEEDED;
    fails_with(client.set(target, key(200), 0, b""), more)?;
    let items = [
        Item::new(key(0), 0, b"changed"),
        Item::new(key(200), 0, b""),
    ];
    fails_with(client.set_info(target, &items), more)?;
    ensure_eq!(client.get(target, key(0), 0)?.bytes, b"");
    ensure_eq!(client.query(target)?.object.generation, u64::from(ENTRIES));
    // What is there can be changed, and what is removed makes room.
    client.set(target, key(0), 0, b"changed")?;
    client.delete_info(target, key(3), 1, 0).0?;
    client.set(target, key(200), 0, b"")?;
    fails_with(client.set(target, key(201), 0, b""), more)
}

fn bytes() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Private)?;
    let target = object.target();
    let full = vec![3; ENTRY];
    for number in 0..(BYTES / ENTRY) as u8 {
        client.set(target, key(number), 0, &full)?;
    }
    let more = Status::QUOTA_EXCEEDED;
    fails_with(client.set(target, key(9), 0, b"x"), more)?;
    client.set(target, key(9), 0, b"")?;
    // Replacing counts the difference.
    client.set(target, key(0), 0, &full)?;
    client.set(target, key(0), 0, &full[..ENTRY - 5])?;
    client.set(target, key(9), 0, b"five5")?;
    fails_with(client.set(target, key(9), 0, b"sixsix"), more)?;
    ensure_eq!(client.get(target, key(9), 0)?.bytes, b"five5");
    // Both in one call: one shrinks, one grows.
    let items = [
        Item::new(key(0), 0, &full[..ENTRY - 6]),
        Item::new(key(9), 0, b"sixsix"),
    ];
    client.set_info(target, &items)?;
    let items = [
        Item::new(key(9), 0, b"seven77"),
        Item::new(key(1), 0, &full[1..]),
    ];
    client.set_info(target, &items)?;
    Ok(())
}

fn files() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let file = memfd()?;
    let item = |number| [Item::new(key(number), 0, b"").file(file.as_fd())];
    for number in 0..FILES {
        client.set_info(target, &item(number))?;
    }
    let more = Status::QUOTA_EXCEEDED;
    fails_with(client.set_info(target, &item(FILES)), more)?;
    client.set_info(target, &item(0))?;
    client.set(target, key(FILES), 0, b"no file")?;
    let removed = Item::new(key(1), 0, b"").flags(OPENDXG_INFO_REMOVE_FD);
    client.set_info(target, &[removed])?;
    client.set_info(target, &item(FILES))?;
    fails_with(client.set_info(target, &item(1)), more)
}

fn each() -> TestResult {
    let client = Client::new()?;
    let full = vec![3; ENTRY];
    let objects = [
        client.create(Shape::Fence, How::Private)?,
        client.create(Shape::Resource, How::Private)?,
        client.create(Shape::KeyedMutex, How::Private)?,
    ];
    for object in &objects {
        for number in 0..4 {
            client.set(object.target(), key(number), 0, &full)?;
        }
    }
    Ok(())
}
