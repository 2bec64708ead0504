// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapter attributes, and the filters that lists are made with.
//!
//! An adapter's type says what it is for (`D3DKMT_ADAPTERTYPE`): one that renders has the graphics
//! attributes and core compute, one that only computes has core compute. Whether a user-mode
//! driver is installed does not matter. Machine learning, media and the type of the hardware are
//! what the driver declares: GUIDs as text in the value `DXCoreAttributes` of the adapter's key
//! (QUERYREGISTRY). Without a declared type an adapter that renders is a GPU, and any other a
//! compute accelerator.

use core::mem::size_of;

use opendxg::uapi::*;

use super::abi::{self, workload};
use super::com::{Guid, HResult};
use super::kmt::OpenAdapter;

/// Attributes, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes(u32);

impl Attributes {
    const NONE: Self = Self(0);
    const D3D11_GRAPHICS: Self = Self(1 << 0);
    const D3D12_GRAPHICS: Self = Self(1 << 1);
    const CORE_COMPUTE: Self = Self(1 << 2);
    const GENERIC_ML: Self = Self(1 << 3);
    const GENERIC_MEDIA: Self = Self(1 << 4);
    const GPU: Self = Self(1 << 8);
    const COMPUTE_ACCELERATOR: Self = Self(1 << 9);
    const NPU: Self = Self(1 << 10);
    const MEDIA_ACCELERATOR: Self = Self(1 << 11);

    /// What can be declared.
    const DECLARABLE: Self = Self::GENERIC_ML.with(Self::GENERIC_MEDIA).with(Self::TYPES);
    const TYPES: Self = Self::GPU
        .with(Self::COMPUTE_ACCELERATOR)
        .with(Self::NPU)
        .with(Self::MEDIA_ACCELERATOR);
    /// What the adapter can be used for.
    const USES: Self = Self(0xff);

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The attribute that a GUID names.
    fn named(guid: &Guid) -> Option<Self> {
        let names = [
            (abi::D3D11_GRAPHICS, Self::D3D11_GRAPHICS),
            (abi::D3D12_GRAPHICS, Self::D3D12_GRAPHICS),
            (abi::D3D12_CORE_COMPUTE, Self::CORE_COMPUTE),
            (abi::D3D12_GENERIC_ML, Self::GENERIC_ML),
            (abi::D3D12_GENERIC_MEDIA, Self::GENERIC_MEDIA),
            (abi::TYPE_GPU, Self::GPU),
            (abi::TYPE_COMPUTE_ACCELERATOR, Self::COMPUTE_ACCELERATOR),
            (abi::TYPE_NPU, Self::NPU),
            (abi::TYPE_MEDIA_ACCELERATOR, Self::MEDIA_ACCELERATOR),
        ];
        let found = names.iter().find(|(name, _)| name == guid);
        found.map(|(_, attribute)| *attribute)
    }

    /// Whether the attribute that a GUID names is among these.
    pub(super) fn has(self, guid: &Guid) -> bool {
        Self::named(guid).is_some_and(|attribute| self.has_all(attribute))
    }

    /// The attributes of an adapter.
    pub(super) fn of(adapter: &OpenAdapter<'_>, kind: u32) -> Self {
        Self::derived(kind, declared(adapter))
    }

    fn derived(kind: u32, declared: Self) -> Self {
        let uses = if kind & D3DKMT_ADAPTERTYPE_ComputeOnly != 0 {
            Self::CORE_COMPUTE
        } else if kind & D3DKMT_ADAPTERTYPE_RenderSupported != 0 {
            Self::D3D11_GRAPHICS
                .with(Self::D3D12_GRAPHICS)
                .with(Self::CORE_COMPUTE)
        } else {
            Self::NONE
        };
        let declared = declared.and(Self::DECLARABLE);
        // Exactly one.
        let types = [
            Self::NPU,
            Self::MEDIA_ACCELERATOR,
            Self::COMPUTE_ACCELERATOR,
            Self::GPU,
        ];
        let inferred = if uses.has_any(Self::D3D12_GRAPHICS) {
            Self::GPU
        } else {
            Self::COMPUTE_ACCELERATOR
        };
        let kind = types.into_iter().find(|kind| declared.has_all(*kind));
        uses.with(Self(declared.0 & !Self::TYPES.0))
            .with(kind.unwrap_or(inferred))
    }

    /// How much the adapter can be used for; less is more specialised.
    pub(super) const fn generality(self) -> u32 {
        self.and(Self::USES).0.count_ones()
    }
}

/// What a list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Adapters with all these attributes.
    All(Attributes),
    /// No adapter: an attribute is not known.
    Nothing,
    /// Adapters for a workload.
    Workload {
        /// Any of these...
        uses: Attributes,
        /// ...and any of these, if there are some...
        runtimes: Attributes,
        /// ...and any of these, if there are some.
        hardware: Attributes,
    },
}

impl Filter {
    /// The filter of CreateAdapterList.
    pub(super) fn all(guids: impl Iterator<Item = Guid>) -> Self {
        let mut all = Attributes::NONE;
        for guid in guids {
            match Attributes::named(&guid) {
                Some(attribute) => all = all.with(attribute),
                None => return Self::Nothing,
            }
        }
        Self::All(all)
    }

