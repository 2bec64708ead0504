// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where allocations may be (MEM-8).

use opendxg::Status;

use super::*;

/// Bytes of the allocation that is changed.
const SIZE: u64 = 4096;

pub(super) const FORMS: &[Described] = &[Described {
    nr: 0x38,
    name: "D3DDDI_UPDATEALLOCPROPERTY",
    variant: "",
    fields: &[
        handle("hPagingQueue", Object::PagingQueue),
        handle("hAllocation", Object::Allocation),
        // Bit n is segment n + 1; the software adapter has two.
        listed(
            "SupportedSegmentSet",
            &[1, 2, 3],
            &[
                (0, INVALID),
                (4, INVALID),
                (7, INVALID),
                (1 << 31, INVALID),
                (0xffff_ffff, INVALID),
            ],
        ),
        // Five of 6 bits each: the segment, and where to begin.
        listed(
            "PreferredSegment",
            &[0, 1, 2, (1 << 5) | 1, (2 << 24) | (1 << 6)],
            &[
                (3, INVALID),
                (31, INVALID),
                (3 << 6, INVALID),
                (31 << 24, INVALID),
                (1 << 30, INVALID),
                (1 << 31, INVALID),
                (0xffff_ffff, INVALID),
            ],
        ),
        field(
            "Flags",
            Kind::Flags {
                known: 3,
                accept: &[0, 1, 2, 3],
                refuse: &[],
            },
        ),
        output("PagingFenceValue"),
        field(
            "PropertyMaskValue",
            Kind::Flags {
                known: 0xf,
                accept: &[0, 1, 2, 4, 8, 0xf],
                refuse: &[],
            },
        ),
    ],
    good: |world, image| {
        let allocation = world.device.new_resource().linear(SIZE).create_one()?;
        image.put32(0, world.handle(Object::PagingQueue));
        image.put32(4, allocation.handle().0);
        image.put32(8, 2);
        image.put32(12, 2);
        image.put32(32, 0xf);
        image.keep(allocation);
        Ok(())
    },
    status: Status::SUCCESS,
}];
