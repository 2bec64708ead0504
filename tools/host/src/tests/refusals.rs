// SPDX-License-Identifier: MIT OR Apache-2.0

//! The last refused calls, and which of them are forgotten.

use crate::logic::refusals::{Answer, Refusal, Refusals, KEPT};

const DENIED: Answer = Answer::Status(0xc000_0022_u32 as i32);
const INVALID: Answer = Answer::Status(0xc000_000d_u32 as i32);

fn of(refusals: &Refusals) -> Vec<Refusal> {
    let mut all: Vec<Refusal> = refusals.all().into_iter().flatten().collect();

    all.sort_by_key(|refusal| refusal.last_ns);
    all
}

#[test]
fn the_same_refusal_is_counted() {
    let mut refusals = Refusals::new();

    assert_eq!(of(&refusals), []);
    for now in [10, 30] {
        refusals.record(0x31, INVALID, now);
    }
    // Another answer, and another call, are something else.
    refusals.record(0x31, DENIED, 20);
    refusals.record(0x3a, INVALID, 40);
    refusals.record(0x3a, Answer::NoCall, 50);

    let found: Vec<_> = of(&refusals)
        .iter()
        .map(|one| (one.call, one.answer, one.times, one.last_ns))
        .collect();

    assert_eq!(
        found,
        [
            (0x31, DENIED, 1, 20),
            (0x31, INVALID, 2, 30),
            (0x3a, INVALID, 1, 40),
            (0x3a, Answer::NoCall, 1, 50),
        ]
    );
}

#[test]
fn the_oldest_one_makes_room() {
    let mut refusals = Refusals::new();

    for call in 0..KEPT as u32 {
        refusals.record(call, INVALID, call.into());
    }
    // The first one has come again, so the second one is the oldest.
    refusals.record(0, INVALID, 100);
    refusals.record(0xff, INVALID, 101);

    let calls: Vec<u32> = of(&refusals).iter().map(|one| one.call).collect();
    let mut due: Vec<u32> = (2..KEPT as u32).collect();

    due.extend([0, 0xff]);
    assert_eq!(calls, due);
}
