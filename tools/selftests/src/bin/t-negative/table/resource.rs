// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking about shared resources and opening them.

use opendxg::Status;

use super::*;
use crate::t_negative::world::RUNTIME_DATA;

/// Bytes of private driver data of one allocation.
const DRIVER_DATA: usize = 48;

const DEVICE: Field = handle("hDevice", 0, Object::Device);
const GLOBAL: Field = field("hGlobalShare", 4, 4, Kind::Global(Object::Resource));
const NT_HANDLE: Field = field("hNtHandle", 8, 8, Kind::NtHandle(Object::Resource));

/// What one too many, one too few or far too many is answered with.
const fn exact(name: &'static str, at: usize, refuse: &'static [(u64, Status)]) -> Field {
    listed(name, at, 4, &[], refuse)
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

const fn infos(at: usize, count_at: usize) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 80,
        count_at: Some(count_at),
        writes: true,
        null: Some(INVALID),
        inside: &[],
    });
    field("pOpenAllocationInfo2", at, 8, kind)
}

pub(super) const FORMS: &[Form] = &[
    Form {
        nr: 0x2b,
        name: "D3DKMT_QUERYRESOURCEINFO",
        variant: "",
        size: 32,
        fields: &[
            DEVICE,
            GLOBAL,
            any("pPrivateRuntimeData", 8, 8),
            output("PrivateRuntimeDataSize", 16, 4),
            output("TotalPrivateDriverDataSize", 20, 4),
            output("ResourcePrivateDriverDataSize", 24, 4),
            output("NumAllocations", 28, 4),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put32(4, world.global(Object::Resource));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x41,
        name: "D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE",
        variant: "",
        size: 40,
        fields: &[
            DEVICE,
            ignored(4, 4),
            NT_HANDLE,
            any("pPrivateRuntimeData", 16, 8),
            output("PrivateRuntimeDataSize", 24, 4),
            output("TotalPrivateDriverDataSize", 28, 4),
            output("ResourcePrivateDriverDataSize", 32, 4),
            output("NumAllocations", 36, 4),
        ],
        good: |world, image| {
            image.put32(0, world.device.handle().0);
            image.put64(8, world.shared_resource.slot());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x28,
        name: "D3DKMT_OPENRESOURCE",
        variant: "",
        size: 72,
        fields: &[
            DEVICE,
            GLOBAL,
            exact("NumAllocations", 8, NOT_1),
            ignored(12, 4),
            infos(16, 8),
            buffer("pPrivateRuntimeData", 24, 32, None),
            listed("PrivateRuntimeDataSize", 32, 4, &[0], NOT_24),
            ignored(36, 4),
            any("pResourcePrivateDriverData", 40, 8),
            exact("ResourcePrivateDriverDataSize", 48, NOT_0),
            ignored(52, 4),
            buffer("pTotalPrivateDriverDataBuffer", 56, 64, None),
            in_out(listed(
                "TotalPrivateDriverDataBufferSize",
                64,
                4,
                &[49, 0xffff_ffff],
                &[(0, Status::NO_MEMORY), (47, Status::NO_MEMORY)],
            )),
            made("hResource", 68, Object::Resource),
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
    Form {
        nr: 0x42,
        name: "D3DKMT_OPENRESOURCEFROMNTHANDLE",
        variant: "",
        size: 104,
        fields: &[
            DEVICE,
            ignored(4, 4),
            NT_HANDLE,
            exact("NumAllocations", 16, NOT_2),
            ignored(20, 4),
            infos(24, 16),
            in_out(exact(
                "PrivateRuntimeDataSize",
                32,
                &[
                    (0, INVALID),
                    (23, INVALID),
                    (25, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            )),
            ignored(36, 4),
            buffer("pPrivateRuntimeData", 40, 32, Some(INVALID)),
            in_out(exact("ResourcePrivateDriverDataSize", 48, NOT_0)),
            ignored(52, 4),
            any("pResourcePrivateDriverData", 56, 8),
            in_out(listed(
                "TotalPrivateDriverDataBufferSize",
                64,
                4,
                &[97, 0xffff_ffff],
                &[(0, Status::NO_MEMORY), (95, Status::NO_MEMORY)],
            )),
            ignored(68, 4),
            buffer("pTotalPrivateDriverDataBuffer", 72, 64, Some(INVALID)),
            made("hResource", 80, Object::Resource),
            output("hKeyedMutex", 84, 4),
            any("pKeyedMutexPrivateRuntimeData", 88, 8),
            output("KeyedMutexPrivateRuntimeDataSize", 96, 4),
            output("hSyncObject", 100, 4),
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
    Form {
        nr: 0x23,
        name: "D3DKMT_GETSHAREDRESOURCEADAPTERLUID",
        variant: "global handle",
        size: 24,
        fields: &[
            field("hGlobalShare", 0, 4, Kind::Global(Object::Resource)),
            ignored(4, 4),
            listed("hNtHandle", 8, 8, &[], &[(1, INVALID), (u64::MAX, INVALID)]),
            output("AdapterLuid", 16, 8),
        ],
        good: |world, image| {
            image.put32(0, world.global(Object::Resource));
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0x23,
        name: "D3DKMT_GETSHAREDRESOURCEADAPTERLUID",
        variant: "NT handle",
        size: 24,
        fields: &[
            listed(
                "hGlobalShare",
                0,
                4,
                &[],
                &[(2, INVALID), (0xffff_ffff, INVALID)],
            ),
            ignored(4, 4),
            field("hNtHandle", 8, 8, Kind::OnlyNtHandle(Object::Resource)),
            output("AdapterLuid", 16, 8),
        ],
        good: |world, image| {
            image.put64(8, world.shared_resource.slot());
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xca,
        name: "D3DKMT_GETRUNTIMEDATA",
        variant: "",
        size: 24,
        fields: &[
            handle("hAdapter", 0, Object::Adapter),
            GLOBAL,
            buffer("pRuntimeData", 8, 16, Some(FAULT)),
            exact(
                "RuntimeDataSize",
                16,
                &[
                    (0, INVALID),
                    (23, INVALID),
                    (25, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            ignored(20, 4),
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
    Form {
        nr: 0xc8,
        name: "D3DKMT_CHECKSHAREDRESOURCEACCESS",
        variant: "",
        size: 8,
        fields: &[
            handle("hResource", 0, Object::Resource),
            // No process has such a number.
            listed(
                "ClientPid",
                4,
                4,
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
    Form {
        nr: 0xc9,
        name: "D3DKMT_CONFIGURESHAREDRESOURCE",
        variant: "",
        size: 32,
        fields: &[
            DEVICE,
            handle("hResource", 4, Object::Resource),
            listed("IsDwm", 8, 1, &[], &[(1, INVALID), (0xff, INVALID)]),
            ignored(9, 7),
            listed(
                "hProcess",
                16,
                8,
                &[],
                &[
                    (1 << 32, Status::INVALID_HANDLE),
                    (u64::MAX, Status::INVALID_HANDLE),
                ],
            ),
            listed("AllowAccess", 24, 1, &[0], &[(2, INVALID), (0xff, INVALID)]),
            ignored(25, 7),
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
