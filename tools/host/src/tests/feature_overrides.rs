// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is configured about features (FEN-114).

use proptest::prelude::*;

use crate::ddi::feature::FeatureSupport;
use crate::logic::feature::{FeatureSet, Versions};
use crate::logic::feature_agreement::Agreed;
use crate::logic::feature_overrides::Overrides;
use crate::logic::Invalid;

fn with(lines: &[&str]) -> Overrides {
    let mut overrides = Overrides::NONE;

    for line in lines {
        assert_eq!(overrides.set(line.as_bytes()), Ok(()), "{line:?}");
    }
    overrides
}

/// What is enabled of a driver that has version 1 of everything.
fn enabled(lines: &[&str]) -> FeatureSet {
    Agreed::with(&with(lines), |_, _| FeatureSupport::versions(1, 1)).enabled()
}

#[test]
fn fen_114_a_feature_can_be_taken_away() {
    let all = enabled(&[]);

    for id in [0, 3, 4, 37] {
        assert!(all.has(id));
    }
    for (line, left, gone) in [
        ("37 enabled=0", &[0, 3][..], &[4, 37][..]),
        ("4 enabled=0", &[0, 3, 37], &[4]),
        ("0 enabled=0", &[3], &[0, 4, 37]),
        // The OS part has version 1 alone.
        ("37 min_version=2 max_version=3", &[0, 3], &[4, 37]),
        ("37 min_version=1 max_version=3", &[0, 3, 4, 37], &[]),
        ("37 enabled=1", &[0, 3, 4, 37], &[]),
    ] {
        let enabled = enabled(&[line]);

        assert!(left.iter().all(|id| enabled.has(*id)), "{line}");
        assert!(!gone.iter().any(|id| enabled.has(*id)), "{line}");
    }
    // The last line counts, and one without words is for nothing.
    assert_eq!(enabled(&["37 enabled=0", "37"]), all);
    assert_eq!(enabled(&["37 enabled=0", "37 allow_experimental=1"]), all);
}

/// A feature that is an experiment is there only where that may be.
#[test]
fn fen_114_experiments_can_be_forbidden() {
    let ask = |overrides: &Overrides| {
        Agreed::with(overrides, |id, experimental| match id {
            3 if !experimental => FeatureSupport::NONE,
            _ => FeatureSupport::versions(1, 1),
        })
        .enabled()
    };

    assert!(ask(&Overrides::NONE).has(3));
    for (line, has) in [
        ("3 allow_experimental=0", false),
        ("3 allow_experimental=1", true),
        ("0 allow_experimental=0", true),
    ] {
        assert_eq!(ask(&with(&[line])).has(3), has, "{line}");
    }
}

/// Both versions or none (FEN-114), known features, known words, each once.
#[test]
fn fen_114_what_makes_no_sense_is_refused() {
    let mut overrides = with(&["37 enabled=0 min_version=1 max_version=4"]);
    let before: Vec<_> = overrides.each().collect();

    for line in [
        "",
        " \n",
        "x",
        "-1",
        "+37",
        "6 enabled=0",
        "47 enabled=0",
        "64 enabled=0",
        "65536",
        "268435493 enabled=0",
        "37 enabled",
        "37 enabled=",
        "37 enabled=2",
        "37 enabled=yes",
        "37 enabled=1 enabled=1",
        "37 supported=1",
        "37 min_version=1",
        "37 max_version=1",
        "37 min_version=0 max_version=1",
        "37 min_version=2 max_version=1",
        "37 min_version=1 max_version=65536",
        "37 min_version=+1 max_version=1",
        "37 allow_experimental=-1",
        "enabled=0 37",
        "\u{fc}",
    ] {
        assert_eq!(overrides.set(line.as_bytes()), Err(Invalid), "{line:?}");
        assert_eq!(overrides.each().collect::<Vec<_>>(), before);
    }

    let [(37, own)] = before[..] else {
        panic!("{before:?}");
    };

    assert!(!own.enabled && own.allow_experimental);
    assert_eq!(own.versions, Versions::new(1, 4));
    assert!(overrides.set(b"\t37  enabled=1\n").is_ok());
    assert_eq!(overrides.each().count(), 0);
}

proptest! {
    /// FEN-114: they only narrow.
    #[test]
    fn fen_114_nothing_is_added(
        ids in proptest::collection::vec(0u32..64, 0..40),
        experiments in proptest::collection::vec(0u32..64, 0..40),
        lines in proptest::collection::vec(
            (0u32..47, 0u8..2, 1u16..4, 0u16..3, 0u8..2), 0..12),
        range in (1u16..4, 0u16..3),
    ) {
        let ask = |id: u32, experimental: bool| {
            match ids.contains(&id) && (experimental || !experiments.contains(&id)) {
                true => FeatureSupport::versions(range.0, range.0 + range.1),
                false => FeatureSupport::NONE,
            }
        };
        let all = Agreed::with(&Overrides::NONE, ask);
        let mut overrides = Overrides::NONE;

        for (id, enabled, min, more, experimental) in lines {
            let max = min + more;
            // Those that are not known are refused.
            let _set = overrides.set(format!(
                "{id} enabled={enabled} min_version={min} max_version={max} \
                 allow_experimental={experimental}"
            ).as_bytes());
        }

        let less = Agreed::with(&overrides, ask);

        for id in 0..64 {
            prop_assert!(all.enabled().has(id) || !less.enabled().has(id));
            prop_assert!(less.answer(id).version <= all.answer(id).version);
        }
    }

    #[test]
    fn any_text_is_taken_or_refused(line in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut overrides = Overrides::NONE;
        let is_taken = overrides.set(&line).is_ok();

        prop_assert!(is_taken || overrides.each().count() == 0);
    }
}
