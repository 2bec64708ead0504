// SPDX-License-Identifier: MIT OR Apache-2.0

//! Arguments of calls on GPU addresses (MEM-40, MEM-41, MEM-43, MEM-45, MEM-49).

use crate::logic::{
    gpu_ranges::{Bounds, FIRST, PAGE},
    gpu_va_rules::{
        check_free, check_part, protection::*, ClientSpace, Map, Position, Protection, Reserve,
        Update, UpdateBytes, Wish,
    },
    Invalid,
};

const SPACE: ClientSpace = ClientSpace {
    first: FIRST,
    end: 1 << 36,
};
const BLOCK: u64 = 0x1_0000;

fn wish(base: u64, minimum: u64, maximum: u64) -> Wish {
    Wish {
        base,
        minimum,
        maximum,
    }
}

#[test]
fn mem_41_reserve_wants_multiples_of_64_kib() {
    let reserve = |wish, size, kind| Reserve::new(SPACE, wish, size, kind);
    let all = Position::Picked(Bounds {
        first: FIRST,
        end: SPACE.end,
    });

    let good = reserve(wish(0, 0, 0), BLOCK, 0).expect("the least");
    assert_eq!((good.position, good.pages, good.zero), (all, 16, false));
    assert!(reserve(wish(0, 0, 0), BLOCK, 1).expect("zeros").zero);
    for (wish, size, kind) in [
        (wish(0, 0, 0), 0, 0),
        (wish(0, 0, 0), PAGE, 0),
        (wish(BLOCK + PAGE, 0, 0), BLOCK, 0),
        (wish(0, PAGE, 0), BLOCK, 0),
        (wish(0, 0, PAGE), BLOCK, 0),
        (wish(0, 0, 0), BLOCK, 2),
        (wish(0, 0, 0), BLOCK, 3),
        // Past the end, and over it (MEM-40).
        (wish(SPACE.end * PAGE, 0, 0), BLOCK, 0),
        (wish(u64::MAX - BLOCK + 1, 0, 0), BLOCK, 0),
        (wish(BLOCK, 0, 0), u64::MAX - BLOCK + 1, 0),
    ] {
        assert_eq!(
            reserve(wish, size, kind),
            Err(Invalid),
            "{wish:?} {size:#x} {kind}"
        );
    }
    assert_eq!(
        reserve(wish(BLOCK, 5 * BLOCK, BLOCK), BLOCK, 0).map(|it| it.position),
        Ok(Position::Fixed(16)),
        "Minimum and Maximum are not looked at"
    );
    assert_eq!(
        reserve(wish(0, 2 * BLOCK, 9 * BLOCK), BLOCK, 0).map(|it| it.position),
        Ok(Position::Picked(Bounds {
            first: 32,
            end: 144
        }))
    );
}

#[test]
fn mem_43_protections() {
    let pages = |write, execute| Ok(Protection::Pages { write, execute });
    for (bits, expected) in [
        (0, pages(false, false)),
        (WRITE, pages(true, false)),
        (EXECUTE, pages(false, true)),
        (WRITE | EXECUTE, pages(true, true)),
        (ZERO, Ok(Protection::Zero)),
        (NO_ACCESS, Ok(Protection::NoAccess)),
        (ZERO | NO_ACCESS, Err(Invalid)),
        (ZERO | WRITE, Err(Invalid)),
        (NO_ACCESS | EXECUTE, Err(Invalid)),
        (1 << 4, Err(Invalid)),
        (1 << 63, Err(Invalid)),
    ] {
        assert_eq!(Protection::new(bits), expected, "{bits:#x}");
    }
}

