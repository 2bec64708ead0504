// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits and signals that queues do when it is their turn.

use std::os::fd::AsRawFd;

use opendxg::{Status, SyncFlags, SyncKind};

use super::*;
use crate::t_negative::world::VALUE;

/// How many times the fence is in a good list.
const COUNT: usize = 3;

/// Objects one call may name (FEN-18).
const MAX: u32 = 4096;

/// Queues that one call may name (FEN-43).
const MAX_QUEUES: u32 = 64;

const CONTEXT: Field = handle("hContext", Object::Context);
const COUNT_FIELD: Field = field("ObjectCount", Kind::Count { max: MAX });

const fn fences(count_at: usize) -> Field {
    let kind = Object::Fence;
    field("ObjectHandleArray", Kind::HandleArray { count_at, kind })
}

const fn queues(name: &'static str, count_at: usize, kind: Object) -> Field {
    field(name, Kind::HandleArray { count_at, kind })
}

const fn values(name: &'static str, count_at: usize) -> Field {
    field(name, Kind::ValueArray { count_at })
}

/// Flags of a signal of objects: the bit of events is wrong.
const SIGNAL_FLAGS: Field = field(
    "Flags",
    Kind::Flags {
        known: 7,
        accept: &[0, 1, 4, 5],
        refuse: &[2, 3, 6, 7],
    },
);

/// Flags of a signal of an event.
const EVENT_FLAGS: Field = field(
    "Flags",
    Kind::Flags {
        known: 7,
        accept: &[2, 3, 6, 7],
        refuse: &[0, 1, 4, 5],
    },
);

