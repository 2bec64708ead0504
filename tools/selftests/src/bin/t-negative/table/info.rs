// SPDX-License-Identifier: MIT OR Apache-2.0
//! The information store, through the device and on an NT handle.

use opendxg::uapi::*;
use opendxg::{Access, InfoItem, MonitoredFence, Object as _, Status};

use super::object::{HANDLE, SELF, SELF_TYPE, TYPE};
use super::*;

/// The entry that there is.
const ENTRY: opendxg::Guid = opendxg::Guid([0x11; 16]);
const BYTES: [u8; 32] = [0x22; 32];
const OTHER_KEY: &[(u64, Status)] = &[(1, Status::NOT_FOUND), (u64::MAX, Status::NOT_FOUND)];
const OTHER_GENERATION: &[(u64, Status)] = &[
    (99, Status::REVISION_MISMATCH),
    (u64::MAX, Status::REVISION_MISMATCH),
];

/// The item of a good call is in memory as its last 48 bytes; the data follow from its address.
const ITEMS: Field = field(
    "items",
    Kind::Memory(Memory {
        unit: 48,
        count_at: Some(12),
        writes: false,
        null: Some(INVALID),
        inside: &[
            ("flags", 20, 4, 0x10, INVALID),
            ("flags", 20, 4, 0x20, INVALID),
            ("flags", 20, 4, 0xc, INVALID),
            ("flags", 20, 4, 1 << 31, INVALID),
            ("fd", 44, 4, 1, INVALID),
            ("fd", 44, 4, 0xffff_ffff, INVALID),
            ("expected_generation", 24, 8, 99, Status::REVISION_MISMATCH),
            ("data", 32, 8, 0, INVALID),
            ("data", 32, 8, selftests::memory::UNMAPPED, FAULT),
            ("size", 40, 4, 33, FAULT),
            ("size", 40, 4, 65537, Status::QUOTA_EXCEEDED),
            ("size", 40, 4, 0xffff_ffff, Status::QUOTA_EXCEEDED),
        ],
    }),
);

const GET_FLAGS: Field = field(
    "flags",
    Kind::Flags {
        known: 1,
        accept: &[0, 1],
        refuse: &[],
    },
);

macro_rules! form {
    ($nr:literal $name:literal, [$($field:expr),* $(,)?], $fill:expr) => {
        [
            Described {
                nr: $nr,
                name: $name,
                variant: "local",
                fields: &[HANDLE, TYPE, $($field),*],
                good: |world, image| {
                    let fence = described(world)?;
                    image.put64(0, fence.handle().0.into());
                    image.put32(8, OPENDXG_HANDLE_LOCAL);
                    image.keep(fence);
                    let fill: fn(&mut Image) -> TestResult = $fill;
                    fill(image)
                },
                status: Status::SUCCESS,
            },
            Described {
                nr: $nr,
                name: $name,
                variant: "on an NT handle",
                fields: &[SELF, SELF_TYPE, $($field),*],
                good: |world, image| {
                    let fence = described(world)?;
                    image.on(fence.share(Access::ALL)?.into());
                    image.keep(fence);
                    let fill: fn(&mut Image) -> TestResult = $fill;
                    fill(image)
                },
                status: Status::SUCCESS,
            },
        ]
    };
}

const SET: [Described; 2] = form!(0xa4 "opendxg_set_info", [
    listed("item_count", &[], &[
        (0, INVALID),
        (9, INVALID),
        (1 << 31, INVALID),
        (0xffff_ffff, INVALID),
    ]),
    ITEMS,
    reported(output("generation")),
], |image| {
    let data = image.place(&BYTES)?;
    let mut item = [0u8; 48];
    item[..16].fill(0x33);
    item[32..40].copy_from_slice(&data.to_ne_bytes());
    item[40..44].copy_from_slice(&32u32.to_ne_bytes());
    image.put32(12, 1);
    image.point(16, &item)
});

const GET: [Described; 2] = form!(0xa5 "opendxg_get_info", [
    GET_FLAGS,
    placed(16, 8, listed("key", &[], OTHER_KEY)),
    placed(24, 8, listed("key, second half", &[], OTHER_KEY)),
    listed("max_schema", &[5, 6, 0xffff_ffff], &[
        (0, Status::REVISION_MISMATCH),
        (4, Status::REVISION_MISMATCH),
    ]),
    reported(output("schema")),
    buffer("data", 48, Some(INVALID)),
    reported(listed("size", &[33, 0xffff_ffff], &[
        (0, Status::BUFFER_TOO_SMALL),
        (31, Status::BUFFER_TOO_SMALL),
    ])),
    output("writer_uid"),
    output("generation"),
    output("fd"),
    output("entry_flags"),
], |image| {
    image.bytes[16..32].copy_from_slice(&ENTRY.0);
    image.put32(32, 5);
    image.point(40, &[0x5a; 32])?;
    image.put32(48, 32);
    Ok(())
});

const ENUM: [Described; 2] = form!(0xa6 "opendxg_enum_info", [
    reported(listed("count", &[2, 0xffff_ffff], &[(0, Status::BUFFER_TOO_SMALL)])),
    field("entries", Kind::Memory(Memory {
        unit: 40,
        count_at: Some(12),
        writes: true,
        null: Some(INVALID),
        inside: &[],
    })),
    output("generation"),
], |image| {
    image.put32(12, 1);
    image.point(16, &[0x5a; 40])
});

const DELETE: [Described; 2] = form!(0xa7 "opendxg_delete_info", [
    listed("schema", &[], &[
        (4, Status::NOT_FOUND),
        (6, Status::NOT_FOUND),
        (0xffff_ffff, Status::NOT_FOUND),
    ]),
    placed(16, 8, listed("key", &[], OTHER_KEY)),
    placed(24, 8, listed("key, second half", &[], OTHER_KEY)),
    listed("expected_generation", &[1], OTHER_GENERATION),
    reported(output("generation")),
], |image| {
    image.put32(12, 5);
    image.bytes[16..32].copy_from_slice(&ENTRY.0);
    Ok(())
});

/// Each call through the device and on an NT handle.
pub(super) const FORMS: &[[Described; 2]] = &[SET, GET, ENUM, DELETE];

/// An object with one entry, for one call.
fn described(world: &World) -> TestResult<MonitoredFence> {
    let fence = world.device.create_shareable_fence(0)?;
    fence.set_info(&[InfoItem::new(ENTRY, 5, &BYTES)])?;
    Ok(fence)
}
