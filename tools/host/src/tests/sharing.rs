// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flags and contents of new synchronisation objects, and the rights of their handles.

use crate::logic::feature::{FeatureSet, HWSCH, KMD_SIGNAL_CPU_EVENT, NATIVE_FENCE};
use crate::logic::sync_flags::{Contents, Creation, Rights, Sharing, Unusable};
use crate::logic::Invalid;

const SHARED: u32 = 1 << 0;
const NT: u32 = 1 << 1;
const CROSS_ADAPTER: u32 = 1 << 2;
const TOP_OF_PIPELINE: u32 = 1 << 3;
const NO_SIGNAL: u32 = 1 << 4;
const NO_WAIT: u32 = 1 << 5;
const NO_SIGNAL_ON_TDR: u32 = 1 << 6;
const NO_GPU_ACCESS: u32 = 1 << 7;
const BY_KMD: u32 = 1 << 8;

const MUTEX: Contents = Contents::Mutex { owned: false };
const SEMAPHORE: Contents = Contents::Semaphore { initial: 0, max: 1 };
const FENCE: Contents = Contents::Fence { value: 0 };
const CPU_NOTIFICATION: Contents = Contents::CpuNotification { event: 3 };
const MONITORED: Contents = Contents::MonitoredFence {
    value: 0,
    engines: 0,
};
const PERIODIC: Contents = Contents::PeriodicFence {
    adapter: 1,
    engines: 0,
};

/// How an object with these flags can be opened elsewhere, if it may be made.
fn checked(contents: Contents, flags: u32) -> Result<Sharing, Invalid> {
    Creation::new(contents, flags).map(|creation| creation.sharing())
}

#[test]
fn fen_3_flags_of_a_creation() {
    for (kind, flags, expected) in [
        (MONITORED, 0, Ok(Sharing::Private)),
        (MONITORED, SHARED | NT, Ok(Sharing::Nt)),
        (MONITORED, NO_SIGNAL, Ok(Sharing::Private)),
        (MONITORED, NO_WAIT | NO_GPU_ACCESS, Ok(Sharing::Private)),
        (
            MONITORED,
            TOP_OF_PIPELINE | NO_SIGNAL_ON_TDR,
            Ok(Sharing::Private),
        ),
        (MONITORED, NO_SIGNAL | NO_WAIT, Err(Invalid)),
        (MONITORED, NT, Err(Invalid)),
        (MONITORED, 1 << 9, Err(Invalid)),
        (MONITORED, 1 << 31, Err(Invalid)),
        (MONITORED, BY_KMD, Err(Invalid)),
        (MUTEX, SHARED, Ok(Sharing::Global)),
        (MUTEX, SHARED | NT, Ok(Sharing::Nt)),
        (MUTEX, NO_SIGNAL, Err(Invalid)),
        (MUTEX, TOP_OF_PIPELINE, Err(Invalid)),
        (CPU_NOTIFICATION, 0, Ok(Sharing::Private)),
        (CPU_NOTIFICATION, BY_KMD, Ok(Sharing::Private)),
        (CPU_NOTIFICATION, BY_KMD | NO_GPU_ACCESS, Err(Invalid)),
    ] {
        assert_eq!(checked(kind, flags), expected, "{kind:?} {flags:#x}");
    }
}

#[test]
fn fen_4_fences_with_a_value_are_shared_by_nt_handle_only() {
    for kind in [MONITORED, PERIODIC] {
        assert_eq!(checked(kind, SHARED), Err(Invalid));
        assert_eq!(checked(kind, SHARED | NT), Ok(Sharing::Nt));
    }
}

/// Every flag word of ten bits with every type, against the rules as the specification lists them.
#[test]
fn every_combination_of_flags_follows_the_rules() {
    for kind in [
        MUTEX,
        SEMAPHORE,
        FENCE,
        CPU_NOTIFICATION,
        MONITORED,
        PERIODIC,
    ] {
        for flags in 0..1 << 10 {
            let set = |mask| flags & mask == mask;
            let value_fence = kind == MONITORED || kind == PERIODIC;
            let broken = [
                ("reserved", flags >= 1 << 9),
                ("FEN-3 NT without shared", set(NT) && !set(SHARED)),
                ("FEN-3 neither right", set(NO_SIGNAL | NO_WAIT)),
                ("FEN-3 bits 3-6", flags & 0x78 != 0 && !value_fence),
                ("FEN-4", value_fence && set(SHARED) && !set(NT)),
                (
                    "FEN-135",
                    set(CROSS_ADAPTER) && !(value_fence && set(SHARED | NT)),
                ),
                ("CPU-1", set(BY_KMD) && kind != CPU_NOTIFICATION),
                ("CPU-4", set(BY_KMD) && flags != BY_KMD),
                (
                    "events are not shared",
                    kind == CPU_NOTIFICATION && set(SHARED),
                ),
            ];
            let reasons: Vec<_> = broken.iter().filter(|(_, broken)| *broken).collect();

            assert_eq!(
                checked(kind, flags).is_err(),
                !reasons.is_empty(),
                "{kind:?}, flags {flags:#x}: {reasons:?}"
            );
        }
    }
}

/// What flags of a creation say besides.
#[test]
fn fen_3_flags_of_a_creation_have_their_meaning() {
    for flags in 0..1 << 9 {
        let Ok(creation) = Creation::new(MONITORED, flags) else {
            continue;
        };
        let set = |mask| flags & mask != 0;
        assert_eq!(creation.contents(), MONITORED);
        assert_eq!(creation.is_shared(), set(SHARED), "{flags:#x}");
        assert_eq!(creation.is_cross_adapter(), set(CROSS_ADAPTER));
        assert_eq!(creation.keeps_value(), set(NO_SIGNAL_ON_TDR));
        assert_eq!(creation.rights(), Rights::from_flags(flags));
    }
}

