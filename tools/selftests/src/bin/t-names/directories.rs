// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directories names can be in (RES-39).

use std::os::fd::AsFd;

use opendxg::Status;
use selftests::sharing::{access, Client, How, Shape, Target};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-39 the links of a directory lead where they say", links)
        .test("RES-39 sessions are apart", sessions)
        .test("RES-39 directories that do not exist", unknown)
        .test("RES-39 the path is returned as it was given", as_given)
        .test("RES-38 RES-39 a directory is no object", directories)
}

/// Paths that mean the same.
const SAME: &[&[&str]] = &[
    &[
        r"\BaseNamedObjects\links",
        r"\BaseNamedObjects\Global\links",
        r"\BaseNamedObjects\Local\links",
        r"\Sessions\1\BaseNamedObjects\Global\links",
        r"\Sessions\77\BaseNamedObjects\Global\links",
        r"\basenamedobjects\GLOBAL\Links",
    ],
    &[
        r"\Sessions\1\BaseNamedObjects\links",
        r"\Sessions\1\BaseNamedObjects\Local\links",
        r"\SESSIONS\1\BASENAMEDOBJECTS\LOCAL\LINKS",
    ],
];

fn links() -> TestResult {
    let client = Client::new()?;
    for shape in [Shape::Fence, Shape::Resource] {
        for paths in SAME {
            for given in *paths {
                let object = client.create(shape, How::Nt)?;
                let kept = client.share_named(&object, given)?;
                let id = client.id(Target::Nt(kept.as_fd()))?;
                for path in *paths {
                    let found = client.open_name(shape.what(), path, access::READ_CONTROL)?;
                    let found = client.id(Target::Nt(found.as_fd()))?;
                    ensure_eq!(found, id, "{given} by {path}");
                    fails_with(
                        client.share_named(&object, path),
                        Status::OBJECT_NAME_COLLISION,
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn sessions() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    let paths = [
        r"\BaseNamedObjects\apart",
        r"\Sessions\1\BaseNamedObjects\apart",
        r"\Sessions\2\BaseNamedObjects\apart",
        r"\Sessions\12\BaseNamedObjects\apart",
    ];
    let mut kept = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        kept.push(client.share_named(&object, path)?);
        for later in &paths[number + 1..] {
            let open = client.open_name(object.what(), later, access::READ_CONTROL);
            fails_with(open, Status::OBJECT_NAME_NOT_FOUND)?;
        }
    }
    Ok(())
}

fn unknown() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    for path in [
        r"\Sessions\x\BaseNamedObjects\a",
        r"\Sessions\-1\BaseNamedObjects\a",
        r"\Sessions\1\Other\a",
        r"\Sessions\1\Global\a",
        r"\Sessions\1\BaseNamedObjects\Other\a",
        r"\BaseNamedObjects\Other\a",
        r"\Global\a",
        r"\Local\a",
        r"\GLOBAL??\a",
        r"\Device\a",
    ] {
        let refuse = Status::OBJECT_PATH_NOT_FOUND;
        fails_with(client.share_named(&object, path), refuse)?;
        fails_with(client.open_name(object.what(), path, 1), refuse)?;
    }
    Ok(())
}

fn as_given() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        for path in [
            r"\BaseNamedObjects\As Given",
            r"\bAsEnAmEdObJeCtS\gLoBaL\as given 2",
            r"\Sessions\3\BaseNamedObjects\Local\é Ω 漢 3",
        ] {
            let kept = client.share_named(&object, path)?;
            let found = client.open_name(shape.what(), &path.to_uppercase(), 1)?;
            for fd in [&kept, &found] {
                for target in [Target::Nt(fd.as_fd()), Target::This(fd.as_fd())] {
                    ensure_eq!(client.query(target)?.name, path, "{shape:?}");
                }
            }
        }
    }
    Ok(())
}

fn directories() -> TestResult {
    let client = Client::new()?;
    for shape in [Shape::Fence, Shape::Resource] {
        let object = client.create(shape, How::Nt)?;
        for path in [
            r"\BaseNamedObjects",
            r"\BASENAMEDOBJECTS",
            r"\BaseNamedObjects\Global",
            r"\BaseNamedObjects\local",
            r"\Sessions\1\BaseNamedObjects",
            r"\Sessions\1\BaseNamedObjects\Local",
        ] {
            let refuse = Status::OBJECT_NAME_COLLISION;
            fails_with(client.share_named(&object, path), refuse)?;
            let refuse = Status::OBJECT_TYPE_MISMATCH;
            fails_with(client.open_name(shape.what(), path, 1), refuse)?;
        }
    }
    Ok(())
}
