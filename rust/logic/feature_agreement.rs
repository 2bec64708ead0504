// SPDX-License-Identifier: GPL-2.0

//! Which features an OS part and a driver agree upon. A feature is enabled if both have a version
//! in common, what is configured leaves one of these, and so it is with what the feature needs
//! (FEN-110, FEN-114).

use super::{
    feature::{
        is_known,
        Answer,
        FeatureSet,
        Versions, //
    },
    feature_overrides::Overrides, //
};
use crate::ddi::feature::{
    FeatureSupport,
    FEATURES, //
};
use core::num::NonZero;

/// What the OS part has of every known feature: version 1 (FEN-109).
const OFFERED: Versions = Versions::only(NonZero::<u16>::MIN);

/// What an OS part and a driver have agreed upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The version of each feature; 0 if there is none in common.
    versions: [u16; FEATURES],
    enabled: FeatureSet,
    by_driver: FeatureSet,
    on_current_config: FeatureSet,
}

impl Agreed {
    /// Nothing.
    pub const NONE: Self = Self {
        versions: [0; FEATURES],
        enabled: FeatureSet::NONE,
        by_driver: FeatureSet::NONE,
        on_current_config: FeatureSet::NONE,
    };

    /// What follows from the answers of a driver: `ask` gets the ID of each known feature, in
    /// order, and whether it may be an experiment.
    pub fn with(overrides: &Overrides, mut ask: impl FnMut(u32, bool) -> FeatureSupport) -> Self {
        let mut all = Self::NONE;

        for (id, version) in (0..u64::BITS).zip(&mut all.versions) {
            if !is_known(id) {
                continue;
            }

            let own = overrides.of(id);
            let support = ask(id, own.allow_experimental);

            all.by_driver = all.by_driver.with(id, support.by_driver);
            all.on_current_config = all.on_current_config.with(id, support.on_current_config);
            *version = in_common(&support, own.offered(OFFERED)).unwrap_or(0);
        }
        all.enabled = FeatureSet::supported(|id| all.version(id) != 0);
        all
    }

    /// The version of a feature that both have, whether it is enabled or something is missing that
    /// it needs; 0 if there is none.
    fn version(&self, id: u32) -> u16 {
        // CAST: 32 bits fit a usize.
        self.versions.get(id as usize).copied().unwrap_or(0)
    }

    /// The features that are enabled.
    pub const fn enabled(&self) -> FeatureSet {
        self.enabled
    }

    /// The features that are enabled, in order, with their versions.
    pub fn each(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        (0..u64::BITS)
            .filter(|id| self.enabled.has(*id))
            .map(|id| (id, self.version(id)))
    }

    /// What IsFeatureEnabled says about the feature `id`.
    pub fn answer(&self, id: u32) -> Answer {
        if !is_known(id) {
            return Answer::UNKNOWN;
        }

        let version = match self.enabled.has(id) {
            true => self.version(id),
            false => 0,
        };

        Answer::known(
            version,
            self.by_driver.has(id),
            self.on_current_config.has(id),
        )
    }
}

/// The highest version of a feature that a driver has, of those that are offered (FEN-110).
fn in_common(support: &FeatureSupport, offered: Option<Versions>) -> Option<u16> {
    let has = support.by_driver && support.on_current_config;
    let versions = Versions::new(support.min_version, support.max_version).filter(|_| has)?;

    Some(offered?.and(versions)?.ends().1)
}
