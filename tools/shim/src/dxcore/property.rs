// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapter properties: one row each in [`value`].

use super::abi::{property, EngineName};
use super::com::HResult;
use super::facts::{Engine, Facts};

/// The bytes of a property.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// This many of the bytes.
    Small([u8; 24], usize),
    /// These.
    Text(&'a [u8]),
}

impl Value<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes, length) => bytes.get(..*length).unwrap_or_default(),
            Self::Text(text) => text,
        }
    }

    fn of(value: impl IntoIterator<Item = u8>) -> Self {
        let (mut bytes, mut length) = ([0; 24], 0);
        for (slot, byte) in bytes.iter_mut().zip(value) {
            *slot = byte;
            length += 1;
        }
        Self::Small(bytes, length)
    }

    fn words<const N: usize>(words: [u32; N]) -> Self {
        Self::of(words.into_iter().flat_map(u32::to_ne_bytes))
    }

    fn wide(value: u64) -> Self {
        Self::of(value.to_ne_bytes())
    }

    fn truth(value: bool) -> Self {
        Self::of([u8::from(value)])
    }
}

/// Whether the header has a property of this number.
fn is_known(property: u32) -> bool {
    property <= property::ENGINE_NAME
}

/// Whether a property takes an input.
fn takes_input(property: u32) -> bool {
    matches!(property, property::ENGINE_COUNT | property::ENGINE_NAME)
}

/// Why a property has no value.
fn missing(property: u32) -> HResult {
    if is_known(property) {
        HResult::DXGI_ERROR_UNSUPPORTED
    } else {
        HResult::DXGI_ERROR_INVALID_CALL
    }
}

/// The value of a property without input.
fn value(facts: &Facts, property: u32) -> Option<Value<'_>> {
    Some(match property {
        property::INSTANCE_LUID => Value::words([facts.luid.low, facts.luid.high as u32]),
        property::DRIVER_VERSION => Value::wide(facts.driver_version?),
        property::DRIVER_DESCRIPTION => Value::Text(facts.description.as_deref()?),
        property::HARDWARE_ID => {
            let ids = facts.ids?;
            // As in PnP IDs: SUBSYS has the system above the vendor.
            let subsystem = (ids.SubSystemID << 16) | (ids.SubVendorID & 0xffff);
            Value::words([ids.VendorID, ids.DeviceID, subsystem, ids.RevisionID])
        }
        property::HARDWARE_ID_PARTS => {
            let ids = facts.ids?;
            Value::words([
                ids.VendorID,
                ids.DeviceID,
                ids.SubSystemID,
                ids.SubVendorID,
                ids.RevisionID,
            ])
        }
        property::KMD_MODEL_VERSION => Value::words([facts.model?]),
        property::COMPUTE_PREEMPTION => granularity(facts.preemption?.ComputePreemptionGranularity),
        property::GRAPHICS_PREEMPTION => {
            granularity(facts.preemption?.GraphicsPreemptionGranularity)
        }
        property::DEDICATED_ADAPTER_MEMORY => Value::wide(facts.memory?.DedicatedVideoMemorySize),
        property::DEDICATED_SYSTEM_MEMORY => Value::wide(facts.memory?.DedicatedSystemMemorySize),
        property::SHARED_SYSTEM_MEMORY => Value::wide(facts.memory?.SharedSystemMemorySize),
        property::ACG_COMPATIBLE => Value::truth(facts.is_acg_compatible),
        property::IS_HARDWARE => Value::truth(facts.is_hardware),
        property::IS_INTEGRATED => Value::truth(facts.is_integrated),
        property::IS_DETACHABLE => Value::truth(facts.is_detachable),
        property::PHYSICAL_ADAPTER_COUNT => Value::words([facts.physical_adapters?]),
        _ => return None,
    })
}

fn granularity(value: u32) -> Value<'static> {
    Value::of((value as u16).to_ne_bytes())
}

/// Whether the adapter has the property.
pub(super) fn is_supported(facts: &Facts, property: u32) -> bool {
    if takes_input(property) {
        !facts.engines.is_empty()
    } else {
        value(facts, property).is_some()
    }
}

/// How large the buffer for a property has to be.
pub(super) fn size(facts: &Facts, property: u32) -> Result<usize, HResult> {
    if !is_supported(facts, property) {
        return Err(missing(property));
    }
    let value = value(facts, property);
    Ok(value.map_or(size_of::<u32>(), |value| value.bytes().len()))
}

/// GetProperty.
pub(super) fn get(facts: &Facts, property: u32) -> Result<Value<'_>, HResult> {
    if takes_input(property) && is_supported(facts, property) {
        return Err(HResult::E_INVALIDARG);
    }
    value(facts, property).ok_or(missing(property))
}

/// The input of GetPropertyWithInput.
pub(super) enum Input {
    /// For the number of engines: a physical adapter.
    PhysicalAdapter(u32),
    /// For the name of an engine.
    EngineName(EngineName),
    /// Not needed.
    None,
}

impl Input {
    /// Reads what the property needs.
    ///
    /// # Safety
    ///
    /// `input` is NULL or has `size` bytes.
    pub(super) unsafe fn read(
        facts: &Facts,
        property: u32,
        input: *const u8,
        size: usize,
    ) -> Result<Self, HResult> {
        if !is_supported(facts, property) {
            return Err(missing(property));
        }
        let needed = match property {
            property::ENGINE_COUNT => size_of::<u32>(),
            property::ENGINE_NAME => size_of::<EngineName>(),
            _ => return Ok(Self::None),
        };
        if input.is_null() {
            return Err(HResult::E_POINTER);
        }
        if size < needed {
            return Err(HResult::E_INVALIDARG);
        }
        Ok(if property == property::ENGINE_COUNT {
            // SAFETY: not null and large enough.
            Self::PhysicalAdapter(unsafe { input.cast::<u32>().read_unaligned() })
        } else {
            // SAFETY: as above.
            Self::EngineName(unsafe { input.cast::<EngineName>().read_unaligned() })
        })
    }
}

