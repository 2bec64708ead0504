// SPDX-License-Identifier: MIT OR Apache-2.0

//! Access masks of NT handles.

use proptest::prelude::*;

use crate::logic::access::{
    resource::WRITE,
    rights, set,
    Type::{self, Resource, SyncObject},
    Wanted, READ_CONTROL, SIGNAL, WAIT,
};

const GENERIC_READ: u32 = 0x8000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;

/// What ShareObjects grants to the creator; the outer `None` is unknown bits.
fn grant(ty: Type, desired: u32) -> Option<Option<u32>> {
    Wanted::new(ty, desired).map(|wanted| wanted.within(ty.all()))
}

#[test]
fn res_35_the_masks_of_both_types() {
    assert_eq!(Resource.all(), 0x000f_0001);
    assert_eq!(SyncObject.all(), 0x001f_0003);
    assert_eq!((WAIT, SIGNAL, WRITE, READ_CONTROL), (1, 2, 1, 0x2_0000));
}

#[test]
fn res_35_generic_rights_are_mapped() {
    for (ty, desired, granted) in [
        (SyncObject, 0, READ_CONTROL),
        (SyncObject, WAIT, READ_CONTROL | WAIT),
        (SyncObject, SIGNAL, READ_CONTROL | SIGNAL),
        (SyncObject, READ_CONTROL, READ_CONTROL),
        (SyncObject, 0x001f_0003, 0x001f_0003),
        (SyncObject, GENERIC_READ, READ_CONTROL | WAIT),
        (SyncObject, GENERIC_WRITE, READ_CONTROL | SIGNAL),
        (SyncObject, GENERIC_EXECUTE, READ_CONTROL),
        (SyncObject, GENERIC_ALL, 0x001f_0003),
        (SyncObject, MAXIMUM_ALLOWED, 0x001f_0003),
        (
            SyncObject,
            GENERIC_READ | GENERIC_WRITE,
            READ_CONTROL | WAIT | SIGNAL,
        ),
        (SyncObject, 0x001f_0000, 0x001f_0000),
        (Resource, 0, READ_CONTROL),
        (Resource, WRITE, READ_CONTROL | WRITE),
        (Resource, 0x000f_0001, 0x000f_0001),
        (Resource, GENERIC_READ, READ_CONTROL),
        (Resource, GENERIC_WRITE, READ_CONTROL | WRITE),
        (Resource, GENERIC_EXECUTE, READ_CONTROL),
        (Resource, GENERIC_ALL, 0x000f_0001),
        (Resource, MAXIMUM_ALLOWED, 0x000f_0001),
    ] {
        assert_eq!(
            grant(ty, desired),
            Some(Some(granted)),
            "{ty:?} {desired:#x}"
        );
    }
}

#[test]
fn res_36_unknown_access_bits_are_refused() {
    for (ty, unknown) in [
        (SyncObject, &[2, 15, 21, 24, 26, 27][..]),
        (Resource, &[1, 2, 15, 21, 24, 26, 27]),
    ] {
        for bit in unknown {
            for rest in [0, ty.all(), MAXIMUM_ALLOWED, GENERIC_ALL] {
                assert_eq!(Wanted::new(ty, (1 << bit) | rest), None, "{ty:?} {bit}");
            }
        }
    }
}

/// The standard rights are known for both types; SYNCHRONIZE is no right of a resource.
#[test]
fn res_36_all_standard_rights_are_accepted() {
    const STANDARD_RIGHTS_ALL: u32 = 0x001f_0000;

    for (ty, desired, granted) in [
        (SyncObject, STANDARD_RIGHTS_ALL, STANDARD_RIGHTS_ALL),
        (Resource, STANDARD_RIGHTS_ALL, 0x000f_0000),
        (Resource, STANDARD_RIGHTS_ALL | WRITE, 0x000f_0001),
        (Resource, 0x0010_0000, READ_CONTROL),
        (Resource, 0x0010_0000 | GENERIC_ALL, 0x000f_0001),
    ] {
        assert_eq!(grant(ty, desired), Some(Some(granted)), "{desired:#x}");
    }
    // It is nothing that could be missing.
    let wanted = Wanted::new(Resource, 0x0010_0000 | WRITE);
    assert_eq!(
        wanted.map(|wanted| wanted.within(READ_CONTROL | WRITE)),
        Some(Some(READ_CONTROL | WRITE))
    );
}

#[test]
fn res_104_access_never_grows() {
    let only_wait = READ_CONTROL | WAIT;

    for (desired, granted) in [
        (0, Some(READ_CONTROL)),
        (WAIT, Some(only_wait)),
        (GENERIC_READ, Some(only_wait)),
        (SIGNAL, None),
        (WAIT | SIGNAL, None),
        (GENERIC_WRITE, None),
        (GENERIC_ALL, None),
        (0x1_0000, None),
        (MAXIMUM_ALLOWED, Some(only_wait)),
        (MAXIMUM_ALLOWED | WAIT, Some(only_wait)),
        (MAXIMUM_ALLOWED | SIGNAL, None),
    ] {
        let wanted = Wanted::new(SyncObject, desired).unwrap();

        assert_eq!(wanted.within(only_wait), granted, "{desired:#x}");
    }
}

#[test]
fn res_35_the_mask_of_a_set() {
    for (access, sync) in [
        (READ_CONTROL, READ_CONTROL | WAIT),
        (READ_CONTROL | WRITE, 0x001f_0003),
        (0x000f_0001, 0x001f_0003),
    ] {
        assert_eq!(set::sync_access(access), sync, "{access:#x}");
    }
    for (sync, bound) in [
        (0x001f_0003, Some(0x000f_0001)),
        (READ_CONTROL | WAIT | SIGNAL, Some(READ_CONTROL | WRITE)),
        (READ_CONTROL | WAIT, Some(READ_CONTROL)),
        (READ_CONTROL | SIGNAL, None),
        (READ_CONTROL, None),
    ] {
        assert_eq!(set::bound(sync), bound, "{sync:#x}");
    }
}

proptest! {
    /// Nobody gets more of the synchronisation object of a set than its sharer had.
    #[test]
    fn res_104_a_set_gives_no_more_than_its_sharer_had(sync: u32, desired: u32) {
        let sync = sync & SyncObject.all();
        let wanted = Wanted::new(Resource, desired & 0xf20f_0001);

        if let (Some(bound), Some(wanted)) = (set::bound(sync), wanted) {
            let Some(access) = wanted.within(bound) else { return Ok(()) };
            let (got, had) = (rights(set::sync_access(access)), rights(sync));

            prop_assert!(had.wait && (had.signal || !got.signal));
            prop_assert_eq!(access & !(bound | READ_CONTROL), 0);
        }
    }

    /// Never more than asked for, never more than may be given, always readable.
    #[test]
    fn res_35_a_grant_has_bounds(resource: bool, desired: u32, may: u32) {
        let ty = if resource { Resource } else { SyncObject };
        let may = may & ty.all();

        if let Some(granted) = Wanted::new(ty, desired).and_then(|wanted| wanted.within(may)) {
            let exact = desired & 0xf200_0000 == 0;

            prop_assert_eq!(granted & !(may | READ_CONTROL), 0);
            prop_assert!(granted & READ_CONTROL != 0);
            prop_assert!(!exact || granted == desired | READ_CONTROL);
            prop_assert_eq!(desired & ty.all() & !granted, 0);
            prop_assert_eq!(rights(granted).wait, granted & 1 != 0);
            prop_assert_eq!(rights(granted).signal, granted & 2 != 0);
        }
    }
}
