// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calls on allocations that are there.

use crate::logic::allocation_lists::{
    are_different, check_destroy_flags, check_destroy_list, CommonResource, NamedAllocations,
    MAX_DESTROYED,
};
use crate::logic::allocation_rules::MAX_ALLOCATIONS;
use crate::logic::Invalid;

const LIST: u64 = 0x1000;

#[test]
fn mem_9_a_resource_or_a_list() {
    for (resource, list, count, expected) in [
        (5, 0, 0, Ok(NamedAllocations::Resource(5))),
        (5, LIST, 0, Err(Invalid)),
        (5, 0, 1, Err(Invalid)),
        (5, LIST, 1, Err(Invalid)),
        (0, 0, 0, Err(Invalid)),
        (0, LIST, 0, Err(Invalid)),
        (0, 0, 1, Err(Invalid)),
        (0, LIST, 1, Ok(NamedAllocations::List(1))),
        (0, LIST, MAX_ALLOCATIONS, Ok(NamedAllocations::List(4096))),
        (0, LIST, MAX_ALLOCATIONS + 1, Err(Invalid)),
        (0, LIST, u32::MAX, Err(Invalid)),
    ] {
        assert_eq!(
            NamedAllocations::new(resource, list, count),
            expected,
            "{resource} {list} {count}"
        );
    }
}

#[test]
fn res_30_flags_of_a_destruction() {
    for flags in 0..4 {
        assert_eq!(check_destroy_flags(flags), Ok(()), "{flags}");
    }
    for bit in 2..32 {
        assert_eq!(check_destroy_flags(1 << bit), Err(Invalid), "bit {bit}");
        assert_eq!(
            check_destroy_flags((1 << bit) | 3),
            Err(Invalid),
            "bit {bit}"
        );
    }
}

#[test]
fn res_28_the_list_of_a_destruction() {
    for (list, count, expected) in [
        (0, 0, Ok(0)),
        (LIST, 0, Ok(0)),
        (LIST, 1, Ok(1)),
        (0, 1, Err(Invalid)),
        (LIST, MAX_DESTROYED, Ok(65536)),
        (LIST, MAX_DESTROYED + 1, Err(Invalid)),
        (0, u32::MAX, Err(Invalid)),
    ] {
        assert_eq!(check_destroy_list(list, count), expected, "{list} {count}");
    }
}

#[test]
fn res_28_no_handle_is_repeated() {
    for (sorted, different) in [
        (&[][..], true),
        (&[7], true),
        (&[7, 8, 9], true),
        (&[7, 7], false),
        (&[7, 7, 8], false),
        (&[6, 7, 7], false),
    ] {
        assert_eq!(are_different(sorted), different, "{sorted:?}");
    }
}

#[test]
fn res_28_all_belong_to_one_resource() {
    let device = 3;

    for (good, list) in [
        (true, &[(Some(3), Some(1))][..]),
        (true, &[(Some(3), Some(1)), (Some(3), Some(1))]),
        (false, &[(Some(3), Some(1)), (Some(3), Some(2))]),
        // Standalone ones go with all.
        (
            true,
            &[(Some(3), None), (Some(3), Some(1)), (Some(3), None)],
        ),
        (
            false,
            &[(Some(3), Some(1)), (Some(3), None), (Some(3), Some(2))],
        ),
        (true, &[(None, Some(1)), (None, None)]),
        (false, &[(Some(4), Some(1))]),
        (false, &[(Some(4), None)]),
        (false, &[(Some(3), Some(1)), (Some(4), Some(1))]),
    ] {
        let mut common = CommonResource::default();
        let accepted = list
            .iter()
            .all(|(own, resource)| common.accepts(device, *own, *resource));

        assert_eq!(accepted, good, "{list:?}");
    }
}
