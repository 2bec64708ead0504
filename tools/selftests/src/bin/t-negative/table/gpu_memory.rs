// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paging queues, residency and GPU virtual addresses.

use opendxg::uapi::*;
use opendxg::{Adapter, GpuReserve, Reservation, ResidentFlags, Status};
use selftests::gpu::{BLOCK, PAGE};

use super::*;

/// Allocations that one call may name (MEM-19).
const MAX: u32 = 16384;

/// Operations of one update.
const MAX_UPDATES: u32 = 4096;

/// An address that the tests reserve only by itself.
const FAR: u64 = 1 << 40;

/// Pages that no address space has.
const HUGE: u64 = 1 << 52;

const QUEUE: Field = handle("hPagingQueue", Object::PagingQueue);
const ADAPTER: Field = handle("hAdapter", Object::Adapter);
const DEVICE: Field = handle("hDevice", Object::Device);
const COUNT: Field = field("NumAllocations", Kind::Count { max: MAX });
const LIST: Field = field(
    "AllocationList",
    Kind::HandleArray {
        count_at: 4,
        kind: Object::Allocation,
    },
);

/// Addresses that are no multiple of what they have to be, or where nobody may be (MEM-40).
const BAD_BASES: &[(u64, Status)] = &[
    (1, INVALID),
    (PAGE - 1, INVALID),
    (PAGE, INVALID),
    (BLOCK - PAGE, INVALID),
    (FAR + 1, INVALID),
    (FAR + PAGE / 2, INVALID),
    (1 << 63, INVALID),
    (!(BLOCK - 1), INVALID),
    (u64::MAX, INVALID),
];

/// Bounds that are no multiple of what they have to be, or leave nothing.
const BAD_MINIMA: &[(u64, Status)] = &[
    (1, INVALID),
    (PAGE / 2, INVALID),
    (FAR + 1, INVALID),
    (u64::MAX, INVALID),
    (1 << 63, Status::NO_MEMORY),
];
const BAD_MAXIMA: &[(u64, Status)] = &[
    (1, INVALID),
    (PAGE / 2, INVALID),
    (FAR + 1, INVALID),
    (u64::MAX, INVALID),
    (BLOCK, Status::NO_MEMORY),
];

const BASE: Field = listed("BaseAddress", &[FAR], BAD_BASES);
const MINIMUM: Field = listed("MinimumAddress", &[BLOCK, FAR], BAD_MINIMA);
const MAXIMUM: Field = listed("MaximumAddress", &[FAR, 1 << 63], BAD_MAXIMA);

/// Sizes of reservations.
const SIZE: Field = listed(
    "Size",
    &[2 * BLOCK],
    &[
        (0, INVALID),
        (1, INVALID),
        (PAGE, INVALID),
        (BLOCK + PAGE, INVALID),
        (u64::MAX, INVALID),
        (1 << 63, Status::NO_MEMORY),
    ],
);

/// New addresses; `size_at` is where their size is, in units of so many bytes.
const fn range(size_at: usize, unit: u64) -> Field {
    field(
        "VirtualAddress",
        Kind::Output(Made::Range { size_at, unit }),
    )
}

/// Addresses that are freed when the argument is not used any more.
struct Reserved {
    adapter: Adapter,
    address: u64,
}

