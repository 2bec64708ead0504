// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls about adapters and about the interface itself.

use opendxg::uapi::*;
use opendxg::{Dxg, Status};
use selftests::fixture;

use super::*;

pub(super) const FORMS: &[Form] = &[
    Form {
        nr: 0x01,
        name: "D3DKMT_OPENADAPTERFROMLUID",
        variant: "",
        size: 12,
        fields: &[
            field("AdapterLuid", 0, 8, Kind::Luid),
            made("hAdapter", 8, Object::Adapter),
        ],
        good: |world, image| {
            let luid = world.adapter.luid();
            image.put32(0, luid.low);
            image.put32(4, luid.high as u32);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x14,
        name: "D3DKMT_ENUMADAPTERS2",
        variant: "",
        size: 16,
        fields: &[
            field("NumAdapters", 0, 4, Kind::Capacity),
            ignored(4, 4),
            field("pAdapters", 8, 8, Kind::AdapterArray { count_at: 0 }),
        ],
        good: |_, image| room(image, 0, 8),
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x3e,
        name: "D3DKMT_ENUMADAPTERS3",
        variant: "",
        size: 24,
        fields: &[
            field(
                "Filter",
                0,
                8,
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[],
                },
            ),
            field("NumAdapters", 8, 4, Kind::Capacity),
            ignored(12, 4),
            field("pAdapters", 16, 8, Kind::AdapterArray { count_at: 8 }),
        ],
        good: |_, image| room(image, 8, 16),
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x15,
        name: "D3DKMT_CLOSEADAPTER",
        variant: "",
        size: 4,
        fields: &[handle("hAdapter", 0, Object::Adapter)],
        good: |_, image| {
            let adapter = fixture::adapter()?;
            image.put32(0, adapter.handle().0);
            image.keep(adapter);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x09,
        name: "D3DKMT_QUERYADAPTERINFO",
        variant: "",
        size: 24,
        fields: &[
            handle("hAdapter", 0, Object::Adapter),
            field(
                "Type",
                4,
                4,
                Kind::Enum {
                    unknown: &[14, 36, 1000, 0x8000_000f, u32::MAX],
                    unsupported: &[],
                },
            ),
            field("pPrivateDriverData", 8, 8, Kind::Payload { size_at: 16 }),
            field(
                "PrivateDriverDataSize",
                16,
                4,
                Kind::PayloadSize { exact: 4 },
            ),
            ignored(20, 4),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            image.put32(4, KMTQAITYPE_ADAPTERTYPE);
            image.put32(16, 4);
            image.point(8, &[0; 4])
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x49,
        name: "D3DKMT_ISFEATUREENABLED",
        variant: "",
        size: 12,
        fields: &[
            handle("hAdapter", 0, Object::Adapter),
            any("FeatureId", 4, 4),
            output("Result", 8, 4),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x3d,
        name: "D3DKMT_QUERYCLOCKCALIBRATION",
        variant: "",
        size: 40,
        fields: &[
            handle("hAdapter", 0, Object::Adapter),
            below("NodeOrdinal", 4, Limit::Four),
            below("PhysicalAdapterIndex", 8, Limit::One),
            output("ClockData", 12, 28),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x81,
        name: "opendxg_version",
        variant: "",
        size: 40,
        fields: &[
            output("version", 0, 4),
            field("reserved", 4, 4, Kind::Reserved),
            output("implemented", 8, 32),
        ],
        good: |_, _| Ok(()),
        status: Status::SUCCESS,
    },
];

/// Room for exactly the adapters there are.
fn room(image: &mut Image, count_at: usize, array_at: usize) -> Outcome {
    let count = Dxg::open()?.adapter_count()?;
    image.put32(count_at, count as u32);
    image.point(array_at, &vec![0x5a; 20 * count])
}
