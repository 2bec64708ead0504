// SPDX-License-Identifier: MIT OR Apache-2.0
//! Using allocations.

use opendxg::Status;

use super::*;

/// Bytes of the first allocation of the world.
const SIZE: u64 = 4096;

const DEVICE: Field = handle("hDevice", Object::Device);
const ALLOCATION: Field = handle("hAllocation", Object::Allocation);
const LIST: Field = field(
    "phAllocationList",
    Kind::HandleArray {
        count_at: 16,
        kind: Object::Allocation,
    },
);
/// Not together with a list.
const RESOURCE: Field = field(
    "hResource",
    Kind::OptionalHandle {
        kind: Object::Resource,
        bad: INVALID,
        zero: None,
    },
);
const COUNT: Field = field("AllocationCount", Kind::Count { max: 4096 });

const fn list(nr: u32, name: &'static str, fields: &'static [Field]) -> Described {
    Described {
        nr,
        name,
        variant: "list",
        fields,
        good: |world, image| {
            let allocations = world.resource.allocations();
            let handles = [&allocations[0], &allocations[1]];
            let handles = handles.map(|allocation| allocation.handle().0.to_ne_bytes());
            image.put32(0, world.device.handle().0);
            image.point(8, &handles.concat())?;
            image.put32(16, 2);
            image.point(24, &0x7800_0000u32.to_ne_bytes().repeat(2))
        },
        status: Status::SUCCESS,
    }
}

const fn words(name: &'static str, writes: bool) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 4,
        count_at: Some(16),
        writes,
        null: Some(INVALID),
        inside: &[],
    });
    field(name, kind)
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x25,
        name: "D3DKMT_LOCK2",
        variant: "",
        fields: &[DEVICE, ALLOCATION, no_flags("Flags"), output("pData")],
        good: |world, image| {
            // Locks end with the allocation.
            let allocation = world.device.new_resource().linear(SIZE).create_one()?;
            image.put32(0, world.device.handle().0);
            image.put32(4, allocation.handle().0);
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x37,
        name: "D3DKMT_UNLOCK2",
        variant: "",
        fields: &[DEVICE, ALLOCATION],
        good: |world, image| {
            let allocation = world.device.new_resource().linear(SIZE).create_one()?;
            image.put32(0, world.device.handle().0);
            image.put32(4, allocation.handle().0);
            allocation.lock_raw()?;
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x24,
        name: "D3DKMT_INVALIDATECACHE",
        variant: "",
        fields: &[
            DEVICE,
            ALLOCATION,
            listed(
                "Offset",
                &[1, SIZE / 2],
                &[
                    (SIZE / 2 + 1, INVALID),
                    (1 << 63, INVALID),
                    (u64::MAX, INVALID),
                ],
            ),
            listed(
                "Length",
                &[0, 1, SIZE],
                &[(SIZE + 1, INVALID), (1 << 63, INVALID), (u64::MAX, INVALID)],
            ),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put32(4, world.handle(Object::Allocation));
            image.put64(16, SIZE / 2);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    list(
        0x2e,
        "D3DKMT_SETALLOCATIONPRIORITY",
        &[DEVICE, RESOURCE, LIST, COUNT, words("pPriorities", false)],
    ),
    list(
        0x3c,
        "D3DKMT_GETALLOCATIONPRIORITY",
        &[DEVICE, RESOURCE, LIST, COUNT, words("pPriorities", true)],
    ),
    list(
        0x2a,
        "D3DKMT_QUERYALLOCATIONRESIDENCY",
        &[
            DEVICE,
            RESOURCE,
            LIST,
            COUNT,
            words("pResidencyStatus", true),
        ],
    ),
    Described {
        nr: 0xae,
        name: "opendxg_export_dmabuf",
        variant: "",
        fields: &[
            handle("allocation", Object::Allocation),
            field(
                "flags",
                Kind::Flags {
                    known: 1,
                    accept: &[0, 1],
                    refuse: &[],
                },
            ),
            field("fd", Kind::Output(Made::Descriptor)),
            reserved(12, 4),
        ],
        good: |world, image| {
            let allocation = world.device.new_resource().linear(SIZE).create_one()?;
            image.put32(0, allocation.handle().0);
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
