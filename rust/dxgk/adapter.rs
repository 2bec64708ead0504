// SPDX-License-Identifier: GPL-2.0

//! An adapter: a GPU as the OS part sees it, with the KMD that drives it. Adapters exist from
//! module load to unload; handles to them are per process.

use crate::{
    ddi::{
        caps::{
            AdapterQuery,
            DriverCaps,
            StartInfo, //
        },
        class::{
            Dispatch,
            Passive, //
        },
        port::Port,
        types::ClockData,
        Kmd, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        adapter_info::{
            self,
            Asked,
            Refusal,
            Size, //
        },
        feature::{
            self,
            Answer,
            FeatureSet, //
        }, //
    },
    sys::params, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

pub(crate) use crate::ddi::caps::Luid;

/// Adapters that one module can have.
pub(crate) const MAX_ADAPTERS: u32 = 16;

/// The low part of the first LUID. The number is our own and only has to be stable.
const LUID_BASE: u32 = 0x0d9a_0000;

/// A GPU, and the KMD that drives it.
pub(crate) struct Adapter {
    /// Its index, from 0.
    pub(crate) index: u32,
    /// Its system-wide name.
    pub(crate) luid: Luid,
    /// What its KMD says about it.
    pub(crate) caps: DriverCaps,
    /// The driver features in use.
    features: FeatureSet,
    /// The KMD.
    pub(in crate::dxgk) port: Arc<Port>,
}

impl Adapter {
    /// The adapter at `index`, counted from 0, that `kmd` drives. Starts it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn start(index: u32, kmd: KBox<dyn Kmd>) -> DxgResult<Arc<Self>> {
        let class = Passive::here();
        let luid = Luid {
            low: LUID_BASE | index,
            high: 0,
        };
        let port = Port::start(kmd, &class, &StartInfo { luid })?;
        let (caps, features) = {
            let kmd = port.enter()?;
            let mut caps = DriverCaps::default();

            kmd.query_adapter_info(&class, AdapterQuery::DriverCaps(&mut caps));
            (
                caps,
                FeatureSet::supported(|id| kmd.query_feature_support(&class, id)),
            )
        };

        Ok(Arc::new(
            Self {
                index,
                luid,
                caps,
                features,
                port,
            },
            GFP_KERNEL,
        )?)
    }

    /// Whether the administrator has stopped it: what exists can be destroyed, and nothing new is
    /// created or opened.
    pub(crate) fn is_stopped(&self) -> bool {
        params::stopped_adapters() >> self.index & 1 != 0
    }

    /// Whether an EngineAffinity names physical adapters that exist: bit n is the n-th, and 0 means
    /// all of them (FEN-5).
    pub(crate) fn has_engines(&self, affinity: u32) -> bool {
        affinity
            .checked_shr(self.caps.physical_adapters)
            .unwrap_or(0)
            == 0
    }

    /// The payload size of a type of QueryAdapterInfo; `None` if there is no such type.
    pub(crate) fn info_size(&self, ty: u32) -> Option<Size> {
        adapter_info::payload_size(&self.caps, ty)
    }

    /// Answers QueryAdapterInfo in place.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn query_info(&self, ty: u32, payload: &mut [u8]) -> DxgResult {
        let asked = Asked {
            caps: &self.caps,
            features: self.features,
            kmd: &*self.port.enter()?,
            class: &Passive::here(),
        };

        adapter_info::query(&asked, ty, payload).map_err(|refusal| {
            match refusal {
                Refusal::InvalidParameter => Status::INVALID_PARAMETER,
                Refusal::NotSupported => Status::NOT_SUPPORTED,
            }
            .into()
        })
    }

    /// Answers IsFeatureEnabled.
    pub(crate) fn feature(&self, id: u32) -> Answer {
        feature::answer(self.features, id)
    }

    /// Private driver data of a plain allocation of so many bytes (RES-26).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn standard_allocation_data(&self, size: u64) -> DxgResult<KVVec<u8>> {
        // CAST: 32 bits fit a usize.
        let bytes = self.caps.standard_data_size as usize;
        let mut data = KVVec::from_elem(0, bytes, GFP_KERNEL_ACCOUNT)?;

        self.port
            .enter()?
            .get_standard_allocation_driver_data(&Passive::here(), size, &mut data);
        Ok(data)
    }

    /// Both clocks of a node; INVALID_PARAMETER if there is no such node.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn calibrate_clock(&self, node: u32, physical_adapter: u32) -> DxgResult<ClockData> {
        if node >= self.caps.nodes || physical_adapter >= self.caps.physical_adapters {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let kmd = self.port.enter()?;

        Ok(Dispatch::below(&Passive::here(), |class| {
            kmd.calibrate_gpu_clock(class, node, physical_adapter)
        }))
    }

    /// Gives a client's private request to the KMD, which answers in place.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn escape(&self, flags: u32, data: &mut [u8]) -> DxgResult {
        Ok(self.port.enter()?.escape(&Passive::here(), flags, data)?)
    }
}
