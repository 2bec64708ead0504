// SPDX-License-Identifier: GPL-2.0

//! What is asked of a driver that has just started, in which order, and which drivers an adapter
//! does not start with.

use super::{
    feature::{
        FeatureSet,
        NATIVE_FENCE, //
    },
    feature_agreement::Agreed,
    feature_overrides::Overrides,
    kept_pages,
    page_levels::Levels,
    paging_scratch::PagingSpace, //
};
use crate::ddi::{
    callbacks::Record,
    caps::{
        AdapterQuery,
        DriverCaps,
        PageTableUpdateMode, //
    },
    class::Passive,
    feature::DriverInterface,
    native_fence::{
        NativeFenceCaps,
        NativeFenceFunctions, //
    },
    types::{
        KmdError,
        KmdResult, //
    },
    Kmd, //
};

/// What a driver has answered.
pub struct Answers {
    /// What it says about its adapter.
    pub caps: DriverCaps,
    /// The features that are in use.
    pub features: Agreed,
    /// What it wants of native fences, if it has any.
    pub native_fences: Option<NativeFenceCaps>,
}

/// Asks a driver that was started (FEN-110, FEN-111): first for its features; then it hears by
/// `record` which of them are enabled, and says what it has for each; then for its caps, which may
/// depend on that.
///
/// Fails as the driver does, or as the checks say that follow.
pub fn ask(
    kmd: &dyn Kmd,
    class: &Passive,
    record: &Record,
    overrides: &Overrides,
) -> KmdResult<Answers> {
    let features = Agreed::with(overrides, |id, allow_experimental| {
        kmd.query_feature_support(class, id, allow_experimental)
    });

    for (id, version) in features.each() {
        record.enable(id, version);
    }
    for (id, version) in features.each() {
        check_interface(id, kmd.query_feature_interface(class, id, version)?)?;
    }

    let mut caps = DriverCaps::default();

    kmd.query_adapter_info(class, AdapterQuery::DriverCaps(&mut caps));
    check(&caps, features.enabled())?;

    let has_addresses = caps.gpu_mmu.page_table_levels != 0;
    let mut native_fences = None;

    if features.enabled().has(NATIVE_FENCE) {
        let mut caps = NativeFenceCaps::default();

        kmd.query_adapter_info(class, AdapterQuery::NativeFenceCaps(&mut caps));
        check_native_fences(&caps, has_addresses)?;
        native_fences = Some(caps);
    }
    Ok(Answers {
        caps,
        features,
        native_fences,
    })
}

/// Whether a driver has what a feature needs.
///
/// InvalidParameter: a function of native fences is missing (FEN-111).
fn check_interface(id: u32, interface: DriverInterface) -> KmdResult {
    let is_complete = match interface {
        DriverInterface::NativeFence(functions) => functions == NativeFenceFunctions::ALL,
        DriverInterface::Plain => id != NATIVE_FENCE,
    };

    match is_complete {
        true => Ok(()),
        false => Err(KmdError::InvalidParameter),
    }
}

/// Whether an adapter can start with a driver that has these caps, and these features are enabled.
///
/// NotSupported: the GPU cannot change 64 bits at once, which fences need (FEN-7).
/// The same: the driver has swizzling ranges, which there are no entries for (MEM-91).
/// InvalidParameter: the driver says that it has native fences, and the feature is not enabled
/// (FEN-112).
pub fn check(caps: &DriverCaps, enabled: FeatureSet) -> Result<(), KmdError> {
    if caps.no_64_bit_atomics || caps.swizzling_ranges != 0 {
        return Err(KmdError::NotSupported);
    }
    if caps.native_gpu_fence && !enabled.has(NATIVE_FENCE) {
        return Err(KmdError::InvalidParameter);
    }
    Ok(())
}

/// Whether there can be native fences as a driver wants them.
///
/// InvalidParameter: the distance makes no sense, or the driver has not answered (FEN-61, FEN-111).
/// NotSupported: words in the paging process of a GPU without addresses.
pub fn check_native_fences(caps: &NativeFenceCaps, has_addresses: bool) -> Result<(), KmdError> {
    if !caps.stride.is_power_of_two() || !(8..=4096).contains(&caps.stride) {
        return Err(KmdError::InvalidParameter);
    }
    if caps.map_to_gpu_system_process && !has_addresses {
        return Err(KmdError::NotSupported);
    }
    Ok(())
}

/// How the addresses of the paging process are divided, if there is to be one: for a paging node,
/// or for fences.
///
/// InvalidParameter: the paging node is to update page tables, and there is none, or fences are
/// wanted where there is no room for them.
pub fn paging_space(
    caps: &DriverCaps,
    native_fences: &NativeFenceCaps,
    levels: Option<&Levels>,
) -> KmdResult<Option<PagingSpace>> {
    let by_node = caps.gpu_mmu.page_table_update_mode != PageTableUpdateMode::CpuVirtual;
    let shows_fences = native_fences.map_to_gpu_system_process;
    let has_node = caps.paging_node.is_some();
    let Some(levels) = levels.filter(|_| has_node || shows_fences) else {
        return match by_node {
            true => Err(KmdError::InvalidParameter),
            false => Ok(None),
        };
    };

    if by_node && !has_node {
        return Err(KmdError::InvalidParameter);
    }

    let wish = shows_fences.then(|| kept_pages::wish(native_fences));

    PagingSpace::new(levels, by_node, wish)
        .map(Some)
        .ok_or(KmdError::InvalidParameter)
}
