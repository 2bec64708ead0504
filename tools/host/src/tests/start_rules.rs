// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is asked of a driver that has started, and drivers that an adapter does not start with.

use crate::ddi::callbacks::{Callbacks, Record};
use crate::ddi::caps::{DriverCaps, Luid, StartInfo};
use crate::ddi::class::Passive;
use crate::ddi::feature::{FeatureSupport, OsInterface};
use crate::ddi::native_fence::{NativeFenceCaps, NativeFenceFunction};
use crate::ddi::port::Port;
use crate::ddi::types::{KmdError, KmdResult};
use crate::ddi::Kmd;
use crate::kmd::fake::features::{Features, Step};
use crate::kmd::fake::journal::Journal;
use crate::kmd::fake::native_fences::NativeFences;
use crate::kmd::fake::{Behaviour, FakeKmd};
use crate::kmd::soft::{Config, SoftKmd};
use crate::logic::feature::{FeatureSet, HWSCH, NATIVE_FENCE, USER_MODE_SUBMISSION};
use crate::logic::feature_overrides::Overrides;
use crate::logic::start_rules::{ask, check, check_native_fences, Answers};
use crate::platform::Shared;

#[test]
fn fen_7_a_gpu_that_cannot_change_64_bits_at_once() {
    let caps = DriverCaps {
        no_64_bit_atomics: true,
        ..DriverCaps::default()
    };

    assert_eq!(check(&DriverCaps::default(), FeatureSet::NONE), Ok(()));
    assert_eq!(check(&caps, FeatureSet::NONE), Err(KmdError::NotSupported));
}

/// There is no entry by which a range could be acquired or released either.
#[test]
fn mem_91_a_driver_with_swizzling_ranges() {
    for swizzling_ranges in [1, 8, u32::MAX] {
        let caps = DriverCaps {
            swizzling_ranges,
            ..DriverCaps::default()
        };

        assert_eq!(check(&caps, FeatureSet::NONE), Err(KmdError::NotSupported));
    }

    let entries = include_str!("../../../../rust/ddi/mod.rs");

    assert!(entries.contains("fn build_paging_buffer("));
    assert!(!entries.to_lowercase().contains("swizzling"));
}

/// It says that it has native fences. The feature needs another one.
#[test]
fn fen_112_a_driver_that_lies_about_native_fences() {
    let caps = DriverCaps {
        native_gpu_fence: true,
        ..DriverCaps::default()
    };

    for has in [&[][..], &[NATIVE_FENCE], &[HWSCH]] {
        let enabled = FeatureSet::supported(|id| has.contains(&id));

        assert_eq!(check(&caps, enabled), Err(KmdError::InvalidParameter));
    }

    let enabled = FeatureSet::supported(|id| [HWSCH, NATIVE_FENCE].contains(&id));

    assert_eq!(check(&caps, enabled), Ok(()));
    // It may have more than it says.
    assert_eq!(check(&DriverCaps::default(), enabled), Ok(()));
}

/// Starts a driver and asks it.
fn started(kmd: Box<dyn Kmd>, overrides: &Overrides) -> KmdResult<(Shared<Port>, Answers)> {
    let class = Passive::here();
    let record = Record::new().unwrap();
    let info = StartInfo {
        luid: Luid::default(),
        callbacks: Callbacks::of(&record),
    };
    let port = Port::start(kmd, &class, &info)?;
    let answers = ask(&*port.enter()?, &class, &record, overrides)?;

    Ok((port, answers))
}

/// A double with native fences, and what it does otherwise.
fn double(features: &Shared<Features>, overrides: &Overrides) -> KmdResult<Answers> {
    let journal = Shared::new(Journal::new());
    let behaviour = Behaviour {
        native_fences: Some(Shared::new(NativeFences::new().unwrap())),
        features: Some(features.clone()),
        ..Behaviour::default()
    };
    let kmd = FakeKmd::add_device(journal.clone(), behaviour);
    let answers = started(Box::new(kmd), overrides).map(|(_, answers)| answers);

    // A driver with which no adapter starts is stopped and removed.
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
    answers
}

