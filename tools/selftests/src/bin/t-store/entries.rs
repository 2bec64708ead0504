// SPDX-License-Identifier: MIT OR Apache-2.0
//! Setting, getting, listing and removing entries (RES-55, RES-56, RES-58).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::call::refused;
use selftests::memory::{Page, UNMAPPED};
use selftests::sharing::{key, Client, How, Item, Shape};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-55 every kind of object has a store", every_kind)
        .test("RES-55 sizes from 0 to 64 KiB, any bytes", sizes)
        .test("RES-56 1 to 8 items", counts)
        .test("RES-56 all items or none", all_or_none)
        .test("RES-56 CREATE_ONLY", create_only)
        .test("RES-56 SEALED", sealed)
        .test("RES-56 expected generations", expected)
        .test("RES-56 one item twice in a call", twice)
        .test("RES-58 the list is ordered and complete", list)
        .test("RES-58 a list that is too small", small_list)
        .test("RES-58 delete removes one schema of one key", delete)
        .test("RES-58 generations grow by one for each call", generations)
        .test("RES-56 RES-58 handles that are none", bad_handles)
        .test("RES-5 memory that cannot be read or written", bad_memory)
}

fn every_kind() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        for how in [How::Private, How::Nt] {
            let object = client.create(shape, how)?;
            let target = object.target();
            ensure_eq!(client.entries(target)?.len(), 0, "{shape:?}");
            ensure_eq!(client.query(target)?.object.generation, 0);
            ensure_eq!(client.set(target, key(1), 4, b"bytes")?, 1);
            let entry = client.get(target, key(1), 4)?;
            ensure_eq!(entry.bytes, b"bytes", "{shape:?} {how:?}");
            ensure_eq!((entry.schema, entry.generation, entry.flags), (4, 1, 0));
            // SAFETY: plain system call.
            ensure_eq!(entry.writer, unsafe { libc::geteuid() });
            ensure!(entry.file.is_none());
            ensure_eq!(client.query(target)?.object.generation, 1);
            fails_with(client.get(target, key(2), 4), Status::NOT_FOUND)?;
        }
    }
    Ok(())
}

fn sizes() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Private)?;
    let all: Vec<u8> = (0..65536u32).map(|at| (at * 7 + at / 256) as u8).collect();
    for size in [0, 1, 7, 8, 4095, 4096, 4097, 65535, 65536, 3] {
        client.set(object.target(), key(1), 0, &all[..size])?;
        ensure!(
            client.get(object.target(), key(1), 0)?.bytes == all[..size],
            "{size}"
        );
        // A buffer of exactly the size is enough, one less is not.
        client.get_into(object.target(), key(1), 0, size, 0).0?;
        if size > 0 {
            let (small, arg) =
                client.get_into(object.target(), key(1), 0, size - 1, OPENDXG_GET_FD);
            fails_with(small, Status::BUFFER_TOO_SMALL)?;
            ensure_eq!(arg.size as usize, size, "the needed size");
        }
    }
    let larger = vec![1; 65537];
    let result = client.set(object.target(), key(1), 0, &larger);
    fails_with(result, Status::QUOTA_EXCEEDED)?;
    ensure_eq!(client.get(object.target(), key(1), 0)?.bytes, all[..3]);
    Ok(())
}

