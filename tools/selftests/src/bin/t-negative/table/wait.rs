// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU waits and signals.

use std::os::fd::AsRawFd;

use opendxg::{Access, Status};

use super::*;
use crate::t_negative::world::VALUE;

/// How many times the fence is in a good list.
const COUNT: usize = 3;

/// Objects one call may name (FEN-18).
const MAX: u32 = 4096;

const COUNT_FIELD: Field = field("ObjectCount", Kind::Count { max: MAX });
const HANDLES: Field = field(
    "ObjectHandleArray",
    Kind::HandleArray {
        count_at: 4,
        kind: Object::Fence,
    },
);
const VALUES: Field = field("FenceValueArray", Kind::ValueArray { count_at: 4 });

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x31,
        name: "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            COUNT_FIELD,
            HANDLES,
            VALUES,
            field(
                "Flags",
                Kind::Flags {
                    known: 4,
                    accept: &[0, 4],
                    refuse: &[1, 2, 3, 5, 6, 7],
                },
            ),
        ],
        good: lists,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x3a,
        name: "D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            COUNT_FIELD,
            HANDLES,
            VALUES,
            field("hAsyncEvent", Kind::Event { zero: None }),
            field(
                "Flags",
                Kind::Flags {
                    known: 1,
                    accept: &[0, 1],
                    refuse: &[],
                },
            ),
        ],
        good: |world, image| {
            image.put64(24, world.event.as_raw_fd() as u64);
            lists(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xb8,
        name: "opendxg_fence_point",
        variant: "",
        fields: &[
            handle("sync_object", Object::Fence),
            field(
                "flags",
                Kind::Flags {
                    known: 0,
                    accept: &[0],
                    refuse: &[],
                },
            ),
            any("value"),
            field("fd", Kind::Output(Made::Descriptor)),
            field("reserved", Kind::Reserved),
        ],
        good: |world, image| {
            image.put32(0, world.fence.handle().0);
            image.put64(8, VALUE);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xb9,
        name: "opendxg_fence_stream",
        variant: "",
        fields: &[
            handle("sync_object", Object::Fence),
            field(
                "flags",
                Kind::Flags {
                    known: 0,
                    accept: &[0],
                    refuse: &[],
                },
            ),
            any("value"),
            field("fd", Kind::Output(Made::Descriptor)),
            field("reserved", Kind::Reserved),
        ],
        good: |world, image| {
            image.put32(0, world.fence.handle().0);
            image.put64(8, VALUE);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xba,
        name: "opendxg_signal_on_event",
        variant: "",
        fields: &[
            handle("sync_object", Object::Fence),
            field(
                "flags",
                Kind::Flags {
                    known: 1,
                    accept: &[0, 1],
                    refuse: &[],
                },
            ),
            any("value"),
            field(
                "event",
                Kind::Event {
                    zero: Some(Status::INVALID_HANDLE),
                },
            ),
        ],
        good: |world, image| {
            image.put32(0, world.by_event.handle().0);
            image.put64(8, VALUE);
            // The fence is signalled at once, so that nothing is left.
            image.put64(16, world.signalled.as_raw_fd() as u64);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xbb,
        name: "opendxg_signal_nt",
        variant: "on an NT handle",
        fields: &[
            listed(
                "value",
                &[VALUE, u64::MAX],
                &[(VALUE - 1, INVALID), (0, INVALID)],
            ),
            field(
                "flags",
                Kind::Flags {
                    known: 1,
                    accept: &[0, 1],
                    refuse: &[],
                },
            ),
            field("reserved", Kind::Reserved),
        ],
        good: |world, image| on_own_handle(world, image, Access::SIGNAL),
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xbc,
        name: "opendxg_wait_nt",
        variant: "on an NT handle",
        fields: &[
            listed("value", &[0, VALUE], &[]),
            any("deadline"),
            field(
                "flags",
                Kind::Flags {
                    known: 1,
                    accept: &[0, 1],
                    refuse: &[],
                },
            ),
            field("reserved", Kind::Reserved),
        ],
        good: |world, image| on_own_handle(world, image, Access::WAIT),
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xbd,
        name: "opendxg_value_nt",
        variant: "on an NT handle",
        fields: &[output("value")],
        good: |world, image| on_own_handle(world, image, Access::READ_CONTROL),
        status: Status::SUCCESS,
    },
];

/// An NT handle of a fence of its own, and its value.
fn on_own_handle(world: &World, image: &mut Image, access: Access) -> TestResult {
    let fence = world.device.create_shareable_fence(VALUE)?;
    image.put64(0, VALUE);
    image.on(fence.share(access)?.into());
    Ok(())
}

/// The fence several times, with its present value: a signal changes nothing, a wait is satisfied.
fn lists(world: &World, image: &mut Image) -> TestResult {
    image.put32(0, world.device.handle().0);
    image.put32(4, COUNT as u32);
    image.point(8, &world.fence.handle().0.to_ne_bytes().repeat(COUNT))?;
    image.point(16, &VALUE.to_ne_bytes().repeat(COUNT))
}
