// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is offered and taken back, and what is told about memory.

use opendxg::uapi::*;
use opendxg::{Allocation, Status};
use selftests::gpu::PAGE;

use super::*;

/// Allocations that one call may name.
const MAX: u32 = 16384;

const DEVICE: Field = handle("hDevice", Object::Device);
const COUNT: Field = field("NumAllocations", Kind::Count { max: MAX });
/// Not together with a list of allocations.
const RESOURCES: Field = listed(
    "pResources",
    &[0],
    &[(1, INVALID), (PAGE, INVALID), (u64::MAX, INVALID)],
);

/// Handles of allocations, as many as the field there says.
const fn list(count_at: usize) -> Field {
    let kind = Kind::HandleArray {
        count_at,
        kind: Object::Allocation,
    };
    field("HandleList", kind)
}

/// An array of results, one for each handle.
const fn results(name: &'static str, count_at: usize, null: Option<Status>) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 4,
        count_at: Some(count_at),
        writes: true,
        null,
        inside: &[],
    });
    field(name, kind)
}

/// Half of the name of an adapter: that of the device, or 0 in both.
const fn half_of_luid(name: &'static str) -> Field {
    let kind = Kind::Values {
        accept: &[],
        refuse: &[0x7fff_ffff, 0x8000_0000, 0xffff_ffff],
    };
    field(name, kind)
}

/// Two mentions of an allocation of its own.
fn mentions(world: &World, image: &mut Image, count_at: usize) -> TestResult<Allocation> {
    let allocation = world.device.new_resource().linear(PAGE).create_one()?;
    image.put32(count_at, 2);
    image.point(16, &allocation.handle().0.to_ne_bytes().repeat(2))?;
    Ok(allocation)
}

/// Says how long the argument is.
const fn size(bytes: u32) -> Field {
    match bytes {
        32 => listed("cbSize", &[32], SIZES_32),
        _ => listed("cbSize", &[40], SIZES_40),
    }
}

const SIZES_32: &[(u64, Status)] = &[
    (0, INVALID),
    (31, INVALID),
    (33, INVALID),
    (0xffff_ffff, INVALID),
];
const SIZES_40: &[(u64, Status)] = &[
    (0, INVALID),
    (39, INVALID),
    (41, INVALID),
    (0xffff_ffff, INVALID),
];

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

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x27,
        name: "D3DKMT_OFFERALLOCATIONS",
        variant: "",
        fields: &[
            DEVICE,
            RESOURCES,
            list(24),
            COUNT,
            listed(
                "Priority",
                &[1, 2, 3, 4],
                &[(0, INVALID), (5, INVALID), (0xffff_ffff, INVALID)],
            ),
            field(
                "Flags",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[],
                },
            ),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put32(28, D3DKMT_OFFER_PRIORITY_NORMAL);
            let allocation = mentions(world, image, 24)?;
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x2c,
        name: "D3DKMT_RECLAIMALLOCATIONS2",
        variant: "",
        fields: &[
            handle("hPagingQueue", Object::PagingQueue),
            COUNT,
            RESOURCES,
            list(4),
            results("pResults", 4, Some(INVALID)),
            output("PagingFenceValue"),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::PagingQueue));
            let allocation = mentions(world, image, 4)?;
            image.point(24, &[0x5a; 8])?;
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xcb,
        name: "D3DKMT_RECLAIMALLOCATIONS",
        variant: "",
        fields: &[
            DEVICE,
            RESOURCES,
            list(32),
            // Nobody has to be told.
            results("pDiscarded", 32, None),
            COUNT,
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            let allocation = mentions(world, image, 32)?;
            image.point(24, &[0x5a; 8])?;
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xc0,
        name: "opendxg_memory_notice",
        variant: "",
        fields: &[
            half_of_luid("adapter_luid_low"),
            half_of_luid("adapter_luid_high"),
            handle("device", Object::Device),
            listed(
                "kind",
                &[
                    OPENDXG_NOTICE_TRIM as u64,
                    OPENDXG_NOTICE_BUDGET as u64,
                    OPENDXG_NOTICE_PAGING_LOG as u64,
                ],
                &[(0, INVALID), (4, INVALID), (0xffff_ffff, INVALID)],
            ),
            field("fd", Kind::Output(Made::Descriptor)),
            field("reserved", Kind::Reserved),
        ],
        good: |world, image| {
            let luid = LUID::from(world.adapter.luid());
            image.put32(0, luid.LowPart);
            image.put(4, 4, u64::from(luid.HighPart as u32));
            image.put32(8, world.device.handle().0);
            image.put32(12, OPENDXG_NOTICE_TRIM);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xcc,
        name: "D3DKMT_QUERYPROCESSOFFERINFO",
        variant: "",
        fields: &[
            size(32),
            PROCESS,
            output("DecommitUniqueness"),
            output("DecommittableBytes"),
        ],
        good: |_, image| {
            image.put32(0, 32);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xcd,
        name: "D3DKMT_TRIMPROCESSCOMMITMENT",
        variant: "",
        fields: &[
            size(40),
            PROCESS,
            field(
                "Flags",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[],
                },
            ),
            any("DecommitRequested"),
            output("NumBytesDecommitted"),
        ],
        good: |_, image| {
            image.put32(0, 40);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
