// SPDX-License-Identifier: MIT OR Apache-2.0

//! The same scenes with real threads: small under Miri, which looks for undefined behaviour and
//! stale reads, larger otherwise, as a stress.

use std::thread::scope;

use super::harness::{Arc, Fence, Glue, Wait};
use crate::logic::wait_set::{
    Mode::{All, Any},
    WaitEnd::{Cancelled, Satisfied},
};

const ROUNDS: u64 = if cfg!(miri) { 20 } else { 5000 };

/// FEN-33, FEN-83: two signallers and two waiters per round, then silence.
#[test]
fn fen_83_nobody_is_left_behind() {
    let fences = [Fence::new(0), Fence::new(0)];

    for round in 1..=ROUNDS {
        let [a, b] = &fences;
        let elements = [(a, round), (b, round)];
        let waits = scope(|scope| {
            let any = scope.spawn(|| Wait::start(Any, &elements));
            let all = scope.spawn(|| Wait::start(All, &elements));

            scope.spawn(|| a.signal(round, false).unwrap());
            b.signal(round, false).unwrap();
            [any.join().unwrap(), all.join().unwrap()]
        });

        for wait in waits {
            assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
        }
        assert_eq!((a.queued(), b.queued()), (0, 0));
    }
}

/// FEN-85, FEN-89: cancelled by one thread, signalled by a second, registered by a third.
#[test]
fn fen_85_exactly_one_outcome() {
    let quiet = Fence::new(0);

    for _ in 0..ROUNDS {
        let fence = Fence::new(0);
        let wait = Wait::new(Glue::Complete, Any, 2);
        let cancelled = scope(|scope| {
            let owner = scope.spawn(|| wait.cancel());

            scope.spawn(|| fence.signal(1, false).unwrap());
            Wait::register(&wait, &[(&fence, 1), (&quiet, 1)]);
            owner.join().unwrap()
        });
        let expected = match cancelled {
            true => (Some(Cancelled), 0),
            false => (Some(Satisfied), 1),
        };

        assert_eq!((wait.outcome(), wait.deliveries()), expected);
        assert_eq!((fence.queued(), quiet.queued()), (0, 0));
        assert_eq!(Arc::strong_count(&quiet), 1, "no element keeps a fence");
    }
}
