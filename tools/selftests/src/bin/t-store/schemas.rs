// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which entry a reader gets (RES-57, RES-60, RES-61).

use opendxg::Status;
use selftests::sharing::{key, Client, How, Key, Shape};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-57 the highest schema that the reader knows", highest)
        .test("RES-57 only higher ones: the lowest is told", only_higher)
        .test("RES-57 an absent key", absent)
        .test(
            "RES-60 an old reader and a new writer understand each other",
            evolution,
        )
        .test(
            "RES-61 every reserved key but zero is an ordinary one",
            reserved,
        )
        .test("RES-61 RES-67 the zero key is the runtime data", zero_key)
}

fn highest() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let target = object.target();
        client.set(target, key(1), 3, b"three")?;
        client.set(target, key(1), 1, b"one")?;
        for (max, schema, bytes) in [
            (1, 1, &b"one"[..]),
            (2, 1, b"one"),
            (3, 3, b"three"),
            (9, 3, b"three"),
            (u32::MAX, 3, b"three"),
        ] {
            let entry = client.get(target, key(1), max)?;
            ensure_eq!(
                (entry.schema, entry.bytes.as_slice()),
                (schema, bytes),
                "max {max}"
            );
        }
        fails_with(client.get(target, key(1), 0), Status::REVISION_MISMATCH)?;
    }
    Ok(())
}

fn only_higher() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    for schema in [9, 4, 6] {
        client.set(object.target(), key(1), schema, b"x")?;
    }
    for max in [0, 3] {
        let (refused, arg) = client.get_into(object.target(), key(1), max, 16, 0);
        fails_with(refused, Status::REVISION_MISMATCH)?;
        ensure_eq!(arg.schema, 4);
    }
    Ok(())
}

fn absent() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    client.set(object.target(), key(1), 0, b"x")?;
    for bit in 0..128 {
        let mut other = key(1);
        other[bit / 8] ^= 1 << (bit % 8);
        fails_with(client.get(object.target(), other, 9), Status::NOT_FOUND)?;
    }
    Ok(())
}

fn evolution() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Nt)?;
    let target = object.target();
    // The first writer, its compatible extension, and the next layout beside it.
    client.set(target, key(1), 1, b"w=64")?;
    client.set(target, key(1), 1, b"w=64h=32")?;
    client.set(target, key(1), 2, b"{width:64}")?;
    let old = client.get(target, key(1), 1)?;
    ensure_eq!(&old.bytes[..4], b"w=64");
    ensure_eq!(client.get(target, key(1), 2)?.bytes, b"{width:64}");
    // A reader of tomorrow with a writer of yesterday.
    client.delete_info(target, key(1), 2, 0).0?;
    ensure_eq!(client.get(target, key(1), 2)?.schema, 1);
    Ok(())
}

/// A GUID in memory order, from its text without dashes.
fn guid(text: &str) -> TestResult<Key> {
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| "no GUID")?;
    }
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    Ok(bytes)
}

fn reserved() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let keys = [
            "1ad4fdb77c6c4b4fae9df6a39ab932dd",
            "98fb6f473e6a46bdbb3f2e1890bb948c",
            "15cc32458dcd4c2180374c0defd1cf3c",
            "a04c6e505c2c429b9d7b3246c8b33517",
            "b7953b589e7d49b4b0ea149e70dc5bc6",
            "29bf82fe390f4cbf950b7fa03bf6a7e7",
        ];
        for (number, text) in keys.iter().enumerate() {
            client.set(object.target(), guid(text)?, 0, &[number as u8])?;
        }
        for (number, text) in keys.iter().enumerate() {
            let entry = client.get(object.target(), guid(text)?, 0)?;
            ensure_eq!(entry.bytes, [number as u8]);
        }
    }
    Ok(())
}

fn zero_key() -> TestResult {
    let client = Client::new()?;
    let zero = [0; 16];
    let resource = client.create_resource(How::Nt, 1, b"created with")?;
    let target = resource.target();
    ensure_eq!(client.get(target, zero, 0)?.bytes, b"created with");
    client.set(target, zero, 0, b"set")?;
    let fd = client.share(&resource, 1)?;
    ensure_eq!(client.open_resource(&fd)?.runtime, b"set");
    client.set(target, zero, 0, b"set once more")?;
    ensure_eq!(client.open_resource(&fd)?.runtime, b"set once more");
    Ok(())
}