    /// The filter of CreateAdapterListByWorkload.
    pub(super) fn workload(workload: u32, runtimes: u32, hardware: u32) -> Result<Self, HResult> {
        if runtimes > 0x3 || hardware > 0xf {
            return Err(HResult::E_INVALIDARG);
        }
        let graphics = Attributes::D3D11_GRAPHICS.with(Attributes::D3D12_GRAPHICS);
        let uses = match workload {
            workload::GRAPHICS => graphics,
            workload::COMPUTE => Attributes::CORE_COMPUTE,
            workload::MEDIA => Attributes::GENERIC_MEDIA.with(graphics),
            workload::MACHINE_LEARNING => Attributes::GENERIC_ML.with(Attributes::CORE_COMPUTE),
            _ => return Err(HResult::E_INVALIDARG),
        };
        let d3d12 = Attributes::USES.0 & !Attributes::D3D11_GRAPHICS.0;
        let chosen = |flags: u32, meaning: &[Attributes]| {
            let set = meaning.iter().enumerate();
            set.filter(|(bit, _)| (flags >> bit) & 1 != 0)
                .fold(Attributes::NONE, |all, (_, attribute)| all.with(*attribute))
        };
        Ok(Self::Workload {
            uses,
            runtimes: chosen(runtimes, &[Attributes::D3D11_GRAPHICS, Attributes(d3d12)]),
            hardware: chosen(
                hardware,
                &[
                    Attributes::GPU,
                    Attributes::COMPUTE_ACCELERATOR,
                    Attributes::NPU,
                    Attributes::MEDIA_ACCELERATOR,
                ],
            ),
        })
    }

    /// Whether an adapter with these attributes belongs into the list.
    pub(super) fn admits(self, attributes: Attributes) -> bool {
        let any = |wanted: Attributes| wanted == Attributes::NONE || attributes.has_any(wanted);
        match self {
            Self::All(wanted) => attributes.has_all(wanted),
            Self::Nothing => false,
            Self::Workload {
                uses,
                runtimes,
                hardware,
            } => attributes.has_any(uses) && any(runtimes) && any(hardware),
        }
    }
}

/// The value that holds what a driver declares.
const VALUE_NAME: &str = "DXCoreAttributes";

/// Where the value starts in the payload, and how long it may be.
const VALUE: usize = 544;
const VALUE_BYTES: usize = 2048;

#[repr(C, align(8))]
struct Registry {
    info: [u8; VALUE],
    value: [u8; VALUE_BYTES],
}

/// What the driver declares.
fn declared(adapter: &OpenAdapter<'_>) -> Attributes {
    let mut query = Registry {
        info: [0; VALUE],
        value: [0; VALUE_BYTES],
    };
    let kind = D3DDDI_QUERYREGISTRY_ADAPTERKEY.to_ne_bytes();
    query.info[..4].copy_from_slice(&kind);
    let name = VALUE_NAME.bytes().map(u16::from);
    for (slot, unit) in query.info[8..528].chunks_exact_mut(2).zip(name) {
        slot.copy_from_slice(&unit.to_ne_bytes());
    }
    let bytes = (&raw mut query).cast();
    // SAFETY: the address and the size are those of `query`, which holds no addresses.
    let asked =
        unsafe { adapter.ask_bytes(KMTQAITYPE_QUERYREGISTRY, bytes, size_of::<Registry>()) };
    let word = |at: usize| {
        let bytes = query.info.get(at..at + 4).and_then(|it| it.try_into().ok());
        u32::from_ne_bytes(bytes.unwrap_or_default())
    };
    let (length, state) = (word(536) as usize, word(540));
    match query.value.get(..length) {
        Some(value) if asked.is_ok() && state == D3DDDI_QUERYREGISTRY_STATUS_SUCCESS => {
            named_in(value)
        }
        _ => Attributes::NONE,
    }
}

/// The attributes that a UTF-16 text names: GUIDs with anything between them.
fn named_in(value: &[u8]) -> Attributes {
    let mut all = Attributes::NONE;
    let mut text = [0u8; 36];
    let mut length = None;
    for unit in value.chunks_exact(2) {
        let unit = u16::from_ne_bytes([unit[0], unit[1]]);
        let byte = u8::try_from(unit).unwrap_or(0);
        match (byte, length) {
            (b'{', _) => length = Some(0),
            (b'}', Some(36)) => {
                let attribute = guid(&text).and_then(|guid| Attributes::named(&guid));
                all = all.with(attribute.unwrap_or_default());
                length = None;
            }
            (_, Some(at)) => {
                length = text.get_mut(at).map(|slot| {
                    *slot = byte;
                    at + 1
                });
            }
            _ => {}
        }
    }
    all
}

