// SPDX-License-Identifier: MIT OR Apache-2.0

//! What OBJECT_ATTRIBUTES are refused for.

use crate::logic::{
    attribute_rules::{
        bits, check_lifetime, check_revision, check_root, check_string, check_structure, Refusal,
    },
    name::MAX_UNITS,
};

#[test]
fn res_38_the_structure_comes_first_and_then_the_place_of_the_name() {
    for (length, attributes, name, expected) in [
        (48, 0, 0, Ok(())),
        (48, 0x1ff2, 0x1000, Ok(())),
        (48, 0, u64::MAX - 7, Ok(())),
        (0, 0, 0, Err(Refusal::Invalid)),
        (24, 0, 0, Err(Refusal::Invalid)),
        (49, 0, 1, Err(Refusal::Invalid)),
        (48, 0x1, 1, Err(Refusal::Invalid)),
        (48, 0x2000, 0, Err(Refusal::Invalid)),
        (48, 0, 1, Err(Refusal::Misaligned)),
        (48, 0, 4, Err(Refusal::Misaligned)),
    ] {
        assert_eq!(
            check_structure(length, attributes, name),
            expected,
            "{length} {attributes:#x} {name}"
        );
    }
    for bit in (0..32).map(|bit| 1u32 << bit) {
        let known = check_structure(48, bit, 0).is_ok();

        assert_eq!(known, 0x1ff2 & bit != 0, "{bit:#x}");
    }
}

#[test]
fn res_38_a_bad_buffer_is_misaligned_before_a_length_is_odd_before_it_is_long() {
    let longest = 2 * MAX_UNITS as u16;

    for (bytes, buffer, expected) in [
        (0, 0, Ok(0)),
        (2, 2, Ok(1)),
        (longest, 4, Ok(MAX_UNITS)),
        (0, 1, Err(Refusal::Misaligned)),
        (3, 1, Err(Refusal::Misaligned)),
        (longest + 2, 1, Err(Refusal::Misaligned)),
        (1, 0, Err(Refusal::Name)),
        (longest + 1, 0, Err(Refusal::Name)),
        (u16::MAX, 0, Err(Refusal::Name)),
        (longest + 2, 0, Err(Refusal::TooLong)),
        (u16::MAX - 1, 0, Err(Refusal::TooLong)),
    ] {
        assert_eq!(check_string(bytes, buffer), expected, "{bytes} {buffer}");
    }
}

#[test]
fn res_38_there_are_no_directories_to_start_from() {
    assert_eq!(check_root(false, false), Ok(()));
    assert_eq!(check_root(false, true), Ok(()));
    assert_eq!(check_root(true, false), Err(Refusal::Name));
    assert_eq!(check_root(true, true), Err(Refusal::Directory));
}

#[test]
fn res_38_one_revision_and_nothing_permanent() {
    for revision in 0..=u8::MAX {
        let expected = match revision {
            1 => Ok(()),
            _ => Err(Refusal::Revision),
        };

        assert_eq!(check_revision(revision), expected);
    }
    assert_eq!(check_lifetime(bits::KNOWN & !0x10), Ok(()));
    assert_eq!(check_lifetime(0x10), Err(Refusal::Permanent));
    assert_eq!(check_lifetime(bits::KNOWN), Err(Refusal::Permanent));
}
