// SPDX-License-Identifier: GPL-2.0

//! What all engines of an adapter have in common.

use super::{
    aperture::Aperture,
    config::NativeInterruptMode,
    late_stores::LateStores,
    native_fences::NativeFences,
    polls::Polls,
    translations::Translations, //
};
use crate::{
    ddi::callbacks::Callbacks,
    platform::{
        PhysicalMemory,
        Shared, //
    }, //
};

/// What all engines of an adapter have in common.
pub(super) struct AdapterParts {
    pub(super) memory: Shared<PhysicalMemory>,
    pub(super) aperture: Shared<Aperture>,
    pub(super) late: Option<Shared<LateStores>>,
    pub(super) polls: Shared<Polls>,
    pub(super) native_fences: Shared<NativeFences>,
    /// All that has translations, their own, too.
    pub(super) translations: Shared<Translations>,
    pub(super) native_interrupts: NativeInterruptMode,
    /// What they interrupt by.
    pub(super) callbacks: Callbacks,
}
