// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls about objects of all kinds.

use opendxg::uapi::*;
use opendxg::Status;
use selftests::memory::UNMAPPED;

use super::*;
use crate::t_negative::world::Named;

/// A local handle of something with an information store.
pub(super) const HANDLE: Field = field("handle", Kind::WideHandle(Object::Shareable));

/// The type of a local handle: of another kind it is not a handle.
pub(super) const TYPE: Field = listed(
    "handle_type",
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
pub(super) const NT: Field = field("handle", Kind::NtHandle(Object::Shareable));

/// The type of an NT handle.
pub(super) const NT_TYPE: Field = listed(
    "handle_type",
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
    &[0],
    &[(1, INVALID), (1 << 32, INVALID), (u64::MAX, INVALID)],
);

/// Only the type that says so.
pub(super) const SELF_TYPE: Field = listed(
    "handle_type",
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
const UNUSED: Field = listed("name", &[1, UNMAPPED, u64::MAX - 7], &[(0, INVALID)]);

/// Where a name goes.
const NAME: Field = field(
    "name",
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
    &[0xffff_ffff],
    &[
        (0, Status::BUFFER_TOO_SMALL),
        (1, Status::BUFFER_TOO_SMALL),
        (2, Status::BUFFER_TOO_SMALL),
    ],
);

/// Room for a name that there is not.
const NAME_SIZE: Field = any("name_size");

macro_rules! query {
    ($variant:literal, $handle:expr, $type:expr, [$name:expr, $size:expr], $good:expr) => {
        Described {
            nr: 0x82,
            name: "opendxg_query_object",
            variant: $variant,
            fields: &[
                $handle,
                $type,
                no_flags("flags"),
                $name,
                reported($size),
                reported(output("type")),
                reported(output("kind")),
                reported(output("member_count")),
                reported(output("member_kinds")),
                reported(output("access")),
                reported(output("object_id")),
                reported(output("generation")),
                reported(output("references")),
                reported(output("local_references")),
                reported(output("creator_uid")),
                reported(output("alive")),
                reported(placed(88, 4, output("adapter_luid"))),
                reported(output("adapter_luid_high")),
                reported(output("allocation_count")),
                reserved(100, 4),
            ],
            good: $good,
            status: Status::SUCCESS,
        }
    };
}

pub(super) const FORMS: &[Described] = &[
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
    Described {
        nr: 0xa3,
        name: "opendxg_dup_nt",
        variant: "",
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
    Described {
        nr: 0xa3,
        name: "opendxg_dup_nt",
        variant: "on an NT handle",
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
    Described {
        nr: 0xac,
        name: "opendxg_dup_local",
        variant: "",
        fields: &[
            handle("handle", Object::Shareable),
            listed("index", &[], &[(2, INVALID), (0xffff_fffe, INVALID)]),
            made("new_handle", Object::Resource),
            reserved(12, 4),
        ],
        good: |world, image| {
            image.put32(0, world.resource.handle().0);
            image.put32(4, OPENDXG_WHOLE);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xac,
        name: "opendxg_dup_local",
        variant: "allocation",
        fields: &[
            handle("handle", Object::Shareable),
            listed("index", &[0, 1], &[(2, INVALID), (0xffff_fffe, INVALID)]),
            made("new_handle", Object::Allocation),
            reserved(12, 4),
        ],
        good: |world, image| {
            image.put32(0, world.resource.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xad,
        name: "opendxg_get_container",
        variant: "",
        fields: &[
            handle("allocation", Object::Allocation),
            made("container", Object::Resource),
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

/// With SAME_ACCESS no access may be given.
const DUP_FLAGS: Field = field(
    "flags",
    Kind::Flags {
        known: 3,
        accept: &[0, 2],
        refuse: &[1, 3],
    },
);

const DUPLICATE: Field = field("new_handle", Kind::Output(Made::Descriptor));
