// SPDX-License-Identifier: GPL-2.0

//! What a double and the OS part say to each other about features while an adapter starts, so that
//! a test can look at the order and change the answers.
//!
//! A test shares this with the double by [`Behaviour::features`](super::Behaviour::features).

use crate::{
    ddi::{
        callbacks::Callbacks,
        feature::{
            FeatureSupport,
            OsInterface, //
        },
        native_fence::{
            self,
            NativeFenceCaps,
            NativeFenceFunctions, //
        }, //
    },
    platform::{
        self,
        ShortLock, //
    }, //
};

/// How many steps are remembered.
const STEPS: usize = 96;

/// Something that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// QueryFeatureSupport of a feature, and whether it may be an experiment.
    Support(u32, bool),
    /// QueryFeatureInterface of the double, in a version.
    Interface(u32, u16),
    /// IsFeatureEnabled of the OS part, and the version that it told.
    IsEnabled(u32, Option<u16>),
    /// QueryFeatureInterface of the OS part in a version, and whether it has succeeded.
    OsInterface(u32, u16, bool),
    /// GetOSCaps.
    OsCaps,
    /// QueryAdapterInfo of DRIVERCAPS.
    DriverCaps,
    /// QueryAdapterInfo of NATIVE_FENCE_CAPS.
    NativeFenceCaps,
}

/// The features of one double.
pub struct Features {
    steps: ShortLock<[Option<Step>; STEPS]>,
    /// What it answers otherwise than usual about a feature that may be an experiment or not.
    pub support: Option<fn(u32, bool, &mut FeatureSupport)>,
    /// Which functions of native fences it does not have.
    pub functions: Option<fn(&mut NativeFenceFunctions)>,
    /// What it wants of native fences otherwise than usual.
    pub native_fence_caps: Option<fn(&mut NativeFenceCaps)>,
}

impl Features {
    /// Those that it usually has; `None` if there is no memory.
    pub fn new() -> Option<Self> {
        Some(Self {
            steps: platform::short_lock!([None; STEPS], "fake::Features::steps")?,
            support: None,
            functions: None,
            native_fence_caps: None,
        })
    }

    /// The steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let steps = *self.steps.lock();

        steps.into_iter().flatten()
    }

    pub(super) fn note(&self, step: Step) {
        if let Some(place) = self.steps.lock().iter_mut().find(|place| place.is_none()) {
            *place = Some(step);
        }
    }

    /// What a driver does before it uses a feature: it asks whether it may, and what there is for
    /// it (FEN-111).
    pub(super) fn ask(&self, callbacks: &Callbacks, feature: u32) {
        let enabled = callbacks.is_feature_enabled(feature);

        self.note(Step::IsEnabled(feature, enabled));

        // Another version, which is in use by nobody.
        let version = enabled.unwrap_or(1);
        let other = version.wrapping_add(1);
        let is_refused = callbacks.query_feature_interface(feature, other).is_err();
        let interface = callbacks.query_feature_interface(feature, version);

        self.note(Step::OsInterface(feature, other, !is_refused));
        self.note(Step::OsInterface(feature, version, interface.is_ok()));
        if let Ok(OsInterface::NativeFence(services)) = interface {
            let _caps = services.os_caps();

            self.note(Step::OsCaps);
        }
    }

    pub(super) fn change_support(&self, feature: u32, experimental: bool, of: &mut FeatureSupport) {
        self.note(Step::Support(feature, experimental));
        if let Some(change) = self.support {
            change(feature, experimental, of);
        }
    }

    pub(super) fn change_functions(&self, functions: &mut NativeFenceFunctions) {
        if let Some(change) = self.functions {
            change(functions);
        }
    }

    pub(super) fn change_caps(&self, caps: &mut NativeFenceCaps) {
        self.note(Step::NativeFenceCaps);
        if let Some(change) = self.native_fence_caps {
            change(caps);
        }
    }
}

/// Whether a feature has functions of its own.
pub(super) fn has_functions(feature: u32) -> bool {
    feature == native_fence::FEATURE
}
