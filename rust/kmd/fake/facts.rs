// SPDX-License-Identifier: GPL-2.0

//! What the double says of its adapter: everything differs from what the software adapter says, so
//! that a test notices what does not come from the KMD.

use crate::ddi::{
    caps::{
        AdapterType,
        BusAddress,
        DeviceIds,
        DriverCaps,
        EngineType,
        GpuMmuCaps,
        HardwareInformation,
        NodeMetadata,
        PageTableLevel,
        PreemptionCaps, //
    },
    fence_storage::FenceStorageInfo,
    native_fence::NativeFenceCaps,
    paging::PageTableEntry,
    queue::NodeStatus,
    recovery::{
        DebugInfo,
        SHOWN_DWORDS, //
    },
    segments::{
        SegmentDescriptor,
        SegmentKind,
        SYSTEM_MEMORY, //
    },
    types::Text, //
};
use crate::platform::SegmentMemory;

/// Bytes of a page.
pub(super) const PAGE_SIZE: u64 = 4096;

/// The one feature that it has: `DXGK_FEATURE_HWSCH`.
pub(super) const FEATURE: u32 = 0;

/// What clients get as the name of one.
pub(super) const fn client_of(cookie: u64) -> u64 {
    (0xfa << 32) | cookie
}

/// All bytes of its data for user-mode drivers.
pub(super) const UMD_PRIVATE: u8 = 0xfa;

/// A paravirtualized adapter that computes and has displays.
pub(super) fn driver_caps() -> DriverCaps {
    DriverCaps {
        name: Text::new("test double"),
        hardware: HardwareInformation {
            chip_type: Text::new("chip"),
            dac_type: Text::new("dac"),
            bios_string: Text::new("bios"),
            bios_version: Text::new("bios version"),
            gpu_architecture: Text::new("architecture"),
        },
        guid: [0xfa; 16],
        driver_version: [31, 0, 15, 4601],
        umd_version: [31, 0, 15, 4602],
        umd_file_names: [
            Text::new("9.so"),
            Text::new("10.so"),
            Text::new("11.so"),
            Text::new("12.so"),
        ],
        wddm_version: 2900,
        device_ids: DeviceIds {
            vendor: 0xfa01,
            device: 0xfa02,
            sub_vendor: 0xfa03,
            sub_system: 0xfa04,
            revision: 0xfa05,
            bus_type: 3,
        },
        bus_address: Some(BusAddress {
            bus: 1,
            device: 2,
            function: 3,
        }),
        adapter_type: AdapterType {
            render: false,
            display: true,
            software: false,
            post: true,
            hybrid_discrete: true,
            hybrid_integrated: true,
            indirect_display: true,
            paravirtualized: true,
            acg: true,
            detachable: true,
            compute_only: true,
            prototype: true,
        },
        secure_container: true,
        video_present_sources: 3,
        driver_store: Text::new("/fake"),
        umd_private_size: 12,
        standard_data_size: 8,
        context_data_size: 16,
        max_escape_size: 64,
        physical_adapters: 2,
        nodes: 1,
        paging_node: None,
        preemption: PreemptionCaps {
            graphics: 400,
            compute: 300,
        },
        optimized_native_fence_interrupt: false,
        native_gpu_fence: false,
        no_64_bit_atomics: false,
        swizzling_ranges: 0,
        surprise_removal: true,
        cross_adapter_tier: 2,
        gpu_mmu: GpuMmuCaps {
            address_bits: 47,
            read_only: false,
            no_execute: true,
            cache_coherent: false,
            page_table_levels: 5,
            levels: [LEVEL; 6],
            ..GpuMmuCaps::default()
        },
        io_mmu: true,
        local_memory: 0x1_0000_0000,
        dedicated_system_memory: 0x2000_0000,
        system_memory: 0x3_0000_0000,
    }
}

/// What it wants of its native fences.
pub(super) fn native_fence_caps() -> NativeFenceCaps {
    NativeFenceCaps {
        stride: 64,
        map_to_gpu_system_process: false,
        minimum_address: 0,
        maximum_address: 0,
        intra_gpu_type: false,
        optimized_default_type: false,
        doorbells: false,
    }
}

/// Tables of 128 entries: five of them and the pages make 47 bits.
const LEVEL: PageTableLevel = PageTableLevel {
    index_bits: 7,
    table_bytes: 1024,
    segment: SYSTEM_MEMORY,
    paging_process_segment: SYSTEM_MEMORY,
};

/// Roots have one size.
pub(super) fn root_size(entries: &mut u32) -> u32 {
    *entries = 128;
    LEVEL.table_bytes
}

/// Its segments: a small aperture, and memory if a test wants it to have any.
pub(super) const APERTURE: u32 = 1;
pub(super) const LOCAL: u32 = 2;

/// How many pages the aperture shows at a time.
pub(super) const APERTURE_PAGES: usize = 256;

/// Bytes that the aperture shows at a time.
const COMMIT_LIMIT: u64 = 0x8_0000;

/// Where words of native fences are to be: in system memory.
pub(super) const FENCE_STORAGE: FenceStorageInfo = FenceStorageInfo {
    supported_segments: 1 << APERTURE,
    eviction_segments: 1 << APERTURE,
    preferred_segment: APERTURE,
};

/// Describes the aperture.
pub(super) fn aperture() -> SegmentDescriptor {
    SegmentDescriptor {
        kind: SegmentKind::Aperture,
        // CAST: a usize fits 64 bits.
        size: APERTURE_PAGES as u64 * PAGE_SIZE,
        commit_limit: COMMIT_LIMIT,
        cpu_visible: false,
        cache_coherent: true,
        use_64kb_pages: false,
        application_target: true,
        local_budget_group: false,
        memory: None,
    }
}

/// Describes memory of so many bytes.
pub(super) fn local(size: u64, memory: &SegmentMemory) -> SegmentDescriptor {
    SegmentDescriptor {
        kind: SegmentKind::Memory,
        size,
        commit_limit: 0,
        cpu_visible: true,
        cache_coherent: false,
        use_64kb_pages: false,
        application_target: true,
        local_budget_group: true,
        memory: Some(memory.clone()),
    }
}

/// A valid entry is the place of its page and this; of the others each has a number.
const VALID: u64 = 0xfa << 56;

/// How it writes an entry of a page table.
pub(super) fn entry(entry: &PageTableEntry) -> u64 {
    match entry {
        PageTableEntry::Invalid => 0,
        PageTableEntry::Zero => 1,
        PageTableEntry::Page(page) => page.address | VALID,
    }
}

/// What all its nodes do.
pub(super) const NODE_STATUS: NodeStatus = NodeStatus {
    running: Some(0xfa),
    busy_ns: 1,
    submissions: 2,
    switches: 3,
    ready: 4,
    blocked: 5,
};

/// What it knows of what hangs.
pub(super) const DEBUG_INFO: DebugInfo = DebugInfo {
    queue: Some(0xfb),
    packet: 0x1004,
    dwords: [0xfc; SHOWN_DWORDS],
    count: 2,
    is_stale: true,
};

/// Its nodes are all alike.
pub(super) fn node_metadata() -> NodeMetadata {
    NodeMetadata {
        engine_type: EngineType::Other,
        name: Text::new("node"),
        context_scheduling: true,
        ring_buffer_fence_release: false,
        max_in_flight_hw_queue_buffers: 0x1234,
        user_mode_submission: true,
        gpu_mmu: false,
        io_mmu: true,
    }
}
