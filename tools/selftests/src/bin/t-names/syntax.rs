// SPDX-License-Identifier: MIT OR Apache-2.0
//! OBJECT_ATTRIBUTES: every refusal, and which one comes first (RES-38).

use opendxg::uapi::*;
use opendxg::{Error, Status};
use selftests::sharing::{access, Attributes, Client, How, Shape, What};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

/// Longest name in UTF-16 units.
const LONGEST: usize = 1024;
/// What good attributes give: the object is shared, then found as what it is, and not found as
/// what it is not.
const GOOD: [Status; 3] = [
    Status::SUCCESS,
    Status::SUCCESS,
    Status::OBJECT_TYPE_MISMATCH,
];
/// Attribute bits that are allowed.
const BITS: u32 = 0x1ff2;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-38 every row of the table, for every call", rows)
        .test("RES-38 of two wrong things the first row decides", order)
        .test("RES-38 every attribute bit", bits)
        .test("RES-38 without attributes: unnamed, and no open", none)
        .test("RES-38 the longest name", longest)
        .test("RES-38 names in paths", paths)
}

/// Attributes in the making.
#[derive(Clone)]
struct Spec {
    length: u32,
    bits: u32,
    name_offset: u64,
    buffer_offset: u64,
    odd: bool,
    root: u64,
    named: bool,
    padding: usize,
    revision: Option<u8>,
    text: &'static str,
}

impl Spec {
    fn good() -> Self {
        Self {
            length: size_of::<OBJECT_ATTRIBUTES>() as u32,
            bits: 0,
            name_offset: 0,
            buffer_offset: 0,
            odd: false,
            root: 0,
            named: true,
            padding: 0,
            revision: None,
            text: r"\BaseNamedObjects\syntax",
        }
    }

    /// Calls with these attributes: ShareObjects, and both ways to open while the new handle is
    /// there.
    fn statuses(&self, client: &Client, object: u32) -> TestResult<[Status; 3]> {
        let descriptor = [u64::from(self.revision.unwrap_or(1)), 0, 0, 0, 0];
        let mut units: Vec<u16> = self.text.encode_utf16().collect();
        units.extend(core::iter::repeat_n(u16::from(b'a'), self.padding));
        let mut attributes = match self.named {
            true => Attributes::from_units(units),
            false => Attributes::unnamed(),
        };
        if let Some(name) = &mut attributes.name {
            name.Buffer += self.buffer_offset;
            name.Length -= u16::from(self.odd);
        }
        attributes.address();
        attributes.head.Length = self.length;
        attributes.head.Attributes = self.bits;
        attributes.head.RootDirectory = self.root;
        attributes.head.ObjectName += self.name_offset;
        if self.revision.is_some() {
            attributes.head.SecurityDescriptor = descriptor.as_ptr() as u64;
        }
        let share = client.share_with(&[object], Some(&mut attributes), access::ALL_SYNC);
        let sync = client.open_attributes(What::Sync, Some(&mut attributes), 1);
        let resource = client.open_attributes(What::Resource, Some(&mut attributes), 1);
        Ok([
            status(share.map(|_| ()))?,
            status(sync.map(|_| ()))?,
            status(resource.map(|_| ()))?,
        ])
    }
}

/// The status of a result.
pub(crate) fn status(result: opendxg::Result<()>) -> TestResult<Status> {
    match result {
        Ok(()) => Ok(Status::SUCCESS),
        Err(Error::Status(status)) => Ok(status),
        Err(error) => Err(error.into()),
    }
}

/// Which part of the attributes a row spoils; two rows that need the same part cannot be wrong
/// together.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Bits,
    Permanent,
    Name,
    Text,
    Root,
    NoName,
    Descriptor,
}

