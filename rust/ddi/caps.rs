// SPDX-License-Identifier: GPL-2.0

//! What a KMD says about its adapter.

use super::types::Text;

/// Who an adapter is, system-wide. The OS part gives it at StartDevice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Luid {
    /// Lower half.
    pub low: u32,
    /// Upper half.
    pub high: i32,
}

/// What a KMD is told when its adapter starts (`DXGK_START_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct StartInfo {
    /// The adapter's name.
    pub luid: Luid,
}

/// What QueryAdapterInfo asks for (`DXGK_QUERYADAPTERINFOTYPE`), with the place for the answer.
#[derive(Debug)]
pub enum AdapterQuery<'a> {
    /// DRIVERCAPS. Asked once, after StartDevice; the answer is for the life of the adapter.
    DriverCaps(&'a mut DriverCaps),
    /// UMDRIVERPRIVATE: [`DriverCaps::umd_private_size`] bytes for user-mode drivers.
    UmdDriverPrivate(&'a mut [u8]),
}

/// What an adapter is and can do (`DXGK_DRIVERCAPS` and its parts). A number that is 0
/// means that there is nothing of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCaps {
    /// The name people see.
    pub name: Text<64>,
    /// The adapter's GUID, its bytes in the order of the text form.
    pub guid: [u8; 16],
    /// Version of the driver: major, minor, revision, build.
    pub driver_version: [u16; 4],
    /// `D3DKMT_DRIVERVERSION` whose interface it has.
    pub wddm_version: u32,
    /// `VendorID` of `D3DKMT_DEVICE_IDS`.
    pub vendor_id: u32,
    /// `DeviceID` of the same.
    pub device_id: u32,
    /// `RevisionID` of the same.
    pub revision_id: u32,
    /// `BusType` of the same.
    pub bus_type: u32,
    /// Whether it is a software device.
    pub is_software: bool,
    /// The directory in which user-mode drivers find files of the driver.
    pub driver_store: Text<64>,
    /// How many bytes [`AdapterQuery::UmdDriverPrivate`] has.
    pub umd_private_size: u32,
    /// How many bytes GetStandardAllocationDriverData gives.
    pub standard_data_size: u32,
    /// How many bytes of the private data of a context are looked at.
    pub context_data_size: u32,
    /// Most bytes of an escape.
    pub max_escape_size: u32,
    /// How many physical adapters are linked (GPU-5).
    pub physical_adapters: u32,
    /// How many nodes there are; ordinals are below.
    pub nodes: u32,
    /// Width of a GPU virtual address in bits.
    pub gpu_va_bits: u32,
    /// Bytes of dedicated video memory.
    pub local_memory: u64,
    /// Bytes of system memory that allocations of this adapter may take.
    pub system_memory: u64,
}

/// `DXGK_ENGINE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EngineType {
    /// None of the others.
    Other = 0,
    /// Rendering.
    ThreeD = 1,
    /// Copying.
    Copy = 6,
}

/// A node as GetNodeMetadata describes it (`DXGKARG_GETNODEMETADATA`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMetadata {
    /// What kind of engine it has.
    pub engine_type: EngineType,
    /// `FriendlyName`.
    pub name: Text<32>,
}