/// GetPropertyWithInput: the value, which for the name of an engine is its length.
///
/// # Safety
///
/// The name that the input points to is NULL or has as many characters as the input says.
pub(super) unsafe fn get_with<'a>(
    facts: &'a Facts,
    property: u32,
    input: &Input,
) -> Result<Answer<'a>, HResult> {
    match input {
        Input::None => get(facts, property).map(Answer::Value),
        Input::PhysicalAdapter(index) => {
            let count = engines_of(facts, *index)?.count();
            Ok(Answer::Value(Value::words([count as u32])))
        }
        Input::EngineName(input) => {
            let engine = engines_of(facts, input.physical_adapter)?
                .nth(input.engine as usize)
                .ok_or(HResult::E_INVALIDARG)?;
            let length = engine.name().count() as u32 + 1;
            if !input.name.is_null() && input.length < length {
                return Err(HResult::E_INVALIDARG);
            }
            Ok(Answer::Name {
                engine,
                to: input.name,
                length,
            })
        }
    }
}

/// What GetPropertyWithInput returns.
pub(super) enum Answer<'a> {
    /// Bytes.
    Value(Value<'a>),
    /// A name that goes to another place, and its length.
    Name {
        engine: &'a Engine,
        to: *mut u32,
        length: u32,
    },
}

impl Answer<'_> {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Value(value) => Value::of_bytes(value.bytes()),
            Self::Name { length, .. } => Value::words([*length]),
        }
    }

    /// Writes the name where the program wants it.
    ///
    /// # Safety
    ///
    /// The place is NULL or has room for the name.
    pub(super) unsafe fn put_name(&self) {
        let Self::Name { engine, to, .. } = self else {
            return;
        };
        if to.is_null() {
            return;
        }
        for (index, character) in engine.name().chain([0]).enumerate() {
            // SAFETY: the caller's promise; the length was checked.
            unsafe { to.add(index).write_unaligned(character) };
        }
    }
}

impl<'a> Value<'a> {
    fn of_bytes(bytes: &'a [u8]) -> Self {
        Self::Text(bytes)
    }
}

fn engines_of(facts: &Facts, index: u32) -> Result<impl Iterator<Item = &Engine>, HResult> {
    if index >= facts.physical_adapters.unwrap_or(1) {
        return Err(HResult::E_INVALIDARG);
    }
    let engines = facts.engines.iter();
    Ok(engines.filter(move |engine| engine.physical_adapter == index))
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::*;

    #[test]
    fn sizes_of_the_header() {
        let facts = facts();
        let sizes = [8, 8, 4, 16, 4, 0, 0, 8, 8, 8, 1, 1, 1, 1, 20, 4, 4, 4];
        for (property, expected) in (0u32..).zip(sizes) {
            let found = size(&facts, property);
            let expected = match expected {
                0 => Err(HResult::DXGI_ERROR_UNSUPPORTED),
                expected => Ok(expected),
            };
            assert_eq!(found, expected, "{property}");
            assert_eq!(is_supported(&facts, property), expected.is_ok());
        }
        assert_eq!(size(&facts, 18), Err(HResult::DXGI_ERROR_INVALID_CALL));
        assert_eq!(size_of::<EngineName>(), 24);
    }

    #[test]
    fn values() {
        let facts = facts();
        let words = |property| -> Vec<u32> {
            let value = get(&facts, property).unwrap();
            let words = value.bytes().chunks_exact(4);
            words
                .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
                .collect()
        };
        assert_eq!(words(property::INSTANCE_LUID), [7, u32::MAX]);
        assert_eq!(words(property::HARDWARE_ID), [1, 2, 0x2222_1111, 5]);
        assert_eq!(
            words(property::HARDWARE_ID_PARTS),
            [1, 2, 0x2222, 0x1111, 5]
        );
        assert_eq!(words(property::DEDICATED_ADAPTER_MEMORY), [0, 1]);
        assert_eq!(words(property::KMD_MODEL_VERSION), [3000]);
        for property in [property::ENGINE_COUNT, property::ENGINE_NAME] {
            assert_eq!(get(&facts, property), Err(HResult::E_INVALIDARG));
        }
    }

    #[test]
    fn names_of_engines() {
        let facts = facts();
        let mut name = [9; 4];
        let mut input = EngineName {
            physical_adapter: 0,
            engine: 1,
            length: 3,
            name: name.as_mut_ptr(),
        };
        let get = |input: EngineName| {
            // SAFETY: the name has four characters.
            unsafe { get_with(&facts, property::ENGINE_NAME, &Input::EngineName(input)) }
        };
        let answer = get(input).unwrap();
        assert_eq!(answer.value().bytes(), 3u32.to_ne_bytes());
        // SAFETY: as above.
        unsafe { answer.put_name() };
        assert_eq!(name, ['C' as u32, 0x1f600, 0, 9]);
        input.length = 2;
        assert!(matches!(get(input), Err(HResult::E_INVALIDARG)));
        input.name = core::ptr::null_mut();
        assert_eq!(get(input).unwrap().value().bytes(), 3u32.to_ne_bytes());
        input.engine = 2;
        assert!(matches!(get(input), Err(HResult::E_INVALIDARG)));
        (input.engine, input.physical_adapter) = (0, 1);
        assert!(matches!(get(input), Err(HResult::E_INVALIDARG)));
    }
}
