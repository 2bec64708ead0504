// SPDX-License-Identifier: GPL-2.0

//! The software adapter: a GPU that is not there.
//!
//! What it cannot do is absent: a cap is 0, a name is the empty string. Nothing is reported that a
//! client could then fail to use.

pub mod allocation_data;
mod identity;
mod nodes;

use crate::{
    ddi::{
        caps::{
            AdapterQuery,
            AdapterType,
            DriverCaps,
            HardwareInformation,
            Luid,
            NodeMetadata,
            StartInfo, //
        },
        class::{
            Dispatch,
            Passive, //
        },
        types::{
            AllocationCookie,
            AllocationEndCookie,
            AllocationId,
            AllocationInfo,
            ClockData,
            ContextCookie,
            CreateContextArgs,
            DeviceCookie,
            DeviceId,
            KmdError,
            KmdResult,
            OpenAllocationArgs,
            OpenAllocationCookie,
            Place,
            Text, //
        },
        Destroy,
        Kmd, //
    },
    platform, //
};
use allocation_data::{
    DriverData,
    DRIVER_DATA_SIZE, //
};

/// The name people see.
const NAME: &str = "opendxg software GPU";

/// Priority of an allocation: `D3DDDI_ALLOCATIONPRIORITY_NORMAL`.
const PRIORITY_NORMAL: u32 = 0x7800_0000;

/// `DriverKnownEscape` of `D3DDDI_ESCAPEFLAGS`: an escape that every driver knows.
const KNOWN_ESCAPE: u32 = 1 << 6;
/// Bytes of such an escape.
const KNOWN_ESCAPE_SIZE: usize = 8;

/// Ticks of the clock in one second.
const CLOCK_HZ: u64 = 1_000_000_000;

/// What distinguishes one software adapter from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of the adapter, from 0.
    pub index: u32,
    /// Bytes of dedicated video memory that it reports.
    pub local_memory: u64,
    /// Bytes of system memory that it reports to be able to use.
    pub system_memory: u64,
    /// How many nodes it has, of those that there can be.
    pub nodes: u32,
    /// Whether it computes only, instead of rendering too.
    pub compute_only: bool,
    /// `D3DKMT_DRIVERVERSION` that it reports.
    pub wddm_version: u32,
}

/// Sizes of memory are whole pages.
const PAGE_SIZE: u64 = 4096;

/// No memory is larger: what processors can address.
const MAX_MEMORY: u64 = 1 << 48;

impl Config {
    /// Whether there can be such an adapter.
    pub fn is_valid(&self) -> bool {
        let is_size = |bytes| bytes % PAGE_SIZE == 0 && bytes <= MAX_MEMORY;

        is_size(self.local_memory)
            && is_size(self.system_memory)
            && (1..=nodes::COUNT).contains(&self.nodes)
            && identity::is_wddm_version(self.wddm_version)
    }
}

impl Default for Config {
    /// No memory of its own, all nodes, the newest version.
    fn default() -> Self {
        Self {
            index: 0,
            local_memory: 0,
            system_memory: 0,
            nodes: nodes::COUNT,
            compute_only: false,
            wddm_version: identity::WDDM_VERSION,
        }
    }
}

/// A software adapter.
pub struct SoftKmd {
    config: Config,
    /// The adapter's name, from StartDevice on.
    luid: Luid,
}

impl SoftKmd {
    /// AddDevice: a KMD that has not been started.
    pub fn add_device(config: Config) -> Self {
        Self {
            config,
            luid: Luid::default(),
        }
    }

    fn driver_caps(&self) -> DriverCaps {
        DriverCaps {
            name: Text::new(NAME),
            hardware: HardwareInformation {
                chip_type: Text::new(NAME),
                gpu_architecture: Text::new(NAME),
                ..HardwareInformation::default()
            },
            guid: identity::guid(self.config.index),
            driver_version: identity::DRIVER_VERSION,
            wddm_version: self.config.wddm_version,
            device_ids: identity::DEVICE_IDS,
            adapter_type: AdapterType {
                render: !self.config.compute_only,
                software: true,
                compute_only: self.config.compute_only,
                ..AdapterType::default()
            },
            driver_store: Text::new(identity::DRIVER_STORE),
            umd_private_size: identity::UMD_PRIVATE_SIZE,
            // CAST: small numbers.
            standard_data_size: DRIVER_DATA_SIZE as u32,
            max_escape_size: KNOWN_ESCAPE_SIZE as u32,
            physical_adapters: 1,
            nodes: self.config.nodes,
            local_memory: self.config.local_memory,
            system_memory: self.config.system_memory,
            // Nothing that is not written here.
            ..DriverCaps::default()
        }
    }
}

