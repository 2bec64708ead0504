// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sharing and opening.

use opendxg::{Access, Status};

use super::*;

/// Three objects are another form; two are never right.
const OBJECT_COUNT: Field = field("ObjectCount", 0, 4, Kind::Count { max: 3 });

pub(super) const FORMS: &[Form] = &[
    Form {
        nr: 0x3f,
        name: "D3DKMT_SHAREOBJECTS",
        variant: "",
        size: 40,
        fields: &[
            OBJECT_COUNT,
            ignored(4, 4),
            field(
                "ObjectHandleArray",
                8,
                8,
                Kind::HandleArray {
                    count_at: 0,
                    kind: Object::Fence,
                },
            ),
            field("pObjectAttributes", 16, 8, Kind::Attributes),
            field(
                "DesiredAccess",
                24,
                4,
                // MAXIMUM_ALLOWED is in nobody's way.
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
            ignored(28, 4),
            field("pSharedNtHandle", 32, 8, Kind::Slot),
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
    Form {
        nr: 0x29,
        name: "D3DKMT_OPENSYNCHRONIZATIONOBJECT",
        variant: "",
        size: 72,
        fields: &[
            field("hSharedHandle", 0, 4, Kind::Global(Object::Sync)),
            made("hSyncObject", 4, Object::Sync),
            ignored(8, 64),
        ],
        good: |world, image| {
            image.put32(0, world.global(Object::Sync));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x40,
        name: "D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2",
        variant: "",
        size: 88,
        fields: &[
            field("hNtHandle", 0, 8, Kind::NtHandle(Object::Sync)),
            handle("hDevice", 8, Object::Device),
            field(
                "Flags",
                12,
                4,
                Kind::Flags {
                    known: 0xff,
                    accept: &[0x10, 0x20, 0x40, 0x80],
                    refuse: &[0x30, 0xb0],
                },
            ),
            made("hSyncObject", 16, Object::Sync),
            ignored(20, 4),
            output("MonitoredFence.FenceValueCPUVirtualAddress", 24, 8),
            output("MonitoredFence.FenceValueGPUVirtualAddress", 32, 8),
            below("MonitoredFence.EngineAffinity", 40, Limit::Two),
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
    Form {
        nr: 0xa2,
        name: "D3DKMT_OPENSYNCOBJECTFROMNTHANDLE",
        variant: "",
        size: 16,
        fields: &[
            field("hNtHandle", 0, 8, Kind::NtHandle(Object::Sync)),
            made("hSyncObject", 8, Object::Sync),
            ignored(12, 4),
        ],
        good: |world, image| {
            image.put64(0, world.shared.slot());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x44,
        name: "D3DKMT_SHAREOBJECTWITHHOST",
        variant: "",
        size: 24,
        // There is no host.
        fields: &[
            any("hDevice", 0, 4),
            any("hObject", 4, 4),
            any("Reserved", 8, 8),
            any("hVailProcessNtHandle", 16, 8),
        ],
        good: |_, _| Ok(()),
        status: Status::NOT_SUPPORTED,
    },
];
