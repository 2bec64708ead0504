// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creating and destroying allocations and resources.

use opendxg::uapi::*;
use opendxg::{Pages, Status};

use super::*;

/// Bytes of the allocations that are made here.
const SIZE: u64 = 4096;
/// How many a resource gets.
const COUNT: u32 = 2;

/// Every flag that is accepted; the others are refused.
const KNOWN_FLAGS: u64 = 0x1f_4cf7;

const DEVICE: Field = handle("hDevice", Object::Device);
const RESOURCE: Field = field(
    "hResource",
    Kind::OptionalHandle {
        kind: Object::Resource,
        bad: Status::INVALID_HANDLE,
        zero: None,
    },
);
const GLOBAL_SHARE: Field = output("hGlobalShare");
const TAG: Field = any("hPrivateRuntimeResourceHandle");
const RUNTIME_SIZE: Field = listed(
    "PrivateRuntimeDataSize",
    &[0, 1, 15],
    &[(65537, INVALID), (1 << 31, INVALID), (0xffff_ffff, INVALID)],
);

/// What is wrong in an entry of the array, whatever is made.
const IN_INFO: &[Inside] = &[
    ("Flags", 32, 4, 1 << 3, INVALID),
    ("Flags", 32, 4, 1 << 31, INVALID),
    ("Reserved[0]", 56, 8, 1, INVALID),
    ("Reserved[4]", 88, 8, 1 << 63, INVALID),
    ("PrivateDriverDataSize", 24, 4, 65537, INVALID),
    ("PrivateDriverDataSize", 24, 4, 47, INVALID),
    // An address is that of memory, flag or not.
    ("pSystemMem", 8, 8, 0x1001, INVALID),
    ("pSystemMem", 8, 8, selftests::memory::UNMAPPED, INVALID),
    ("pPrivateDriverData", 16, 8, 0, FAULT),
    (
        "pPrivateDriverData",
        16,
        8,
        selftests::memory::UNMAPPED,
        FAULT,
    ),
];

const fn infos(inside: &'static [Inside]) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 96,
        count_at: Some(44),
        writes: true,
        null: Some(INVALID),
        inside,
    });
    field("pAllocationInfo2", kind)
}

const fn create(
    variant: &'static str,
    fields: &'static [Field],
    good: fn(&World, &mut Image) -> TestResult,
) -> Described {
    Described {
        nr: 0x06,
        name: "D3DKMT_CREATEALLOCATION",
        variant,
        fields,
        good,
        status: Status::SUCCESS,
    }
}

const fn destroy(
    variant: &'static str,
    fields: &'static [Field],
    good: fn(&World, &mut Image) -> TestResult,
) -> Described {
    Described {
        nr: 0x13,
        name: "D3DKMT_DESTROYALLOCATION2",
        variant,
        fields,
        good,
        status: Status::SUCCESS,
    }
}

const DESTROY_FLAGS: Field = field(
    "Flags",
    Kind::Flags {
        known: 3,
        accept: &[0, 1, 2, 3],
        refuse: &[],
    },
);

