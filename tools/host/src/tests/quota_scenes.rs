// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of takers of one counter (RES-105).

use loom::{
    sync::Arc,
    thread::{spawn, JoinHandle},
};

use super::interleavings::explore_within;
use crate::logic::quota::Usage;

fn taker(usage: &Arc<Usage>, amount: u32, limit: u32) -> JoinHandle<bool> {
    let usage = usage.clone();

    spawn(move || usage.take(amount, limit))
}

#[test]
fn res_105_all_get_what_fits_and_all_of_it_counts() {
    explore_within(None, || {
        let usage = Arc::new(Usage::new());
        let takers = [1, 2].map(|amount| taker(&usage, amount, 3));

        // A refusal does not get in their way.
        assert!(!usage.take(4, 3));
        for taker in takers {
            assert!(taker.join().unwrap(), "there was room");
        }
        assert_eq!(usage.get(), 3);
    });
}

#[test]
fn res_105_the_last_place_goes_to_one() {
    explore_within(None, || {
        let usage = Arc::new(Usage::new());
        let takers = [0; 2].map(|_| taker(&usage, 1, 1));
        let served = takers.map(|taker| taker.join().unwrap());

        assert!(served[0] != served[1]);
        assert_eq!(usage.get(), 1);
    });
}

#[test]
fn res_105_what_is_given_back_is_there_again() {
    explore_within(None, || {
        let usage = Arc::new(Usage::new());

        assert!(usage.take(1, 1));
        let taker = taker(&usage, 1, 1);
        usage.give_back(1);
        let served = taker.join().unwrap();

        assert_eq!(usage.get(), u32::from(served));
    });
}
