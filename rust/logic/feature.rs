// SPDX-License-Identifier: GPL-2.0

//! Driver features: which are known, which an adapter has, and what IsFeatureEnabled says.
//!
//! The numbers are `DXGK_FEATURE_ID` (abi.md section 6.13), the answer is
//! `DXGK_ISFEATUREENABLED_RESULT` (section 6.1). What makes a feature enabled is in
//! [`feature_agreement`](super::feature_agreement). An ID that is not known is not an error: the
//! answer is version 0, value 0.

use core::num::NonZero;

/// Hardware scheduling.
pub const HWSCH: u32 = 0;
/// CPU events that the kernel-mode driver signals.
pub const KMD_SIGNAL_CPU_EVENT: u32 = 3;
/// HW queues that their process fills.
pub const USER_MODE_SUBMISSION: u32 = 4;
/// Native fences.
pub const NATIVE_FENCE: u32 = 37;

/// What a feature needs (FEN-110): without it the feature is not enabled.
const DEPENDENCIES: [(u32, u32); 3] = [
    (NATIVE_FENCE, HWSCH),
    (USER_MODE_SUBMISSION, HWSCH),
    (USER_MODE_SUBMISSION, NATIVE_FENCE),
];

/// Every `DXGK_FEATURE_ID` with a public name, from HWSCH 0 to PANEL_BUFFER_CONTROL 46.
const KNOWN: FeatureSet = FeatureSet::of(&[
    0, 1, 2, 3, 4, 5, 31, 32, 33, 35, 36, 37, 38, 39, 40, 41, 42, 43, 45, 46,
]);

/// The category of an ID, in its highest bits: 0 for features of a driver.
const CATEGORY: u32 = 0xf << 28;

const ENABLED: u16 = 1 << 0;
const KNOWN_FEATURE: u16 = 1 << 1;
const SUPPORTED_BY_DRIVER: u16 = 1 << 2;
const SUPPORTED_ON_CURRENT_CONFIG: u16 = 1 << 3;

/// Versions of a feature, from one to another. INVARIANT: the first one is at least 1 and not above
/// the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    min: u16,
    max: u16,
}

impl Versions {
    /// These versions, if there are any.
    pub const fn new(min: u16, max: u16) -> Option<Self> {
        if min == 0 || min > max {
            return None;
        }
        Some(Self { min, max })
    }

    /// That version alone.
    pub const fn only(version: NonZero<u16>) -> Self {
        Self {
            min: version.get(),
            max: version.get(),
        }
    }

    /// The first one and the last one.
    pub const fn ends(self) -> (u16, u16) {
        (self.min, self.max)
    }

    /// Those that both have.
    pub fn and(self, other: Self) -> Option<Self> {
        Self::new(self.min.max(other.min), self.max.min(other.max))
    }
}

/// A set of driver features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// No feature at all.
    pub const NONE: Self = Self(0);

    /// The features `ids`. An ID that no set can hold is left out.
    pub const fn of(mut ids: &[u32]) -> Self {
        let mut bits = 0;

        while let [id, rest @ ..] = ids {
            bits |= Self::bit(*id);
            ids = rest;
        }
        Self(bits)
    }

    /// The known features that `has` says a driver has, and whose dependencies it has.
    pub fn supported(mut has: impl FnMut(u32) -> bool) -> Self {
        let there = (0..u64::BITS).filter(|id| KNOWN.has(*id) && has(*id));
        let mut all = Self(there.fold(0, |bits, id| bits | Self::bit(id)));

        // In an order in which nothing that is needed goes later.
        for (id, needed) in DEPENDENCIES {
            if !all.has(needed) {
                all.0 &= !Self::bit(id);
            }
        }
        all
    }

    /// Whether the feature `id` is in the set.
    pub const fn has(self, id: u32) -> bool {
        self.0 & Self::bit(id) != 0
    }

    /// The same with `id` in it or not.
    pub const fn with(self, id: u32, is_in: bool) -> Self {
        match is_in {
            true => Self(self.0 | Self::bit(id)),
            false => Self(self.0 & !Self::bit(id)),
        }
    }

    const fn bit(id: u32) -> u64 {
        match 1u64.checked_shl(id) {
            Some(bit) => bit,
            None => 0,
        }
    }
}

/// Whether a feature is known.
pub const fn is_known(id: u32) -> bool {
    KNOWN.has(id)
}

/// The two halves of `DXGK_ISFEATUREENABLED_RESULT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `Version`: the version in use, 0 if the feature is not enabled.
    pub version: u16,
    /// `Value`: Enabled 1, KnownFeature 2, SupportedByDriver 4, SupportedOnCurrentConfig 8.
    pub value: u16,
}

impl Answer {
    /// There is no such feature.
    pub const UNKNOWN: Self = Self {
        version: 0,
        value: 0,
    };

    /// About a known feature; `version` is 0 if it is not enabled.
    pub const fn known(version: u16, by_driver: bool, on_current_config: bool) -> Self {
        let mut value = KNOWN_FEATURE;

        if version != 0 {
            value |= ENABLED;
        }
        if by_driver {
            value |= SUPPORTED_BY_DRIVER;
        }
        if on_current_config {
            value |= SUPPORTED_ON_CURRENT_CONFIG;
        }
        Self { version, value }
    }
}

/// What IsFeatureEnabled says about the feature `id` without an adapter; `None` for a feature that
/// only an adapter can have, which is one of its driver.
///
/// The other categories, of the system and of tests, have no feature with a public name, so that
/// none is known yet.
pub const fn global_answer(id: u32) -> Option<Answer> {
    if id & CATEGORY == 0 {
        return None;
    }
    Some(Answer::UNKNOWN)
}
