// SPDX-License-Identifier: GPL-2.0

//! What a KMD says about its adapter.

use super::{
    callbacks::{
        Callbacks,
        Record, //
    },
    native_fence::NativeFenceCaps,
    segments::Segments,
    types::Text, //
};

/// Who an adapter is, system-wide. The OS part gives it at StartDevice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Luid {
    /// Lower half.
    pub low: u32,
    /// Upper half.
    pub high: i32,
}

/// What a KMD is told when its adapter starts (`DXGK_START_INFO`).
#[derive(Clone)]
pub struct StartInfo {
    /// The adapter's name.
    pub luid: Luid,
    /// What the driver asks the OS part by.
    pub callbacks: Callbacks,
}

impl StartInfo {
    /// What there is without features; `None` if there is no memory. May sleep.
    pub fn of(luid: Luid) -> Option<Self> {
        Some(Self {
            luid,
            callbacks: Callbacks::of(&Record::new()?),
        })
    }
}

/// What QueryAdapterInfo asks for (`DXGK_QUERYADAPTERINFOTYPE`), with the place for the answer.
pub enum AdapterQuery<'a> {
    /// DRIVERCAPS. Asked once, after StartDevice; the answer is for the life of the adapter.
    DriverCaps(&'a mut DriverCaps),
    /// UMDRIVERPRIVATE: [`DriverCaps::umd_private_size`] bytes for user-mode drivers.
    UmdDriverPrivate(&'a mut [u8]),
    /// NATIVE_FENCE_CAPS. Asked once, when NATIVE_FENCE is enabled; the answer is for the life of
    /// the adapter.
    NativeFenceCaps(&'a mut NativeFenceCaps),
    /// QUERYSEGMENT4. Asked once, after StartDevice; the answer is for the life of the adapter.
    Segments(&'a mut Segments),
}

/// What an adapter is and can do (`DXGK_DRIVERCAPS` and its parts). A number that is 0, a flag that
/// is false and a text that is empty mean that there is nothing of the kind.
///
/// What the OS part can do nothing with yet has no field here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCaps {
    /// The name people see.
    pub name: Text<64>,
    /// Names of its parts.
    pub hardware: HardwareInformation,
    /// The adapter's GUID, its bytes in the order of the text form.
    pub guid: [u8; 16],
    /// Version of the driver: major, minor, revision, build.
    pub driver_version: [u16; 4],
    /// Version of the user-mode drivers, in the same form.
    pub umd_version: [u16; 4],
    /// File names of the user-mode drivers, by `KMTUMDVERSION`.
    pub umd_file_names: [Text<64>; UMD_VERSIONS],
    /// `D3DKMT_DRIVERVERSION` whose interface it has.
    pub wddm_version: u32,
    /// Which device it is.
    pub device_ids: DeviceIds,
    /// Where on its bus it is; `None` if it is on none.
    pub bus_address: Option<BusAddress>,
    /// What kind of adapter it is.
    pub adapter_type: AdapterType,
    /// Whether a paravirtualized adapter is used from a secure container (`SecureContainer`).
    pub secure_container: bool,
    /// How many video present sources it has (`NumberOfVideoPresentSources`); 0 is headless.
    pub video_present_sources: u32,
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
    /// `PagingNode`: the node that fills and moves memory for the OS part. It takes packets.
    /// `None`: the processor does that.
    pub paging_node: Option<u32>,
    /// Where work can be interrupted.
    pub preemption: PreemptionCaps,
    /// Whether interrupts of native fences name the queue that has signalled and no fence
    /// (`OptimizedNativeFenceSignaledInterrupt`): its logs say which ones they were (FEN-97).
    pub optimized_native_fence_interrupt: bool,
    /// Whether the driver says that it has native fences (`DXGK_VIDSCHCAPS.NativeGpuFence`). Then
    /// the feature has to be there, too (FEN-112).
    pub native_gpu_fence: bool,
    /// Whether the GPU cannot change 64 bits at once (`No64BitAtomics`); fences need that (FEN-7).
    pub no_64_bit_atomics: bool,
    /// How many swizzling ranges it has (`NumberOfSwizzlingRanges`): WDDM 2 has none, so that an
    /// adapter does not start with a driver that has some (MEM-91).
    pub swizzling_ranges: u32,
    /// Whether the driver survives the removal of the GPU (`SupportSurpriseRemoval`).
    pub surprise_removal: bool,
    /// What it can do with memory of other adapters (`D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER`).
    pub cross_adapter_tier: u32,
    /// GPU virtual addresses.
    pub gpu_mmu: GpuMmuCaps,
    /// Whether the GPU uses addresses of the CPU (`IoMmuSupported`).
    pub io_mmu: bool,
    /// Bytes of dedicated video memory.
    pub local_memory: u64,
    /// Bytes of system memory that the firmware has set aside for it.
    pub dedicated_system_memory: u64,
    /// Bytes of system memory that allocations of this adapter may take.
    pub system_memory: u64,
}

/// How many versions of Direct3D have a user-mode driver of their own (`KMTUMDVERSION`).
pub const UMD_VERSIONS: usize = 4;

/// Texts about the hardware (the registry values `HardwareInformation`, and `DXGK_GPUVERSION`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareInformation {
    /// `ChipType`: the model of the GPU.
    pub chip_type: Text<64>,
    /// `DacType`: what drives its displays.
    pub dac_type: Text<32>,
    /// `BiosString`: the firmware by its name.
    pub bios_string: Text<64>,
    /// `BiosVersion`: the firmware by its number.
    pub bios_version: Text<32>,
    /// `GpuArchitecture`: the generation of the GPU.
    pub gpu_architecture: Text<32>,
}

/// `D3DKMT_DEVICE_IDS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceIds {
    /// `VendorID`: who has made the GPU.
    pub vendor: u32,
    /// `DeviceID`: which GPU of that vendor it is.
    pub device: u32,
    /// `SubVendorID`: who has made the board.
    pub sub_vendor: u32,
    /// `SubSystemID`: which board of that vendor it is.
    pub sub_system: u32,
    /// `RevisionID`: the stepping of the GPU.
    pub revision: u32,
    /// `BusType`: the kind of bus that it is on; 0 is none.
    pub bus_type: u32,
}

