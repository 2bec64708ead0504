// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync files.

use std::os::fd::AsRawFd;

use super::*;
use crate::t_negative::world::VALUE;

/// A sync file; `foreign` is the answer to a descriptor of another kind.
const fn sync_file(foreign: Status) -> Field {
    field("sync_file_handle", Kind::SyncFile { foreign })
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x45,
        name: "D3DKMT_CREATESYNCFILE",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            field("hMonitoredFence", Kind::Handle(Object::Fence)),
            listed(
                "FenceValue",
                &[0, 1, VALUE],
                &[
                    (VALUE + 1, Status::NOT_SUPPORTED),
                    (1 << 63, Status::NOT_SUPPORTED),
                    (u64::MAX, Status::NOT_SUPPORTED),
                ],
            ),
            field("hSyncFile", Kind::Output(Made::Descriptor)),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::Device));
            image.put32(4, world.handle(Object::Fence));
            image.put64(8, VALUE);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x46,
        name: "d3dkmt_waitsyncfile",
        variant: "",
        fields: &[
            sync_file(Status::OBJECT_TYPE_MISMATCH),
            handle("context", Object::Context),
            field("reserved", Kind::Reserved),
        ],
        good: |world, image| {
            image.put64(0, world.sync_file.as_raw_fd() as u64);
            image.put32(8, world.handle(Object::Context));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x47,
        name: "d3dkmt_opensyncobjectfromsyncfile",
        variant: "",
        fields: &[
            sync_file(INVALID),
            handle("device", Object::Device),
            made("syncobj", Object::Fence),
            output("fence_value"),
            output("fence_value_cpu_va"),
            output("fence_value_gpu_va"),
        ],
        good: |world, image| {
            image.put64(0, world.sync_file.as_raw_fd() as u64);
            image.put32(8, world.handle(Object::Device));
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
