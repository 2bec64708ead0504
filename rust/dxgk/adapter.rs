// SPDX-License-Identifier: GPL-2.0

//! A software adapter. Adapters exist from module load to unload; handles to them are per process.

use crate::{
    logic::adapter_info::{
        AdapterCaps,
        PHYSICAL_ADAPTER_COUNT, //
    },
    sys::params, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Adapters that one module can have.
pub(crate) const MAX_ADAPTERS: u32 = 16;

/// Low parts of our LUIDs start here; the number only has to be stable and our own.
const LUID_BASE: u32 = 0x0d9a_0000;

/// Identifies an adapter system-wide, the same at every load of the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Luid {
    /// Lower half.
    pub(crate) low: u32,
    /// Upper half.
    pub(crate) high: i32,
}

/// One software adapter.
pub(crate) struct Adapter {
    /// Its system-wide name.
    pub(crate) luid: Luid,
    /// What QueryAdapterInfo tells about it.
    pub(crate) caps: AdapterCaps,
}

impl Adapter {
    /// The adapter at `index`, counted from 0.
    pub(crate) fn new(index: u32) -> Result<Arc<Self>> {
        let luid = Luid {
            low: LUID_BASE | index,
            high: 0,
        };

        Ok(Arc::new(
            Self {
                luid,
                caps: AdapterCaps::new(index, luid.low, luid.high),
            },
            GFP_KERNEL,
        )?)
    }

    /// Whether the administrator has stopped it: what exists can be destroyed, and nothing new is
    /// created or opened.
    pub(crate) fn is_stopped(&self) -> bool {
        params::stopped_adapters() >> self.caps.index & 1 != 0
    }

    /// Whether an EngineAffinity names physical adapters that exist: bit n is the n-th, and 0 means
    /// all of them (FEN-5).
    pub(crate) fn has_engines(affinity: u32) -> bool {
        affinity >> PHYSICAL_ADAPTER_COUNT == 0
    }
}
