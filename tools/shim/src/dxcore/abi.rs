// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers, GUIDs and structs of `directx/dxcore_interface.h`.

use super::com::Guid;

pub(super) const IID_FACTORY: Guid = Guid(
    0x78ee5945,
    0xc36e,
    0x4b13,
    [0xa6, 0x69, 0x00, 0x5d, 0xd1, 0x1c, 0x0f, 0x06],
);
pub(super) const IID_FACTORY1: Guid = Guid(
    0xd5682e19,
    0x6d21,
    0x401c,
    [0x82, 0x7a, 0x9a, 0x51, 0xa4, 0xea, 0x35, 0xd7],
);
pub(super) const IID_LIST: Guid = Guid(
    0x526c7776,
    0x40e9,
    0x459b,
    [0xb7, 0x11, 0xf3, 0x2a, 0xd7, 0x6d, 0xfc, 0x28],
);
pub(super) const IID_ADAPTER: Guid = Guid(
    0xf0db4c7f,
    0xfe5a,
    0x42a2,
    [0xbd, 0x62, 0xf2, 0xa6, 0xcf, 0x6f, 0xc8, 0x3e],
);
pub(super) const IID_ADAPTER1: Guid = Guid(
    0xa0783366,
    0xcfa3,
    0x43be,
    [0x9d, 0x79, 0x55, 0xb2, 0xda, 0x97, 0xc6, 0x3c],
);

pub(super) const D3D11_GRAPHICS: Guid = Guid(
    0x8c47866b,
    0x7583,
    0x450d,
    [0xf0, 0xf0, 0x6b, 0xad, 0xa8, 0x95, 0xaf, 0x4b],
);
pub(super) const D3D12_GRAPHICS: Guid = Guid(
    0x0c9ece4d,
    0x2f6e,
    0x4f01,
    [0x8c, 0x96, 0xe8, 0x9e, 0x33, 0x1b, 0x47, 0xb1],
);
pub(super) const D3D12_CORE_COMPUTE: Guid = Guid(
    0x248e2800,
    0xa793,
    0x4724,
    [0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90],
);
pub(super) const D3D12_GENERIC_ML: Guid = Guid(
    0xb71b0d41,
    0x1088,
    0x422f,
    [0xa2, 0x7c, 0x02, 0x50, 0xb7, 0xd3, 0xa9, 0x88],
);
pub(super) const D3D12_GENERIC_MEDIA: Guid = Guid(
    0x8eb2c848,
    0x82f6,
    0x4b49,
    [0xaa, 0x87, 0xae, 0xcf, 0xcf, 0x01, 0x74, 0xc6],
);
pub(super) const TYPE_GPU: Guid = Guid(
    0xb69eb219,
    0x3ded,
    0x4464,
    [0x97, 0x9f, 0xa0, 0x0b, 0xd4, 0x68, 0x70, 0x06],
);
pub(super) const TYPE_COMPUTE_ACCELERATOR: Guid = Guid(
    0xe0b195da,
    0x58ef,
    0x4a22,
    [0x90, 0xf1, 0x1f, 0x28, 0x16, 0x9c, 0xab, 0x8d],
);
pub(super) const TYPE_NPU: Guid = Guid(
    0xd46140c4,
    0xadd7,
    0x451b,
    [0x9e, 0x56, 0x06, 0xfe, 0x8c, 0x3b, 0x58, 0xed],
);
pub(super) const TYPE_MEDIA_ACCELERATOR: Guid = Guid(
    0x66bdb96a,
    0x050b,
    0x44c7,
    [0xa4, 0xfd, 0xd1, 0x44, 0xce, 0x0a, 0xb4, 0x43],
);

/// `DXCoreAdapterProperty`.
pub(super) mod property {
    pub(in super::super) const INSTANCE_LUID: u32 = 0;
    pub(in super::super) const DRIVER_VERSION: u32 = 1;
    pub(in super::super) const DRIVER_DESCRIPTION: u32 = 2;
    pub(in super::super) const HARDWARE_ID: u32 = 3;
    pub(in super::super) const KMD_MODEL_VERSION: u32 = 4;
    pub(in super::super) const COMPUTE_PREEMPTION: u32 = 5;
    pub(in super::super) const GRAPHICS_PREEMPTION: u32 = 6;
    pub(in super::super) const DEDICATED_ADAPTER_MEMORY: u32 = 7;
    pub(in super::super) const DEDICATED_SYSTEM_MEMORY: u32 = 8;
    pub(in super::super) const SHARED_SYSTEM_MEMORY: u32 = 9;
    pub(in super::super) const ACG_COMPATIBLE: u32 = 10;
    pub(in super::super) const IS_HARDWARE: u32 = 11;
    pub(in super::super) const IS_INTEGRATED: u32 = 12;
    pub(in super::super) const IS_DETACHABLE: u32 = 13;
    pub(in super::super) const HARDWARE_ID_PARTS: u32 = 14;
    pub(in super::super) const PHYSICAL_ADAPTER_COUNT: u32 = 15;
    pub(in super::super) const ENGINE_COUNT: u32 = 16;
    pub(in super::super) const ENGINE_NAME: u32 = 17;
}

/// `DXCoreAdapterState`.
pub(super) mod state {
    pub(in super::super) const DRIVER_UPDATE_IN_PROGRESS: u32 = 0;
    pub(in super::super) const MEMORY_BUDGET: u32 = 1;
    pub(in super::super) const MEMORY_USAGE: u32 = 2;
    pub(in super::super) const MEMORY_USAGE_BY_PROCESS: u32 = 3;
    pub(in super::super) const ENGINE_RUNNING_TIME: u32 = 4;
    pub(in super::super) const ENGINE_RUNNING_TIME_BY_PROCESS: u32 = 5;
    pub(in super::super) const TEMPERATURE: u32 = 6;
    pub(in super::super) const PROCESS_COUNT: u32 = 7;
    pub(in super::super) const PROCESS_SET: u32 = 8;
    pub(in super::super) const ENGINE_FREQUENCY: u32 = 9;
    pub(in super::super) const MEMORY_FREQUENCY: u32 = 10;
}

/// `DXCoreWorkload`.
pub(super) mod workload {
    pub(in super::super) const GRAPHICS: u32 = 0;
    pub(in super::super) const COMPUTE: u32 = 1;
    pub(in super::super) const MEDIA: u32 = 2;
    pub(in super::super) const MACHINE_LEARNING: u32 = 3;
}

/// `DXCoreEngineNamePropertyInput`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct EngineName {
    pub(super) physical_adapter: u32,
    pub(super) engine: u32,
    pub(super) length: u32,
    pub(super) name: *mut u32,
}

/// `DXCoreAdapterProcessSetQueryInput`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessSet {
    pub(super) size: u32,
    pub(super) processes: *mut u32,
}

/// `LUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Luid {
    pub(super) low: u32,
    pub(super) high: i32,
}