/// A place on a bus (`D3DKMT_ADAPTERADDRESS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusAddress {
    /// `BusNumber`: which bus it is.
    pub bus: u32,
    /// `DeviceNumber`: the slot on the bus.
    pub device: u32,
    /// `FunctionNumber`: which device it is of those in the slot.
    pub function: u32,
}

/// What kind of adapter it is (`D3DKMT_ADAPTERTYPE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterType {
    /// `RenderSupported`: it renders.
    pub render: bool,
    /// `DisplaySupported`: it has displays.
    pub display: bool,
    /// `SoftwareDevice`: there is no hardware.
    pub software: bool,
    /// `PostDevice`: the firmware uses it to show something.
    pub post: bool,
    /// `HybridDiscrete`: the fast GPU of two.
    pub hybrid_discrete: bool,
    /// `HybridIntegrated`: the economical GPU of two.
    pub hybrid_integrated: bool,
    /// `IndirectDisplayDevice`: its displays are fed by another driver.
    pub indirect_display: bool,
    /// `Paravirtualized`: the GPU is another machine's.
    pub paravirtualized: bool,
    /// `ACGSupported`: its user-mode drivers make no code.
    pub acg: bool,
    /// `Detachable`: it can be unplugged.
    pub detachable: bool,
    /// `ComputeOnly`: it computes and does not render.
    pub compute_only: bool,
    /// `Prototype`: it is not for sale yet.
    pub prototype: bool,
}

/// Where work can be interrupted (`D3DKMDT_PREEMPTION_CAPS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionCaps {
    /// Of rendering, `D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY`.
    pub graphics: u32,
    /// Of computing, `D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY`.
    pub compute: u32,
}