type Row = (&'static str, Part, fn(&mut Spec), Status);

/// The table, in its order.
const TABLE: &[Row] = &[
    (
        "length",
        Part::Head,
        |spec| spec.length = 40,
        Status::INVALID_PARAMETER,
    ),
    (
        "attribute bits",
        Part::Bits,
        |spec| spec.bits |= 1,
        Status::INVALID_PARAMETER,
    ),
    (
        "name misaligned",
        Part::Name,
        |spec| spec.name_offset = 1,
        Status::DATATYPE_MISALIGNMENT,
    ),
    (
        "buffer misaligned",
        Part::Name,
        |spec| spec.buffer_offset = 1,
        Status::DATATYPE_MISALIGNMENT,
    ),
    (
        "odd length",
        Part::Name,
        |spec| spec.odd = true,
        Status::OBJECT_NAME_INVALID,
    ),
    (
        "too long",
        Part::Name,
        |spec| spec.padding = LONGEST,
        Status::NAME_TOO_LONG,
    ),
    (
        "directory handle without a name",
        Part::NoName,
        |spec| (spec.root, spec.named) = (1, false),
        Status::OBJECT_NAME_INVALID,
    ),
    (
        "directory handle",
        Part::Root,
        |spec| spec.root = 1,
        Status::INVALID_HANDLE,
    ),
    (
        "revision",
        Part::Descriptor,
        |spec| spec.revision = Some(2),
        Status::UNKNOWN_REVISION,
    ),
    (
        "permanent",
        Part::Permanent,
        |spec| spec.bits |= OBJ_PERMANENT,
        Status::PRIVILEGE_NOT_HELD,
    ),
    (
        "no backslash",
        Part::Text,
        |spec| spec.text = r"Base\x",
        Status::OBJECT_PATH_SYNTAX_BAD,
    ),
    (
        "empty component",
        Part::Text,
        |spec| spec.text = r"\BaseNamedObjects\\x",
        Status::OBJECT_NAME_INVALID,
    ),
    (
        "trailing backslash",
        Part::Text,
        |spec| spec.text = r"\BaseNamedObjects\x\",
        Status::OBJECT_NAME_INVALID,
    ),
    (
        "unknown directory",
        Part::Text,
        |spec| spec.text = r"\Nowhere\x",
        Status::OBJECT_PATH_NOT_FOUND,
    ),
    (
        "a directory",
        Part::Text,
        |spec| spec.text = r"\BaseNamedObjects",
        Status::OBJECT_NAME_COLLISION,
    ),
];

/// What the calls that open say where sharing says `shared`.
fn opening(shared: Status) -> Status {
    match shared {
        Status::OBJECT_NAME_COLLISION => Status::OBJECT_TYPE_MISMATCH,
        other => other,
    }
}

fn refused(client: &Client, object: u32, spec: &Spec, status: Status, what: &str) -> TestResult {
    let expected = [status, opening(status), opening(status)];
    ensure_eq!(spec.statuses(client, object)?, expected, "{what}");
    Ok(())
}

fn rows() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    for (name, _, spoil, status) in TABLE {
        let mut spec = Spec::good();
        spoil(&mut spec);
        refused(&client, object.handle(), &spec, *status, name)?;
    }
    // Nothing was wrong with the rest.
    ensure_eq!(Spec::good().statuses(&client, object.handle())?, GOOD);
    let mut described = Spec::good();
    described.revision = Some(1);
    ensure_eq!(described.statuses(&client, object.handle())?, GOOD);
    Ok(())
}