fn counts() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let items: Vec<_> = (0..9)
        .map(|number| Item::new(key(number), 1, b"x"))
        .collect();
    for count in [0, 9] {
        let result = client.set_info(object.target(), &items[..count]);
        fails_with(result, Status::INVALID_PARAMETER)?;
    }
    ensure_eq!(client.set_info(object.target(), &items[..8])?, 1);
    ensure_eq!(client.entries(object.target())?.len(), 8);
    for count in [1 << 16, 1 << 31, u32::MAX] {
        let raw: Vec<_> = items.iter().map(Item::raw).collect();
        let mut arg = opendxg_set_info::zeroed();
        (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
        (arg.item_count, arg.items) = (count, raw.as_ptr() as u64);
        fails_with(client.call(&mut arg), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn all_or_none() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    client.set(target, key(5), 0, b"there")?;
    client.set(target, key(9), 0, b"also there")?;
    let good = [Item::new(key(1), 0, b"a"), Item::new(key(9), 0, b"b")];
    let large = vec![0; 65537];
    for (bad, status) in [
        (
            Item::new(key(5), 0, b"c").flags(OPENDXG_INFO_CREATE_ONLY),
            Status::OBJECT_NAME_COLLISION,
        ),
        (
            Item::new(key(6), 0, b"c").expecting(3),
            Status::REVISION_MISMATCH,
        ),
        (Item::new(key(6), 0, &large), Status::QUOTA_EXCEEDED),
        (
            Item::new(key(6), 0, b"c").flags(1 << 31),
            Status::INVALID_PARAMETER,
        ),
    ] {
        for place in 0..=good.len() {
            let mut items = good.to_vec();
            items.insert(place, bad);
            fails_with(client.set_info(target, &items), status)
                .map_err(|error| format!("place {place}: {error}"))?;
            ensure_eq!(client.entries(target)?.len(), 2, "{status} at {place}");
            ensure_eq!(client.get(target, key(5), 0)?.bytes, b"there");
            ensure_eq!(client.get(target, key(9), 0)?.bytes, b"also there");
            ensure_eq!(client.query(target)?.object.generation, 2);
        }
    }
    Ok(())
}

fn create_only() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let item = Item::new(key(1), 2, b"first").flags(OPENDXG_INFO_CREATE_ONLY);
    client.set_info(target, &[item])?;
    fails_with(
        client.set_info(target, &[item]),
        Status::OBJECT_NAME_COLLISION,
    )?;
    // Another schema of the key is another entry.
    let other = Item { schema: 3, ..item };
    client.set_info(target, &[other])?;
    client.delete_info(target, key(1), 2, 0).0?;
    client.set_info(target, &[item])?;
    Ok(())
}

fn sealed() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let item = Item::new(key(1), 2, b"sealed").flags(OPENDXG_INFO_SEALED);
    client.set(target, key(1), 2, b"open")?;
    client.set_info(target, &[item])?;
    for later in [
        item,
        Item::new(key(1), 2, b"changed"),
        item.flags(OPENDXG_INFO_REMOVE_FD),
    ] {
        fails_with(client.set_info(target, &[later]), Status::ACCESS_DENIED)?;
    }
    let gone = client.delete_info(target, key(1), 2, 0).0;
    fails_with(gone, Status::ACCESS_DENIED)?;
    let entry = client.get(target, key(1), 2)?;
    ensure_eq!(entry.bytes, b"sealed");
    ensure_eq!(entry.flags, OPENDXG_INFO_SEALED);
    // Beside it everything goes on.
    client.set(target, key(1), 3, b"next")?;
    ensure_eq!(client.get(target, key(1), 3)?.bytes, b"next");
    Ok(())
}

fn expected() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let item = |generation| [Item::new(key(1), 0, b"x").expecting(generation)];
    let (missing, present) = client.try_set_info(target, &item(1));
    fails_with(missing, Status::REVISION_MISMATCH)?;
    ensure_eq!(present, 0, "an entry that does not exist");
    ensure_eq!(client.set(target, key(1), 0, b"one")?, 1);
    ensure_eq!(client.set(target, key(2), 0, b"two")?, 2);
    // The entry's own generation counts, not the object's.
    let (wrong, present) = client.try_set_info(target, &item(2));
    fails_with(wrong, Status::REVISION_MISMATCH)?;
    ensure_eq!(present, 1);
    ensure_eq!(client.set_info(target, &item(1))?, 3);
    let (wrong, present) = client.delete_info(target, key(1), 0, 1);
    fails_with(wrong, Status::REVISION_MISMATCH)?;
    ensure_eq!(present, 3);
    ensure_eq!(client.delete_info(target, key(1), 0, 3).0?, 4);
    let (wrong, _) = client.try_set_info(target, &item(3));
    fails_with(wrong, Status::REVISION_MISMATCH)?;
    ensure_eq!(client.get(target, key(2), 0)?.bytes, b"two");
    Ok(())
}

fn twice() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let items = [Item::new(key(1), 0, b"a"), Item::new(key(1), 0, b"b")];
    let result = client.set_info(object.target(), &items);
    fails_with(result, Status::INVALID_PARAMETER)?;
    ensure_eq!(client.entries(object.target())?.len(), 0);
    Ok(())
}

fn list() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Private)?;
    let target = object.target();
    for (number, schema) in [(9, 1), (2, 7), (2, 0), (0, u32::MAX), (9, 0), (5, 1 << 31)] {
        let bytes = vec![number; usize::from(number) * 10];
        client.set(target, key(number), schema, &bytes)?;
    }
    let entries = client.entries(target)?;
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.key[15],
                entry.schema,
                entry.size,
                entry.generation,
                entry.flags,
            )
        })
        .collect();
    ensure_eq!(
        seen,
        [
            (0, u32::MAX, 0, 4, 0),
            (2, 0, 20, 3, 0),
            (2, 7, 20, 2, 0),
            (5, 1 << 31, 50, 6, 0),
            (9, 0, 90, 5, 0),
            (9, 1, 90, 1, 0),
        ]
    );
    Ok(())
}

