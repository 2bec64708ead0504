// SPDX-License-Identifier: MIT OR Apache-2.0

//! IsFeatureEnabled.

use proptest::prelude::*;

use crate::logic::feature::{answer, global_answer, Answer, FeatureSet, HWSCH, NATIVE_FENCE};

/// `DXGK_FEATURE_ID` of abi.md section 6.13.
const KNOWN: &[u32] = &[
    0, 1, 2, 3, 4, 5, 31, 32, 33, 35, 36, 37, 38, 39, 40, 41, 42, 43, 45, 46,
];

fn parts(enabled: FeatureSet, id: u32) -> (u16, u16) {
    let answer = answer(enabled, id);

    (answer.version, answer.value)
}

/// FEN-113: a known feature that is not enabled has KnownFeature and nothing else; an unknown one
/// has version 0 and value 0.
#[test]
fn fen_113_nothing_is_enabled_on_a_bare_adapter() {
    for id in (0..64).chain([0x1000_0000, 0x1000_0025, 0x3000_0000, u32::MAX]) {
        let value = if KNOWN.contains(&id) { 0b0010 } else { 0 };

        assert_eq!(parts(FeatureSet::NONE, id), (0, value), "feature {id:#x}");
    }
}

/// FEN-109: native fences are version 1.
#[test]
fn fen_109_an_enabled_feature_has_version_1() {
    let enabled = FeatureSet::of(&[HWSCH, NATIVE_FENCE]);

    assert_eq!(parts(enabled, 37), (1, 0b1111));
    assert_eq!(parts(enabled, 0), (1, 0b1111));
    assert_eq!(parts(enabled, 4), (0, 0b0010));
}

/// An ID without a name stays unknown, whatever the adapter claims.
#[test]
fn an_unknown_id_cannot_be_enabled() {
    let enabled = FeatureSet::of(&[6, 34, 63, 64, 0x1000_0000]);

    for id in [6, 34, 63, 64, 0x1000_0000] {
        assert_eq!(parts(enabled, id), (0, 0), "feature {id:#x}");
    }
}

/// Without an adapter there are no features of its driver; what is global is answered, and not
/// known so far.
#[test]
fn fen_113_global_features_need_no_adapter() {
    let unknown = Answer {
        version: 0,
        value: 0,
    };

    for id in [0x1000_0000, 0x1000_0025, 0x2000_0000, 0x3000_0001, u32::MAX] {
        assert_eq!(global_answer(id), Some(unknown), "feature {id:#x}");
    }
    for id in [0, 37, 46, 47, 0x0fff_ffff] {
        assert_eq!(global_answer(id), None, "feature {id:#x}");
    }
}

/// FEN-110.
#[test]
fn fen_110_a_feature_needs_others() {
    for (has, enabled) in [
        (&[0, 4, 37][..], &[0, 4, 37][..]),
        (&[4, 37], &[]),
        (&[0, 4], &[0]),
        (&[0, 37], &[0, 37]),
        (&[3, 37], &[3]),
    ] {
        let supported = FeatureSet::supported(|id| has.contains(&id));

        assert_eq!(supported, FeatureSet::of(enabled), "{has:?}");
    }
}

proptest! {
    #[test]
    fn a_set_holds_what_was_put_in(ids in proptest::collection::vec(0u32..80, 0..20), id in any::<u32>()) {
        let set = FeatureSet::of(&ids);

        for probe in (0..80).chain([id]) {
            prop_assert_eq!(set.has(probe), probe < 64 && ids.contains(&probe));
        }
    }
}
