// SPDX-License-Identifier: MIT OR Apache-2.0
//! OBJECT_ATTRIBUTES with the memory they refer to.

use opendxg::uapi::*;

/// A name and what belongs to it. Every member may be made wrong before use.
pub struct Attributes {
    /// The struct that the call gets. `ObjectName` is filled in by [`Attributes::address`].
    pub head: OBJECT_ATTRIBUTES,
    /// The counted string, or none.
    pub name: Option<UNICODE_STRING>,
    units: Vec<u16>,
}

impl Attributes {
    /// Attributes without a name.
    pub fn unnamed() -> Box<Self> {
        Box::new(Self {
            head: OBJECT_ATTRIBUTES {
                Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
                ..Default::default()
            },
            name: None,
            units: Vec::new(),
        })
    }

    /// Attributes with this name.
    pub fn named(name: &str) -> Box<Self> {
        Self::from_units(name.encode_utf16().collect())
    }

    /// Attributes with a name of these code units, valid text or not.
    pub fn from_units(units: Vec<u16>) -> Box<Self> {
        let mut attributes = Self::unnamed();
        attributes.units = units;
        let bytes = 2 * attributes.units.len() as u16;
        attributes.name = Some(UNICODE_STRING {
            Length: bytes,
            MaximumLength: bytes,
            Buffer: attributes.units.as_ptr() as u64,
            ..Default::default()
        });
        attributes
    }

    /// With these `OBJ_*` bits.
    pub fn bits(mut self: Box<Self>, bits: u32) -> Box<Self> {
        self.head.Attributes = bits;
        self
    }

    /// The address for a call; valid while `self` is neither moved out of its box nor dropped.
    pub fn address(&mut self) -> u64 {
        if let Some(name) = &self.name {
            if self.head.ObjectName == 0 {
                self.head.ObjectName = (&raw const *name) as u64;
            }
        }
        (&raw const self.head) as u64
    }
}
