// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls about adapters and about the interface itself.

use opendxg::uapi::*;
use opendxg::{Dxg, Status};
use selftests::fixture;

use super::*;

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x01,
        name: "D3DKMT_OPENADAPTERFROMLUID",
        variant: "",
        fields: &[
            field("AdapterLuid", Kind::Luid),
            made("hAdapter", Object::Adapter),
        ],
        good: |world, image| {
            let luid = world.adapter.luid();
            image.put32(0, luid.low);
            image.put32(4, luid.high as u32);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x14,
        name: "D3DKMT_ENUMADAPTERS2",
        variant: "",
        fields: &[
            field("NumAdapters", Kind::Capacity),
            field("pAdapters", Kind::AdapterArray { count_at: 0 }),
        ],
        good: |_, image| room(image, 0, 8),
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x3e,
        name: "D3DKMT_ENUMADAPTERS3",
        variant: "",
        fields: &[
            field(
                "Filter",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[],
                },
            ),
            field("NumAdapters", Kind::Capacity),
            field("pAdapters", Kind::AdapterArray { count_at: 8 }),
        ],
        good: |_, image| room(image, 8, 16),
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x15,
        name: "D3DKMT_CLOSEADAPTER",
        variant: "",
        fields: &[handle("hAdapter", Object::Adapter)],
        good: |_, image| {
            let adapter = fixture::adapter()?;
            image.put32(0, adapter.handle().0);
            image.keep(adapter);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x09,
        name: "D3DKMT_QUERYADAPTERINFO",
        variant: "",
        fields: &[
            handle("hAdapter", Object::Adapter),
            field(
                "Type",
                Kind::Enum {
                    unknown: &[14, 36, 1000, 0x8000_000f, u32::MAX],
                    unsupported: &[],
                },
            ),
            field("pPrivateDriverData", Kind::Payload { size_at: 16 }),
            field("PrivateDriverDataSize", Kind::PayloadSize { exact: 4 }),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            image.put32(4, KMTQAITYPE_ADAPTERTYPE);
            image.put32(16, 4);
            image.point(8, &[0; 4])
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x49,
        name: "D3DKMT_ISFEATUREENABLED",
        variant: "",
        fields: &[
            handle("hAdapter", Object::Adapter),
            any("FeatureId"),
            output("Result"),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x3d,
        name: "D3DKMT_QUERYCLOCKCALIBRATION",
        variant: "",
        fields: &[
            handle("hAdapter", Object::Adapter),
            below("NodeOrdinal", Limit::Four),
            below("PhysicalAdapterIndex", Limit::One),
            output("ClockData"),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x81,
        name: "opendxg_version",
        variant: "",
        fields: &[
            output("version"),
            field("reserved", Kind::Reserved),
            output("implemented"),
        ],
        good: |_, _| Ok(()),
        status: Status::SUCCESS,
    },
];

/// Room for exactly the adapters there are.
fn room(image: &mut Image, count_at: usize, array_at: usize) -> TestResult {
    let count = Dxg::open()?.adapter_count()?;
    image.put32(count_at, count as u32);
    image.point(array_at, &vec![0x5a; 20 * count])
}
