// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking about shared resources and opening them.

use opendxg::uapi::*;
use opendxg::Status;

use super::*;
use crate::t_negative::world::RUNTIME_DATA;

/// Bytes of private driver data of one allocation.
const DRIVER_DATA: usize = 48;

const DEVICE: Field = handle("hDevice", Object::Device);
const GLOBAL: Field = field("hGlobalShare", Kind::Global(Object::Resource));
const NT_HANDLE: Field = field("hNtHandle", Kind::NtHandle(Object::Resource));

/// What one too many, one too few or far too many is answered with.
const fn exact(name: &'static str, refuse: &'static [(u64, Status)]) -> Field {
    listed(name, &[], refuse)
}

const NOT_24: &[(u64, Status)] = &[
    (1, INVALID),
    (23, INVALID),
    (25, INVALID),
    (0xffff_ffff, INVALID),
];
const NOT_0: &[(u64, Status)] = &[(1, INVALID), (0xffff_ffff, INVALID)];
const NOT_1: &[(u64, Status)] = &[(0, INVALID), (2, INVALID), (0xffff_ffff, INVALID)];
const NOT_2: &[(u64, Status)] = &[
    (0, INVALID),
    (1, INVALID),
    (3, INVALID),
    (0xffff_ffff, INVALID),
];

const SHORT: Status = Status::BUFFER_TOO_SMALL;

/// Room that may be larger than needed, and is told where it is too small.
const fn room(name: &'static str, refuse: &'static [(u64, Status)]) -> Field {
    reported(listed(name, &[0xffff_ffff], refuse))
}

