// SPDX-License-Identifier: GPL-2.0

//! Features of a driver (`DXGK_FEATURE_ID`): which versions of them it has, and what both sides
//! have for each other once a version is agreed upon (FEN-110, FEN-111).

use super::native_fence::{
    NativeFenceFunctions,
    NativeFenceServices, //
};

/// How many features there can be; IDs are below.
pub const FEATURES: usize = 64;

/// What QueryFeatureSupport answers about a feature (`DXGKARG_QUERYFEATURESUPPORT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureSupport {
    /// `SupportedByDriver`: the driver implements it.
    pub by_driver: bool,
    /// `SupportedOnCurrentConfig`: it can be used with this GPU.
    pub on_current_config: bool,
    /// `MinSupportedVersion`: the first version that the driver implements, at least 1.
    pub min_version: u16,
    /// `MaxSupportedVersion`: the last one.
    pub max_version: u16,
}

impl FeatureSupport {
    /// The driver does not implement it.
    pub const NONE: Self = Self {
        by_driver: false,
        on_current_config: false,
        min_version: 0,
        max_version: 0,
    };

    /// It can be used in these versions.
    pub const fn versions(min_version: u16, max_version: u16) -> Self {
        Self {
            by_driver: true,
            on_current_config: true,
            min_version,
            max_version,
        }
    }

    /// Whether a driver can mean this.
    pub const fn makes_sense(&self) -> bool {
        !self.by_driver || self.min_version != 0 && self.min_version <= self.max_version
    }
}

/// What a driver has for a feature (`DXGKARG_QUERYFEATUREINTERFACE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverInterface {
    /// Nothing more than entries that every driver has.
    Plain,
    /// Which functions it has for native fences.
    NativeFence(NativeFenceFunctions),
}

/// What the OS part has for a feature (`DXGKARGCB_QUERYFEATUREINTERFACE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OsInterface {
    /// Nothing more than callbacks that every driver gets.
    Plain,
    /// What a driver with native fences may ask.
    NativeFence(NativeFenceServices),
}
