// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creating and destroying synchronisation objects: one form for each type.

use std::os::fd::AsRawFd;

use opendxg::uapi::*;
use opendxg::Status;

use super::*;

const DEVICE: Field = handle("hDevice", 0, Object::Device);
const GAP: Field = ignored(4, 4);
/// SharedHandle is written only for shared objects.
const SHARED_HANDLE: Field = field("Info.SharedHandle", 80, 4, Kind::Ignored);
const GAP_AFTER: Field = ignored(84, 4);
const MADE: Field = made("hSyncObject", 88, Object::Sync);
const TAIL: Field = ignored(92, 4);

/// The type of a form. Each unknown number is refused; other types are other forms.
const TYPE: Field = field(
    "Info.Type",
    8,
    4,
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
        12,
        4,
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
    good: fn(&World, &mut Image) -> Outcome,
    status: Status,
) -> Form {
    Form {
        nr: 0x10,
        name: "D3DKMT_CREATESYNCHRONIZATIONOBJECT2",
        variant,
        size: 96,
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

pub(super) const FORMS: &[Form] = &[
    create(
        "mutex",
        &[
            DEVICE,
            GAP,
            TYPE,
            LEGACY_FLAGS,
            any("Info.SynchronizationMutex.InitialState", 16, 4),
            ignored(20, 60),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
            TAIL,
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
            GAP,
            TYPE,
            LEGACY_FLAGS,
            field(
                "Info.Semaphore.MaxCount",
                16,
                4,
                Kind::Values {
                    accept: &[3, 4, 5, 0xffff_ffff],
                    refuse: &[0, 1, 2],
                },
            ),
            field(
                "Info.Semaphore.InitialCount",
                20,
                4,
                Kind::Values {
                    accept: &[0, 5],
                    refuse: &[6, 0x8000_0000, 0xffff_ffff],
                },
            ),
            ignored(24, 56),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
            TAIL,
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
            GAP,
            TYPE,
            LEGACY_FLAGS,
            any("Info.Fence.FenceValue", 16, 8),
            ignored(24, 56),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
            TAIL,
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
            GAP,
            TYPE,
            EVENT_FLAGS,
            field(
                "Info.CPUNotification.Event",
                16,
                8,
                Kind::Event {
                    zero: Some(Status::INVALID_HANDLE),
                },
            ),
            ignored(24, 56),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
            TAIL,
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
            GAP,
            TYPE,
            FENCE_FLAGS,
            any("Info.MonitoredFence.InitialFenceValue", 16, 8),
            output("Info.MonitoredFence.FenceValueCPUVirtualAddress", 24, 8),
            output("Info.MonitoredFence.FenceValueGPUVirtualAddress", 32, 8),
            below("Info.MonitoredFence.EngineAffinity", 40, Limit::Two),
            ignored(44, 4),
            ignored(48, 32),
            SHARED_HANDLE,
            GAP_AFTER,
            MADE,
            TAIL,
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
            GAP,
            TYPE,
            field(
                "Info.Flags",
                12,
                4,
                Kind::Flags {
                    known: 0x1ff,
                    accept: &[0x80],
                    refuse: &[0x2, 0x30],
                },
            ),
            handle("Info.PeriodicMonitoredFence.hAdapter", 16, Object::Adapter),
            any("Info.PeriodicMonitoredFence.VidPnTargetId", 20, 4),
            any("Info.PeriodicMonitoredFence.Time", 24, 8),
            ignored(32, 8),
            ignored(40, 8),
            below("Info.PeriodicMonitoredFence.EngineAffinity", 48, Limit::Two),
            ignored(52, 4),
            ignored(56, 24),
            SHARED_HANDLE,
            GAP_AFTER,
            ignored(88, 4),
            TAIL,
        ],
        |world, image| {
            start(world, image, D3DDDI_PERIODIC_MONITORED_FENCE);
            image.put32(16, world.adapter.handle().0);
            Ok(())
        },
        // The adapter has no display (section 2.6).
        Status::NOT_SUPPORTED,
    ),
    Form {
        nr: 0x1d,
        name: "D3DKMT_DESTROYSYNCHRONIZATIONOBJECT",
        variant: "",
        size: 4,
        fields: &[handle("hSyncObject", 0, Object::Sync)],
        good: |world, image| {
            let fence = world.device.create_fence(0)?;
            image.put32(0, fence.handle().0);
            image.keep(fence);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
