// SPDX-License-Identifier: MIT OR Apache-2.0

//! Paging queues and residency: arguments (MEM-10, MEM-19, MEM-23), turns (MEM-14), budgets
//! (MEM-20, MEM-21, MEM-35 to MEM-37).

use crate::logic::{
    paging_rules::{
        budget, check_evict, check_make_resident, check_reservation, check_video_memory_query,
        next_queue, over_budget, reservable, Candidate, Priority, MAX_LISTED, PATIENCE,
    },
    Invalid,
};

#[test]
fn mem_10_priorities() {
    for value in [-1, 0, 1] {
        assert!(Priority::new(value).is_ok());
    }
    for value in [-2, 2, i32::MIN, i32::MAX] {
        assert_eq!(Priority::new(value), Err(Invalid));
    }
}

#[test]
fn mem_19_lists_and_flags() {
    assert_eq!(check_make_resident(1, 8, 0), Ok(1));
    assert_eq!(check_make_resident(MAX_LISTED, 8, 3), Ok(16384));
    for (count, list, flags) in [
        (0, 8, 0),
        (MAX_LISTED + 1, 8, 0),
        (1, 0, 0),
        (1, 8, 4),
        (1, 8, 1 << 31),
        (1, 8, 2),
    ] {
        assert_eq!(
            check_make_resident(count, list, flags),
            Err(Invalid),
            "{count} {list} {flags}"
        );
    }
    assert_eq!(check_evict(1, 8, 3), Ok(1), "MEM-23");
    for (count, list, flags) in [(0, 8, 0), (MAX_LISTED + 1, 8, 0), (1, 0, 0), (1, 8, 4)] {
        assert_eq!(
            check_evict(count, list, flags),
            Err(Invalid),
            "{count} {list} {flags}"
        );
    }
}

#[test]
fn mem_14_the_most_urgent_first_unless_another_waited_long() {
    let queue = |priority, since| Candidate { priority, since };
    let next = |queues: &[Candidate], now| next_queue(queues.iter().copied(), now);
    use Priority::*;

    assert_eq!(next(&[], 0), None);
    let queues = [
        queue(Normal, 5),
        queue(AboveNormal, 9),
        queue(BelowNormal, 1),
    ];
    assert_eq!(next(&queues, 10), Some(1));
    assert_eq!(next(&queues, 1 + PATIENCE), Some(2), "100 ms");
    assert_eq!(next(&queues, PATIENCE), Some(1), "less");
    assert_eq!(
        next(&queues, 9 + PATIENCE),
        Some(2),
        "all waited; the longest"
    );
    let same = [queue(Normal, 5), queue(Normal, 3), queue(Normal, 3)];
    assert_eq!(next(&same, 10), Some(1), "the longest, then the first");
}

#[test]
fn mem_36_budgets() {
    assert_eq!(budget(1 << 26, 0), (1 << 26) - (1 << 22));
    assert_eq!(budget(1600, 100), 1400);
    assert_eq!(budget(1600, 1501), 0);
    let group = 1600;
    for (used, more, cant_trim, over) in [
        (0, 1500, false, 0),
        (0, 1501, false, 1),
        (1400, 200, false, 100),
        (1400, 200, true, 0),
        (1400, 201, true, 1),
        (u64::MAX, 1, true, u64::MAX - 1600),
    ] {
        assert_eq!(
            over_budget(used, more, budget(group, 0), group, cant_trim),
            over,
            "{used} {more} {cant_trim}"
        );
    }
    // What others have reserved is not for this one, unless it has nothing left to trim.
    assert_eq!(
        over_budget(1000, 100, budget(group, 500), group, false),
        100
    );
    assert_eq!(over_budget(1000, 100, budget(group, 500), group, true), 0);
}

#[test]
fn mem_35_mem_37_reservations() {
    for (wanted, budget, fits) in [
        (0, 0, true),
        (1, 0, false),
        (1, 1, false),
        (50, 100, true),
        (51, 100, false),
        (u64::MAX, u64::MAX, false),
    ] {
        assert_eq!(check_reservation(wanted, budget).is_ok(), fits, "{wanted}");
        assert_eq!(wanted <= reservable(budget), fits, "{wanted}");
    }
}

#[test]
fn mem_34_questions() {
    assert_eq!(check_video_memory_query(1, 0, 0), Ok(0));
    assert_eq!(check_video_memory_query(1, 1, 0), Ok(1));
    for (adapter, group, physical) in [(0, 0, 0), (1, 2, 0), (1, 0, 1), (1, u32::MAX, 0)] {
        assert_eq!(
            check_video_memory_query(adapter, group, physical),
            Err(Invalid)
        );
    }
}
