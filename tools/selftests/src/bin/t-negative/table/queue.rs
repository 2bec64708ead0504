// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of the GPU, submissions, and priorities.

use std::sync::atomic::{AtomicU64, Ordering};

use opendxg::Status;

use super::*;

/// Above all valid lengths of commands.
const TOO_LONG: u64 = (16 << 20) + 4;

/// Lengths that no commands have (GPU-6).
const LENGTHS: Field = listed(
    "CommandLength",
    &[],
    &[
        (0, INVALID),
        (1, INVALID),
        (2, INVALID),
        (3, INVALID),
        (5, INVALID),
        (TOO_LONG, INVALID),
        (0x8000_0000, INVALID),
        (0xffff_fffc, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// Addresses that no commands have (GPU-6).
const fn address(name: &'static str) -> Field {
    listed(
        name,
        &[],
        &[
            (1, INVALID),
            (2, INVALID),
            (3, INVALID),
            (u64::MAX - 3, INVALID),
            (u64::MAX, INVALID),
        ],
    )
}

/// Sizes of private data: too large for a call, or larger than what is there.
const DATA_SIZE: Field = listed(
    "PrivateDriverDataSize",
    &[0, 1],
    &[
        (9, FAULT),
        (0x1_0000, FAULT),
        (0x1_0001, INVALID),
        (0xffff_ffff, INVALID),
    ],
);

/// Lists that work with virtual addresses does not have (MEM-92).
const NOT_VIRTUAL: &[(u64, Status)] = &[(1, INVALID), (64, INVALID), (0xffff_ffff, INVALID)];

const PRIVATE_DATA: Field = field("pPrivateDriverData", Kind::Blob);
const PRIVATE_SIZE: Field = field(
    "PrivateDriverDataSize",
    Kind::Values {
        accept: &[0, 1, 8],
        refuse: &[],
    },
);

/// Bits of D3DDDI_CREATEHWQUEUEFLAGS, but for that of queues that processes fill.
const QUEUE_FLAGS: u64 = 0xf;
/// The bit of queues that processes fill.
const USER_MODE: u32 = 1 << 4;
/// The bit that says on return whether the progress fence is native.
const NATIVE_PROGRESS: u64 = 1 << 5;

const CREATE_HW_QUEUE: &[Field] = &[
    handle("hHwContext", Object::HwContext),
    in_out(field(
        "Flags",
        Kind::Flags {
            known: QUEUE_FLAGS | USER_MODE as u64 | NATIVE_PROGRESS,
            accept: &[],
            refuse: &[],
        },
    )),
    PRIVATE_SIZE,
    PRIVATE_DATA,
    made("hHwQueue", Object::HwQueue),
    output("hHwQueueProgressFence"),
    output("HwQueueProgressFenceCPUVirtualAddress"),
    output("HwQueueProgressFenceGPUVirtualAddress"),
];

fn hw_queue(world: &World, image: &mut Image) -> TestResult {
    image.put32(0, world.handle(Object::HwContext));
    image.put32(8, 8);
    image.point(16, &[0; 8])
}

const IN_PROCESS: Field = listed(
    "Priority",
    &[0, 1, 7, 0xffff_ffff, 0xffff_fff9],
    &[
        (8, INVALID),
        (0xffff_fff8, INVALID),
        (0x4000_0000, INVALID),
        (0x7fff_ffff, INVALID),
        (0x8000_0000, INVALID),
    ],
);

/// Only what needs no privilege is accepted here.
const AMONG_ALL: Field = listed(
    "Priority",
    &[0, 0xffff_ffff, 0xffff_fff9, 0x4000_0000],
    &[
        (8, INVALID),
        (0xffff_fff8, INVALID),
        (0x4000_0020, INVALID),
        (0x7fff_ffff, INVALID),
        (0x8000_0000, INVALID),
    ],
);

/// A call on a context of any kind.
const fn on_context(nr: u32, name: &'static str, fields: &'static [Field]) -> Described {
    Described {
        nr,
        name,
        variant: "",
        fields,
        good: |world, image| {
            image.put32(0, world.handle(Object::AnyContext));
            image.put32(4, 0);
            Ok(())
        },
        status: Status::SUCCESS,
    }
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x18,
        name: "D3DKMT_CREATEHWQUEUE",
        variant: "",
        fields: CREATE_HW_QUEUE,
        good: hw_queue,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x18,
        name: "D3DKMT_CREATEHWQUEUE",
        variant: "filled by its process",
        fields: CREATE_HW_QUEUE,
        good: |world, image| {
            image.put32(4, USER_MODE);
            hw_queue(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x1b,
        name: "D3DKMT_DESTROYHWQUEUE",
        variant: "",
        fields: &[handle("hHwQueue", Object::HwQueue)],
        good: |world, image| {
            let context = world.device.create_hw_context(0)?;
            let queue = context.create_hw_queue()?.into_raw();
            image.put32(0, queue.0);
            // The queue ends with it.
            image.keep(context);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x2d,
        name: "D3DKMT_RENDER",
        variant: "",
        fields: &[
            handle("hContext", Object::AnyContext),
            any("CommandOffset"),
            any("CommandLength"),
            listed("AllocationCount", &[0], NOT_VIRTUAL),
            listed("PatchLocationCount", &[0], NOT_VIRTUAL),
            any("pNewCommandBuffer"),
            any("NewCommandBufferSize"),
            any("pNewAllocationList"),
            any("NewAllocationListSize"),
            any("pNewPatchLocationList"),
            any("NewPatchLocationListSize"),
            field(
                "Flags",
                Kind::Flags {
                    known: 0x7f,
                    accept: &[],
                    refuse: &[],
                },
            ),
            any("PresentHistoryToken"),
            // Of the context that is there once.
            listed(
                "BroadcastContextCount",
                &[0],
                &[
                    (2, INVALID),
                    (64, INVALID),
                    (65, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            placed(84, 4, handle("BroadcastContext", Object::AnyContext)),
            ignored(88, 252),
            any("QueuedBufferCount"),
            any("NewCommandBuffer"),
            any("pPrivateDriverData"),
            any("PrivateDriverDataSize"),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::AnyContext));
            image.put32(80, 1);
            image.put32(84, world.handle(Object::AnyContext));
            Ok(())
        },
        status: Status::NOT_SUPPORTED,
    },
    Described {
        nr: 0x0f,
        name: "D3DKMT_SUBMITCOMMAND",
        variant: "",
        fields: &[
            address("Commands"),
            LENGTHS,
            field(
                "Flags",
                Kind::Flags {
                    known: 7,
                    accept: &[0, 1, 2, 4, 7],
                    refuse: &[],
                },
            ),
            any("PresentHistoryToken"),
            listed(
                "BroadcastContextCount",
                &[],
                &[
                    (0, INVALID),
                    (2, INVALID),
                    (64, INVALID),
                    (65, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            placed(28, 4, handle("BroadcastContext", Object::Context)),
            ignored(32, 252),
            blob("pPrivateDriverData", 296, Some(FAULT)),
            DATA_SIZE,
            listed(
                "NumPrimaries",
                &[0],
                &[
                    (2, INVALID),
                    (16, INVALID),
                    (17, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            placed(304, 4, handle("WrittenPrimaries", Object::Allocation)),
            ignored(308, 60),
            listed(
                "NumHistoryBuffers",
                &[],
                &[(1, INVALID), (0xffff_ffff, INVALID)],
            ),
            any("HistoryBufferArray"),
        ],
        good: |world, image| {
            image.put64(0, world.commands.address());
            image.put32(8, world.commands.length());
            image.put32(24, 1);
            image.put32(28, world.handle(Object::Context));
            image.point(288, &[0; 8])?;
            image.put32(296, 8);
            image.put32(300, 1);
            image.put32(304, world.handle(Object::Allocation));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x34,
        name: "D3DKMT_SUBMITCOMMANDTOHWQUEUE",
        variant: "",
        fields: &[
            handle("hHwQueue", Object::HwQueue),
            // A progress fence only goes up (FEN-126).
            listed("HwQueueProgressFenceId", &[], &[(0, INVALID)]),
            address("CommandBuffer"),
            LENGTHS,
            DATA_SIZE,
            blob("pPrivateDriverData", 28, Some(FAULT)),
            listed(
                "NumPrimaries",
                &[0],
                &[
                    (17, INVALID),
                    (0x4000_0000, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            field(
                "WrittenPrimaries",
                Kind::HandleArray {
                    count_at: 40,
                    kind: Object::Allocation,
                },
            ),
        ],
        good: |world, image| {
            static PROGRESS: AtomicU64 = AtomicU64::new(1);
            image.put32(0, world.handle(Object::HwQueue));
            image.put64(8, PROGRESS.fetch_add(1, Ordering::Relaxed));
            image.put64(16, world.commands.address());
            image.put32(24, world.commands.length());
            image.put32(28, 8);
            image.point(32, &[0; 8])?;
            image.put32(40, 2);
            let allocation = world.handle(Object::Allocation).to_ne_bytes();
            image.point(48, &allocation.repeat(2))
        },
        status: Status::SUCCESS,
    },
    on_context(
        0x30,
        "D3DKMT_SETCONTEXTSCHEDULINGPRIORITY",
        &[handle("hContext", Object::AnyContext), AMONG_ALL],
    ),
    on_context(
        0x22,
        "D3DKMT_GETCONTEXTSCHEDULINGPRIORITY",
        &[handle("hContext", Object::AnyContext), output("Priority")],
    ),
    on_context(
        0x2f,
        "D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY",
        &[handle("hContext", Object::AnyContext), IN_PROCESS],
    ),
    on_context(
        0x21,
        "D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY",
        &[handle("hContext", Object::AnyContext), output("Priority")],
    ),
    Described {
        nr: 0x26,
        name: "D3DKMT_MARKDEVICEASERROR",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            listed(
                "Reason",
                &[0x8000_0006],
                &[
                    (0, INVALID),
                    (1, INVALID),
                    (6, INVALID),
                    (0x8000_0001, INVALID),
                    (0x8000_0007, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
        ],
        good: |world, image| {
            let device = world.adapter.create_device()?;
            image.put32(0, device.handle().0);
            image.put32(4, 0x8000_0000);
            image.keep(device);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
