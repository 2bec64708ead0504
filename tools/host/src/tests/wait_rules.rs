// SPDX-License-Identifier: MIT OR Apache-2.0

//! What CPU waits and signals refuse.

use crate::logic::{
    wait_rules::{check_arrays, signal_flags, wait_flags, ElementCheck, Refusal},
    wait_set::Mode,
    Invalid,
};

#[test]
fn fen_15_fen_32_only_one_flag_is_known() {
    assert_eq!((signal_flags(0), signal_flags(4)), (Ok(false), Ok(true)));
    assert_eq!(
        (wait_flags(0), wait_flags(1)),
        (Ok(Mode::All), Ok(Mode::Any))
    );
    for bit in (0..32).map(|bit| 1 << bit) {
        for flags in [bit, bit | 4] {
            let expected = if flags == 4 { Ok(true) } else { Err(Invalid) };

            assert_eq!(signal_flags(flags), expected, "{flags:#x}");
        }
        for flags in [bit, bit | 1] {
            let expected = if flags == 1 {
                Ok(Mode::Any)
            } else {
                Err(Invalid)
            };

            assert_eq!(wait_flags(flags), expected, "{flags:#x}");
        }
    }
}

#[test]
fn fen_18_one_to_4096_elements_in_two_arrays() {
    for (count, handles, values, expected) in [
        (1, 1, 1, Ok(())),
        (4096, u64::MAX, u64::MAX, Ok(())),
        (0, 1, 1, Err(Invalid)),
        (4097, 1, 1, Err(Invalid)),
        (u32::MAX, 1, 1, Err(Invalid)),
        (1, 0, 1, Err(Invalid)),
        (1, 1, 0, Err(Invalid)),
    ] {
        assert_eq!(
            check_arrays(count, handles, values),
            expected,
            "{count} {handles} {values}"
        );
    }
}

/// FEN-53: types of all elements before rights of all, in whatever order the elements come.
#[test]
fn fen_53_types_come_before_rights() {
    let good = (true, true);
    let mismatch = (false, true);
    let denied = (true, false);
    let both = (false, false);

    for (elements, expected) in [
        (vec![], Ok(())),
        (vec![good, good], Ok(())),
        (vec![mismatch], Err(Refusal::Mismatch)),
        (vec![denied], Err(Refusal::Denied)),
        (vec![both], Err(Refusal::Mismatch)),
        (vec![denied, good, mismatch], Err(Refusal::Mismatch)),
        (vec![mismatch, denied], Err(Refusal::Mismatch)),
        (vec![good, denied, good], Err(Refusal::Denied)),
    ] {
        let mut check = ElementCheck::default();

        for (fits, may) in &elements {
            check.see(*fits, *may);
        }
        assert_eq!(check.result(), expected, "{elements:?}");
    }
}