/// With an event there are no objects.
const NO_OBJECTS: Field = listed(
    "ObjectCount",
    &[],
    &[
        (1, INVALID),
        (32, INVALID),
        (4097, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// Objects that are in the struct: the second one is missing.
const INLINE_COUNT: Field = listed(
    "ObjectCount",
    &[],
    &[
        (0, INVALID),
        (2, INVALID),
        (32, INVALID),
        (33, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// Contexts besides the first that are in the struct: the second one is missing.
const INLINE_CONTEXTS: Field = listed(
    "BroadcastContextCount",
    &[0],
    &[
        (2, INVALID),
        (64, INVALID),
        (65, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

const EVENT: Kind = Kind::Event {
    zero: Some(Status::INVALID_HANDLE),
};

/// The fence several times, with its present value: a signal changes nothing, a wait is satisfied.
fn lists(world: &World, image: &mut Image, handles_at: usize, values_at: usize) -> TestResult {
    image.point(
        handles_at,
        &world.fence.handle().0.to_ne_bytes().repeat(COUNT),
    )?;
    image.point(values_at, &VALUE.to_ne_bytes().repeat(COUNT))
}

/// A legacy fence of its own with the highest value, in a struct that holds handles.
fn inline(world: &World, image: &mut Image) -> TestResult {
    let kind = SyncKind::Fence {
        initial_value: u64::MAX,
    };
    let fence = world.device.create_sync_object(kind, SyncFlags::empty())?;
    image.put32(0, world.handle(Object::Context));
    image.put32(4, 1);
    image.put32(8, fence.handle().0);
    image.keep(fence);
    Ok(())
}

/// A call of one context with lists.
fn in_context(world: &World, image: &mut Image) -> TestResult {
    image.put32(0, world.handle(Object::Context));
    image.put32(4, COUNT as u32);
    lists(world, image, 8, 16)
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x11,
        name: "D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2",
        variant: "object",
        fields: &[
            CONTEXT,
            INLINE_COUNT,
            placed(8, 4, handle("ObjectHandleArray", Object::Sync)),
            ignored(12, 124),
            SIGNAL_FLAGS,
            INLINE_CONTEXTS,
            placed(144, 4, handle("BroadcastContext", Object::Context)),
            ignored(148, 252),
            any("Fence"),
            ignored(408, 56),
        ],
        good: |world, image| {
            image.put32(140, 1);
            image.put32(144, world.gpu.context().handle().0);
            inline(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x11,
        name: "D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2",
        variant: "event",
        fields: &[
            CONTEXT,
            NO_OBJECTS,
            ignored(8, 128),
            EVENT_FLAGS,
            INLINE_CONTEXTS,
            placed(144, 4, handle("BroadcastContext", Object::Context)),
            ignored(148, 252),
            field("CpuEventHandle", EVENT),
            ignored(408, 56),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::Context));
            image.put32(136, 2);
            image.put32(140, 1);
            image.put32(144, world.gpu.context().handle().0);
            image.put64(400, world.event.as_raw_fd() as u64);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x12,
        name: "D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2",
        variant: "",
        fields: &[
            CONTEXT,
            INLINE_COUNT,
            placed(8, 4, handle("ObjectHandleArray", Object::Sync)),
            ignored(12, 124),
            any("Fence"),
            ignored(144, 56),
        ],
        good: inline,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x32,
        name: "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU",
        variant: "",
        fields: &[
            CONTEXT,
            COUNT_FIELD,
            fences(4),
            values("MonitoredFenceValueArray", 4),
            ignored(24, 56),
        ],
        good: in_context,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x3b,
        name: "D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU",
        variant: "",
        fields: &[
            CONTEXT,
            COUNT_FIELD,
            fences(4),
            values("MonitoredFenceValueArray", 4),
            ignored(24, 56),
        ],
        good: in_context,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x33,
        name: "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2",
        variant: "objects",
        fields: &[
            COUNT_FIELD,
            fences(0),
            SIGNAL_FLAGS,
            field("BroadcastContextCount", Kind::Count { max: MAX_QUEUES }),
            queues("BroadcastContextArray", 20, Object::Context),
            values("MonitoredFenceValueArray", 0),
            ignored(40, 56),
        ],
        good: |world, image| {
            image.put32(0, COUNT as u32);
            broadcast(world, image)?;
            lists(world, image, 8, 32)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x33,
        name: "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2",
        variant: "event",
        fields: &[
            NO_OBJECTS,
            any("ObjectHandleArray"),
            EVENT_FLAGS,
            field("BroadcastContextCount", Kind::Count { max: MAX_QUEUES }),
            queues("BroadcastContextArray", 20, Object::Context),
            field("CpuEventHandle", EVENT),
            ignored(40, 56),
        ],
        good: |world, image| {
            image.put32(16, 2);
            broadcast(world, image)?;
            image.put64(32, world.event.as_raw_fd() as u64);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x35,
        name: "D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE",
        variant: "",
        fields: &[
            SIGNAL_FLAGS,
            field("BroadcastHwQueueCount", Kind::Count { max: MAX_QUEUES }),
            queues("BroadcastHwQueueArray", 4, Object::HwQueue),
            COUNT_FIELD,
            fences(16),
            values("FenceValueArray", 16),
        ],
        good: |world, image| {
            image.put32(4, 1);
            image.point(8, &world.handle(Object::HwQueue).to_ne_bytes())?;
            image.put32(16, COUNT as u32);
            lists(world, image, 24, 32)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x36,
        name: "D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE",
        variant: "",
        fields: &[
            handle("hHwQueue", Object::HwQueue),
            COUNT_FIELD,
            fences(4),
            values("FenceValueArray", 4),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::HwQueue));
            image.put32(4, COUNT as u32);
            lists(world, image, 8, 16)
        },
        status: Status::SUCCESS,
    },
];

/// Both contexts, for a call that has an array of them.
fn broadcast(world: &World, image: &mut Image) -> TestResult {
    let contexts = [&world.context, world.gpu.context()];
    let contexts = contexts.map(|context| context.handle().0.to_ne_bytes());
    image.put32(20, 2);
    image.point(24, &contexts.concat())
}