impl Reserved {
    fn new(world: &World) -> TestResult<Self> {
        let reserve = GpuReserve {
            size: BLOCK,
            kind: Reservation::Zero,
            ..GpuReserve::default()
        };
        Ok(Self {
            adapter: world.adapter.clone(),
            address: world.gpu.paging().reserve(&reserve)?.address,
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // The call under test may have freed all or a part of them.
        for page in 0..BLOCK / PAGE {
            let _ = self
                .adapter
                .free_gpu_range(self.address + page * PAGE, PAGE);
        }
    }
}

/// Two mentions of an allocation of its own.
fn mentions(world: &World, image: &mut Image) -> TestResult<opendxg::Allocation> {
    let allocation = world.device.new_resource().linear(PAGE).create_one()?;
    image.put32(4, 2);
    image.point(8, &allocation.handle().0.to_ne_bytes().repeat(2))?;
    Ok(allocation)
}

/// UpdateGpuVirtualAddress with one operation of a kind.
const fn update(
    variant: &'static str,
    fields: &'static [Field],
    good: fn(&World, &mut Image) -> TestResult,
) -> Described {
    Described {
        nr: 0x39,
        name: "D3DKMT_UPDATEGPUVIRTUALADDRESS",
        variant,
        fields,
        good,
        status: Status::SUCCESS,
    }
}

/// Its fields; `inside` is what can be wrong with the operation.
const fn update_fields(inside: &'static [Inside]) -> [Field; 9] {
    [
        DEVICE,
        handle("hContext", Object::AnyContext),
        handle("hFenceObject", Object::Fence),
        field("NumOperations", Kind::Count { max: MAX_UPDATES }),
        field(
            "Operations",
            Kind::Memory(Memory {
                unit: 64,
                count_at: Some(12),
                writes: false,
                null: Some(INVALID),
                inside,
            }),
        ),
        field("Reserved0", Kind::Reserved),
        field("Reserved1", Kind::Reserved),
        // What is not reached yet would be waited for.
        listed("FenceValue", &[0], &[]),
        field(
            "Flags",
            Kind::Flags {
                known: 1,
                accept: &[0, 1],
                refuse: &[],
            },
        ),
    ]
}

/// Wrong values that a map has.
const MAP: &[Inside] = &[
    ("type", 0, 4, 4, INVALID),
    ("type", 0, 4, 0xffff_ffff, INVALID),
    ("address", 8, 8, 0, INVALID),
    ("address", 8, 8, 1, INVALID),
    ("address that is not reserved", 8, 8, FAR, INVALID),
    ("address", 8, 8, !(PAGE - 1), INVALID),
    ("size", 16, 8, 0, INVALID),
    ("size", 16, 8, 1, INVALID),
    ("size", 16, 8, FAR, INVALID),
    ("size", 16, 8, !(PAGE - 1), INVALID),
    ("allocation", 24, 4, 0, INVALID),
    ("allocation", 24, 4, 1, INVALID),
    ("allocation", 24, 4, 0xffff_ffff, INVALID),
    ("offset", 32, 8, 1, INVALID),
    ("offset", 32, 8, PAGE, INVALID),
    ("offset", 32, 8, !(PAGE - 1), INVALID),
    ("part", 40, 8, 1, INVALID),
    ("part", 40, 8, 2 * PAGE, INVALID),
    ("part", 40, 8, !(PAGE - 1), INVALID),
];

/// Wrong values that a map with a protection has.
const MAP_PROTECT: &[Inside] = &[
    ("address", 8, 8, 1, INVALID),
    ("address that is not reserved", 8, 8, FAR, INVALID),
    ("size", 16, 8, 0, INVALID),
    ("size", 16, 8, FAR, INVALID),
    ("allocation", 24, 4, 0, INVALID),
    ("offset", 32, 8, PAGE, INVALID),
    ("part", 40, 8, 2 * PAGE, INVALID),
    ("protection", 48, 8, 4, INVALID),
    ("protection", 48, 8, 8, INVALID),
    ("protection", 48, 8, 12, INVALID),
    ("protection", 48, 8, 16, INVALID),
    ("protection", 48, 8, 1 << 63, INVALID),
];

/// Wrong values that an unmap has.
const UNMAP: &[Inside] = &[
    ("address", 8, 8, 0, INVALID),
    ("address", 8, 8, 1, INVALID),
    ("address that is not reserved", 8, 8, FAR, INVALID),
    ("size", 16, 8, 0, INVALID),
    ("size", 16, 8, 1, INVALID),
    ("size", 16, 8, FAR, INVALID),
    ("protection", 24, 8, 0, INVALID),
    ("protection", 24, 8, 1, INVALID),
    ("protection", 24, 8, 12, INVALID),
    ("protection", 24, 8, 16, INVALID),
    ("protection", 24, 8, 1 << 63, INVALID),
];

/// Wrong values that a copy has.
const COPY: &[Inside] = &[
    ("source", 8, 8, 0, INVALID),
    ("source", 8, 8, 1, INVALID),
    ("source that is not reserved", 8, 8, FAR, INVALID),
    ("size", 16, 8, 0, INVALID),
    ("size", 16, 8, 1, INVALID),
    ("size", 16, 8, FAR, INVALID),
    ("destination", 24, 8, 0, INVALID),
    ("destination", 24, 8, 1, INVALID),
    ("destination that is not reserved", 24, 8, FAR, INVALID),
];

/// An update of one operation: its type, and its words in the order of the struct, from the
/// address of the reserved range.
fn operation(
    world: &World,
    image: &mut Image,
    kind: u32,
    words: fn(&World, u64) -> [u64; 7],
) -> TestResult {
    let range = Reserved::new(world)?;
    // One of the call's own would end a moment after its signal.
    let fence = &world.settled;
    fence.signal_rewind(0)?;
    let mut bytes = u64::from(kind).to_ne_bytes().to_vec();
    for word in words(world, range.address) {
        bytes.extend(word.to_ne_bytes());
    }
    image.put32(0, world.device.handle().0);
    image.put32(4, world.handle(Object::AnyContext));
    image.put32(8, fence.handle().0);
    image.put32(12, 1);
    image.point(16, &bytes)?;
    // Done is what has signalled the next value.
    let done = fence.handle();
    let (device, raw) = (world.device.handle(), selftests::fixture::raw()?);
    image.settles(move || {
        let (handle, value) = ([done.0], [1u64]);
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
            hDevice: device.0,
            ObjectCount: 1,
            ObjectHandleArray: handle.as_ptr() as u64,
            FenceValueArray: value.as_ptr() as u64,
            ..Default::default()
        };
        selftests::call::succeeds(&raw, &mut arg)
    });
    image.keep(range);
    Ok(())
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x07,
        name: "D3DKMT_CREATEPAGINGQUEUE",
        variant: "",
        fields: &[
            DEVICE,
            listed(
                "Priority",
                &[1, 0xffff_ffff],
                &[
                    (2, INVALID),
                    (0xffff_fffe, INVALID),
                    (0x7fff_ffff, INVALID),
                    (0x8000_0000, INVALID),
                ],
            ),
            made("hPagingQueue", Object::PagingQueue),
            output("hSyncObject"),
            output("FenceValueCPUVirtualAddress"),
            below("PhysicalAdapterIndex", Limit::One),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x1c,
        name: "D3DDDI_DESTROYPAGINGQUEUE",
        variant: "",
        fields: &[QUEUE],
        good: |world, image| {
            let queue = world.device.create_paging_queue()?;
            image.put32(0, queue.handle().0);
            image.keep(queue);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x0b,
        name: "D3DDDI_MAKERESIDENT",
        variant: "",
        fields: &[
            QUEUE,
            in_out(COUNT),
            LIST,
            any("PriorityList"),
            field(
                "Flags",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 3],
                    refuse: &[2],
                },
            ),
            output("PagingFenceValue"),
            output("NumBytesToTrim"),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::PagingQueue));
            let allocation = mentions(world, image)?;
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x1e,
        name: "D3DKMT_EVICT",
        variant: "",
        fields: &[
            DEVICE,
            COUNT,
            LIST,
            field(
                "Flags",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[],
                },
            ),
            output("NumBytesToTrim"),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            let allocation = mentions(world, image)?;
            let both = [&allocation, &allocation];
            let paging = world.gpu.paging();
            let resident = paging.make_resident(&both, ResidentFlags::empty())?;
            paging.wait(resident.value()?)?;
            image.keep(allocation);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x08,
        name: "D3DDDI_RESERVEGPUVIRTUALADDRESS",
        variant: "paging queue",
        fields: &[
            QUEUE,
            BASE,
            MINIMUM,
            MAXIMUM,
            SIZE,
            listed(
                "ReservationType",
                &[1],
                &[(2, INVALID), (3, INVALID), (0xffff_ffff, INVALID)],
            ),
            any("DriverProtection"),
            range(32, 1),
            output("PagingFenceValue"),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::PagingQueue));
            image.put64(32, BLOCK);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x08,
        name: "D3DDDI_RESERVEGPUVIRTUALADDRESS",
        variant: "adapter",
        fields: &[
            // What else it may not be the other form has.
            listed(
                "hAdapter",
                &[],
                &[(0, INVALID), (1, INVALID), (0xffff_ffff, INVALID)],
            ),
            BASE,
            MINIMUM,
            MAXIMUM,
            SIZE,
            field("Reserved0", Kind::Reserved),
            field("Reserved1", Kind::Reserved),
            range(32, 1),
            in_out(field("Reserved2", Kind::Reserved)),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::Adapter));
            image.put64(32, BLOCK);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x0c,
        name: "D3DDDI_MAPGPUVIRTUALADDRESS",
        variant: "allocation",
        fields: &[
            QUEUE,
            BASE,
            MINIMUM,
            MAXIMUM,
            handle("hAllocation", Object::Allocation),
            listed(
                "OffsetInPages",
                &[1],
                &[
                    (2, INVALID),
                    (HUGE, INVALID),
                    (1 << 63, INVALID),
                    (u64::MAX, INVALID),
                ],
            ),
            listed(
                "SizeInPages",
                &[2],
                &[
                    (0, INVALID),
                    (3, INVALID),
                    (HUGE, INVALID),
                    (1 << 63, INVALID),
                    (u64::MAX, INVALID),
                ],
            ),
            field(
                "Protection",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[5, 9, 12],
                },
            ),
            any("DriverProtection"),
            field("Reserved0", Kind::Reserved),
            field("Reserved1", Kind::Reserved),
            range(48, PAGE),
            output("PagingFenceValue"),
        ],
        good: |world, image| {
            // Of two pages.
            let allocation = &world.resource.allocations()[1];
            image.put32(0, world.handle(Object::PagingQueue));
            image.put32(32, allocation.handle().0);
            image.put64(48, 1);
            image.put64(56, 1);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x0c,
        name: "D3DDDI_MAPGPUVIRTUALADDRESS",
        variant: "nothing",
        fields: &[
            QUEUE,
            BASE,
            MINIMUM,
            MAXIMUM,
            listed("hAllocation", &[], &[(1, INVALID), (0xffff_ffff, INVALID)]),
            listed("OffsetInPages", &[1], &[(u64::MAX, INVALID)]),
            listed(
                "SizeInPages",
                &[16],
                &[
                    (0, INVALID),
                    (HUGE, Status::NO_MEMORY),
                    (u64::MAX, Status::NO_MEMORY),
                ],
            ),
            listed(
                "Protection",
                &[4],
                &[
                    (0, INVALID),
                    (1, INVALID),
                    (3, INVALID),
                    (5, INVALID),
                    (9, INVALID),
                    (12, INVALID),
                    (16, INVALID),
                    (24, INVALID),
                    (1 << 63, INVALID),
                ],
            ),
            any("DriverProtection"),
            field("Reserved0", Kind::Reserved),
            field("Reserved1", Kind::Reserved),
            range(48, PAGE),
            output("PagingFenceValue"),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::PagingQueue));
            image.put64(48, 1);
            image.put64(56, 8);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x20,
        name: "D3DKMT_FREEGPUVIRTUALADDRESS",
        variant: "",
        fields: &[
            ADAPTER,
            listed("BaseAddress", &[], BAD_BASES),
            listed(
                "Size",
                &[PAGE],
                &[
                    (0, INVALID),
                    (1, INVALID),
                    (FAR, INVALID),
                    (1 << 63, INVALID),
                    (!(PAGE - 1), INVALID),
                    (u64::MAX, INVALID),
                ],
            ),
        ],
        good: |world, image| {
            let range = Reserved::new(world)?;
            image.put32(0, world.adapter.handle().0);
            image.put64(8, range.address);
            image.put64(16, BLOCK);
            image.keep(range);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    update("map", &update_fields(MAP), |world, image| {
        operation(
            world,
            image,
            D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP,
            |world, at| {
                let allocation = world.handle(Object::Allocation).into();
                [at, PAGE, allocation, 0, PAGE, 0, 0]
            },
        )
    }),
    update(
        "map with a protection",
        &update_fields(MAP_PROTECT),
        |world, image| {
            let kind = D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT;
            operation(world, image, kind, |world, at| {
                let allocation = world.handle(Object::Allocation).into();
                [at, PAGE, allocation, 0, 0, 1, 0]
            })
        },
    ),
    update("unmap", &update_fields(UNMAP), |world, image| {
        let kind = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP;
        operation(world, image, kind, |_, at| [at, PAGE, 8, 0, 0, 0, 0])
    }),
    update("copy", &update_fields(COPY), |world, image| {
        let kind = D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY;
        operation(world, image, kind, |_, at| {
            [at, PAGE, at + PAGE, 0, 0, 0, 0]
        })
    }),
    Described {
        nr: 0x1f,
        name: "D3DKMT_FLUSHHEAPTRANSITIONS",
        variant: "",
        fields: &[ADAPTER],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