const fn infos(count_at: usize) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 80,
        count_at: Some(count_at),
        writes: true,
        null: Some(INVALID),
        inside: &[],
    });
    field("pOpenAllocationInfo2", kind)
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x2b,
        name: "D3DKMT_QUERYRESOURCEINFO",
        variant: "",
        fields: &[
            DEVICE,
            GLOBAL,
            any("pPrivateRuntimeData"),
            output("PrivateRuntimeDataSize"),
            output("TotalPrivateDriverDataSize"),
            output("ResourcePrivateDriverDataSize"),
            output("NumAllocations"),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put32(4, world.global(Object::Resource));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x41,
        name: "D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE",
        variant: "",
        fields: &[
            DEVICE,
            NT_HANDLE,
            any("pPrivateRuntimeData"),
            output("PrivateRuntimeDataSize"),
            output("TotalPrivateDriverDataSize"),
            output("ResourcePrivateDriverDataSize"),
            output("NumAllocations"),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put64(8, world.shared_resource.slot());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x28,
        name: "D3DKMT_OPENRESOURCE",
        variant: "",
        fields: &[
            DEVICE,
            GLOBAL,
            exact("NumAllocations", NOT_1),
            infos(8),
            buffer("pPrivateRuntimeData", 32, None),
            listed("PrivateRuntimeDataSize", &[0], NOT_24),
            any("pResourcePrivateDriverData"),
            exact("ResourcePrivateDriverDataSize", NOT_0),
            buffer("pTotalPrivateDriverDataBuffer", 64, None),
            in_out(listed(
                "TotalPrivateDriverDataBufferSize",
                &[49, 0xffff_ffff],
                &[(0, Status::NO_MEMORY), (47, Status::NO_MEMORY)],
            )),
            made("hResource", Object::Resource),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put32(4, world.global(Object::Resource));
            image.put32(8, 1);
            image.point(16, &[0x5a; 80])?;
            image.point(24, &[0x5a; RUNTIME_DATA.len()])?;
            image.put32(32, RUNTIME_DATA.len() as u32);
            image.point(56, &[0x5a; DRIVER_DATA])?;
            image.put32(64, DRIVER_DATA as u32);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x42,
        name: "D3DKMT_OPENRESOURCEFROMNTHANDLE",
        variant: "",
        fields: &[
            DEVICE,
            NT_HANDLE,
            exact("NumAllocations", NOT_2),
            infos(16),
            in_out(exact(
                "PrivateRuntimeDataSize",
                &[
                    (0, INVALID),
                    (23, INVALID),
                    (25, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            )),
            buffer("pPrivateRuntimeData", 32, Some(INVALID)),
            in_out(exact("ResourcePrivateDriverDataSize", NOT_0)),
            any("pResourcePrivateDriverData"),
            in_out(listed(
                "TotalPrivateDriverDataBufferSize",
                &[97, 0xffff_ffff],
                &[(0, Status::NO_MEMORY), (95, Status::NO_MEMORY)],
            )),
            buffer("pTotalPrivateDriverDataBuffer", 64, Some(INVALID)),
            made("hResource", Object::Resource),
            output("hKeyedMutex"),
            any("pKeyedMutexPrivateRuntimeData"),
            output("KeyedMutexPrivateRuntimeDataSize"),
            output("hSyncObject"),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put64(8, world.shared_resource.slot());
            image.put32(16, 2);
            image.point(24, &[0x5a; 160])?;
            image.put32(32, RUNTIME_DATA.len() as u32);
            image.point(40, &[0x5a; RUNTIME_DATA.len()])?;
            image.put32(64, 2 * DRIVER_DATA as u32);
            image.point(72, &[0x5a; 2 * DRIVER_DATA])
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xce,
        name: "opendxg_open_resource",
        variant: "",
        fields: &[
            handle("device", Object::Device),
            listed(
                "handle_type",
                &[],
                &[
                    (0, INVALID),
                    (1, INVALID),
                    (4, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            field("handle", Kind::NtHandle(Object::Resource)),
            field(
                "allocations",
                Kind::Memory(Memory {
                    unit: 80,
                    count_at: Some(56),
                    writes: true,
                    null: Some(INVALID),
                    inside: &[],
                }),
            ),
            buffer("runtime_data", 60, Some(INVALID)),
            any("driver_data"),
            buffer("total_driver_data", 68, Some(INVALID)),
            any("keyed_mutex_data"),
            room("allocation_count", &[(0, SHORT), (1, SHORT)]),
            room("runtime_data_size", &[(0, SHORT), (23, SHORT)]),
            room("driver_data_size", &[]),
            room("total_driver_data_size", &[(0, SHORT), (95, SHORT)]),
            any("keyed_mutex_data_size"),
            no_flags("flags"),
            made("resource", Object::Resource),
            output("keyed_mutex"),
            output("sync_object"),
            reserved(92, 4),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put32(4, OPENDXG_HANDLE_NT);
            image.put64(8, world.shared_resource.slot());
            image.point(16, &[0x5a; 160])?;
            image.point(24, &[0x5a; RUNTIME_DATA.len()])?;
            image.point(32, &[0x5a; 8])?;
            image.point(40, &[0x5a; 2 * DRIVER_DATA])?;
            image.put32(56, 2);
            image.put32(60, RUNTIME_DATA.len() as u32);
            image.put32(68, 2 * DRIVER_DATA as u32);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x23,
        name: "D3DKMT_GETSHAREDRESOURCEADAPTERLUID",
        variant: "global handle",
        fields: &[
            field("hGlobalShare", Kind::Global(Object::Resource)),
            listed("hNtHandle", &[], &[(1, INVALID), (u64::MAX, INVALID)]),
            output("AdapterLuid"),
        ],
        good: |world, image| {
            image.put32(0, world.global(Object::Resource));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x23,
        name: "D3DKMT_GETSHAREDRESOURCEADAPTERLUID",
        variant: "NT handle",
        fields: &[
            listed("hGlobalShare", &[], &[(2, INVALID), (0xffff_ffff, INVALID)]),
            field("hNtHandle", Kind::OnlyNtHandle(Object::Resource)),
            output("AdapterLuid"),
        ],
        good: |world, image| {
            image.put64(8, world.shared_resource.slot());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xca,
        name: "D3DKMT_GETRUNTIMEDATA",
        variant: "",
        fields: &[
            handle("hAdapter", Object::Adapter),
            GLOBAL,
            buffer("pRuntimeData", 16, Some(FAULT)),
            exact(
                "RuntimeDataSize",
                &[
                    (0, INVALID),
                    (23, INVALID),
                    (25, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            image.put32(4, world.global(Object::Resource));
            image.point(8, &[0x5a; RUNTIME_DATA.len()])?;
            image.put32(16, RUNTIME_DATA.len() as u32);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xc8,
        name: "D3DKMT_CHECKSHAREDRESOURCEACCESS",
        variant: "",
        fields: &[
            handle("hResource", Object::Resource),
            // No process has such a number.
            listed(
                "ClientPid",
                &[],
                &[
                    (0, INVALID),
                    (0x7fff_ffff, INVALID),
                    (0x8000_0000, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
        ],
        good: |world, image| {
            image.put32(0, world.resource.handle().0);
            image.put32(4, std::process::id());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xc9,
        name: "D3DKMT_CONFIGURESHAREDRESOURCE",
        variant: "",
        fields: &[
            DEVICE,
            handle("hResource", Object::Resource),
            listed("IsDwm", &[], &[(1, INVALID), (0xff, INVALID)]),
            listed(
                "hProcess",
                &[],
                &[
                    (1 << 32, Status::INVALID_HANDLE),
                    (u64::MAX, Status::INVALID_HANDLE),
                ],
            ),
            listed("AllowAccess", &[0], &[(2, INVALID), (0xff, INVALID)]),
        ],
        good: |world, image| {
            let resource = world.device.new_resource().linear(4096).shared();
            let resource = resource.flags(opendxg::AllocationFlags::RESTRICT_SHARED_ACCESS);
            let resource = resource.create()?;
            let pidfd = rustix::process::pidfd_open(
                rustix::process::getpid(),
                rustix::process::PidfdFlags::empty(),
            )?;
            image.put32(0, world.device.handle().0);
            image.put32(4, resource.handle().0);
            image.put64(16, std::os::fd::AsRawFd::as_raw_fd(&pidfd) as u64);
            image.put(24, 1, 1);
            image.keep(pidfd);
            image.keep(resource);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