fn small_list() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    for number in 0..5 {
        client.set(object.target(), key(number), 0, b"")?;
    }
    for room in 0..5 {
        let (small, count) = client.enum_info(object.target(), room);
        fails_with(small, Status::BUFFER_TOO_SMALL)?;
        ensure_eq!(count, 5);
    }
    let (all, count) = client.enum_info(object.target(), 5);
    ensure_eq!((all?.len(), count), (5, 5));
    Ok(())
}

fn delete() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    for schema in [1, 3] {
        client.set(target, key(1), schema, &[schema as u8])?;
    }
    for (number, schema) in [(1, 0), (1, 2), (1, 4), (2, 1)] {
        let (missing, _) = client.delete_info(target, key(number), schema, 0);
        fails_with(missing, Status::NOT_FOUND)?;
    }
    ensure_eq!(client.delete_info(target, key(1), 3, 0).0?, 3);
    ensure_eq!(client.get(target, key(1), 9)?.bytes, [1]);
    client.delete_info(target, key(1), 1, 0).0?;
    fails_with(client.get(target, key(1), 9), Status::NOT_FOUND)?;
    ensure_eq!(client.entries(target)?.len(), 0);
    Ok(())
}

fn generations() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let mut expected = 0;
    for round in 0..20u8 {
        let bytes = [round];
        let items = [
            Item::new(key(round % 3), 0, b"a"),
            Item::new(key(7), 0, &bytes),
        ];
        expected += 1;
        ensure_eq!(client.set_info(target, &items)?, expected);
        // What fails does not count.
        let refused = Item::new(key(7), 0, b"").flags(OPENDXG_INFO_CREATE_ONLY);
        ensure!(client.set_info(target, &[refused]).is_err());
        ensure!(client.delete_info(target, key(9), 0, 0).0.is_err());
        ensure_eq!(client.query(target)?.object.generation, expected);
        ensure_eq!(client.get(target, key(7), 0)?.generation, expected);
        if round % 5 == 4 {
            expected += 1;
            ensure_eq!(client.delete_info(target, key(7), 0, 0).0?, expected);
        }
    }
    Ok(())
}

fn bad_handles() -> TestResult {
    use selftests::sharing::Target;
    use std::os::fd::AsFd;
    let client = Client::new()?;
    let global = client.create(Shape::Fence, How::Global)?;
    let dead = client.create(Shape::Fence, How::Private)?.handle();
    let file = selftests::fds::memfd()?;
    let closed = selftests::fds::closed_number()?;
    // SAFETY: a number that is only passed on.
    let closed = unsafe { std::os::fd::BorrowedFd::borrow_raw(closed) };
    for (target, status) in [
        (Target::Local(0), Status::INVALID_PARAMETER),
        (Target::Local(dead), Status::INVALID_PARAMETER),
        (Target::Local(global.global()), Status::INVALID_PARAMETER),
        (
            Target::Local(client.device_handle()),
            Status::INVALID_PARAMETER,
        ),
        (Target::Global(global.global()), Status::INVALID_PARAMETER),
        (Target::Nt(file.as_fd()), Status::OBJECT_TYPE_MISMATCH),
        (Target::Nt(closed), Status::INVALID_HANDLE),
        (Target::Weak(file.as_fd()), Status::INVALID_PARAMETER),
    ] {
        fails_with(client.set(target, key(1), 0, b"x"), status)?;
        fails_with(client.get(target, key(1), 0), status)?;
        fails_with(client.enum_info(target, 1).0, status)?;
        fails_with(client.delete_info(target, key(1), 0, 0).0, status)?;
    }
    Ok(())
}

fn bad_memory() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    client.set(target, key(1), 0, &[7; 100])?;
    let read_only = Page::new()?.read_only()?;
    for address in [UNMAPPED, read_only.address()] {
        let mut arg = opendxg_get_info::zeroed();
        (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
        (arg.key, arg.data, arg.size) = (key(1), address, 100);
        fails_with(client.call(&mut arg), Status::ACCESS_VIOLATION)?;
        let mut arg = opendxg_enum_info::zeroed();
        (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
        (arg.entries, arg.count) = (address, 9);
        refused(client.raw(), &mut arg, Status::ACCESS_VIOLATION)?;
    }
    let mut raw = Item::new(key(1), 0, b"").raw();
    (raw.data, raw.size) = (UNMAPPED, 8);
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type, arg.item_count) =
        (object.handle().into(), OPENDXG_HANDLE_LOCAL, 1);
    for items in [(&raw const raw) as u64, UNMAPPED] {
        arg.items = items;
        fails_with(client.call(&mut arg), Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(client.get(target, key(1), 0)?.generation, 1);
    Ok(())
}