#[test]
fn fen_25_fen_37_what_the_flags_leave() {
    let both = Rights {
        wait: true,
        signal: true,
    };
    let only_wait = Rights::from_flags(NO_SIGNAL);
    let only_signal = Rights::from_flags(NO_WAIT);

    assert_eq!(Rights::from_flags(SHARED | NT), both);
    assert_eq!((only_wait.wait, only_wait.signal), (true, false));
    assert_eq!((only_signal.wait, only_signal.signal), (false, true));
    assert_eq!(both.and(only_wait), only_wait);
    let neither = only_wait.and(only_signal);
    assert_eq!((neither.wait, neither.signal), (false, false));
}

/// FEN-5, FEN-6, CPU-6: what is refused of good flags.
#[test]
fn fen_5_contents_of_a_creation() {
    let has_engines = |engines: u32| engines & !1 == 0;
    let semaphore = |initial, max| Contents::Semaphore { initial, max };
    let monitored = |engines| Contents::MonitoredFence { value: 7, engines };
    let periodic = |engines| Contents::PeriodicFence {
        adapter: 1,
        engines,
    };
    let notification = Contents::CpuNotification { event: 3 };

    for (contents, flags, expected) in [
        (Contents::Mutex { owned: true }, 0, Ok(())),
        (Contents::Fence { value: u64::MAX }, SHARED, Ok(())),
        (semaphore(0, 0), 0, Ok(())),
        (semaphore(2, 2), 0, Ok(())),
        (semaphore(3, 2), 0, Err(Unusable::Invalid)),
        (semaphore(u32::MAX, 0), 0, Err(Unusable::Invalid)),
        (notification, 0, Ok(())),
        (notification, BY_KMD, Err(Unusable::NotSupported)),
        (monitored(0), 0, Ok(())),
        (monitored(1), 0, Ok(())),
        (monitored(2), 0, Err(Unusable::Invalid)),
        (monitored(u32::MAX), 0, Err(Unusable::Invalid)),
        (periodic(1), 0, Err(Unusable::NotSupported)),
        (periodic(2), 0, Err(Unusable::Invalid)),
    ] {
        let creation = Creation::new(contents, flags).expect("good flags");
        assert_eq!(
            creation.check_contents(has_engines, FeatureSet::NONE, true),
            expected,
            "{contents:?} {flags:#x}"
        );
    }
    // CPU-6: with the feature there are CPU events.
    let event = Creation::new(notification, BY_KMD).expect("good flags");

    let events = FeatureSet::of(&[KMD_SIGNAL_CPU_EVENT]);

    assert_eq!(event.check_contents(has_engines, events, false), Ok(()));

    // FEN-113, FEN-130, FEN-131, FEN-135.
    let all = FeatureSet::of(&[HWSCH, NATIVE_FENCE]);
    let native = |engines, ty| Contents::NativeFence {
        value: 7,
        engines,
        ty,
    };

    for (contents, flags, features, expected) in [
        (native(0, 0), 0, all, Ok(())),
        (native(1, 0), 0, all, Ok(())),
        (
            native(0, 0),
            0,
            FeatureSet::NONE,
            Err(Unusable::NotSupported),
        ),
        (native(2, 0), 0, all, Err(Unusable::Invalid)),
        (native(0, 1), 0, all, Err(Unusable::Invalid)),
        (native(0, 2), 0, all, Err(Unusable::Invalid)),
        (native(0, 0), SHARED | NT | CROSS_ADAPTER, all, Ok(())),
        (
            native(0, 0),
            SHARED | NT | CROSS_ADAPTER,
            FeatureSet::NONE,
            Err(Unusable::NotSupported),
        ),
        (
            native(0, 1),
            SHARED | NT | CROSS_ADAPTER,
            all,
            Err(Unusable::Invalid),
        ),
    ] {
        let creation = Creation::new(contents, flags).expect("good flags");

        assert_eq!(
            creation.check_contents(has_engines, features, false),
            expected,
            "{contents:?} {flags:#x}"
        );
    }

    // FEN-130: only if the adapter offers it, on that adapter alone, and packets set the value.
    let intra_gpu = |value, ty| Contents::NativeFence {
        value,
        engines: 0,
        ty,
    };

    for (contents, flags, is_offered, expected) in [
        (intra_gpu(0, 1), 0, true, Ok(())),
        (intra_gpu(0, 1), SHARED | NT, true, Ok(())),
        (intra_gpu(0, 1), 0, false, Err(Unusable::Invalid)),
        (intra_gpu(1, 1), 0, true, Err(Unusable::Invalid)),
        (intra_gpu(u64::MAX, 1), 0, true, Err(Unusable::Invalid)),
        (
            intra_gpu(0, 1),
            SHARED | NT | CROSS_ADAPTER,
            true,
            Err(Unusable::Invalid),
        ),
        (intra_gpu(0, 2), 0, true, Err(Unusable::Invalid)),
        (intra_gpu(0, u32::MAX), 0, true, Err(Unusable::Invalid)),
        (intra_gpu(7, 0), 0, true, Ok(())),
    ] {
        let creation = Creation::new(contents, flags).expect("good flags");

        assert_eq!(
            creation.check_contents(has_engines, all, is_offered),
            expected,
            "{contents:?} {flags:#x} {is_offered}"
        );
    }
}
