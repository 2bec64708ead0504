// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where allocations may be (MEM-3, MEM-5, MEM-8).

use proptest::prelude::*;

use crate::logic::{
    allocation_properties::{flags, mask, Properties, Update},
    Invalid,
};

/// An adapter with the segments 1, 2 and 5.
const KNOWN: u32 = 0b10_0110;

const OLD: Properties = Properties {
    supported: 0b110,
    preferred: 2,
    accessed_physically: false,
    contiguous: false,
    unmoveable: false,
};

#[test]
fn mem_3_a_kmd_names_segments_that_there_are() {
    for (supported, preferred, good) in [
        (0b10, 1, true),
        (0b10_0110, 5, true),
        (0b100, 1, false),
        (0b110, 0, false),
        (0, 0, false),
        (0, 1, false),
        (0b1010, 1, false),
        (1 << 31, 31, false),
        (0b10, 32, false),
        (0b10, u32::MAX, false),
    ] {
        let made = Properties::new(KNOWN, supported, preferred, true, false);
        assert_eq!(made.is_ok(), good, "{supported:#b} {preferred}");
        if let Ok(made) = made {
            assert_eq!((made.supported, made.preferred), (supported, preferred));
            assert!(made.accessed_physically && !made.contiguous && !made.unmoveable);
        }
    }
}

/// MEM-5: system memory is named by the aperture; segment 0 has no name in a set.
#[test]
fn mem_5_nobody_names_segment_0() {
    assert_eq!(Properties::new(KNOWN, 1, 0, false, false), Err(Invalid));
    let nothing = Update {
        mask: mask::SUPPORTED_SEGMENTS | mask::PREFERRED_SEGMENT,
        supported: 1,
        ..Update::default()
    };
    assert_eq!(nothing.apply(OLD).supported, 0b10, "bit 0 is segment 1");
}

#[test]
fn mem_8_reserved_bits_and_empty_sets_are_refused() {
    let good = Update {
        mask: 0xf,
        supported: 0b11,
        preference: 2 | (1 << 5) | (5 << 24),
        flags: 3,
    };
    assert_eq!(good.check(), Ok(()));
    for bit in 0..32 {
        let at = 1u32 << bit;
        let with = |update: Update| update.check().is_ok();
        assert_eq!(
            with(Update {
                mask: good.mask | at,
                ..good
            }),
            bit < 4,
            "mask {bit}"
        );
        assert_eq!(
            with(Update {
                flags: good.flags | at,
                ..good
            }),
            bit < 2,
            "flag {bit}"
        );
        assert_eq!(
            with(Update {
                preference: good.preference | at,
                ..good
            }),
            bit < 30,
            "preference {bit}"
        );
        // Also where nothing is changed.
        let nothing = Update { mask: 0, ..good };
        assert_eq!(
            with(Update {
                flags: at,
                ..nothing
            }),
            bit < 2
        );
        assert_eq!(
            with(Update {
                preference: at,
                ..nothing
            }),
            bit < 30
        );
    }
    assert_eq!(
        Update {
            supported: 0,
            ..good
        }
        .check(),
        Err(Invalid)
    );
    let others = Update {
        supported: 0,
        mask: 0b1101,
        ..good
    };
    assert_eq!(others.check(), Ok(()), "it is not changed");
}

#[test]
fn mem_8_segments_that_there_are_not_are_refused() {
    let check = |mask, supported, preference| {
        let update = Update {
            mask,
            supported,
            preference,
            flags: 0,
        };
        update.check_segments(KNOWN).is_ok()
    };
    let (set, preferred) = (mask::SUPPORTED_SEGMENTS, mask::PREFERRED_SEGMENT);
    for (supported, good) in [
        (0b1, true),
        (0b1_0011, true),
        (0b100, false),
        (1 << 31, false),
    ] {
        assert_eq!(check(set, supported, 0), good, "{supported:#b}");
        assert!(check(preferred, supported, 0));
    }
    for (preference, good) in [
        (0, true),
        (1, true),
        (2 | (5 << 6) | (1 << 12), true),
        (3, false),
        (31, false),
        (1 | (3 << 24), false),
        (0b10_0001, true),
    ] {
        assert_eq!(check(preferred, 0, preference), good, "{preference:#x}");
        assert!(check(set, 1, preference));
    }
}

#[test]
fn mem_8_the_first_that_it_may_be_in_is_preferred() {
    let apply = |mask, supported, preference| {
        let update = Update {
            mask,
            supported,
            preference,
            flags: 0,
        };
        let new = update.apply(OLD);
        (new.supported, new.preferred)
    };
    let (set, preferred) = (mask::SUPPORTED_SEGMENTS, mask::PREFERRED_SEGMENT);
    assert_eq!(apply(0, 1, 1), (0b110, 2), "nothing is changed");
    assert_eq!(apply(preferred, 0, 1), (0b110, 1));
    assert_eq!(apply(preferred, 0, 5 | (1 << 6)), (0b110, 1), "not in 5");
    assert_eq!(apply(preferred, 0, 5), (0b110, 2), "as before");
    assert_eq!(apply(preferred, 0, 0), (0b110, 2));
    assert_eq!(apply(set, 0b1, 0), (0b10, 1), "not in 2 any more");
    assert_eq!(
        apply(set, 0b1_0001, 5),
        (0b10_0010, 1),
        "the first of the set"
    );
    assert_eq!(apply(set | preferred, 0b1_0001, 5), (0b10_0010, 5));
    assert_eq!(apply(set | preferred, 0b10, 1 | (2 << 24)), (0b100, 2));
}

#[test]
fn mem_8_flags_change_by_their_bits() {
    for mask in [0, mask::ACCESSED_PHYSICALLY, mask::UNMOVEABLE, 0b1001] {
        for flags in 0..4 {
            for (physical, unmoveable) in [(false, false), (false, true), (true, true)] {
                let old = Properties {
                    accessed_physically: physical,
                    unmoveable,
                    ..OLD
                };
                let update = Update {
                    mask,
                    flags,
                    ..Update::default()
                };
                let new = update.apply(old);
                let expect = |bit, flag, old| match mask & bit != 0 {
                    true => flags & flag != 0,
                    false => old,
                };
                assert_eq!(
                    new,
                    Properties {
                        accessed_physically: expect(
                            mask::ACCESSED_PHYSICALLY,
                            flags::ACCESSED_PHYSICALLY,
                            physical
                        ),
                        unmoveable: expect(mask::UNMOVEABLE, flags::UNMOVEABLE, unmoveable),
                        ..OLD
                    }
                );
            }
        }
    }
}

proptest! {
    /// Whatever is accepted leaves an allocation where it may be, and doing it twice is doing it
    /// once.
    #[test]
    fn mem_8_what_is_accepted_makes_sense(
        mask in 0u32..16,
        supported in 0u32..64,
        preference in any::<u32>(),
        flags in 0u32..4,
    ) {
        let update = Update { mask, supported, preference: preference & 0x3fff_ffff, flags };
        if update.check().is_ok() && update.check_segments(KNOWN).is_ok() {
            let new = update.apply(OLD);
            prop_assert_eq!(new.supported & !KNOWN, 0);
            prop_assert_ne!(new.supported & (1 << new.preferred), 0);
            prop_assert_eq!(update.apply(new), new);
            if mask == 0 {
                prop_assert_eq!(new, OLD);
            }
        }
    }
}
