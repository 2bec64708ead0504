// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who may open an object by its name.

use proptest::prelude::*;

use crate::logic::{
    access::{
        resource::WRITE,
        Type::{self, Resource, SyncObject},
        Wanted, READ_CONTROL, SIGNAL, WAIT,
    },
    name_mode::{
        is_valid, wanted,
        ModeClass::{self, Group, Other, Owner, Privileged},
        Refusal::{self, Denied, Hidden, Mismatch},
        Rule, PRIVATE,
    },
    Invalid,
};

const CLASSES: [ModeClass; 4] = [Owner, Group, Other, Privileged];
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;

fn rule(ty: Type, mode: u32) -> Rule {
    Rule {
        ty,
        mode,
        may: ty.all(),
    }
}

fn open(rule: Rule, class: ModeClass, desired: u32) -> Result<u32, Refusal> {
    rule.open(class, rule.ty, Wanted::new(rule.ty, desired))
}

#[test]
fn res_45_only_permission_bits_are_a_mode() {
    assert!(is_valid(0) && is_valid(PRIVATE) && is_valid(0o666));
    for bit in [0, 3, 6, 9, 10, 11, 15, 31] {
        assert!(!is_valid(1 << bit), "{bit}");
    }
}

/// No access is refused only once the name is found, unknown bits are at once.
#[test]
fn res_43_what_an_open_asks_for() {
    for ty in [Resource, SyncObject] {
        assert_eq!(wanted(ty, 0), Ok(None));
        assert_eq!(wanted(ty, 1 << 5), Err(Invalid));
        assert_eq!(wanted(ty, WAIT), Ok(Wanted::new(ty, WAIT)));
        assert!(wanted(ty, WAIT) != Ok(None));
    }
}

#[test]
fn res_45_the_default_is_for_the_owner_alone() {
    let sync = rule(SyncObject, PRIVATE);

    assert_eq!(open(sync, Owner, GENERIC_ALL), Ok(0x1f_0003));
    assert_eq!(open(sync, Privileged, GENERIC_ALL), Ok(0x1f_0003));
    assert_eq!(open(sync, Group, READ_CONTROL), Err(Hidden));
    assert_eq!(open(sync, Other, READ_CONTROL), Err(Hidden));
}

#[test]
fn res_45_read_and_write_bits() {
    for (mode, desired, result) in [
        (0o604, WAIT, Ok(READ_CONTROL | WAIT)),
        (0o604, SIGNAL, Err(Denied)),
        (0o604, WAIT | SIGNAL, Err(Denied)),
        (0o604, GENERIC_ALL, Err(Denied)),
        (0o604, 0x10_0000, Ok(READ_CONTROL | 0x10_0000)),
        (0o604, 0x1_0000, Err(Denied)),
        (0o604, MAXIMUM_ALLOWED, Ok(0x12_0001)),
        (0o604, MAXIMUM_ALLOWED | SIGNAL, Err(Denied)),
        (0o606, GENERIC_ALL, Ok(0x1f_0003)),
        (0o606, MAXIMUM_ALLOWED, Ok(0x1f_0003)),
        (0o602, SIGNAL, Ok(READ_CONTROL | SIGNAL)),
        (0o602, MAXIMUM_ALLOWED, Ok(READ_CONTROL | 0xd_0002)),
        (0o602, READ_CONTROL | SIGNAL, Err(Hidden)),
        (0o602, READ_CONTROL, Err(Hidden)),
        (0o602, GENERIC_WRITE, Err(Hidden)),
        (0o602, WAIT, Err(Hidden)),
        (0o660, WAIT, Err(Hidden)),
        (0, WAIT, Err(Hidden)),
    ] {
        assert_eq!(
            open(rule(SyncObject, mode), Other, desired),
            result,
            "{mode:o} {desired:#x}"
        );
    }
    for (mode, desired, result) in [
        (0o604, READ_CONTROL, Ok(READ_CONTROL)),
        (0o604, WRITE, Err(Denied)),
        (0o604, MAXIMUM_ALLOWED, Ok(READ_CONTROL)),
        (0o606, WRITE, Ok(READ_CONTROL | WRITE)),
        (0o606, GENERIC_ALL, Ok(0xf_0001)),
        (0o606, MAXIMUM_ALLOWED, Ok(0xf_0001)),
    ] {
        assert_eq!(
            open(rule(Resource, mode), Other, desired),
            result,
            "{mode:o} {desired:#x}"
        );
    }
}

/// As with files, the first class that fits counts: an owner may have less than others.
#[test]
fn res_45_each_class_has_its_own_bits() {
    for (mode, readable) in [(0o400, Owner), (0o040, Group), (0o004, Other)] {
        for class in [Owner, Group, Other] {
            let expected = if class == readable {
                Ok(READ_CONTROL)
            } else {
                Err(Hidden)
            };

            assert_eq!(
                open(rule(Resource, mode), class, READ_CONTROL),
                expected,
                "{mode:o} {class:?}"
            );
        }
    }
}

#[test]
fn res_43_no_access_and_the_other_type() {
    let shown = rule(SyncObject, 0o604);

    assert_eq!(shown.open(Other, SyncObject, None), Err(Denied));
    assert_eq!(shown.open(Other, Resource, None), Err(Mismatch));
    assert_eq!(
        shown.open(Other, Resource, Wanted::new(Resource, WRITE)),
        Err(Mismatch)
    );
    // What is hidden has no type.
    let written = rule(SyncObject, 0o602);

    assert_eq!(
        written.open(Other, Resource, Wanted::new(Resource, WRITE)),
        Err(Hidden)
    );
    assert_eq!(written.open(Other, SyncObject, None), Err(Hidden));
    assert_eq!(
        shown.open(Group, Resource, Wanted::new(Resource, WRITE)),
        Err(Hidden)
    );
    assert_eq!(shown.open(Group, SyncObject, None), Err(Hidden));
}

/// RES-104: neither owner nor privilege gets more than the sharer could give away.
#[test]
fn res_104_a_name_gives_no_more_than_the_sharer_had() {
    for class in CLASSES {
        let sync = Rule {
            may: READ_CONTROL | WAIT,
            ..rule(SyncObject, 0o666)
        };

        assert_eq!(open(sync, class, WAIT), Ok(READ_CONTROL | WAIT));
        assert_eq!(open(sync, class, SIGNAL), Err(Denied));
        assert_eq!(open(sync, class, MAXIMUM_ALLOWED), Ok(READ_CONTROL | WAIT));
    }
}

proptest! {
    #[test]
    fn res_45_grants_are_what_the_mode_says(
        resource: bool,
        mode in 0u32..0o1000,
        class in 0usize..3,
        desired: u32,
        may: u32,
    ) {
        let ty = if resource { Resource } else { SyncObject };
        let class = CLASSES[class];
        let may = may & ty.all() | READ_CONTROL;
        let bits = mode >> match class { Owner => 6, Group => 3, _ => 0 };
        let rule = Rule { ty, mode, may };

        match open(rule, class, desired) {
            Ok(granted) => {
                let granted = granted & !READ_CONTROL;

                prop_assert!(bits & 6 != 0);
                prop_assert!(bits & 4 != 0 || granted & ty.read() == 0);
                prop_assert!(bits & 2 != 0 || granted & !ty.read() == 0);
                prop_assert_eq!(granted & !may, 0);
                prop_assert!(bits & 4 != 0 || desired & READ_CONTROL == 0);
                // Privilege never grants less.
                prop_assert!(open(rule, Privileged, desired).is_ok());
            }
            Err(refusal) => prop_assert_eq!(refusal == Hidden, bits & 4 == 0),
        }
    }
}
