// SPDX-License-Identifier: GPL-2.0

//! Groups in a sorted list of pairs: those with the same first half belong together.

/// The second half of the first pair of each group. `sorted` is in increasing order; each pair is
/// looked at once.
pub fn firsts(sorted: &[[u64; 2]]) -> impl Iterator<Item = u64> + '_ {
    let mut last = None;

    sorted.iter().filter_map(move |[group, member]| {
        let is_first = last != Some(group);

        last = Some(group);
        is_first.then_some(*member)
    })
}
