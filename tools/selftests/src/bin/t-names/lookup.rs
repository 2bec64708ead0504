// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding a name: case, what exists already, types, access (RES-40, RES-41, RES-43, RES-34).

use std::os::fd::AsFd;

use opendxg::uapi::*;
use opendxg::Status;
use selftests::sharing::{access, Attributes, Client, How, Shape, Target, What};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const NAME: &str = r"\BaseNamedObjects\lookup";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-40 case does not matter, with or without the bit",
            any_case,
        )
        .test("RES-40 letters beyond ASCII", letters)
        .test("RES-40 surrogates compare as they are", surrogates)
        .test("RES-41 a name that exists is refused", collision)
        .test("RES-41 OBJ_OPENIF opens what exists", open_if)
        .test("RES-41 OBJ_OPENIF and another type", open_if_other_type)
        .test("RES-43 unknown names, other types, no access", opening)
        .test("RES-43 access masks of opening by name", access_masks)
        .test(
            "RES-43 MAXIMUM_ALLOWED gives everything to the owner",
            maximum,
        )
        .test("RES-34 an opened object under another name", other_name)
}

fn any_case() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        for given in [0, OBJ_CASE_INSENSITIVE] {
            let mut upper = Attributes::named(&NAME.to_uppercase()).bits(given);
            let handles = [object.handle()];
            let (_kept, _) = client.share_with(&handles, Some(&mut upper), shape.all_access())?;
            for asked in [0, OBJ_CASE_INSENSITIVE] {
                for name in [NAME.to_lowercase(), NAME.to_uppercase(), NAME.to_owned()] {
                    let mut attributes = Attributes::named(&name).bits(asked);
                    client.open_attributes(shape.what(), Some(&mut attributes), 1)?;
                }
            }
        }
    }
    Ok(())
}

fn letters() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    let path = |name: &str| format!(r"\BaseNamedObjects\{name}");
    for (given, other, same) in [
        ("é", "É", true),
        ("ω", "Ω", true),
        ("я", "Я", true),
        ("ÿ", "Ÿ", true),
        ("ա", "Ա", true),
        ("ß", "SS", false),
        ("ß", "ss", false),
        ("é", "e", false),
        ("ı", "i", false),
        ("ﬁ", "FI", false),
        ("漢", "字", false),
    ] {
        for (given, other) in [(given, other), (other, given)] {
            let _kept = client.share_named(&object, &path(given))?;
            let found = client.open_name(What::Sync, &path(other), 1);
            ensure_eq!(found.is_ok(), same, "{given} by {other}");
            if !same {
                fails_with(found, Status::OBJECT_NAME_NOT_FOUND)?;
            }
        }
    }
    Ok(())
}

fn surrogates() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    let units = |tail: &[u16]| -> Vec<u16> {
        let prefix = r"\BaseNamedObjects\".encode_utf16();
        prefix.chain(tail.iter().copied()).collect()
    };
    // Deseret small and capital long I, and halves of a pair.
    let (small, capital) = ([0xd801, 0xdc28], [0xd801, 0xdc00]);
    for (given, other) in [
        (&small[..], &capital[..]),
        (&[0xd801], &[0xd802]),
        (&[0xdc28], &[0xdc00]),
    ] {
        let mut attributes = Attributes::from_units(units(given));
        let handles = [object.handle()];
        let (_kept, _) = client.share_with(&handles, Some(&mut attributes), access::ALL_SYNC)?;
        let open = |tail: &[u16]| {
            let mut attributes = Attributes::from_units(units(tail));
            client.open_attributes(What::Sync, Some(&mut attributes), 1)
        };
        open(given)?;
        fails_with(open(other), Status::OBJECT_NAME_NOT_FOUND)?;
    }
    Ok(())
}

fn collision() -> TestResult {
    let client = Client::new()?;
    for first in Shape::NT {
        let object = client.create(first, How::Nt)?;
        let _kept = client.share_named(&object, NAME)?;
        for second in Shape::NT {
            let other = client.create(second, How::Nt)?;
            let refuse = Status::OBJECT_NAME_COLLISION;
            fails_with(client.share_named(&other, NAME), refuse)?;
            fails_with(client.share_named(&object, &NAME.to_uppercase()), refuse)?;
        }
    }
    Ok(())
}

/// Shares with OBJ_OPENIF.
fn share_open_if(
    client: &Client,
    handle: u32,
    access: u32,
) -> opendxg::Result<(std::os::fd::OwnedFd, Status)> {
    let mut attributes = Attributes::named(NAME).bits(OBJ_OPENIF);
    client.share_with(&[handle], Some(&mut attributes), access)
}