#[test]
fn mem_43_maps() {
    let map = |part, bits, has| Map::new(SPACE, wish(0, 0, 0), part, bits, has);

    assert!(map((0, 1), WRITE, true).is_ok());
    assert!(map((0, 1), ZERO, false).is_ok());
    for (part, bits, has) in [
        ((0, 0), 0, true),
        ((u64::MAX, 1), 0, true),
        ((0, 1), 0, false),
        ((0, 1), ZERO, true),
        ((0, 1), NO_ACCESS, true),
    ] {
        assert_eq!(
            map(part, bits, has),
            Err(Invalid),
            "{part:?} {bits:#x} {has}"
        );
    }
    let at = |base| Map::new(SPACE, wish(base, 0, 0), (0, 1), 0, true).map(|it| it.position);
    assert_eq!(at(FIRST * PAGE), Ok(Position::Fixed(FIRST)));
    assert_eq!(
        at(FIRST * PAGE - PAGE),
        Err(Invalid),
        "MEM-40: the first 64 KiB"
    );
    assert_eq!(at(FIRST * PAGE + 1), Err(Invalid));
    assert_eq!(check_part(3, 2, 5), Ok(()));
    assert_eq!(check_part(3, 3, 5), Err(Invalid));
    assert_eq!(check_part(0, 0, 5), Err(Invalid));
    assert_eq!(check_part(u64::MAX, 2, 5), Err(Invalid));
}

#[test]
fn mem_49_frees() {
    assert_eq!(check_free(SPACE, 16 * PAGE, 2 * PAGE), Ok((16, 18)));
    for (base, size) in [
        (16 * PAGE + 1, PAGE),
        (16 * PAGE, 1),
        (16 * PAGE, 0),
        (0, PAGE),
    ] {
        assert_eq!(
            check_free(SPACE, base, size),
            Err(Invalid),
            "{base:#x} {size:#x}"
        );
    }
}

#[test]
fn mem_45_updates() {
    let map = |size, offset, part, protection| {
        Update::new(
            SPACE,
            UpdateBytes::Map {
                base: 32 * PAGE,
                size,
                offset,
                part,
                protection,
                driver_protection: 9,
            },
        )
    };

    let good = map(6 * PAGE, PAGE, 2 * PAGE, WRITE).expect("three times");
    assert_eq!(
        good,
        Update::Map {
            first: 32,
            pages: 6,
            offset: 1,
            part: 2,
            write: true,
            execute: false,
            driver_protection: 9,
        }
    );
    assert_eq!(good.destination(), (32, 38));
    assert!(
        matches!(map(4 * PAGE, 0, 0, 0), Ok(Update::Map { part: 4, .. })),
        "0 is all"
    );
    for (size, offset, part, bits) in [
        (0, 0, 0, 0),
        (PAGE, 1, 0, 0),
        (3 * PAGE, 0, 2 * PAGE, 0),
        (PAGE, 0, 2 * PAGE, 0),
        (PAGE, 0, 0, ZERO),
        (PAGE, 0, 0, 1 << 4),
        (PAGE, u64::MAX - PAGE + 1, 0, 0),
    ] {
        assert_eq!(
            map(size, offset, part, bits),
            Err(Invalid),
            "{size:#x} {offset:#x} {part:#x}"
        );
    }
    let unmap = |protection| {
        Update::new(
            SPACE,
            UpdateBytes::Unmap {
                base: 32 * PAGE,
                size: PAGE,
                protection,
            },
        )
    };
    assert_eq!(
        unmap(ZERO),
        Ok(Update::Unmap {
            first: 32,
            pages: 1,
            zero: true
        })
    );
    assert_eq!(
        unmap(NO_ACCESS),
        Ok(Update::Unmap {
            first: 32,
            pages: 1,
            zero: false
        })
    );
    assert_eq!(unmap(0), Err(Invalid));
    let copy = |source, destination, size| {
        Update::new(
            SPACE,
            UpdateBytes::Copy {
                source,
                destination,
                size,
            },
        )
    };
    let copied = copy(64 * PAGE, 32 * PAGE, 3 * PAGE).expect("good");
    assert_eq!(
        (copied.source(), copied.destination()),
        (Some((64, 67)), (32, 35))
    );
    assert_eq!(copy(64 * PAGE, 32 * PAGE, 0), Err(Invalid));
    assert_eq!(copy(64 * PAGE + 1, 32 * PAGE, PAGE), Err(Invalid));
}
