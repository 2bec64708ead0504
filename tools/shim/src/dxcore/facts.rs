// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an adapter says about itself. It is read once, when the adapter is first seen: properties
//! do not change while an adapter lives, and can be asked for when it is gone.

use opendxg::uapi::*;

use super::abi::Luid;
use super::attributes::Attributes;
use super::com::HResult;
use super::identity::{self, Identity};
use super::kmt::{OpenAdapter, Plain};

/// Units of an engine's name.
const NAME_UNITS: usize = 32;

/// As many engines of one physical adapter as are looked for.
const MAX_ENGINES: u32 = 256;

/// `IsHybridIntegratedGPU` of `D3DKMT_WDDM_1_3_CAPS`.
const IS_HYBRID_INTEGRATED: u32 = 1 << 1;

/// An engine: one that the driver calls a node.
pub(super) struct Engine {
    pub(super) physical_adapter: u32,
    name: [u16; NAME_UNITS],
}

impl Engine {
    /// The characters of its name.
    pub(super) fn name(&self) -> impl Iterator<Item = u32> + '_ {
        let units = self.name.iter().copied().take_while(|&unit| unit != 0);
        char::decode_utf16(units).map(|unit| u32::from(unit.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

/// The answers; `None` where the driver has none.
pub(super) struct Facts {
    pub(super) luid: Luid,
    pub(super) attributes: Attributes,
    pub(super) driver_version: Option<u64>,
    /// UTF-8 with its terminator.
    pub(super) description: Option<Vec<u8>>,
    pub(super) ids: Option<D3DKMT_DEVICE_IDS>,
    pub(super) model: Option<u32>,
    pub(super) preemption: Option<D3DKMDT_PREEMPTION_CAPS>,
    pub(super) memory: Option<D3DKMT_SEGMENTSIZEINFO>,
    pub(super) is_acg_compatible: bool,
    pub(super) is_hardware: bool,
    pub(super) is_integrated: bool,
    pub(super) is_detachable: bool,
    pub(super) physical_adapters: Option<u32>,
    pub(super) engines: Vec<Engine>,
}

impl Facts {
    /// Asks the adapter.
    pub(super) fn of(adapter: &OpenAdapter<'_>) -> Result<Self, HResult> {
        let kind = adapter
            .answer::<u32>(KMTQAITYPE_ADAPTERTYPE_RENDER)
            .or_else(|| adapter.answer(KMTQAITYPE_ADAPTERTYPE))
            .unwrap_or(0);
        let caps = adapter.answer::<u32>(KMTQAITYPE_WDDM_1_3_CAPS).unwrap_or(0);
        let is = |bit| kind & bit != 0;
        let physical_adapters = adapter.answer::<u32>(KMTQAITYPE_PHYSICALADAPTERCOUNT);
        let mut facts = Self {
            luid: adapter.luid(),
            attributes: Attributes::of(adapter, kind),
            driver_version: driver_version(adapter),
            description: description(adapter)?,
            ids: adapter
                .answer::<D3DKMT_QUERY_DEVICE_IDS>(KMTQAITYPE_PHYSICALADAPTERDEVICEIDS)
                .map(|answer| answer.DeviceIds),
            model: adapter.answer(KMTQAITYPE_DRIVERVERSION),
            preemption: adapter
                .answer::<D3DKMT_WDDM_1_2_CAPS>(KMTQAITYPE_WDDM_1_2_CAPS)
                .map(|answer| answer.PreemptionCaps),
            memory: adapter.answer(KMTQAITYPE_GETSEGMENTSIZE),
            is_acg_compatible: is(D3DKMT_ADAPTERTYPE_ACGSupported),
            is_hardware: !is(D3DKMT_ADAPTERTYPE_SoftwareDevice),
            is_integrated: is(D3DKMT_ADAPTERTYPE_HybridIntegrated)
                || caps & IS_HYBRID_INTEGRATED != 0,
            is_detachable: is(D3DKMT_ADAPTERTYPE_Detachable),
            physical_adapters,
            engines: engines(adapter, physical_adapters.unwrap_or(1))?,
        };
        if is(D3DKMT_ADAPTERTYPE_SoftwareDevice) {
            identity::from_environment(|identity| facts.pose(identity))?;
        }
        Ok(facts)
    }

    /// Makes the adapter look as a developer wants it.
    fn pose(&mut self, identity: Identity<'_>) -> Result<(), HResult> {
        if let Some(text) = identity.description {
            self.description = Some(terminated(text.chars())?);
        }
        if identity.vendor.is_some() || identity.device.is_some() {
            let ids = self.ids.get_or_insert_with(Default::default);
            ids.VendorID = identity.vendor.unwrap_or(ids.VendorID);
            ids.DeviceID = identity.device.unwrap_or(ids.DeviceID);
        }
        self.is_hardware = identity.is_hardware.unwrap_or(self.is_hardware);
        Ok(())
    }
}

/// The version of the user-mode driver, or without one that of the kernel-mode driver.
fn driver_version(adapter: &OpenAdapter<'_>) -> Option<u64> {
    let user = adapter.answer::<u64>(KMTQAITYPE_UMD_DRIVER_VERSION);
    user.filter(|&version| version != 0)
        .or_else(|| adapter.answer(KMTQAITYPE_KMD_DRIVER_VERSION))
}

fn description(adapter: &OpenAdapter<'_>) -> Result<Option<Vec<u8>>, HResult> {
    let mut answer = D3DKMT_DRIVER_DESCRIPTION::zeroed();
    if adapter
        .ask(KMTQAITYPE_DRIVER_DESCRIPTION_RENDER, &mut answer)
        .is_err()
        && adapter
            .ask(KMTQAITYPE_DRIVER_DESCRIPTION, &mut answer)
            .is_err()
    {
        return Ok(None);
    }
    let units = answer.DriverDescription.iter().copied();
    let text = char::decode_utf16(units.take_while(|&unit| unit != 0));
    terminated(text.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))).map(Some)
}

/// The text in UTF-8, with a terminator.
fn terminated(text: impl Iterator<Item = char> + Clone) -> Result<Vec<u8>, HResult> {
    let length = text.clone().map(char::len_utf8).sum::<usize>() + 1;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length)
        .map_err(|_| HResult::E_OUTOFMEMORY)?;
    for character in text {
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    bytes.push(0);
    Ok(bytes)
}

/// The engines of all physical adapters, in order.
fn engines(adapter: &OpenAdapter<'_>, physical_adapters: u32) -> Result<Vec<Engine>, HResult> {
    let mut engines = Vec::new();
    for physical_adapter in 0..physical_adapters.min(0x40) {
        for engine in 0..MAX_ENGINES {
            let mut answer = D3DKMT_NODEMETADATA::zeroed();
            answer.NodeOrdinalAndAdapterIndex = engine | (physical_adapter << 16);
            if adapter.ask(KMTQAITYPE_NODEMETADATA, &mut answer).is_err() {
                break;
            }
            engines.try_reserve(1).map_err(|_| HResult::E_OUTOFMEMORY)?;
            engines.push(Engine {
                physical_adapter,
                name: answer.NodeData.FriendlyName,
            });
        }
    }
    Ok(engines)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A software adapter with two engines.
    pub(in super::super) fn facts() -> Facts {
        let engine = |physical_adapter, text: &str| {
            let mut name = [0; NAME_UNITS];
            name.iter_mut()
                .zip(text.encode_utf16())
                .for_each(|(slot, unit)| *slot = unit);
            Engine {
                physical_adapter,
                name,
            }
        };
        Facts {
            luid: Luid { low: 7, high: -1 },
            attributes: Attributes::default(),
            driver_version: Some(0x0001_0002_0003_0004),
            description: Some(b"gpu\0".to_vec()),
            ids: Some(D3DKMT_DEVICE_IDS {
                VendorID: 1,
                DeviceID: 2,
                SubVendorID: 0x1111,
                SubSystemID: 0x2222,
                RevisionID: 5,
                BusType: 0,
            }),
            model: Some(3000),
            preemption: None,
            memory: Some(D3DKMT_SEGMENTSIZEINFO {
                DedicatedVideoMemorySize: 1 << 32,
                DedicatedSystemMemorySize: 2,
                SharedSystemMemorySize: 3,
            }),
            is_acg_compatible: false,
            is_hardware: false,
            is_integrated: false,
            is_detachable: false,
            physical_adapters: Some(1),
            engines: vec![engine(0, "3D"), engine(0, "C\u{1f600}")],
        }
    }

    #[test]
    fn a_pose_changes_what_it_names_and_nothing_else() {
        let mut facts = facts();
        let identity = Identity {
            vendor: Some(0x8086),
            description: Some("\u{e9}"),
            ..Identity::default()
        };
        facts.pose(identity).unwrap();
        let ids = facts.ids.unwrap();
        assert_eq!((ids.VendorID, ids.DeviceID), (0x8086, 2));
        assert_eq!(facts.description.as_deref(), Some(&b"\xc3\xa9\0"[..]));
        assert!(!facts.is_hardware);
    }
}