fn open_if() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (first, second) = (
            client.create(shape, How::Nt)?,
            client.create(shape, How::Nt)?,
        );
        let all = shape.all_access();
        let (kept, status) = share_open_if(&client, first.handle(), all)?;
        ensure_eq!(status, Status::SUCCESS, "{shape:?}: nothing is there yet");
        let (found, status) = share_open_if(&client, second.handle(), all)?;
        ensure_eq!(status, Status::OBJECT_NAME_EXISTS, "{shape:?}");
        let id = client.id(first.target())?;
        ensure_eq!(client.id(Target::Nt(found.as_fd()))?, id, "{shape:?}");
        // The new handle holds the name as the first one did.
        drop(kept);
        client.open_name(shape.what(), NAME, 1)?;
        drop(found);
        let open = client.open_name(shape.what(), NAME, 1);
        fails_with(open, Status::OBJECT_NAME_NOT_FOUND)?;
    }
    Ok(())
}

fn open_if_other_type() -> TestResult {
    let client = Client::new()?;
    let fence = client.create(Shape::Fence, How::Nt)?;
    let resource = client.create(Shape::Resource, How::Nt)?;
    for (first, second) in [(&fence, &resource), (&resource, &fence)] {
        let _kept = client.share_named(first, NAME)?;
        let result = share_open_if(&client, second.handle(), 1);
        fails_with(result, Status::OBJECT_TYPE_MISMATCH)?;
    }
    // A set of three is a resource.
    let [resource, mutex, sync] = client.triple()?;
    let handles = [resource.handle(), mutex.handle(), sync.handle()];
    let mut attributes = Attributes::named(NAME);
    let all = access::ALL_RESOURCE;
    let (_kept, _) = client.share_with(&handles, Some(&mut attributes), all)?;
    let result = share_open_if(&client, fence.handle(), 1);
    fails_with(result, Status::OBJECT_TYPE_MISMATCH)?;
    let found = client.open_name(What::Resource, NAME, all)?;
    ensure!(client.open_resource(&found)?.mutex.is_some());
    Ok(())
}

fn opening() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let missing = client.open_name(shape.what(), NAME, 1);
        fails_with(missing, Status::OBJECT_NAME_NOT_FOUND)?;
        let object = client.create(shape, How::Nt)?;
        let _kept = client.share_named(&object, NAME)?;
        let none = client.open_name(shape.what(), NAME, 0);
        fails_with(none, Status::ACCESS_DENIED)?;
        let other = match shape.what() {
            What::Sync => What::Resource,
            _ => What::Sync,
        };
        let mismatch = client.open_name(other, NAME, 1);
        fails_with(mismatch, Status::OBJECT_TYPE_MISMATCH)?;
        let unknown = client.open_name(shape.what(), NAME, 0x0400_0000);
        fails_with(unknown, Status::INVALID_PARAMETER)?;
        let found = client.open_name(shape.what(), NAME, shape.all_access())?;
        let opened = client.open(shape, &found)?;
        ensure_eq!(client.id(opened.target())?, client.id(object.target())?);
    }
    Ok(())
}

fn access_masks() -> TestResult {
    use access::*;
    let client = Client::new()?;
    for (shape, asked, granted) in [
        (Shape::MonitoredFence, READ_CONTROL, READ_CONTROL),
        (Shape::MonitoredFence, GENERIC_READ, READ_CONTROL | WAIT),
        (Shape::MonitoredFence, GENERIC_WRITE, READ_CONTROL | SIGNAL),
        (Shape::MonitoredFence, GENERIC_ALL, ALL_SYNC),
        (Shape::Mutex, WAIT, WAIT),
        (Shape::Resource, READ_CONTROL, READ_CONTROL),
        (Shape::Resource, GENERIC_WRITE, READ_CONTROL | WRITE),
        (Shape::Resource, GENERIC_ALL, ALL_RESOURCE),
    ] {
        let object = client.create(shape, How::Nt)?;
        let _kept = client.share_named(&object, NAME)?;
        let found = client.open_name(shape.what(), NAME, asked)?;
        let got = client.query(Target::Nt(found.as_fd()))?.object.access;
        // READ_CONTROL alone adds nothing that anybody could use.
        ensure_eq!(
            got | READ_CONTROL,
            granted | READ_CONTROL,
            "{shape:?} {asked:#x}"
        );
    }
    Ok(())
}

fn maximum() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let _kept = client.share_named(&object, NAME)?;
        let found = client.open_name(shape.what(), NAME, access::MAXIMUM_ALLOWED)?;
        let got = client.query(Target::Nt(found.as_fd()))?.object.access;
        let wanted = match shape.what() {
            What::Sync => access::WAIT | access::SIGNAL,
            _ => access::WRITE,
        };
        ensure_eq!(got & wanted, wanted, "{shape:?} {got:#x}");
    }
    Ok(())
}

fn other_name() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let first = client.share_named(&object, NAME)?;
        let opened = client.open(shape, &first)?;
        let other = r"\BaseNamedObjects\other";
        let _second = client.share_named(&opened, other)?;
        let ids = [NAME, other].map(|name| -> TestResult<u64> {
            let found = client.open_name(shape.what(), name, 1)?;
            Ok(client.id(Target::Nt(found.as_fd()))?)
        });
        let [a, b] = ids;
        ensure_eq!(a?, b?, "{shape:?}");
    }
    Ok(())
}