impl Kmd for SoftKmd {
    fn start_device(&mut self, _: &Passive, info: &StartInfo) -> KmdResult {
        self.luid = info.luid;
        Ok(())
    }

    fn stop_device(&self, _: &Passive) {}

    fn query_adapter_info(&self, _: &Passive, query: AdapterQuery<'_>) {
        match query {
            AdapterQuery::DriverCaps(caps) => *caps = self.driver_caps(),
            AdapterQuery::UmdDriverPrivate(out) => {
                identity::umd_driver_private(&self.config, self.luid, out);
            }
        }
    }

    fn get_node_metadata(&self, _: &Passive, node: u32) -> NodeMetadata {
        nodes::metadata(node, self.config.compute_only)
    }

    /// A feature counts as there only once the driver implements it (FEN-113, FEN-115).
    fn query_feature_support(&self, _: &Passive, _: u32) -> bool {
        false
    }

    // Without engines there is nothing to remember of a device, a context or an allocation, and
    // all cookies are 0.

    fn create_device(&self, _: &Passive, _: DeviceId) -> KmdResult<DeviceCookie> {
        Ok(DeviceCookie(0))
    }

    fn create_context(
        &self,
        _: &Passive,
        _: DeviceCookie,
        _: &CreateContextArgs<'_>,
    ) -> KmdResult<ContextCookie> {
        Ok(ContextCookie(0))
    }

    fn get_standard_allocation_driver_data(&self, _: &Passive, size: u64, out: &mut [u8]) {
        for (place, byte) in out.iter_mut().zip(DriverData::linear(size).encode()) {
            *place = byte;
        }
    }

    fn create_allocation(
        &self,
        _: &Passive,
        _: AllocationId,
        private_data: &[u8],
    ) -> KmdResult<(AllocationCookie, AllocationInfo)> {
        let info = AllocationInfo {
            size: DriverData::decode(private_data)?.size,
            priority: PRIORITY_NORMAL,
            place: Place::SystemMemory,
            notify_end: None,
        };

        Ok((AllocationCookie(0), info))
    }

    fn open_allocation(
        &self,
        _: &Passive,
        _: &OpenAllocationArgs,
    ) -> KmdResult<OpenAllocationCookie> {
        Ok(OpenAllocationCookie(0))
    }

    /// The clock is CLOCK_MONOTONIC, so that one sample is both counters.
    fn calibrate_gpu_clock(&self, _: &Dispatch, _: u32, _: u32) -> ClockData {
        let now = platform::now_ns();

        ClockData {
            gpu_frequency: CLOCK_HZ,
            gpu_counter: now,
            cpu_counter: now,
            is_cmp_clock: true,
        }
    }

    /// There are no private escapes, and none of the known ones that a driver would answer.
    fn escape(&self, _: &Passive, flags: u32, data: &mut [u8]) -> KmdResult {
        if flags != KNOWN_ESCAPE || data.len() != KNOWN_ESCAPE_SIZE {
            return Err(KmdError::InvalidParameter);
        }
        Err(KmdError::NotSupported)
    }
}

impl Destroy for SoftKmd {
    fn destroy_device(&self, _: &Passive, _: DeviceCookie) {}

    fn destroy_context(&self, _: &Passive, _: ContextCookie) {}

    fn notify_allocation_end(&self, _: &Passive, _: AllocationEndCookie, _: AllocationId) {}

    fn destroy_allocation(&self, _: &Passive, _: AllocationCookie) {}

    fn close_allocation(&self, _: &Passive, _: OpenAllocationCookie) {}
}
