// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told about memory and engines.

use opendxg::uapi::*;
use opendxg::Status;

use super::*;

/// The calling process, or what is no process.
const PROCESS: Field = listed(
    "hProcess",
    &[u64::MAX],
    &[
        (1 << 32, Status::INVALID_HANDLE),
        (0x7fff_ffff, Status::INVALID_HANDLE),
        (1 << 63, Status::INVALID_HANDLE),
        (u64::MAX - 1, Status::INVALID_HANDLE),
    ],
);

/// A segment of the adapter.
const fn segment(name: &'static str) -> Field {
    listed(
        name,
        &[0],
        &[
            (32, INVALID),
            (0x8000_0000, INVALID),
            (0xffff_ffff, INVALID),
        ],
    )
}

const TYPE: Field = field(
    "Type",
    Kind::Enum {
        unknown: &[11, 12, 0x7fff_ffff, 0x8000_0000, u32::MAX],
        unsupported: &[
            D3DKMT_QUERYSTATISTICS_VIDPNSOURCE,
            D3DKMT_QUERYSTATISTICS_PROCESS_VIDPNSOURCE,
            D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER,
        ],
    },
);

/// QueryStatistics of a type; `process` and `selector` are its other inputs.
const fn fields(process: Field, selector: Field) -> [Field; 5] {
    let luid = field("AdapterLuid", Kind::Luid);
    [TYPE, luid, process, output("QueryResult"), selector]
}

const fn statistics(
    variant: &'static str,
    fields: &'static [Field],
    good: fn(&World, &mut Image) -> TestResult,
) -> Described {
    Described {
        nr: 0x43,
        name: "D3DKMT_QUERYSTATISTICS",
        variant,
        fields,
        good,
        status: Status::SUCCESS,
    }
}

fn ask(world: &World, image: &mut Image, kind: u32) -> TestResult {
    let luid = LUID::from(world.adapter.luid());
    image.put32(0, kind);
    image.put32(4, luid.LowPart);
    image.put(8, 4, u64::from(luid.HighPart as u32));
    Ok(())
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x0a,
        name: "D3DKMT_QUERYVIDEOMEMORYINFO",
        variant: "",
        fields: &[
            PROCESS,
            handle("hAdapter", Object::Adapter),
            below("MemorySegmentGroup", Limit::Two),
            output("Budget"),
            output("CurrentUsage"),
            output("CurrentReservation"),
            output("AvailableForReservation"),
            below("PhysicalAdapterIndex", Limit::One),
        ],
        good: |world, image| {
            image.put32(8, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x16,
        name: "D3DKMT_CHANGEVIDEOMEMORYRESERVATION",
        variant: "",
        fields: &[
            PROCESS,
            handle("hAdapter", Object::Adapter),
            below("MemorySegmentGroup", Limit::Two),
            // More than there is; nothing is kept for the others.
            listed(
                "Reservation",
                &[0],
                &[(1 << 40, INVALID), (1 << 63, INVALID), (u64::MAX, INVALID)],
            ),
            below("PhysicalAdapterIndex", Limit::One),
        ],
        good: |world, image| {
            image.put32(8, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    statistics(
        "adapter",
        &fields(any("hProcess"), any("QuerySegment")),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_ADAPTER),
    ),
    statistics(
        "segment",
        &fields(any("hProcess"), segment("QuerySegment")),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_SEGMENT),
    ),
    statistics(
        "node",
        &fields(any("hProcess"), below("QueryNode", Limit::Four)),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_NODE),
    ),
    statistics(
        "process",
        &fields(PROCESS, any("QuerySegment")),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_PROCESS),
    ),
    statistics(
        "process and adapter",
        &fields(PROCESS, any("QuerySegment")),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER),
    ),
    statistics(
        "process and segment",
        &fields(PROCESS, segment("QueryProcessSegment")),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT),
    ),
    statistics(
        "process and node",
        &fields(PROCESS, below("QueryProcessNode", Limit::Four)),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_PROCESS_NODE),
    ),
    statistics(
        "process and segment group",
        &fields(PROCESS, below("QueryProcessSegmentGroup", Limit::Two)),
        |world, image| ask(world, image, D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP),
    ),
];
