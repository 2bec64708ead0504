// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders of a list: the preferences of Sort.

use super::facts::Facts;

/// `DXCoreAdapterPreference`.
const HARDWARE: u32 = 0;
const MINIMUM_POWER: u32 = 1;
const HIGH_PERFORMANCE: u32 = 2;

/// Whether Sort looks at a preference.
pub(super) fn is_supported(preference: u32) -> bool {
    preference <= HIGH_PERFORMANCE
}

/// The place of an adapter by one preference: smaller is better. A preference that is not known
/// puts all adapters into the same place.
fn place(facts: &Facts, preference: u32) -> u8 {
    let software = u8::from(!facts.is_hardware);
    match preference {
        HARDWARE => software,
        // What the processor computes costs the most.
        MINIMUM_POWER if software == 1 => 3,
        MINIMUM_POWER if facts.is_integrated => 0,
        MINIMUM_POWER => 1 + u8::from(facts.is_detachable),
        HIGH_PERFORMANCE if software == 1 => 3,
        HIGH_PERFORMANCE if facts.is_detachable => 0,
        HIGH_PERFORMANCE => 1 + u8::from(facts.is_integrated),
        _ => 0,
    }
}

/// Whether one adapter comes before another, by preferences that weigh less and less.
pub(super) fn is_before(
    one: &Facts,
    other: &Facts,
    preferences: impl Iterator<Item = u32>,
) -> bool {
    for preference in preferences {
        let (one, other) = (place(one, preference), place(other, preference));
        if one != other {
            return one < other;
        }
    }
    false
}

/// Sorts without memory of its own. Equal items keep their order.
pub(super) fn sort<T>(items: &mut [T], mut is_before: impl FnMut(&T, &T) -> bool) {
    for end in 1..items.len() {
        for at in (1..=end).rev() {
            let [.., one, other] = &mut items[..=at] else {
                break;
            };
            if !is_before(other, one) {
                break;
            }
            core::mem::swap(one, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::*;

    /// Software, integrated, discrete, detachable.
    fn adapters() -> [Facts; 4] {
        let mut all = [facts(), facts(), facts(), facts()];
        all.iter_mut().skip(1).for_each(|it| it.is_hardware = true);
        all[1].is_integrated = true;
        all[3].is_detachable = true;
        all
    }

    fn order(preferences: &[u32]) -> Vec<usize> {
        let all = adapters();
        let mut order: Vec<_> = (0..all.len()).collect();
        sort(&mut order, |&one, &other| {
            is_before(&all[one], &all[other], preferences.iter().copied())
        });
        order
    }

    #[test]
    fn each_preference_and_their_weight() {
        assert_eq!(order(&[HARDWARE]), [1, 2, 3, 0]);
        assert_eq!(order(&[MINIMUM_POWER]), [1, 2, 3, 0]);
        assert_eq!(order(&[HIGH_PERFORMANCE]), [3, 2, 1, 0]);
        assert_eq!(order(&[HARDWARE, HIGH_PERFORMANCE]), [3, 2, 1, 0]);
        assert_eq!(order(&[MINIMUM_POWER, HIGH_PERFORMANCE]), [1, 2, 3, 0]);
    }

    #[test]
    fn what_is_not_known_is_ignored() {
        assert_eq!(order(&[77]), [0, 1, 2, 3]);
        assert_eq!(order(&[77, HIGH_PERFORMANCE]), order(&[HIGH_PERFORMANCE]));
        assert!(is_supported(2) && !is_supported(3));
    }

    #[test]
    fn sorting_keeps_the_order_of_equals() {
        let mut items = [(2, 'a'), (1, 'a'), (2, 'b'), (0, 'a'), (1, 'b'), (2, 'c')];
        sort(&mut items, |one, other| one.0 < other.0);
        let sorted = [(0, 'a'), (1, 'a'), (1, 'b'), (2, 'a'), (2, 'b'), (2, 'c')];
        assert_eq!(items, sorted);
        sort::<u8>(&mut [], |_, _| panic!());
    }
}
