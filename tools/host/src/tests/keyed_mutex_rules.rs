// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the calls on keyed mutexes refuse.

use crate::logic::allocation_rules::MAX_PRIVATE_DATA;
use crate::logic::keyed_mutex_rules::{sharing, PrivateData, NT_SECURITY_SHARING};
use crate::logic::sync_flags::Sharing;
use crate::logic::Invalid;

const ADDRESS: u64 = 0x1000;

fn data(size: u32) -> PrivateData {
    PrivateData::new(ADDRESS, size).unwrap()
}

#[test]
fn res_91_flags_of_a_creation() {
    assert_eq!(sharing(0), Ok(Sharing::Global));
    assert_eq!(sharing(NT_SECURITY_SHARING), Ok(Sharing::Nt));
    for bit in 1..32 {
        assert_eq!(sharing(1 << bit), Err(Invalid), "bit {bit}");
        assert_eq!(
            sharing(NT_SECURITY_SHARING | (1 << bit)),
            Err(Invalid),
            "bit {bit}"
        );
    }
}

#[test]
fn res_101_data_has_an_address() {
    for (address, size, good) in [
        (0, 0, true),
        (ADDRESS, 0, true),
        (ADDRESS, 1, true),
        (0, 1, false),
        (0, u32::MAX, false),
    ] {
        assert_eq!(
            PrivateData::new(address, size).is_ok(),
            good,
            "{address} {size}"
        );
    }
}

#[test]
fn res_92_data_for_a_mutex_fits_what_it_has() {
    for (own, given, expected) in [
        (None, 0, Ok(())),
        (None, 1, Ok(())),
        (None, u32::MAX, Ok(())),
        (Some(8), 0, Ok(())),
        (Some(8), 8, Ok(())),
        (Some(8), 7, Err(Invalid)),
        (Some(8), 9, Err(Invalid)),
    ] {
        assert_eq!(data(given).check_open(own), expected, "{own:?} and {given}");
    }
}

#[test]
fn res_91_data_that_is_copied_in_is_bounded() {
    for (data, expected) in [
        (PrivateData::NONE, Ok(None)),
        (data(0), Ok(None)),
        (data(1), Ok(Some((ADDRESS, 1)))),
        (data(MAX_PRIVATE_DATA), Ok(Some((ADDRESS, 0x1_0000)))),
        (data(MAX_PRIVATE_DATA + 1), Err(Invalid)),
        (data(u32::MAX), Err(Invalid)),
    ] {
        assert_eq!(data.input(), expected, "{data:?}");
    }
}

#[test]
fn res_101_all_of_the_data_or_none_is_copied_out() {
    for (data, own, expected) in [
        (PrivateData::NONE, 6, Ok(None)),
        (data(0), 6, Ok(None)),
        (data(5), 6, Err(Invalid)),
        (data(6), 6, Ok(Some(ADDRESS))),
        (data(7), 6, Ok(Some(ADDRESS))),
        (data(1), 0, Ok(Some(ADDRESS))),
        (data(u32::MAX), 6, Ok(Some(ADDRESS))),
    ] {
        assert_eq!(data.output(own), expected, "{data:?} {own}");
        assert_eq!(data.is_empty(), expected == Ok(None), "{data:?}");
    }
}
