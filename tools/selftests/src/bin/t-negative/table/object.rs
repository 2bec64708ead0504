// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls about objects of all kinds.

use opendxg::uapi::*;
use opendxg::Status;
use selftests::memory::UNMAPPED;

use super::*;
use crate::t_negative::world::Named;

/// A local handle of something with an information store.
pub(super) const HANDLE: Field = field("handle", 0, 8, Kind::WideHandle(Object::Shareable));

/// The type of a local handle: as another kind it is none.
pub(super) const TYPE: Field = listed(
    "handle_type",
    8,
    4,
    &[],
    &[
        (0, INVALID),
        (2, Status::INVALID_HANDLE),
        (5, INVALID),
        (0x8000_0001, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// An NT handle as an argument.
pub(super) const NT: Field = field("handle", 0, 8, Kind::NtHandle(Object::Shareable));

/// The type of an NT handle.
pub(super) const NT_TYPE: Field = listed(
    "handle_type",
    8,
    4,
    &[],
    &[
        (0, INVALID),
        (1, INVALID),
        (5, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// On an NT handle itself there is no other one to be named.
pub(super) const SELF: Field = listed(
    "handle",
    0,
    8,
    &[0],
    &[(1, INVALID), (1 << 32, INVALID), (u64::MAX, INVALID)],
);

/// Only the type that says so.
pub(super) const SELF_TYPE: Field = listed(
    "handle_type",
    8,
    4,
    &[0],
    &[
        (1, INVALID),
        (2, INVALID),
        (5, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// The NT handle of the resource as the argument.
pub(super) fn by_nt_handle(world: &World, image: &mut Image) {
    image.put64(0, world.shared_resource.slot());
    image.put32(8, OPENDXG_HANDLE_NT);
}

/// Room for a name.
const ROOM: u32 = 256;

/// Where a name would go if there were one.
const UNUSED: Field = listed("name", 16, 8, &[1, UNMAPPED, u64::MAX - 7], &[(0, INVALID)]);

/// Where a name goes.
const NAME: Field = field(
    "name",
    16,
    8,
    Kind::Memory(Memory {
        unit: 1,
        count_at: Some(24),
        writes: true,
        null: Some(INVALID),
        inside: &[],
    }),
);

/// Room that is enough, or too little, for a name.
const ENOUGH: Field = listed(
    "name_size",
    24,
    4,
    &[0xffff_ffff],
    &[
        (0, Status::BUFFER_TOO_SMALL),
        (1, Status::BUFFER_TOO_SMALL),
        (2, Status::BUFFER_TOO_SMALL),
    ],
);

/// Room for a name that there is not.
const NAME_SIZE: Field = any("name_size", 24, 4);

macro_rules! query {
    ($variant:literal, $handle:expr, $type:expr, [$name:expr, $size:expr], $good:expr) => {
        Form {
            nr: 0x82,
            name: "opendxg_query_object",
            variant: $variant,
            size: 104,
            fields: &[
                $handle,
                $type,
                no_flags("flags", 12),
                $name,
                reported($size),
                reported(output("type", 28, 4)),
                reported(output("kind", 32, 4)),
                reported(output("member_count", 36, 4)),
                reported(output("member_kinds", 40, 12)),
                reported(output("access", 52, 4)),
                reported(output("object_id", 56, 8)),
                reported(output("generation", 64, 8)),
                reported(output("references", 72, 4)),
                reported(output("local_references", 76, 4)),
                reported(output("creator_uid", 80, 4)),
                reported(output("alive", 84, 4)),
                reported(output("adapter_luid", 88, 4)),
                reported(output("adapter_luid_high", 92, 4)),
                reported(output("allocation_count", 96, 4)),
                reserved(100, 4),
            ],
            good: $good,
            status: Status::SUCCESS,
        }
    };
}

pub(super) const FORMS: &[Form] = &[
    query!(
        "local",
        HANDLE,
        TYPE,
        [UNUSED, NAME_SIZE],
        |world, image| {
            image.put64(16, UNMAPPED);
            image.put32(24, ROOM);
            image.put64(0, world.resource.handle().0.into());
            image.put32(8, OPENDXG_HANDLE_LOCAL);
            Ok(())
        }
    ),
    query!(
        "NT handle",
        NT,
        NT_TYPE,
        [UNUSED, NAME_SIZE],
        |world, image| {
            image.put64(16, UNMAPPED);
            image.put32(24, ROOM);
            by_nt_handle(world, image);
            Ok(())
        }
    ),
    query!(
        "named NT handle",
        NT,
        NT_TYPE,
        [NAME, ENOUGH],
        |world, image| {
            let room = Named::Resource.path().len() * 2;
            image.put64(0, world.named_resource().slot());
            image.put32(8, OPENDXG_HANDLE_NT);
            image.put32(24, room as u32);
            image.point(16, &vec![0x5a; room])
        }
    ),
    query!(
        "on an NT handle",
        SELF,
        SELF_TYPE,
        [UNUSED, NAME_SIZE],
        |world, image| {
            image.put64(16, UNMAPPED);
            image.put32(24, ROOM);
            image.on(world.shared_resource.try_clone()?.into());
            Ok(())
        }
    ),
    Form {
        nr: 0xa3,
        name: "opendxg_dup_nt",
        variant: "",
        size: 32,
        fields: &[
            NT,
            NT_TYPE,
            DUP_ACCESS,
            DUP_FLAGS,
            reserved(20, 4),
            DUPLICATE,
        ],
        good: |world, image| {
            by_nt_handle(world, image);
            image.put32(12, 0xf_0001);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xa3,
        name: "opendxg_dup_nt",
        variant: "on an NT handle",
        size: 32,
        fields: &[
            SELF,
            SELF_TYPE,
            DUP_ACCESS,
            DUP_FLAGS,
            reserved(20, 4),
            DUPLICATE,
        ],
        good: |world, image| {
            image.put32(12, 0xf_0001);
            image.on(world.shared_resource.try_clone()?.into());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xac,
        name: "opendxg_dup_local",
        variant: "",
        size: 16,
        fields: &[
            handle("handle", 0, Object::Shareable),
            listed("index", 4, 4, &[], &[(2, INVALID), (0xffff_fffe, INVALID)]),
            made("new_handle", 8, Object::Resource),
            reserved(12, 4),
        ],
        good: |world, image| {
            image.put32(0, world.resource.handle().0);
            image.put32(4, OPENDXG_WHOLE);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xac,
        name: "opendxg_dup_local",
        variant: "allocation",
        size: 16,
        fields: &[
            handle("handle", 0, Object::Shareable),
            listed(
                "index",
                4,
                4,
                &[0, 1],
                &[(2, INVALID), (0xffff_fffe, INVALID)],
            ),
            made("new_handle", 8, Object::Allocation),
            reserved(12, 4),
        ],
        good: |world, image| {
            image.put32(0, world.resource.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xad,
        name: "opendxg_get_container",
        variant: "",
        size: 8,
        fields: &[
            handle("allocation", 0, Object::Allocation),
            made("container", 4, Object::Resource),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::Allocation));
            Ok(())
        },
        status: Status::SUCCESS,
    },
];

/// Rights to a resource; the handle has all of them.
const DUP_ACCESS: Field = listed(
    "access",
    12,
    4,
    &[
        0,
        1,
        0x2_0000,
        0x10_0000,
        0x1f_0000,
        0x1000_0000,
        0x8000_0000,
    ],
    &[(2, INVALID), (0x20_0000, INVALID), (0x100_0000, INVALID)],
);

/// SAME_ACCESS goes without an access.
const DUP_FLAGS: Field = field(
    "flags",
    16,
    4,
    Kind::Flags {
        known: 3,
        accept: &[0, 2],
        refuse: &[1, 3],
    },
);

const DUPLICATE: Field = field("new_handle", 24, 8, Kind::Output(Made::Descriptor));