fn changed(change: impl FnOnce(&mut Features)) -> Shared<Features> {
    let mut features = Features::new().unwrap();

    change(&mut features);
    Shared::new(features)
}

/// FEN-111: features first; the driver hears which are enabled, and gets what the OS part has for
/// the version that was agreed upon, and for no other one; then its caps.
#[test]
fn fen_111_features_come_before_caps() {
    let features = changed(|_| {});
    let answers = double(&features, &Overrides::NONE).unwrap();
    let steps: Vec<Step> = features.steps().collect();
    let (asked, rest): (Vec<Step>, _) = steps
        .iter()
        .partition(|step| matches!(step, Step::Support(..)));

    assert!(asked.contains(&Step::Support(NATIVE_FENCE, true)));
    assert!(asked.is_sorted_by_key(|step| match step {
        Step::Support(id, _) => *id,
        _ => u32::MAX,
    }));
    assert_eq!(steps[..asked.len()], asked);
    assert_eq!(
        rest,
        [
            Step::Interface(HWSCH, 1),
            Step::IsEnabled(HWSCH, Some(1)),
            Step::OsInterface(HWSCH, 2, false),
            Step::OsInterface(HWSCH, 1, true),
            Step::Interface(NATIVE_FENCE, 1),
            Step::IsEnabled(NATIVE_FENCE, Some(1)),
            Step::OsInterface(NATIVE_FENCE, 2, false),
            Step::OsInterface(NATIVE_FENCE, 1, true),
            Step::OsCaps,
            Step::DriverCaps,
            Step::NativeFenceCaps,
        ]
    );
    assert_eq!(
        answers.native_fences,
        Some(NativeFenceCaps {
            stride: 64,
            ..NativeFenceCaps::default()
        })
    );
}

/// FEN-111, FEN-115: what is not enabled is not asked for, whoever does not have it.
#[test]
fn fen_114_what_is_configured_away_is_not_asked_for() {
    let mut away = Overrides::NONE;

    away.set(b"37 enabled=0").unwrap();

    let other = changed(|features| {
        features.support = Some(|id, _, support| {
            if id == NATIVE_FENCE {
                *support = FeatureSupport::versions(2, 3);
            }
        });
    });
    let experiment = changed(|features| {
        features.support = Some(|id, experimental, support| {
            if id == NATIVE_FENCE && !experimental {
                *support = FeatureSupport::NONE;
            }
        });
    });
    let mut stable = Overrides::NONE;

    stable.set(b"37 allow_experimental=0").unwrap();
    for (features, overrides) in [
        (changed(|_| {}), away),
        (other, Overrides::NONE),
        (experiment.clone(), stable),
    ] {
        let answers = double(&features, &overrides).unwrap();

        assert_eq!(answers.features.enabled(), FeatureSet::of(&[HWSCH]));
        assert_eq!(answers.native_fences, None);
        assert!(features.steps().all(|step| !matches!(
            step,
            Step::Interface(NATIVE_FENCE, _) | Step::OsCaps | Step::NativeFenceCaps
        )));
    }
    assert!(double(&experiment, &Overrides::NONE)
        .unwrap()
        .features
        .enabled()
        .has(NATIVE_FENCE));
}

