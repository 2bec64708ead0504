// SPDX-License-Identifier: GPL-2.0

//! Groups in a sorted list of pairs: members with the same first half belong together.

/// The best member of each group: the one with the smallest rank, and the first of those. `sorted`
/// is in increasing order; each pair is looked at once.
pub fn best<'a>(
    sorted: &'a [[u64; 2]],
    rank: impl Fn(u64) -> u64 + 'a,
) -> impl Iterator<Item = u64> + 'a {
    let mut rest = sorted.iter().peekable();

    core::iter::from_fn(move || {
        let [group, first] = *rest.next()?;
        let mut best = (rank(first), first);

        while let Some([_, member]) = rest.next_if(|[other, _]| *other == group) {
            best = best.min((rank(*member), *member));
        }
        Some(best.1)
    })
}

/// The smallest member of each group.
pub fn firsts(sorted: &[[u64; 2]]) -> impl Iterator<Item = u64> + '_ {
    best(sorted, |_| 0)
}
