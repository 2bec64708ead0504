// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sharing with a mode, and opening by name.

use opendxg::{Access, Status};
use selftests::memory::UNMAPPED;

use super::*;
use crate::t_negative::world::Named;

/// What is wrong in OBJECT_ATTRIBUTES for every call.
const IN_ATTRIBUTES: &[Inside] = &[
    ("Length", 0, 4, 0, INVALID),
    ("Length", 0, 4, 24, INVALID),
    ("Length", 0, 4, 47, INVALID),
    ("RootDirectory", 8, 8, 1, Status::INVALID_HANDLE),
    ("ObjectName", 16, 8, 1, Status::DATATYPE_MISALIGNMENT),
    ("ObjectName", 16, 8, UNMAPPED, FAULT),
    ("Attributes", 24, 4, 1, INVALID),
    ("Attributes", 24, 4, 4, INVALID),
    ("Attributes", 24, 4, 1 << 13, INVALID),
    ("Attributes", 24, 4, 1 << 31, INVALID),
    ("Attributes", 24, 4, 0x10, Status::PRIVILEGE_NOT_HELD),
    ("SecurityDescriptor", 32, 8, UNMAPPED, FAULT),
];

const fn attributes(name: &'static str, null: Option<Status>) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 48,
        count_at: None,
        writes: false,
        null,
        inside: IN_ATTRIBUTES,
    });
    field(name, kind)
}

/// Attributes with a name.
fn point_to_name(image: &mut Image, at: usize, name: &str) -> TestResult {
    let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_ne_bytes).collect();
    let buffer = image.place(&units)?;
    let length = (units.len() as u16).to_ne_bytes();
    let mut string = [0; 16];
    string[..2].copy_from_slice(&length);
    string[2..4].copy_from_slice(&length);
    string[8..].copy_from_slice(&buffer.to_ne_bytes());
    let string = image.place(&string)?;
    let mut attributes = [0; 48];
    attributes[0] = 48;
    attributes[16..24].copy_from_slice(&string.to_ne_bytes());
    image.point(at, &attributes)
}

macro_rules! open {
    ($nr:literal $name:literal, $unknown:literal, $named:expr) => {
        Described {
            nr: $nr,
            name: $name,
            variant: "",
            fields: &[
                listed(
                    "dwDesiredAccess",
                    &[1, 0x2_0000, 0x200_0000, 0x1000_0000],
                    &[
                        (0, Status::ACCESS_DENIED),
                        ($unknown, INVALID),
                        (0x100_0000, INVALID),
                    ],
                ),
                ignored(4, 4),
                attributes("pObjAttrib", Some(INVALID)),
                reported(field("hNtHandle", Kind::Output(Made::Descriptor))),
            ],
            good: |_, image| {
                image.put32(0, 0x1000_0000);
                point_to_name(image, 8, &$named.path())
            },
            status: Status::SUCCESS,
        }
    };
}

pub(super) const FORMS: &[Described] = &[
    open!(0xa0 "D3DKMT_OPENNTHANDLEFROMNAME", 0x2, Named::Resource),
    open!(0xa1 "D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME", 0x4, Named::Fence),
    Described {
        nr: 0xaf,
        name: "opendxg_share_objects",
        variant: "",
        fields: &[
            field("share.ObjectCount", Kind::Count { max: 3 }),
            ignored(4, 4),
            field(
                "share.ObjectHandleArray",
                Kind::HandleArray {
                    count_at: 0,
                    kind: Object::Shared,
                },
            ),
            attributes("share.pObjectAttributes", None),
            listed(
                "share.DesiredAccess",
                &[0, 1, 3, 0x2_0000, 0x1000_0000],
                &[(4, INVALID), (0x100_0000, INVALID)],
            ),
            ignored(28, 4),
            field("share.pSharedNtHandle", Kind::Slot),
            listed(
                "mode",
                &[0, 0o4, 0o600, 0o644, 0o666],
                &[
                    (0o1, INVALID),
                    (0o111, INVALID),
                    (0o777, INVALID),
                    (0o1000, INVALID),
                    (1 << 31, INVALID),
                ],
            ),
            reserved(44, 4),
        ],
        good: |world, image| {
            image.put32(0, 1);
            image.point(8, &world.fence.handle().0.to_ne_bytes())?;
            point_to_name(image, 16, &Named::New.path())?;
            image.put32(24, Access::ALL.bits());
            image.point(32, &[0x5a; 8])?;
            image.put32(40, 0o600);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
