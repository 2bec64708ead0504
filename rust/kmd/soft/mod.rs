// SPDX-License-Identifier: GPL-2.0

//! The software adapter: a GPU that is not there.
//!
//! What it cannot do is absent: a cap is 0, a name is the empty string. Nothing is reported that a
//! client could then fail to use.

mod identity;
mod nodes;

use crate::ddi::{
    caps::{
        AdapterQuery,
        DriverCaps,
        Luid,
        NodeMetadata,
        StartInfo, //
    },
    class::Passive,
    types::{
        KmdResult,
        Text, //
    },
    Kmd, //
};

/// The name people see.
const NAME: &str = "opendxg software GPU";

/// What distinguishes one software adapter from another.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of the adapter, from 0.
    pub index: u32,
}

/// A software adapter.
pub struct SoftKmd {
    config: Config,
    /// The adapter's name, from StartDevice on.
    luid: Luid,
}

impl SoftKmd {
    /// AddDevice.
    pub fn add_device(config: Config) -> Self {
        Self {
            config,
            luid: Luid::default(),
        }
    }

    fn driver_caps(&self) -> DriverCaps {
        DriverCaps {
            name: Text::new(NAME),
            guid: identity::guid(self.config.index),
            driver_version: identity::DRIVER_VERSION,
            wddm_version: identity::WDDM_VERSION,
            vendor_id: identity::VENDOR_ID,
            device_id: identity::DEVICE_ID,
            revision_id: identity::REVISION_ID,
            bus_type: identity::BUS_INTERNAL,
            is_software: true,
            driver_store: Text::new(identity::DRIVER_STORE),
            umd_private_size: identity::UMD_PRIVATE_SIZE,
            physical_adapters: 1,
            nodes: nodes::COUNT,
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
                identity::umd_driver_private(self.config.index, self.luid, out);
            }
        }
    }

    fn get_node_metadata(&self, _: &Passive, node: u32) -> NodeMetadata {
        nodes::metadata(node)
    }

    /// A feature counts as there only once the driver implements it (FEN-113, FEN-115).
    fn query_feature_support(&self, _: &Passive, _: u32) -> bool {
        false
    }
}