/// FEN-111: each function of native fences has to be there, and so have the caps.
#[test]
fn fen_111_an_adapter_does_not_start_without_a_function() {
    use NativeFenceFunction::*;

    macro_rules! without {
        ($($function:ident),*) => {
            [$(|functions| *functions = functions.without($function)),*]
        };
    }

    type Change = fn(&mut crate::ddi::native_fence::NativeFenceFunctions);
    let missing: [Change; 8] = without![
        Create,
        Destroy,
        Open,
        Close,
        SetLogBuffer,
        UpdateLogs,
        UpdateMonitoredValues,
        UpdateCurrentValues
    ];

    for change in missing {
        let features = changed(|features| features.functions = Some(change));

        assert_eq!(
            double(&features, &Overrides::NONE).err(),
            Some(KmdError::InvalidParameter)
        );
        // They are of no use without the feature.
        let mut away = Overrides::NONE;

        away.set(b"37 enabled=0").unwrap();
        assert!(double(&features, &away).is_ok());
    }
    for (change, error) in [
        // It does not answer.
        (
            (|caps| *caps = NativeFenceCaps::default()) as fn(&mut NativeFenceCaps),
            KmdError::InvalidParameter,
        ),
        (|caps| caps.stride = 4, KmdError::InvalidParameter),
        (|caps| caps.stride = 96, KmdError::InvalidParameter),
        (|caps| caps.stride = 8192, KmdError::InvalidParameter),
    ] {
        let features = changed(|features| features.native_fence_caps = Some(change));

        assert_eq!(double(&features, &Overrides::NONE).err(), Some(error));
    }
}

/// FEN-119: there are words in the paging process, if that has addresses.
#[test]
fn fen_119_a_paging_process_has_addresses() {
    let caps = NativeFenceCaps {
        stride: 64,
        map_to_gpu_system_process: true,
        ..NativeFenceCaps::default()
    };

    assert_eq!(check_native_fences(&caps, true), Ok(()));
    assert_eq!(
        check_native_fences(&caps, false),
        Err(KmdError::NotSupported)
    );
    assert_eq!(
        check_native_fences(
            &NativeFenceCaps {
                map_to_gpu_system_process: false,
                ..caps
            },
            false
        ),
        Ok(())
    );

    let features = changed(|features| {
        features.native_fence_caps = Some(|caps| caps.map_to_gpu_system_process = true);
    });

    assert!(double(&features, &Overrides::NONE).is_ok());
}

/// The software adapter says what it has once it knows what is enabled: an adapter without native
/// fences starts (FEN-112).
#[test]
fn fen_114_a_software_adapter_starts_without_a_feature() {
    for (line, native, user_mode) in [
        (&b"37"[..], true, true),
        (b"37 enabled=0", false, false),
        (b"0 enabled=0", false, false),
        (b"4 enabled=0", true, false),
        (b"37 min_version=2 max_version=2", false, false),
    ] {
        let mut overrides = Overrides::NONE;

        overrides.set(line).unwrap();

        let kmd = SoftKmd::add_device(Config::default());
        let (_port, answers) = started(Box::new(kmd), &overrides).unwrap();
        let enabled = answers.features.enabled();

        assert_eq!(answers.caps.native_gpu_fence, native);
        assert_eq!(answers.native_fences.is_some(), native);
        assert_eq!(enabled.has(NATIVE_FENCE), native);
        assert_eq!(enabled.has(USER_MODE_SUBMISSION), user_mode);
    }
}

/// FEN-111: nothing is enabled before the driver was asked, and never another version.
#[test]
fn fen_111_callbacks_tell_what_was_agreed_upon() {
    let record = Record::new().unwrap();
    let callbacks = Callbacks::of(&record);

    assert_eq!(callbacks.is_feature_enabled(37), None);
    assert_eq!(
        callbacks.query_feature_interface(37, 0),
        Err(KmdError::NotSupported)
    );
    record.enable(37, 2);
    record.enable(0, 1);
    record.enable(64, 1);
    assert_eq!(callbacks.is_feature_enabled(37), Some(2));
    assert_eq!(callbacks.is_feature_enabled(64), None);
    for version in [0, 1, 3] {
        assert_eq!(
            callbacks.query_feature_interface(37, version),
            Err(KmdError::NotSupported)
        );
    }
    assert!(matches!(
        callbacks.query_feature_interface(37, 2),
        Ok(OsInterface::NativeFence(_))
    ));
    assert_eq!(
        callbacks.query_feature_interface(0, 1),
        Ok(OsInterface::Plain)
    );
    assert_eq!(Callbacks::NONE.is_feature_enabled(0), None);
}
