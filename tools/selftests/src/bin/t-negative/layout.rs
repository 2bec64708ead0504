// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documented layouts, from which the descriptions of calls take where a member is.

use std::collections::HashMap;
use std::sync::OnceLock;

use opendxg::raw::CALLS;

use super::table::{Described, Field, Form, Kind, Written, NAMED};

/// The documented layout of every struct: name, size, field, offset, bytes.
const LAYOUT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../Documentation/abi/abi-layout.tsv"
));

/// Structs that are part of an argument struct, and where they begin in it.
const NESTED: [(&str, &str, usize); 5] = [
    (
        "D3DKMT_CREATESYNCHRONIZATIONOBJECT2",
        "D3DDDI_SYNCHRONIZATIONOBJECTINFO2",
        8,
    ),
    ("opendxg_share_objects", "D3DKMT_SHAREOBJECTS", 0),
    ("D3DKMT_CREATENATIVEFENCE", "D3DDDI_NATIVEFENCEINFO", 72),
    ("D3DKMT_CREATENATIVEFENCE", "D3DDDI_NATIVEFENCEMAPPING", 96),
    (
        "D3DKMT_OPENNATIVEFENCEFROMNTHANDLE",
        "D3DDDI_NATIVEFENCEMAPPING",
        24,
    ),
];

/// Calls that queues carry out later.
const QUEUED: [u32; 10] = [0x0f, 0x11, 0x12, 0x32, 0x33, 0x34, 0x35, 0x36, 0x3b, 0x46];

/// A member of a struct: its name, where it begins and how many bytes it has.
pub(crate) type Member = (&'static str, usize, usize);

/// The members of a struct and of the struct that is part of it. Bit fields are not there: they
/// are described by what holds them.
pub(crate) fn members(name: &str) -> impl Iterator<Item = Member> + '_ {
    static STRUCTS: OnceLock<HashMap<&str, Vec<Member>>> = OnceLock::new();
    let structs = STRUCTS.get_or_init(|| {
        let mut structs: HashMap<_, Vec<_>> = HashMap::new();
        for line in LAYOUT.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [name, _, member, offset, size] = columns[..] else {
                panic!("malformed row: {line}");
            };
            if let (Ok(offset), Ok(size)) = (offset.parse(), size.parse()) {
                structs
                    .entry(name)
                    .or_default()
                    .push((member, offset, size));
            }
        }
        structs
    });
    let nested = NESTED.iter().filter(move |(outer, ..)| *outer == name);
    let all = nested.map(|(_, inner, base)| (*inner, *base));
    all.chain([(name, 0)]).flat_map(move |(name, base)| {
        let members = structs.get(name).into_iter().flatten();
        members.map(move |(member, offset, size)| (*member, base + offset, *size))
    })
}

/// Puts every field where the layout has the member of its name, and describes bytes of no member
/// as ignored.
pub(crate) fn place(form: &Described) -> Form {
    let call = CALLS.iter().find(|(nr, ..)| *nr == form.nr);
    let size = call.map_or(0, |(_, size, _)| *size);
    let mut fields: Vec<Field> = form.fields.iter().map(|field| find(form, field)).collect();
    let mut at = 0;
    while at < size as usize {
        let is_in = |(_, start, size): Member| (start..start + size).contains(&at);
        let described = fields
            .iter()
            .find(|field| is_in(("", field.at, field.size)));
        match described {
            Some(field) => at = field.at + field.size,
            None if members(form.name).any(is_in) => at += 1,
            None => {
                fields.push(Field {
                    name: "padding",
                    at,
                    size: 1,
                    kind: Kind::Ignored,
                    written: Written::Never,
                });
                at += 1;
            }
        }
    }
    fields.sort_by_key(|field| field.at);
    Form {
        nr: form.nr,
        name: form.name,
        variant: form.variant,
        size,
        fields: joined(fields),
        good: form.good,
        status: form.status,
        is_queued: QUEUED.contains(&form.nr),
    }
}

/// Makes one field of bytes of padding next to each other.
fn joined(fields: Vec<Field>) -> Vec<Field> {
    fields
        .into_iter()
        .fold(Vec::new(), |mut all: Vec<Field>, field| {
            match all.last_mut() {
                Some(last) if (last.name, field.name) == ("padding", "padding") => last.size += 1,
                _ => all.push(field),
            }
            all
        })
}

fn find(form: &Described, field: &Field) -> Field {
    if field.at != NAMED {
        return *field;
    }
    // What is in a nested struct may be named with the member that this is.
    let inner = field
        .name
        .split_once('.')
        .map_or(field.name, |(_, inner)| inner);
    let place = |name: &str| members(form.name).find(|(member, ..)| *member == name);
    match place(field.name).or_else(|| place(inner)) {
        Some((_, at, size)) => Field { at, size, ..*field },
        None => panic!("{} has no member {}", form.name, field.name),
    }
}