/// Reads `8c47866b-7583-450d-f0f0-6bada895af4b`.
fn guid(text: &[u8; 36]) -> Option<Guid> {
    let text = core::str::from_utf8(text).ok()?;
    let mut parts = text.split('-');
    let mut part = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits)?;
        u64::from_str_radix(part, 16).ok()
    };
    let (first, second, third) = (part(8)?, part(4)?, part(4)?);
    let last = (part(4)? << 48) | part(12)?;
    Some(Guid(
        first as u32,
        second as u16,
        third as u16,
        last.to_be_bytes(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENDERS: u32 = D3DKMT_ADAPTERTYPE_RenderSupported;
    const COMPUTES: u32 = D3DKMT_ADAPTERTYPE_ComputeOnly;

    fn gpu() -> Attributes {
        Attributes::derived(RENDERS, Attributes::NONE)
    }

    fn npu() -> Attributes {
        let declared = Attributes::NPU.with(Attributes::GENERIC_ML);
        Attributes::derived(COMPUTES, declared)
    }

    #[test]
    fn the_type_of_the_adapter_decides() {
        for guid in [
            abi::D3D11_GRAPHICS,
            abi::D3D12_GRAPHICS,
            abi::D3D12_CORE_COMPUTE,
            abi::TYPE_GPU,
        ] {
            assert!(gpu().has(&guid), "{guid:x?}");
        }
        for guid in [
            abi::D3D12_GENERIC_ML,
            abi::D3D12_GENERIC_MEDIA,
            abi::TYPE_NPU,
            abi::TYPE_COMPUTE_ACCELERATOR,
            abi::IID_ADAPTER,
        ] {
            assert!(!gpu().has(&guid), "{guid:x?}");
        }
        let accelerator = Attributes::derived(RENDERS | COMPUTES, Attributes::NONE);
        assert!(accelerator.has(&abi::D3D12_CORE_COMPUTE));
        assert!(accelerator.has(&abi::TYPE_COMPUTE_ACCELERATOR));
        assert!(!accelerator.has(&abi::D3D12_GRAPHICS));
    }

    #[test]
    fn a_driver_declares_machine_learning_but_not_graphics() {
        assert!(npu().has(&abi::D3D12_GENERIC_ML) && npu().has(&abi::TYPE_NPU));
        let all = Attributes(u32::MAX);
        let greedy = Attributes::derived(COMPUTES, all);
        assert!(!greedy.has(&abi::D3D11_GRAPHICS));
        assert_eq!(greedy.and(Attributes::TYPES).0.count_ones(), 1);
    }

    #[test]
    fn declarations_are_guids_in_a_text() {
        let text =
            "{B71B0D41-1088-422F-A27C-0250B7D3A988}\0{d46140c4-add7-451b-9e56-06fe8c3b58ed}\0\0";
        let bytes = |text: &str| -> Vec<u8> {
            let units = text.encode_utf16();
            units.flat_map(u16::to_ne_bytes).collect()
        };
        let expected = Attributes::GENERIC_ML.with(Attributes::NPU);
        assert_eq!(named_in(&bytes(text)), expected);
        for text in [
            "",
            "{",
            "}",
            "{}",
            "{b71b0d41-1088-422f-a27c-0250b7d3a98}",
            "{b71b0d41-1088-422f-a27c-0250b7d3a9888}",
            "{b71b0d411088-422f-a27c-0250b7d3a988-00}",
            "{00000000-0000-0000-0000-000000000000}",
            "{b71b0d41-1088-422f-a27c-0250b7d3\u{e9}a88}",
        ] {
            assert_eq!(named_in(&bytes(text)), Attributes::NONE, "{text}");
        }
        assert_eq!(named_in(b"{"), Attributes::NONE);
    }

    #[test]
    fn a_filter_wants_all_attributes() {
        let list = |guids: &[Guid]| Filter::all(guids.iter().copied());
        assert!(list(&[abi::D3D12_GRAPHICS, abi::TYPE_GPU]).admits(gpu()));
        assert!(!list(&[abi::D3D12_GRAPHICS, abi::TYPE_NPU]).admits(gpu()));
        assert!(!list(&[abi::D3D12_GRAPHICS, abi::IID_LIST]).admits(gpu()));
    }

    #[test]
    fn workloads() {
        let list =
            |workload, runtimes, hardware| Filter::workload(workload, runtimes, hardware).unwrap();
        for workload in 0..4 {
            assert!(list(workload, 0, 0).admits(gpu()), "{workload}");
            assert!(list(workload, 3, 0xf).admits(gpu()), "{workload}");
            assert!(!list(workload, 0, 0b1110).admits(gpu()), "{workload}");
        }
        assert!(!list(0, 0, 0).admits(npu()) && !list(2, 0, 0).admits(npu()));
        assert!(list(1, 2, 0b100).admits(npu()) && list(3, 2, 0b100).admits(npu()));
        assert!(!list(3, 1, 0).admits(npu()));
        for (workload, runtimes, hardware) in [(4, 0, 0), (0, 4, 0), (0, 0, 16), (u32::MAX, 0, 0)] {
            let refused = Filter::workload(workload, runtimes, hardware);
            assert_eq!(refused, Err(HResult::E_INVALIDARG));
        }
        assert!(npu().generality() < gpu().generality());
    }
}
