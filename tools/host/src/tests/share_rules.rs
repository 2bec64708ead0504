// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sets of objects that are shared together, and the access of their NT handles.

use crate::logic::access::{self, resource};
use crate::logic::access::{Type, Wanted, READ_CONTROL, SIGNAL, WAIT};
use crate::logic::share_rules::{
    check_arguments, check_set, dup, grant, Duplication, Member, MemberKind, Refusal,
};
use crate::logic::Invalid;

const KINDS: [MemberKind; 4] = [
    MemberKind::Resource,
    MemberKind::Allocation,
    MemberKind::KeyedMutex,
    MemberKind::SyncObject,
];

/// A member that may be shared with all access.
fn member(kind: MemberKind) -> Member<u8> {
    let (adapter, access) = match kind {
        MemberKind::SyncObject => (Some(1), access::ALL),
        MemberKind::KeyedMutex => (None, resource::ALL),
        MemberKind::Resource | MemberKind::Allocation => (Some(1), resource::ALL),
    };
    Member {
        kind,
        adapter,
        by_nt: true,
        access: Some(access),
    }
}

fn triple() -> [Member<u8>; 3] {
    [
        MemberKind::Resource,
        MemberKind::KeyedMutex,
        MemberKind::SyncObject,
    ]
    .map(member)
}

/// Every sequence of up to four kinds.
fn sequences() -> Vec<Vec<MemberKind>> {
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
fn res_33_one_to_three_objects_and_no_null_pointer() {
    for (count, handles, output, expected) in [
        (0, 1, 1, Err(Invalid)),
        (1, 1, 1, Ok(())),
        (2, 1, 1, Ok(())),
        (3, 1, 1, Ok(())),
        (4, 1, 1, Err(Invalid)),
        (u32::MAX, 1, 1, Err(Invalid)),
        (1, 0, 1, Err(Invalid)),
        (1, 1, 0, Err(Invalid)),
    ] {
        assert_eq!(
            check_arguments(count, handles, output),
            expected,
            "{count} {handles} {output}"
        );
    }
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
            vec![MemberKind::Resource],
            vec![MemberKind::SyncObject],
            vec![
                MemberKind::Resource,
                MemberKind::KeyedMutex,
                MemberKind::SyncObject
            ],
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
        for kind in [MemberKind::Resource, MemberKind::SyncObject] {
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

/// Unknown bits come before rights that are not there.
#[test]
fn res_36_res_104_what_an_nt_handle_gets() {
    let ty = Type::SyncObject;
    for (desired, may, expected) in [
        (0, 0, Ok(READ_CONTROL)),
        (WAIT, WAIT, Ok(READ_CONTROL | WAIT)),
        (WAIT | SIGNAL, WAIT, Err(Refusal::Denied)),
        (1 << 5, access::ALL, Err(Refusal::Invalid)),
        ((1 << 5) | SIGNAL, WAIT, Err(Refusal::Invalid)),
    ] {
        let granted = grant(ty, desired, may);
        assert_eq!(granted.map(|(_, access)| access), expected, "{desired:#x}");
    }
    assert_eq!(
        grant(ty, WAIT, access::ALL).ok().map(|(wanted, _)| wanted),
        Wanted::new(ty, WAIT)
    );
}

#[test]
fn res_17_a_duplicate_names_an_access_or_takes_the_same() {
    for (flags, desired, expected) in [
        (0, 0, Ok(())),
        (0, u32::MAX, Ok(())),
        (dup::SAME_ACCESS, 0, Ok(())),
        (dup::SAME_ACCESS | dup::INHERIT, 0, Ok(())),
        (dup::SAME_ACCESS, WAIT, Err(Invalid)),
        (dup::INHERIT, WAIT, Ok(())),
        (1 << 2, 0, Err(Invalid)),
        ((1 << 31) | dup::INHERIT, 0, Err(Invalid)),
    ] {
        let checked = Duplication { flags, desired }.check();
        assert_eq!(checked, expected, "{flags:#x} {desired:#x}");
    }
}

#[test]
fn res_17_a_duplicate_has_the_same_access_or_less() {
    let own = READ_CONTROL | WAIT;
    let access = |flags, desired| Duplication { flags, desired }.access(Type::SyncObject, own);
    assert_eq!(access(dup::SAME_ACCESS, 0), Ok(own));
    assert_eq!(access(0, 0), Ok(READ_CONTROL));
    assert_eq!(access(0, WAIT), Ok(own));
    assert_eq!(access(0, SIGNAL), Err(Refusal::Denied));
    assert_eq!(access(0, 1 << 5), Err(Refusal::Invalid));

    let inherits = |flags| Duplication { flags, desired: 0 }.inherits();
    assert!(inherits(dup::INHERIT | dup::SAME_ACCESS));
    assert!(!inherits(dup::SAME_ACCESS));
}