fn order() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    let mut pairs = 0;
    for (first, (name, part, spoil, status)) in TABLE.iter().enumerate() {
        for (other, other_part, spoil_too, _) in &TABLE[first + 1..] {
            // Without a name there is nothing wrong with the name; row 7 is tried with what is not
            // about it.
            let names = [Part::Name, Part::Text, Part::Root];
            let nameless = *part == Part::NoName && names.contains(other_part)
                || *other_part == Part::NoName && names.contains(part);
            if part == other_part && *part == Part::Text || nameless {
                continue;
            }
            let mut spec = Spec::good();
            spoil_too(&mut spec);
            spoil(&mut spec);
            refused(
                &client,
                object.handle(),
                &spec,
                *status,
                &format!("{name} and {other}"),
            )?;
            pairs += 1;
        }
    }
    println!("# {pairs} pairs");
    // Rows about the text exclude each other except for these.
    for (text, status) in [
        (r"a\\b", Status::OBJECT_PATH_SYNTAX_BAD),
        (r"a\", Status::OBJECT_PATH_SYNTAX_BAD),
        (r"\Nowhere\\x", Status::OBJECT_NAME_INVALID),
        (r"\Nowhere\", Status::OBJECT_NAME_INVALID),
        (r"\BaseNamedObjects\", Status::OBJECT_NAME_INVALID),
        (r"\\", Status::OBJECT_NAME_INVALID),
    ] {
        let mut spec = Spec::good();
        spec.text = text;
        refused(&client, object.handle(), &spec, status, text)?;
    }
    Ok(())
}

fn bits() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    for bit in 0..32 {
        let mut spec = Spec::good();
        spec.bits = 1 << bit;
        let statuses = spec.statuses(&client, object.handle())?;
        let expected = match spec.bits {
            OBJ_PERMANENT => [Status::PRIVILEGE_NOT_HELD; 3],
            allowed if allowed & BITS != 0 => GOOD,
            _ => [Status::INVALID_PARAMETER; 3],
        };
        ensure_eq!(statuses, expected, "bit {bit}");
    }
    Ok(())
}

fn none() -> TestResult {
    let client = Client::new()?;
    let invalid = Status::INVALID_PARAMETER;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let (fd, status) = client.share_with(&[object.handle()], None, 1)?;
        ensure_eq!(status, Status::SUCCESS);
        use std::os::fd::AsFd;
        let target = selftests::sharing::Target::Nt(fd.as_fd());
        ensure_eq!(client.query(target)?.name, "", "{shape:?}");
        fails_with(client.open_attributes(shape.what(), None, 1), invalid)?;
    }
    Ok(())
}

fn longest() -> TestResult {
    let client = Client::new()?;
    for shape in [Shape::Fence, Shape::Resource] {
        let object = client.create(shape, How::Nt)?;
        let prefix = r"\BaseNamedObjects\";
        let name = prefix.to_owned() + &"n".repeat(LONGEST - prefix.len());
        let kept = client.share_named(&object, &name)?;
        client.open_name(shape.what(), &name, access::READ_CONTROL)?;
        use std::os::fd::AsFd;
        let target = selftests::sharing::Target::Nt(kept.as_fd());
        ensure_eq!(client.query(target)?.name, name);
        let longer = name + "n";
        let refuse = Status::NAME_TOO_LONG;
        fails_with(client.share_named(&object, &longer), refuse)?;
        fails_with(client.open_name(shape.what(), &longer, 1), refuse)?;
    }
    Ok(())
}

fn paths() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    for (text, status) in [
        ("x", Status::OBJECT_PATH_SYNTAX_BAD),
        ("BaseNamedObjects", Status::OBJECT_PATH_SYNTAX_BAD),
        (r"\\BaseNamedObjects\x", Status::OBJECT_NAME_INVALID),
        (r"\Nowhere\x", Status::OBJECT_PATH_NOT_FOUND),
        (
            r"\BaseNamedObjects\Nowhere\x",
            Status::OBJECT_PATH_NOT_FOUND,
        ),
        (r"\BaseNamedObject\x", Status::OBJECT_PATH_NOT_FOUND),
        (r"\BaseNamedObjectss\x", Status::OBJECT_PATH_NOT_FOUND),
        (r"\BaseNamedObjects\ok", Status::SUCCESS),
        (r"\BaseNamedObjects\o k/;:*?", Status::SUCCESS),
    ] {
        let share = client.share_named(&object, text).map(|_| ());
        ensure_eq!(self::status(share)?, status, "{text}");
    }
    Ok(())
}
