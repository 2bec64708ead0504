// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sharing and opening.

use opendxg::{Access, Status};

use super::*;

/// Three objects are another form; two are never right.
const OBJECT_COUNT: Field = field("ObjectCount", Kind::Count { max: 3 });

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x3f,
        name: "D3DKMT_SHAREOBJECTS",
        variant: "",
        fields: &[
            OBJECT_COUNT,
            field(
                "ObjectHandleArray",
                Kind::HandleArray {
                    count_at: 0,
                    kind: Object::Fence,
                },
            ),
            field("pObjectAttributes", Kind::Attributes),
            field(
                "DesiredAccess", // MAXIMUM_ALLOWED is in nobody's way.
                Kind::Flags {
                    known: 0xf21f_0003,
                    accept: &[
                        0,
                        1,
                        2,
                        3,
                        0x2_0000,
                        0x1f_0003,
                        0x1000_0000,
                        0x2000_0000,
                        0x4000_0000,
                        0x8000_0000,
                    ],
                    refuse: &[],
                },
            ),
            field("pSharedNtHandle", Kind::Slot),
        ],
        good: |world, image| {
            image.put32(0, 1);
            image.point(8, &world.fence.handle().0.to_ne_bytes())?;
            let mut attributes = [0; 48];
            attributes[0] = 48;
            image.point(16, &attributes)?;
            image.put32(24, Access::ALL.bits());
            image.point(32, &[0x5a; 8])
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x29,
        name: "D3DKMT_OPENSYNCHRONIZATIONOBJECT",
        variant: "",
        fields: &[
            field("hSharedHandle", Kind::Global(Object::Sync)),
            made("hSyncObject", Object::Sync),
            ignored(8, 64),
        ],
        good: |world, image| {
            image.put32(0, world.global(Object::Sync));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x40,
        name: "D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2",
        variant: "",
        fields: &[
            field("hNtHandle", Kind::NtHandle(Object::Sync)),
            handle("hDevice", Object::Device),
            field(
                "Flags",
                Kind::Flags {
                    known: 0xff,
                    accept: &[0x10, 0x20, 0x40, 0x80],
                    refuse: &[0x30, 0xb0],
                },
            ),
            made("hSyncObject", Object::Sync),
            output("MonitoredFence.FenceValueCPUVirtualAddress"),
            output("MonitoredFence.FenceValueGPUVirtualAddress"),
            below("MonitoredFence.EngineAffinity", Limit::Two),
            ignored(44, 4),
            ignored(48, 40),
        ],
        good: |world, image| {
            image.put64(0, world.shared.slot());
            image.put32(8, world.device.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xa2,
        name: "D3DKMT_OPENSYNCOBJECTFROMNTHANDLE",
        variant: "",
        fields: &[
            field("hNtHandle", Kind::NtHandle(Object::Sync)),
            made("hSyncObject", Object::Sync),
        ],
        good: |world, image| {
            image.put64(0, world.shared.slot());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x44,
        name: "D3DKMT_SHAREOBJECTWITHHOST",
        variant: "",
        // There is no host.
        fields: &[
            any("hDevice"),
            any("hObject"),
            any("Reserved"),
            any("hVailProcessNtHandle"),
        ],
        good: |_, _| Ok(()),
        status: Status::NOT_SUPPORTED,
    },
];
