// SPDX-License-Identifier: MIT OR Apache-2.0

//! Offers: arguments (MEM-29, MEM-31, MEM-33), when bytes may be dropped (MEM-30), the order of
//! victims (MEM-27).

use crate::logic::{
    offer_rules::{
        check_size, check_trim, of_resource, Droppable, Named, Offer, Priority, Rank, Reclaimed,
        Request,
    },
    paging_rules::MAX_LISTED,
    Invalid,
};

const NOW: u32 = 1;
const DECOMMIT: u32 = 2;

fn offer(priority: u32, flags: u32) -> Offer {
    Request::new(priority, flags)
        .map(|request| request.offer(0, 1))
        .expect("good arguments")
}

#[test]
fn mem_29_exactly_one_list() {
    assert_eq!(Named::new(8, 0, 3), Ok(Named::Resources(8, 3)));
    assert_eq!(
        Named::new(0, 16, MAX_LISTED),
        Ok(Named::Allocations(16, 16384))
    );
    for (resources, allocations, count) in [
        (0, 0, 1),
        (8, 8, 1),
        (8, 0, 0),
        (0, 8, 0),
        (0, 8, MAX_LISTED + 1),
        (8, 0, u32::MAX),
    ] {
        assert_eq!(
            Named::new(resources, allocations, count),
            Err(Invalid),
            "{resources} {allocations} {count}"
        );
    }
}

#[test]
fn mem_29_priorities_and_flags() {
    for priority in 1..=4 {
        for flags in 0..4 {
            let request = Request::new(priority, flags).expect("good arguments");
            assert_eq!(request.immediately, flags & NOW != 0);
        }
    }
    for priority in [0, 5, u32::MAX] {
        assert_eq!(Request::new(priority, 0), Err(Invalid), "{priority}");
    }
    for flags in [4, 8, 1 << 31, u32::MAX] {
        assert_eq!(Request::new(1, flags), Err(Invalid), "{flags}");
    }
}

#[test]
fn mem_29_automatic_is_what_the_eviction_priority_says() {
    let request = Request::new(4, NOW).expect("good arguments");
    for (eviction, priority) in [
        (0, Priority::Low),
        (0x2800_0000, Priority::Low),
        (0x5000_0000, Priority::Low),
        (0x5000_0001, Priority::Normal),
        (0x7800_0000, Priority::Normal),
        (0x9fff_ffff, Priority::Normal),
        (0xa000_0000, Priority::High),
        (0xc800_0000, Priority::High),
        (u32::MAX, Priority::High),
    ] {
        let offer = request.offer(eviction, 1);
        let droppable = Droppable::of([Some(offer)].into_iter()).expect("offered");
        assert_eq!(droppable.priority, priority, "{eviction:#x}");
    }
    // What is said counts more.
    let low = Request::new(1, NOW).expect("good arguments");
    let droppable = Droppable::of([Some(low.offer(u32::MAX, 1))].into_iter());
    assert_eq!(droppable.map(|all| all.priority), Some(Priority::Low));
}

#[test]
fn mem_29_an_offer_waits_for_the_work_of_its_call() {
    let mut late = offer(2, 0);
    let droppable = |offer| Droppable::of([Some(offer)].into_iter());
    assert_eq!(droppable(late), None);
    late.take_effect(7);
    assert_eq!(droppable(late), None, "another call");
    late.take_effect(1);
    assert!(droppable(late).is_some());
    late.take_effect(7);
    assert!(droppable(late).is_some());
    assert!(droppable(offer(2, NOW)).is_some());
}

#[test]
fn mem_30_all_have_to_offer_it() {
    let (low, high) = (Some(offer(1, NOW | DECOMMIT)), Some(offer(3, NOW)));
    let of = |offers: &[Option<Offer>]| Droppable::of(offers.iter().copied());
    assert_eq!(of(&[]), None);
    for offers in [
        &[None][..],
        &[low, None],
        &[None, low],
        &[low, Some(offer(1, 0))],
        &[low, high, None],
    ] {
        assert_eq!(of(offers), None, "{offers:?}");
    }
    for offers in [[low, high], [high, low]] {
        let droppable = of(&offers).expect("all have offered it");
        assert_eq!(droppable.priority, Priority::High);
        assert!(!droppable.allow_decommit);
    }
    let droppable = of(&[low, low]).expect("all have offered it");
    assert_eq!(droppable.priority, Priority::Low);
    assert!(droppable.allow_decommit);
}

#[test]
fn mem_27_offered_ones_give_way_first() {
    let order = [
        Rank::Offered(Priority::Low),
        Rank::Offered(Priority::Normal),
        Rank::Offered(Priority::High),
        Rank::Idle,
    ];
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn mem_31_results() {
    use Reclaimed::*;

    assert_eq!(
        [Ok, Discarded, NotCommitted].map(Reclaimed::code),
        [0, 1, 2]
    );
    let of = |results: &[Reclaimed]| of_resource(results.iter().copied());
    assert_eq!(of(&[]), Ok);
    assert_eq!(of(&[Ok, Ok]), Ok);
    assert_eq!(of(&[Ok, Discarded, Ok]), Discarded);
    assert_eq!(of(&[NotCommitted, Discarded]), NotCommitted);
}

#[test]
fn mem_33_sizes_and_flags() {
    assert_eq!(check_size(32, 32), Ok(()));
    for size in [0, 31, 33, u32::MAX] {
        assert_eq!(check_size(size, 32), Err(Invalid), "{size}");
    }
    assert_eq!(check_trim(40, 40, 0), Ok(false));
    assert_eq!(check_trim(40, 40, 1), Ok(false));
    assert_eq!(check_trim(40, 40, 2), Ok(true));
    assert_eq!(check_trim(40, 40, 3), Ok(true));
    for (size, flags) in [(39, 0), (40, 4), (40, 1 << 31), (0, 0)] {
        assert_eq!(check_trim(size, 40, flags), Err(Invalid), "{size} {flags}");
    }
}
