// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sets of objects that are shared together.

use crate::logic::access::{self, resource};
use crate::logic::share_rules::{check_set, Kind, Member, Refusal};

const KINDS: [Kind; 4] = [
    Kind::Resource,
    Kind::Allocation,
    Kind::KeyedMutex,
    Kind::SyncObject,
];

/// A member that may be shared with all access.
fn member(kind: Kind) -> Member<u8> {
    let (adapter, access) = match kind {
        Kind::SyncObject => (Some(1), access::ALL),
        Kind::KeyedMutex => (None, resource::ALL),
        Kind::Resource | Kind::Allocation => (Some(1), resource::ALL),
    };
    Member {
        kind,
        adapter,
        by_nt: true,
        access: Some(access),
    }
}

fn triple() -> [Member<u8>; 3] {
    [Kind::Resource, Kind::KeyedMutex, Kind::SyncObject].map(member)
}

/// Every sequence of up to four kinds.
fn sequences() -> Vec<Vec<Kind>> {
    let mut all = vec![vec![]];
    let mut from = 0;
    for _ in 0..4 {
        let until = all.len();
        for place in from..until {
            for kind in KINDS {
                let mut longer = all[place].clone();
                longer.push(kind);
                all.push(longer);
            }
        }
        from = until;
    }
    all
}

#[test]
fn res_32_three_sets_are_legal() {
    let legal: Vec<_> = sequences()
        .into_iter()
        .filter(|kinds| {
            let members: Vec<_> = kinds.iter().copied().map(member).collect();
            let checked = check_set(&members);
            assert!(checked != Err(Refusal::Denied), "{kinds:?}");
            checked.is_ok()
        })
        .collect();
    assert_eq!(
        legal,
        [
            vec![Kind::Resource],
            vec![Kind::SyncObject],
            vec![Kind::Resource, Kind::KeyedMutex, Kind::SyncObject],
        ]
    );
}

#[test]
fn res_33_every_member_must_be_made_for_it() {
    for place in 0..3 {
        let mut set = triple();
        set[place].by_nt = false;
        assert_eq!(check_set(&set), Err(Refusal::Invalid), "{place}");
    }
}

#[test]
fn res_33_what_was_opened_by_global_handle_is_not_shared() {
    for place in 0..3 {
        let mut set = triple();
        set[place].access = None;
        assert_eq!(check_set(&set), Err(Refusal::Invalid), "{place}");
        // Before the access.
        set[2].access = set[2].access.map(|_| 0);
        assert_eq!(check_set(&set), Err(Refusal::Invalid), "{place}");
    }
}

#[test]
fn res_33_all_members_are_of_one_adapter() {
    let mut set = triple();
    set[2].adapter = Some(2);
    assert_eq!(check_set(&set), Err(Refusal::Invalid));
    set[0].adapter = Some(2);
    assert!(check_set(&set).is_ok());
}

#[test]
fn res_104_one_object_gives_what_its_handle_has() {
    for access in [0, 1, 0x2_0000, resource::ALL] {
        for kind in [Kind::Resource, Kind::SyncObject] {
            let one = Member {
                access: Some(access),
                ..member(kind)
            };
            assert_eq!(check_set(&[one]), Ok(access));
        }
    }
}

#[test]
fn res_104_a_set_gives_what_all_its_handles_have() {
    assert_eq!(check_set(&triple()), Ok(resource::ALL));

    for place in 0..2 {
        let mut set = triple();
        set[place].access = Some(resource::ALL & !resource::WRITE);
        assert_eq!(check_set(&set), Ok(resource::ALL & !resource::WRITE));
    }

    // Writing is signalling, and everybody may wait.
    let mut set = triple();
    set[2].access = Some(access::ALL & !access::SIGNAL);
    assert_eq!(check_set(&set), Ok(resource::ALL & !resource::WRITE));
    set[2].access = Some(access::ALL & !access::WAIT);
    assert_eq!(check_set(&set), Err(Refusal::Denied));
}