pub(super) const FORMS: &[Described] = &[
    create(
        "resource",
        &[
            DEVICE,
            in_out(RESOURCE),
            GLOBAL_SHARE,
            ignored(12, 4),
            blob("pPrivateRuntimeData", 24, Some(FAULT)),
            RUNTIME_SIZE,
            blob("pPrivateDriverData", 40, Some(FAULT)),
            listed(
                "PrivateDriverDataSize",
                &[0, 1, 7],
                &[(65537, INVALID), (0xffff_ffff, INVALID)],
            ),
            listed(
                "NumAllocations",
                &[0, 1],
                &[(4097, INVALID), (1 << 31, INVALID), (0xffff_ffff, INVALID)],
            ),
            infos(IN_INFO),
            in_out(field(
                "Flags",
                Kind::Flags {
                    known: KNOWN_FLAGS,
                    accept: &[
                        0x1, 0x3, 0x5, 0x7, 0x13, 0x43, 0x81, 0x401, 0x801, 0x4001, 0x4_0001,
                        0x8_0001, 0x10_0001,
                    ],
                    // Sharing without what it needs, standard allocations of no type.
                    refuse: &[0x2, 0x41, 0x42, 0x21, 0x2_0001, 0x3_0021, KNOWN_FLAGS],
                },
            )),
            TAG,
        ],
        |world, image| {
            image.put32(0, world.device.handle().0);
            image.point(16, &[1; 16])?;
            image.put32(24, 16);
            image.point(32, &[2; 8])?;
            image.put32(40, 8);
            image.put32(44, COUNT);
            let entries = entries(image)?;
            image.point(48, &entries)?;
            image.put32(56, D3DKMT_CREATEALLOCATIONFLAGS_CreateResource);
            Ok(())
        },
    ),
    create(
        "existing memory",
        &[
            DEVICE,
            in_out(RESOURCE),
            GLOBAL_SHARE,
            ignored(12, 4),
            blob("pPrivateRuntimeData", 24, Some(FAULT)),
            RUNTIME_SIZE,
            field(
                "pStandardAllocation",
                Kind::Memory(Memory {
                    unit: 24,
                    count_at: None,
                    writes: false,
                    null: Some(INVALID),
                    inside: &[
                        ("Type", 0, 4, 0, INVALID),
                        ("Type", 0, 4, 2, INVALID),
                        ("Type", 0, 4, 0xffff_ffff, INVALID),
                        ("Size", 8, 8, 0, INVALID),
                        ("Size", 8, 8, 0x1100, INVALID),
                        ("Size", 8, 8, 4095, INVALID),
                        ("Flags", 16, 4, 1, INVALID),
                        ("Flags", 16, 4, 1 << 31, INVALID),
                    ],
                }),
            ),
            listed(
                "PrivateDriverDataSize",
                &[0],
                &[(1, INVALID), (0xffff_ffff, INVALID)],
            ),
            listed(
                "NumAllocations",
                &[],
                &[(0, INVALID), (2, INVALID), (0xffff_ffff, INVALID)],
            ),
            infos(&[
                ("Flags", 32, 4, 1 << 3, INVALID),
                ("Reserved[2]", 72, 8, 1, INVALID),
                ("PrivateDriverDataSize", 24, 4, 65537, INVALID),
                ("pSystemMem", 8, 8, 0, INVALID),
                ("pSystemMem", 8, 8, 0x1001, INVALID),
            ]),
            in_out(field(
                "Flags",
                Kind::Flags {
                    known: KNOWN_FLAGS,
                    accept: &[0x1_0021, 0x1_0023, 0x1_0063, 0x1_00a1],
                    refuse: &[0x1_0001, 0x21, 0x3_0021, 0x2_0021, 0x1_0061],
                },
            )),
            TAG,
        ],
        |world, image| {
            let pages = Pages::new(SIZE as usize)?;
            image.put32(0, world.device.handle().0);
            image.point(16, &[1; 16])?;
            image.put32(24, 16);
            let mut standard = [0; 24];
            standard[0] = 1;
            standard[8..16].copy_from_slice(&SIZE.to_ne_bytes());
            image.point(32, &standard)?;
            image.put32(44, 1);
            let mut info = [0; 96];
            info[8..16].copy_from_slice(&(pages.as_ptr() as u64).to_ne_bytes());
            // One more than there may be.
            image.point(48, &info.repeat(2))?;
            image.put32(56, 0x1_0021);
            image.keep_memory(pages);
            Ok(())
        },
    ),
    create(
        "cross-adapter",
        &[
            DEVICE,
            in_out(RESOURCE),
            GLOBAL_SHARE,
            ignored(12, 4),
            blob("pPrivateRuntimeData", 24, Some(FAULT)),
            RUNTIME_SIZE,
            field(
                "pStandardAllocation",
                Kind::Memory(Memory {
                    unit: 24,
                    count_at: None,
                    writes: false,
                    null: Some(INVALID),
                    inside: &[
                        ("Type", 0, 4, 0, INVALID),
                        ("Type", 0, 4, 1, INVALID),
                        ("Type", 0, 4, 0xffff_ffff, INVALID),
                        ("Size", 8, 8, 0, INVALID),
                        ("Size", 8, 8, 0x1100, INVALID),
                        ("Size", 8, 8, 4095, INVALID),
                        ("Flags", 16, 4, 1, INVALID),
                        ("Flags", 16, 4, 1 << 31, INVALID),
                    ],
                }),
            ),
            listed(
                "PrivateDriverDataSize",
                &[0],
                &[(1, INVALID), (0xffff_ffff, INVALID)],
            ),
            listed(
                "NumAllocations",
                &[],
                &[(0, INVALID), (2, INVALID), (0xffff_ffff, INVALID)],
            ),
            infos(&[
                ("Flags", 32, 4, 1 << 3, INVALID),
                ("Reserved[2]", 72, 8, 1, INVALID),
                ("PrivateDriverDataSize", 24, 4, 65537, INVALID),
                ("pSystemMem", 8, 8, 0x1000, INVALID),
                ("pSystemMem", 8, 8, 1, INVALID),
            ]),
            in_out(field(
                "Flags",
                Kind::Flags {
                    known: KNOWN_FLAGS,
                    accept: &[0x1_0001, 0x1_0003, 0x1_0043, 0x1_0801],
                    refuse: &[0x1_0021, 0x3_0001, 0x3_0021, 0x1_0041],
                },
            )),
            TAG,
        ],
        |world, image| {
            image.put32(0, world.device.handle().0);
            image.point(16, &[1; 16])?;
            image.put32(24, 16);
            let mut standard = [0; 24];
            standard[0] = D3DKMT_STANDARDALLOCATIONTYPE_CROSSADAPTER as u8;
            standard[8..16].copy_from_slice(&SIZE.to_ne_bytes());
            image.point(32, &standard)?;
            image.put32(44, 1);
            // One more than there may be.
            image.point(48, &[0; 2 * 96])?;
            image.put32(56, 0x1_0001);
            Ok(())
        },
    ),
    destroy(
        "resource",
        &[
            DEVICE,
            field(
                "hResource",
                Kind::OptionalHandle {
                    kind: Object::Resource,
                    bad: INVALID,
                    // Nothing is asked for then.
                    zero: None,
                },
            ),
            any("phAllocationList"),
            listed("AllocationCount", &[0, 1, 0xffff_ffff], &[]),
            DESTROY_FLAGS,
        ],
        |world, image| {
            let resource = world.device.new_resource().linear(SIZE).create()?;
            image.put32(0, world.device.handle().0);
            image.put32(4, resource.handle().0);
            image.keep(resource);
            Ok(())
        },
    ),
    destroy(
        "list",
        &[
            DEVICE,
            field(
                "hResource",
                Kind::OptionalHandle {
                    kind: Object::Resource,
                    bad: INVALID,
                    zero: None,
                },
            ),
            field(
                "phAllocationList",
                Kind::HandleArray {
                    count_at: 16,
                    kind: Object::Allocation,
                },
            ),
            listed(
                "AllocationCount",
                &[0, 1],
                &[(65537, INVALID), (1 << 30, INVALID), (0xffff_ffff, INVALID)],
            ),
            DESTROY_FLAGS,
        ],
        |world, image| {
            let one = world.device.new_resource().linear(SIZE).create_one()?;
            let other = world.device.new_resource().linear(SIZE).create_one()?;
            let list = [one.handle().0, other.handle().0];
            image.put32(0, world.device.handle().0);
            image.point(8, &list.map(u32::to_ne_bytes).concat())?;
            image.put32(16, 2);
            image.keep(one);
            image.keep(other);
            Ok(())
        },
    ),
];

/// Entries that the software adapter understands.
fn entries(image: &mut Image) -> TestResult<Vec<u8>> {
    let mut data = vec![0; 48];
    data[0..4].copy_from_slice(&OPENDXG_ALLOCATION_MAGIC.to_ne_bytes());
    data[4] = 1;
    data[8..16].copy_from_slice(&SIZE.to_ne_bytes());
    data[16..24].copy_from_slice(&SIZE.to_ne_bytes());
    data[24..32].copy_from_slice(&SIZE.to_ne_bytes());
    data[32] = 1;
    let address = image.place(&data)?;
    let mut info = [0; 96];
    info[16..24].copy_from_slice(&address.to_ne_bytes());
    info[24] = 48;
    Ok(info.repeat(COUNT as usize))
}
