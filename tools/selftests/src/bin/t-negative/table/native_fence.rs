// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences (FEN-116 to FEN-123, FEN-131, FEN-132, FEN-134).

use opendxg::Status;

use super::*;

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x4a,
        name: "D3DKMT_CREATENATIVEFENCE",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            made("hSyncObject", Object::Sync),
            // The software GPU does not look at it.
            ignored(8, 64),
            any("Info.InitialFenceValue"),
            below("Info.EngineAffinity", Limit::Two),
            field(
                "Info.Type",
                Kind::Enum {
                    unknown: &[2, 3, 7, u32::MAX],
                    unsupported: &[],
                },
            ),
            field(
                "Info.Flags",
                Kind::Flags {
                    known: 0x1ff,
                    accept: &[0x3, 0x7, 0x47, 0x8, 0x10, 0x20, 0x40, 0x80, 0xc8],
                    refuse: &[0x1, 0x2, 0x4, 0x5, 0x6, 0x30, 0x33, 0x100, 0x103],
                },
            ),
            ignored(92, 4),
            output("NativeFenceMapping.CurrentValueCpuVa"),
            output("NativeFenceMapping.CurrentValueGpuVa"),
            output("NativeFenceMapping.MonitoredValueGpuVa"),
            reserved(120, 8),
            reserved(128, 8),
            reserved(136, 8),
            reserved(144, 8),
            reserved(152, 4),
            reserved(156, 8),
            reserved(164, 8),
            reserved(172, 8),
            ignored(180, 4),
            placed(184, 4, no_flags("Flags")),
            reserved(188, 4),
            reserved(192, 8),
            reserved(200, 8),
            reserved(208, 8),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x4b,
        name: "D3DKMT_OPENNATIVEFENCEFROMNTHANDLE",
        variant: "",
        fields: &[
            field("hNtHandle", Kind::NtHandle(Object::Sync)),
            handle("hDevice", Object::Device),
            field(
                "EngineAffinity",
                Kind::Values {
                    accept: &[1],
                    refuse: &[0, 2, 3, 0x8000_0000],
                },
            ),
            field(
                "Flags",
                Kind::Flags {
                    known: 0xff,
                    accept: &[0x10, 0x20, 0x40],
                    refuse: &[0x30, 0xb0],
                },
            ),
            made("hSyncObject", Object::Sync),
            output("NativeFenceMapping.CurrentValueCpuVa"),
            output("NativeFenceMapping.CurrentValueGpuVa"),
            output("NativeFenceMapping.MonitoredValueGpuVa"),
            reserved(48, 8),
            reserved(56, 8),
            reserved(64, 8),
            reserved(72, 8),
            ignored(80, 64),
            reserved(144, 8),
            reserved(152, 8),
            reserved(160, 8),
            reserved(168, 8),
        ],
        good: |world, image| {
            image.put64(0, world.shared_native.slot());
            image.put32(8, world.device.handle().0);
            image.put32(12, 1);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xb0,
        name: "D3DKMT_GETNATIVEFENCELOGDETAIL",
        variant: "",
        fields: &[
            handle("hHwQueue", Object::UserQueue),
            no_flags("Flags"),
            output("WaitLogNumberOfEntries"),
            output("SignalLogNumberOfEntries"),
            output("WaitLogGpuBaseAddress"),
            output("SignalLogGpuBaseAddress"),
            reserved(32, 8),
            reserved(40, 8),
            reserved(48, 8),
            reserved(56, 8),
            reserved(64, 8),
            reserved(72, 8),
            reserved(80, 8),
            reserved(88, 8),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::UserQueue));
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
