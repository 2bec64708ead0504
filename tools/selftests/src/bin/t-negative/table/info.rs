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
    16,
    8,
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
    12,
    4,
    Kind::Flags {
        known: 1,
        accept: &[0, 1],
        refuse: &[],
    },
);

macro_rules! form {
    ($nr:literal $name:literal $size:literal, [$($field:expr),* $(,)?], $fill:expr) => {
        [
            Form {
                nr: $nr,
                name: $name,
                variant: "local",
                size: $size,
                fields: &[HANDLE, TYPE, $($field),*],
                good: |world, image| {
                    let fence = described(world)?;
                    image.put64(0, fence.handle().0.into());
                    image.put32(8, OPENDXG_HANDLE_LOCAL);
                    image.keep(fence);
                    let fill: fn(&mut Image) -> Outcome = $fill;
                    fill(image)
                },
                status: Status::SUCCESS,
            },
            Form {
                nr: $nr,
                name: $name,
                variant: "on an NT handle",
                size: $size,
                fields: &[SELF, SELF_TYPE, $($field),*],
                good: |world, image| {
                    let fence = described(world)?;
                    image.on(fence.share(Access::ALL)?.into());
                    image.keep(fence);
                    let fill: fn(&mut Image) -> Outcome = $fill;
                    fill(image)
                },
                status: Status::SUCCESS,
            },
        ]
    };
}

const SET: [Form; 2] = form!(0xa4 "opendxg_set_info" 32, [
    listed("item_count", 12, 4, &[], &[
        (0, INVALID),
        (9, INVALID),
        (1 << 31, INVALID),
        (0xffff_ffff, INVALID),
    ]),
    ITEMS,
    reported(output("generation", 24, 8)),
], |image| {
    let data = image.place(&BYTES)?;
    let mut item = [0u8; 48];
    item[..16].fill(0x33);
    item[32..40].copy_from_slice(&data.to_ne_bytes());
    item[40..44].copy_from_slice(&32u32.to_ne_bytes());
    image.put32(12, 1);
    image.point(16, &item)
});

const GET: [Form; 2] = form!(0xa5 "opendxg_get_info" 72, [
    GET_FLAGS,
    listed("key", 16, 8, &[], OTHER_KEY),
    listed("key, second half", 24, 8, &[], OTHER_KEY),
    listed("max_schema", 32, 4, &[5, 6, 0xffff_ffff], &[
        (0, Status::REVISION_MISMATCH),
        (4, Status::REVISION_MISMATCH),
    ]),
    reported(output("schema", 36, 4)),
    buffer("data", 40, 48, Some(INVALID)),
    reported(listed("size", 48, 4, &[33, 0xffff_ffff], &[
        (0, Status::BUFFER_TOO_SMALL),
        (31, Status::BUFFER_TOO_SMALL),
    ])),
    output("writer_uid", 52, 4),
    output("generation", 56, 8),
    output("fd", 64, 4),
    output("entry_flags", 68, 4),
], |image| {
    image.bytes[16..32].copy_from_slice(&ENTRY.0);
    image.put32(32, 5);
    image.point(40, &[0x5a; 32])?;
    image.put32(48, 32);
    Ok(())
});

const ENUM: [Form; 2] = form!(0xa6 "opendxg_enum_info" 32, [
    reported(listed("count", 12, 4, &[2, 0xffff_ffff], &[(0, Status::BUFFER_TOO_SMALL)])),
    field("entries", 16, 8, Kind::Memory(Memory {
        unit: 40,
        count_at: Some(12),
        writes: true,
        null: Some(INVALID),
        inside: &[],
    })),
    output("generation", 24, 8),
], |image| {
    image.put32(12, 1);
    image.point(16, &[0x5a; 40])
});

const DELETE: [Form; 2] = form!(0xa7 "opendxg_delete_info" 48, [
    listed("schema", 12, 4, &[], &[
        (4, Status::NOT_FOUND),
        (6, Status::NOT_FOUND),
        (0xffff_ffff, Status::NOT_FOUND),
    ]),
    listed("key", 16, 8, &[], OTHER_KEY),
    listed("key, second half", 24, 8, &[], OTHER_KEY),
    listed("expected_generation", 32, 8, &[1], OTHER_GENERATION),
    reported(output("generation", 40, 8)),
], |image| {
    image.put32(12, 5);
    image.bytes[16..32].copy_from_slice(&ENTRY.0);
    Ok(())
});

/// Each call through the device and on an NT handle.
pub(super) const FORMS: &[[Form; 2]] = &[SET, GET, ENUM, DELETE];

/// An object with one entry, for one call.
fn described(world: &World) -> Outcome<MonitoredFence> {
    let fence = world.device.create_shareable_fence(0)?;
    fence.set_info(&[InfoItem::new(ENTRY, 5, &BYTES)])?;
    Ok(fence)
}
