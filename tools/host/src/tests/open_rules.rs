// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sizes of the calls that open shared objects.

use crate::logic::open_rules::check_mutex_data;
use crate::logic::Invalid;

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
        assert_eq!(
            check_mutex_data(own, given),
            expected,
            "{own:?} and {given}"
        );
    }
}
