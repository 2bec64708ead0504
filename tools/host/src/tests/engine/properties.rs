// SPDX-License-Identifier: MIT OR Apache-2.0

//! What holds for all programs: GPU-41, GPU-108, GPU-112.

use proptest::prelude::*;

use super::play::{leaves, play};
use super::play_ring::{play_ring, Ends};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn gpu_112_anything_ends_within_its_budget_and_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        play(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn gpu_15_gpu_16_gpu_112_any_ring_ends_within_its_budget_and_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        play_ring(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn gpu_108_the_same_inputs_give_the_same_trace(
        bytes in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        prop_assert_eq!(play(&bytes), play(&bytes));
    }

    #[test]
    fn gpu_41_it_does_not_matter_how_a_program_is_cut_into_steps(
        bytes in prop::collection::vec(any::<u8>(), 0..1500),
        budget in 1_u32..500,
    ) {
        if let (Some(whole), Some(cut)) = (leaves(&bytes, 4096), leaves(&bytes, budget)) {
            prop_assert!(whole == cut);
        }
    }
}

#[test]
fn the_choices_of_these_tests_reach_every_end() {
    // Bytes of a simple generator, so that this says something of what is usual.
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (state >> 16) as u8
    };
    let (mut done, mut faulted, mut blocked, mut ran) = (0, 0, 0, 0);

    for length in 0..400 {
        let bytes: Vec<u8> = (0..length).map(|_| next()).collect();

        for outcome in play(&bytes).outcomes {
            use crate::engine::command_processor::Outcome;

            match outcome {
                Outcome::Done(_) => done += 1,
                Outcome::Faulted(_) => faulted += 1,
                Outcome::Blocked { .. } => blocked += 1,
                _ => ran += 1,
            }
        }
    }
    assert!(
        done > 10 && faulted > 50 && blocked > 10 && ran > 100,
        "{done} done, {faulted} faulted, {blocked} blocked, {ran} others"
    );
}

#[test]
fn the_choices_of_rings_reach_every_end() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (state >> 16) as u8
    };
    let mut all = Ends::default();

    for length in 0..1000 {
        let bytes: Vec<u8> = (0..length).map(|_| next()).collect();
        let Ends {
            idle,
            ran,
            blocked,
            faulted,
        } = play_ring(&bytes);

        all.idle += idle;
        all.ran += ran;
        all.blocked += blocked;
        all.faulted += faulted;
    }
    assert!(
        all.idle > 100 && all.ran > 100 && all.blocked > 10 && all.faulted > 50,
        "{all:?}"
    );
}
