// SPDX-License-Identifier: GPL-2.0

//! What is configured about the features of one adapter (FEN-114). It takes away from what the OS
//! part and the driver have, and adds nothing.
//!
//! It is written as a line of text for each feature: its ID, and what is not as it is by itself.

use super::{
    feature::{
        self,
        Versions, //
    },
    Invalid, //
};
use crate::ddi::feature::FEATURES;

/// What is configured about one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// `Enabled`: whether the OS part has it.
    pub enabled: bool,
    /// `MinVersion` and `MaxVersion`: of which versions, if not of all.
    pub versions: Option<Versions>,
    /// `AllowExperimental`: whether the driver may have it as an experiment.
    pub allow_experimental: bool,
}

impl Override {
    /// Nothing is.
    const NONE: Self = Self {
        enabled: true,
        versions: None,
        allow_experimental: true,
    };

    /// What is left of what the OS part has.
    pub(super) fn offered(&self, all: Versions) -> Option<Versions> {
        match self.versions {
            _ if !self.enabled => None,
            Some(versions) => all.and(versions),
            None => Some(all),
        }
    }

    /// The words of a line. Each comes once at most.
    fn read<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, Invalid> {
        let (mut enabled, mut min, mut max, mut experimental) = (None, None, None, None);

        for word in words {
            let (name, value) = split(word, b'=').ok_or(Invalid)?;
            let place = match name {
                b"enabled" => &mut enabled,
                b"min_version" => &mut min,
                b"max_version" => &mut max,
                b"allow_experimental" => &mut experimental,
                _ => return Err(Invalid),
            };

            if place.replace(number(value)?).is_some() {
                return Err(Invalid);
            }
        }
        Ok(Self {
            enabled: flag(enabled)?,
            versions: match (min, max) {
                (None, None) => None,
                (Some(min), Some(max)) => Some(Versions::new(min, max).ok_or(Invalid)?),
                _ => return Err(Invalid),
            },
            allow_experimental: flag(experimental)?,
        })
    }
}

/// What is configured about all features of an adapter.
#[derive(Clone)]
pub struct Overrides([Override; FEATURES]);

impl Overrides {
    /// Nothing is.
    pub const NONE: Self = Self([Override::NONE; FEATURES]);

    /// What is configured about a feature.
    pub fn of(&self, id: u32) -> Override {
        // CAST: 32 bits fit a usize.
        self.0.get(id as usize).copied().unwrap_or(Override::NONE)
    }

    /// The features about which something is, in order.
    pub fn each(&self) -> impl Iterator<Item = (u32, Override)> + '_ {
        (0..)
            .zip(self.0.iter().copied())
            .filter(|(_, own)| *own != Override::NONE)
    }

    /// Takes a line as what there is about its feature. The ID alone is for nothing.
    pub fn set(&mut self, line: &[u8]) -> Result<(), Invalid> {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let id = number(words.next().ok_or(Invalid)?)?;
        let own = Override::read(words)?;

        if !feature::is_known(id.into()) {
            return Err(Invalid);
        }
        *self.0.get_mut(usize::from(id)).ok_or(Invalid)? = own;
        Ok(())
    }
}

/// What is before the first `at` in a text, and what is behind it.
fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;

    Some((text.get(..place)?, text.get(place.checked_add(1)?..)?))
}

/// A number of 16 bits.
fn number(text: &[u8]) -> Result<u16, Invalid> {
    let text = core::str::from_utf8(text).map_err(|_| Invalid)?;

    match text.starts_with(|first: char| first.is_ascii_digit()) {
        true => text.parse().map_err(|_| Invalid),
        false => Err(Invalid),
    }
}

/// Yes or no; yes if nothing is said.
fn flag(value: Option<u16>) -> Result<bool, Invalid> {
    match value {
        Some(0) => Ok(false),
        Some(1) | None => Ok(true),
        Some(_) => Err(Invalid),
    }
}
