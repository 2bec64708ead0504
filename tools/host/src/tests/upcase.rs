// SPDX-License-Identifier: MIT OR Apache-2.0

//! Upper case of UTF-16 units, against the tables of the standard library.

use crate::logic::upcase::upcase;

/// Mappings that Unicode 16.0, the standard library's, has and the frozen table has not.
const YOUNGER: [u16; 5] = [0x019b, 0x0264, 0x1c8a, 0xa7cd, 0xa7db];

/// Characters whose upper case has several letters, but whose simple upper case is one letter: the
/// Greek letters with iota subscript. Their upper case is the letter with iota adscript.
fn has_iota_subscript(unit: u16) -> bool {
    matches!(unit,
        0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 | 0x1fb3 | 0x1fc3 | 0x1ff3)
}

/// RES-40, every unit.
#[test]
fn res_40_upper_case_agrees_with_the_standard_library() {
    let mut mapped = 0;

    for unit in 0..=u16::MAX {
        let upper = upcase(unit);
        let expected = match char::from_u32(unit.into()) {
            None => unit, // A surrogate.
            Some(_) if YOUNGER.contains(&unit) => unit,
            Some(_) if has_iota_subscript(unit) => unit + if unit & 0xf0 < 0xb0 { 8 } else { 9 },
            Some(letter) => {
                let all: Vec<u32> = letter.to_uppercase().map(u32::from).collect();

                match all[..] {
                    [one] => u16::try_from(one).unwrap_or(unit),
                    _ => unit,
                }
            }
        };

        assert_eq!(upper, expected, "{unit:#06x}");
        mapped += u32::from(upper != unit);
    }
    assert_eq!(mapped, 1190, "the table is frozen");
}

/// RES-40: comparing is an equivalence, which it is if upper case has no upper case of its own.
#[test]
fn res_40_upper_case_is_stable() {
    for unit in 0..=u16::MAX {
        assert_eq!(upcase(upcase(unit)), upcase(unit), "{unit:#06x}");
    }
}

#[test]
fn res_40_examples() {
    for (unit, upper) in [
        ('a', 'A'),
        ('z', 'Z'),
        ('A', 'A'),
        ('{', '{'),
        ('`', '`'),
        ('é', 'É'),
        ('ÿ', 'Ÿ'),
        ('ß', 'ß'),
        ('ж', 'Ж'),
        ('ω', 'Ω'),
        ('ı', 'I'),
        ('1', '1'),
        ('漢', '漢'),
    ] {
        assert_eq!(upcase(unit as u16), upper as u16, "{unit}");
    }
    for surrogate in 0xd800..=0xdfff {
        assert_eq!(upcase(surrogate), surrogate);
    }
}
