// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the calls that open shared objects refuse.

use crate::logic::open_rules::{
    check_sync_flags, Refusal, ResourceOpen, ResourceSizes, SyncOpen, SyncRefusal,
};
use crate::logic::sync_flags::bits::{
    NO_GPU_ACCESS, NO_SIGNAL, NO_WAIT, NT_SECURITY_SHARING, SHARED, SIGNAL_BY_KMD,
};
use crate::logic::Invalid;

#[test]
fn fen_3_an_open_may_only_restrict() {
    for flags in [
        0,
        NO_SIGNAL,
        NO_WAIT,
        SHARED | NT_SECURITY_SHARING,
        NO_GPU_ACCESS,
    ] {
        assert_eq!(check_sync_flags(flags), Ok(()), "{flags:#x}");
    }
    for flags in [NO_SIGNAL | NO_WAIT, SIGNAL_BY_KMD, 1 << 9, 1 << 31] {
        assert_eq!(check_sync_flags(flags), Err(Invalid), "{flags:#x}");
    }
}

/// Every object that can be found: the type is first, and only a fence needs the engines.
#[test]
fn res_52_res_53_fen_5_the_object_of_an_open() {
    for facts in 0..1u32 << 4 {
        let is = |bit: u32| facts & (1 << bit) != 0;
        let found = SyncOpen {
            is_sync: is(0),
            is_for_device: is(1),
            is_fence: is(2),
            has_engines: is(3),
        };
        let rules = [
            ("RES-52", !is(0), SyncRefusal::Mismatch),
            ("RES-53", !is(1), SyncRefusal::Invalid),
            ("FEN-5", is(2) && !is(3), SyncRefusal::Invalid),
        ];
        let broken = rules.into_iter().find(|(_, broken, _)| *broken);
        let reason = broken.as_ref().map(|(rule, ..)| *rule);
        let expected = broken.map_or(Ok(()), |(.., refusal)| Err(refusal));
        assert_eq!(found.check(), expected, "{facts:#b}: {reason:?}");
    }
}

const OWN: ResourceSizes = ResourceSizes {
    count: 2,
    runtime_data: 20,
    driver_data: 8,
    total_driver_data: 32,
};

/// A call that gives exactly what is needed.
fn good(by_nt: bool) -> ResourceOpen {
    ResourceOpen {
        by_nt,
        has_infos: true,
        has_runtime_data: true,
        has_total_driver_data: true,
        sizes: OWN,
    }
}

/// What becomes of the good call after this change, by global handle and by NT handle.
fn both(change: impl Fn(&mut ResourceOpen)) -> [Result<(), Refusal>; 2] {
    [false, true].map(|by_nt| {
        let mut call = good(by_nt);
        change(&mut call);
        call.check(&OWN)
    })
}

const GOOD: Result<(), Refusal> = Ok(());
const INVALID: Result<(), Refusal> = Err(Refusal::Invalid);
const TOO_SMALL: Result<(), Refusal> = Err(Refusal::TooSmall);

#[test]
fn res_48_exact_sizes_are_good() {
    assert_eq!(both(|_| ()), [GOOD, GOOD]);
}

#[test]
fn res_48_the_count_is_the_stored_one() {
    for count in [0, 1, 3, u32::MAX] {
        assert_eq!(both(|call| call.sizes.count = count), [INVALID, INVALID]);
    }
}

#[test]
fn res_48_the_array_is_there_unless_it_is_empty() {
    assert_eq!(both(|call| call.has_infos = false), [INVALID, INVALID]);

    let empty = ResourceSizes { count: 0, ..OWN };
    let mut call = good(true);
    call.sizes.count = 0;
    call.has_infos = false;
    assert_eq!(call.check(&empty), GOOD);
}

#[test]
fn res_48_only_a_global_open_leaves_the_runtime_data_out() {
    assert_eq!(both(|call| call.sizes.runtime_data = 0), [GOOD, INVALID]);
    for size in [1, 19, 21] {
        assert_eq!(
            both(|call| call.sizes.runtime_data = size),
            [INVALID, INVALID]
        );
    }
    assert_eq!(both(|call| call.has_runtime_data = false), [GOOD, INVALID]);
}

#[test]
fn res_48_the_driver_data_of_the_resource_fits() {
    for size in [0, 7, 9] {
        assert_eq!(
            both(|call| call.sizes.driver_data = size),
            [INVALID, INVALID]
        );
    }
}

#[test]
fn res_48_the_driver_data_of_the_allocations_has_room() {
    for size in [0, 31] {
        let change = |call: &mut ResourceOpen| call.sizes.total_driver_data = size;
        assert_eq!(both(change), [TOO_SMALL, TOO_SMALL]);
    }
    for size in [33, u32::MAX] {
        let change = |call: &mut ResourceOpen| call.sizes.total_driver_data = size;
        assert_eq!(both(change), [GOOD, GOOD]);
    }
    assert_eq!(
        both(|call| call.has_total_driver_data = false),
        [GOOD, INVALID]
    );
}

/// What is invalid is told before what is too small.
#[test]
fn res_48_the_room_is_looked_at_last() {
    for change in [
        |call: &mut ResourceOpen| call.sizes.count = 1,
        |call: &mut ResourceOpen| call.has_infos = false,
        |call: &mut ResourceOpen| call.sizes.runtime_data = 21,
        |call: &mut ResourceOpen| call.sizes.driver_data = 9,
    ] {
        let small = both(|call| {
            call.sizes.total_driver_data = 0;
            change(call);
        });
        assert_eq!(small, [INVALID, INVALID]);
    }
}

/// Who asks and opens in one call gives room, and each kind of it has to be enough.
#[test]
fn res_47_room_is_enough_or_not() {
    assert!(OWN.has_room_for(&OWN));
    let members: [fn(&mut ResourceSizes) -> &mut u32; 4] = [
        |sizes| &mut sizes.count,
        |sizes| &mut sizes.runtime_data,
        |sizes| &mut sizes.driver_data,
        |sizes| &mut sizes.total_driver_data,
    ];
    for member in members {
        let mut room = OWN;
        *member(&mut room) = u32::MAX;
        assert!(room.has_room_for(&OWN));
        let mut own = OWN;
        for short in 0..*member(&mut own) {
            *member(&mut room) = short;
            assert!(!room.has_room_for(&OWN));
        }
    }
}