/// GPU virtual addresses (`DXGK_GPUMMUCAPS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuMmuCaps {
    /// `VirtualAddressBitCount`; 0 without GPU virtual addresses.
    pub address_bits: u32,
    /// `ReadOnlyMemorySupported`: pages can refuse stores.
    pub read_only: bool,
    /// `NoExecuteMemorySupported`: pages can refuse to be run.
    pub no_execute: bool,
    /// `CacheCoherentMemorySupported`: accesses see what is in caches of the CPU.
    pub cache_coherent: bool,
    /// `PageTableUpdateMode`: who updates page tables.
    pub page_table_update_mode: PageTableUpdateMode,
    /// `PageTableUpdateRequireAddressSpaceIdle`: no context of an address space may run while its
    /// tables are updated and its translations flushed (MEM-56).
    pub page_table_update_require_address_space_idle: bool,
    /// `InvalidTlbEntriesNotCached`: no engine remembers that nothing was valid, so that a page
    /// that becomes valid needs no flush.
    pub invalid_tlb_entries_not_cached: bool,
    /// `ExplicitPageTableInvalidation`: the entries of a table are set invalid before it goes.
    pub explicit_page_table_invalidation: bool,
    /// `PageTableLevelCount`: how many levels of page tables there are. With two of them the root
    /// is resizable (MEM-54).
    pub page_table_levels: u32,
    /// `LeafPageTableSizeFor64KPagesInBytes`: how large a table of level 0 is that has pages of 64
    /// KiB, at most a page; 0 if there are none (MEM-57).
    pub leaf_table_bytes_64kb: u32,
    /// The tables of each level, from that of the pages on (`DXGK_PAGE_TABLE_LEVEL_DESC`).
    pub levels: [PageTableLevel; MAX_PAGE_TABLE_LEVELS],
}

/// Most levels of page tables.
pub const MAX_PAGE_TABLE_LEVELS: usize = 6;

/// Who updates page tables (`DXGK_PAGETABLEUPDATEMODE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageTableUpdateMode {
    /// `CPU_VIRTUAL`: the processor, so that tables are in system memory.
    #[default]
    CpuVirtual,
    /// `GPU_VIRTUAL`: an engine, by addresses of the paging process.
    GpuVirtual,
    /// `GPU_PHYSICAL`: an engine, by physical addresses.
    GpuPhysical,
}

/// The page tables of one level (`DXGK_PAGE_TABLE_LEVEL_DESC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTableLevel {
    /// `PageTableIndexBitCount`: how many bits of an address choose the entry.
    pub index_bits: u32,
    /// `PageTableSizeInBytes`: how large a table is, at most a page.
    pub table_bytes: u32,
    /// `PageTableSegmentId`: where tables of clients are; 0 is system memory.
    pub segment: u32,
    /// `PagingProcessPageTableSegmentId`: where those of the paging process are.
    pub paging_process_segment: u32,
}

/// `DXGK_ENGINE_TYPE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum EngineType {
    /// None of the others.
    #[default]
    Other = 0,
    /// Rendering.
    ThreeD = 1,
    /// Copying.
    Copy = 6,
}

/// A node as GetNodeMetadata describes it (`DXGKARG_GETNODEMETADATA`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeMetadata {
    /// What kind of engine it has.
    pub engine_type: EngineType,
    /// `FriendlyName`.
    pub name: Text<32>,
    /// `ContextSchedulingSupported`: its hardware chooses the context that runs.
    pub context_scheduling: bool,
    /// `RingBufferFenceRelease`: its ring buffer can signal fences.
    pub ring_buffer_fence_release: bool,
    /// `MaxInFlightHwQueueBuffers`: how much work a HW queue takes at once.
    pub max_in_flight_hw_queue_buffers: u16,
    /// `UserModeSubmissionSupported`: processes may fill HW queues by themselves (GPU-2).
    pub user_mode_submission: bool,
    /// `GpuMmuSupported`: it uses GPU virtual addresses.
    pub gpu_mmu: bool,
    /// `IoMmuSupported`: it uses addresses of the CPU.
    pub io_mmu: bool,
}
