// SPDX-License-Identifier: MIT OR Apache-2.0

//! IsFeatureEnabled.

use proptest::prelude::*;

use crate::ddi::feature::FeatureSupport;
use crate::logic::feature::{global_answer, Answer, FeatureSet, Versions, HWSCH, NATIVE_FENCE};
use crate::logic::feature_agreement::Agreed;
use crate::logic::feature_overrides::Overrides;

/// `DXGK_FEATURE_ID` of abi.md section 6.13.
const KNOWN: &[u32] = &[
    0, 1, 2, 3, 4, 5, 31, 32, 33, 35, 36, 37, 38, 39, 40, 41, 42, 43, 45, 46,
];

/// What is agreed upon with a driver that has version 1 of these.
fn with(has: &[u32]) -> Agreed {
    Agreed::with(&Overrides::NONE, |id, _| match has.contains(&id) {
        true => FeatureSupport::versions(1, 1),
        false => FeatureSupport::NONE,
    })
}

fn parts(agreed: &Agreed, id: u32) -> (u16, u16) {
    let answer = agreed.answer(id);

    (answer.version, answer.value)
}

/// FEN-113: a known feature that is not enabled has KnownFeature and nothing else; an unknown one
/// has version 0 and value 0.
#[test]
fn fen_113_nothing_is_enabled_on_a_bare_adapter() {
    for id in (0..64).chain([0x1000_0000, 0x1000_0025, 0x3000_0000, u32::MAX]) {
        let value = if KNOWN.contains(&id) { 0b0010 } else { 0 };

        assert_eq!(parts(&with(&[]), id), (0, value), "feature {id:#x}");
        assert_eq!(parts(&Agreed::NONE, id), (0, value), "feature {id:#x}");
    }
}

/// FEN-109: native fences are version 1.
#[test]
fn fen_109_an_enabled_feature_has_version_1() {
    let agreed = with(&[HWSCH, NATIVE_FENCE]);

    assert_eq!(agreed.enabled(), FeatureSet::of(&[HWSCH, NATIVE_FENCE]));
    assert_eq!(parts(&agreed, 37), (1, 0b1111));
    assert_eq!(parts(&agreed, 0), (1, 0b1111));
    assert_eq!(parts(&agreed, 4), (0, 0b0010));
    assert_eq!(agreed.each().collect::<Vec<_>>(), [(0, 1), (37, 1)]);
}

/// An ID without a name stays unknown, whatever the adapter claims.
#[test]
fn an_unknown_id_cannot_be_enabled() {
    let unknown = [6, 34, 63, 64, 0x1000_0000];
    let agreed = with(&unknown);

    assert_eq!(agreed, Agreed::NONE);
    for id in unknown {
        assert_eq!(parts(&agreed, id), (0, 0), "feature {id:#x}");
    }
}

/// FEN-110: the version is the highest one that both have; the OS part has version 1.
#[test]
fn fen_110_the_version_is_the_highest_one_in_common() {
    let versions = |min, max| Versions::new(min, max).unwrap();

    assert_eq!(versions(1, 3).and(versions(2, 5)), Some(versions(2, 3)));
    assert_eq!(versions(1, 3).and(versions(4, 5)), None);
    assert_eq!(
        versions(2, 2).and(versions(1, u16::MAX)),
        Some(versions(2, 2))
    );
    for (min, max) in [(0, 0), (0, 1), (2, 1)] {
        assert_eq!(Versions::new(min, max), None);
    }

    for (min, max, version) in [
        (1, 1, 1),
        (1, 9, 1),
        (2, 9, 0),
        // A driver that makes no sense.
        (0, 1, 0),
        (0, 0, 0),
        (3, 1, 0),
    ] {
        let agreed = Agreed::with(&Overrides::NONE, |_, _| FeatureSupport::versions(min, max));

        // The driver has it, whether it is used or not.
        let value = if version == 0 { 0b1110 } else { 0b1111 };

        assert_eq!(parts(&agreed, 0), (version, value), "{min} to {max}");
    }
}

/// FEN-110: a feature that the driver implements and this GPU cannot do is not enabled, and what
/// needs it is not, either. Clients are told which it is.
#[test]
fn fen_110_a_feature_has_to_be_there_on_this_gpu() {
    for (by_driver, on_current_config) in [(true, false), (false, true), (false, false)] {
        let agreed = Agreed::with(&Overrides::NONE, |id, _| FeatureSupport {
            by_driver: by_driver || id != 0,
            on_current_config: on_current_config || id != 0,
            ..FeatureSupport::versions(1, 1)
        });
        let value = 0b0010 | (u16::from(by_driver) << 2) | (u16::from(on_current_config) << 3);

        assert_eq!(parts(&agreed, 0), (0, value));
        assert_eq!(parts(&agreed, 3), (1, 0b1111));
        // They need feature 0.
        for id in [4, 37] {
            assert_eq!(parts(&agreed, id), (0, 0b1110), "feature {id}");
        }
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
