// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creating and destroying synchronisation objects: one form for each type.

use std::os::fd::AsRawFd;

use opendxg::uapi::*;
use opendxg::Status;

use super::*;

const DEVICE: Field = handle("hDevice", Object::Device);
/// SharedHandle is written only for shared objects.
const SHARED_HANDLE: Field = field("Info.SharedHandle", Kind::Ignored);
/// Belongs to Info.
const GAP_AFTER: Field = ignored(84, 4);
const MADE: Field = made("hSyncObject", Object::Sync);

/// The type of a form. Each unknown number is refused; other types are other forms.
const TYPE: Field = field(
    "Info.Type",
    Kind::Enum {
        unknown: &[0, 7, 8, 9, 0x8000_0005, u32::MAX],
        unsupported: &[],
    },
);

/// Flags of mutexes, semaphores and legacy fences: Shared, NtSecuritySharing, NoGPUAccess.
const LEGACY_FLAGS: Field = flags(
    &[0x80],
    &[
        0x2, 0x4, 0x7, 0x8, 0x10, 0x20, 0x30, 0x40, 0x100, 0x101, 0x103, 0x108,
    ],
);

/// Flags of fences with a value.
const FENCE_FLAGS: Field = flags(
    &[0x8, 0x10, 0x20, 0x40, 0x80, 0xc8],
    &[0x1, 0x2, 0x4, 0x5, 0x6, 0x30, 0x33, 0x100, 0x103],
);

/// Flags of CPU notifications; SignalByKmd alone is another matter (not enabled here).
const EVENT_FLAGS: Field = flags(
    &[0x80],
    &[
        0x1, 0x2, 0x3, 0x4, 0x8, 0x10, 0x20, 0x30, 0x40, 0x101, 0x103, 0x108, 0x110, 0x120, 0x180,
    ],
);

const fn flags(accept: &'static [u64], refuse: &'static [u64]) -> Field {
    let known = 0x1ff;
    field(
        "Info.Flags",
        Kind::Flags {
            known,
            accept,
            refuse,
        },
    )
}

const fn create(
    variant: &'static str,
    fields: &'static [Field],
    good: fn(&World, &mut Image) -> TestResult,
    status: Status,
) -> Described {
    Described {
        nr: 0x10,
        name: "D3DKMT_CREATESYNCHRONIZATIONOBJECT2",
        variant,
        fields,
        good,
        status,
    }
}

/// What all forms have in common.
fn start(world: &World, image: &mut Image, kind: u32) {
    image.put32(0, world.device.handle().0);
    image.put32(8, kind);
}

pub(super) const FORMS: &[Described] = &[
    create(
        "mutex",
        &[
            DEVICE,
            TYPE,
            LEGACY_FLAGS,
            any("Info.SynchronizationMutex.InitialState"),
            ignored(20, 60),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
        ],
        |world, image| {
            start(world, image, D3DDDI_SYNCHRONIZATION_MUTEX);
            Ok(())
        },
        Status::SUCCESS,
    ),
    create(
        "semaphore",
        &[
            DEVICE,
            TYPE,
            LEGACY_FLAGS,
            field(
                "Info.Semaphore.MaxCount",
                Kind::Values {
                    accept: &[3, 4, 5, 0xffff_ffff],
                    refuse: &[0, 1, 2],
                },
            ),
            field(
                "Info.Semaphore.InitialCount",
                Kind::Values {
                    accept: &[0, 5],
                    refuse: &[6, 0x8000_0000, 0xffff_ffff],
                },
            ),
            ignored(24, 56),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
        ],
        |world, image| {
            start(world, image, D3DDDI_SEMAPHORE);
            image.put32(16, 5);
            image.put32(20, 3);
            Ok(())
        },
        Status::SUCCESS,
    ),
    create(
        "fence",
        &[
            DEVICE,
            TYPE,
            LEGACY_FLAGS,
            any("Info.Fence.FenceValue"),
            ignored(24, 56),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
        ],
        |world, image| {
            start(world, image, D3DDDI_FENCE);
            Ok(())
        },
        Status::SUCCESS,
    ),
    create(
        "CPU notification",
        &[
            DEVICE,
            TYPE,
            EVENT_FLAGS,
            field(
                "Info.CPUNotification.Event",
                Kind::Event {
                    zero: Some(Status::INVALID_HANDLE),
                },
            ),
            ignored(24, 56),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
        ],
        |world, image| {
            start(world, image, D3DDDI_CPU_NOTIFICATION);
            image.put64(16, world.event.as_raw_fd() as u64);
            Ok(())
        },
        Status::SUCCESS,
    ),
    create(
        "monitored fence",
        &[
            DEVICE,
            TYPE,
            FENCE_FLAGS,
            any("Info.MonitoredFence.InitialFenceValue"),
            output("Info.MonitoredFence.FenceValueCPUVirtualAddress"),
            output("Info.MonitoredFence.FenceValueGPUVirtualAddress"),
            below("Info.MonitoredFence.EngineAffinity", Limit::Two),
            ignored(44, 4),
            ignored(48, 32),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
        ],
        |world, image| {
            start(world, image, D3DDDI_MONITORED_FENCE);
            Ok(())
        },
        Status::SUCCESS,
    ),
    create(
        "periodic monitored fence",
        &[
            DEVICE,
            TYPE,
            field(
                "Info.Flags",
                Kind::Flags {
                    known: 0x1ff,
                    accept: &[0x80],
                    refuse: &[0x2, 0x30],
                },
            ),
            handle("Info.PeriodicMonitoredFence.hAdapter", Object::Adapter),
            any("Info.PeriodicMonitoredFence.VidPnTargetId"),
            any("Info.PeriodicMonitoredFence.Time"),
            ignored(32, 8),
            ignored(40, 8),
            below("Info.PeriodicMonitoredFence.EngineAffinity", Limit::Two),
            ignored(52, 4),
            ignored(56, 24),
            SHARED_HANDLE,
            GAP_AFTER,
            ignored(88, 4),
        ],
        |world, image| {
            start(world, image, D3DDDI_PERIODIC_MONITORED_FENCE);
            image.put32(16, world.adapter.handle().0);
            Ok(())
        },
        // The adapter has no display (section 2.6).
        Status::NOT_SUPPORTED,
    ),
    Described {
        nr: 0x1d,
        name: "D3DKMT_DESTROYSYNCHRONIZATIONOBJECT",
        variant: "",
        fields: &[handle("hSyncObject", Object::Sync)],
        good: |world, image| {
            let fence = world.device.create_fence(0)?;
            image.put32(0, fence.handle().0);
            image.keep(fence);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
