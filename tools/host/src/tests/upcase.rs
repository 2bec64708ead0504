// SPDX-License-Identifier: MIT OR Apache-2.0

//! Upper case of UTF-16 units, against the tables of the standard library.

use std::collections::HashSet;

use crate::logic::upcase::upcase;

/// Mappings that Unicode 16.0, the standard library's, has and the frozen table has not.
const YOUNGER: [u16; 5] = [0x019b, 0x0264, 0x1c8a, 0xa7cd, 0xa7db];

/// How many units have an upper case.
const MAPPED: u32 = 1163;

/// The simple upper case of a letter, if the two are a pair.
fn pair(letter: char) -> Option<u16> {
    let one = |mut letters: std::vec::IntoIter<char>| match letters.len() {
        1 => letters.next(),
        _ => None,
    };
    let upper = one(letter.to_uppercase().collect::<Vec<_>>().into_iter()).or(match letter {
        // The standard library has only the long upper case of Greek letters with iota subscript.
        // Their simple one has the iota beside the letter.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
            char::from_u32(u32::from(letter) + 8)
        }
        'ᾳ' => Some('ᾼ'),
        'ῃ' => Some('ῌ'),
        'ῳ' => Some('ῼ'),
        _ => None,
    })?;
    let back = one(upper.to_lowercase().collect::<Vec<_>>().into_iter())?;

    (back == letter && upper != letter).then(|| u16::try_from(u32::from(upper)).ok())?
}

/// RES-40, every unit.
#[test]
fn res_40_upper_case_agrees_with_the_standard_library() {
    let mut mapped = 0;

    for unit in 0..=u16::MAX {
        let upper = upcase(unit);
        let expected = char::from_u32(unit.into())
            .filter(|_| !YOUNGER.contains(&unit))
            .and_then(pair)
            .unwrap_or(unit);

        assert_eq!(upper, expected, "{unit:#06x}");
        mapped += u32::from(upper != unit);
    }
    assert_eq!(mapped, MAPPED, "the table is frozen");
}

/// RES-40: one to one, both ways.
#[test]
fn res_40_no_two_letters_have_one_upper_case() {
    let mut seen = HashSet::new();

    for unit in 0..=u16::MAX {
        if upcase(unit) != unit {
            assert!(seen.insert(upcase(unit)), "{unit:#06x}");
        }
    }
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
        ('ı', 'ı'),
        ('ſ', 'ſ'),
        ('ς', 'ς'),
        ('σ', 'Σ'),
        ('µ', 'µ'),
        ('ǆ', 'Ǆ'),
        ('ǅ', 'ǅ'),
        ('K', 'K'),
        ('1', '1'),
        ('漢', '漢'),
    ] {
        assert_eq!(upcase(unit as u16), upper as u16, "{unit}");
    }
    for surrogate in 0xd800..=0xdfff {
        assert_eq!(upcase(surrogate), surrogate);
    }
}
