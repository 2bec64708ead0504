// SPDX-License-Identifier: MIT OR Apache-2.0

//! Digests of lists that differ in one place, or in the order.

use std::collections::HashSet;

use crate::logic::digest::Digest;

fn of(numbers: &[u64]) -> u64 {
    numbers
        .iter()
        .fold(Digest::new(), |digest, number| digest.with(*number))
        .get()
}

#[test]
fn lists_that_differ_have_different_digests() {
    let list: Vec<u64> = (0..64).map(|n| (n << 40) | n).collect();
    let mut seen = HashSet::from([of(&list)]);

    for place in 0..list.len() {
        for bit in 0..64 {
            let mut other = list.clone();

            other[place] ^= 1 << bit;
            assert!(seen.insert(of(&other)), "place {place} bit {bit}");
        }
    }
    for place in 1..list.len() {
        let mut other = list.clone();

        other.swap(0, place);
        assert!(seen.insert(of(&other)), "0 and {place} exchanged");
    }
    assert!(seen.insert(of(&list[1..])));
    assert!(seen.insert(of(&[])));
}
