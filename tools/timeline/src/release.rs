// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which signal made the condition of a wait true.

/// The steps by which a fence came to its value: from which signal on it has been at least so high.
///
/// `T` names a signal. Values may go down; then what was above is forgotten.
#[derive(Clone, Debug)]
pub struct Steps<T>(Vec<(u64, T)>);

impl<T> Default for Steps<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Steps<T> {
    /// The signal `by` has stored `value`.
    pub fn store(&mut self, value: u64, by: T) {
        let mut first = by;
        while let Some((_, above)) = self.0.last().copied().filter(|(step, _)| *step > value) {
            // It was the first that reached this value, too.
            first = above;
            self.0.pop();
        }
        match self.0.last() {
            Some((step, _)) if *step == value => (),
            _ => self.0.push((value, first)),
        }
    }

    /// Since when the value has been at least `value`, if a signal is known that brought it there.
    pub fn reached(&self, value: u64) -> Option<T> {
        let below = self.0.partition_point(|(step, _)| *step < value);
        self.0.get(below).map(|(_, by)| *by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gpu_91_the_first_signal_that_is_high_enough() {
        let mut steps = Steps::default();
        assert_eq!(steps.reached(1), None);
        steps.store(3, 'a');
        steps.store(3, 'b');
        steps.store(7, 'c');
        assert_eq!(steps.reached(1), Some('a'));
        assert_eq!(steps.reached(3), Some('a'));
        assert_eq!(steps.reached(4), Some('c'));
        assert_eq!(steps.reached(8), None);
        // Down to 2, where `a` had been first; and up again.
        steps.store(2, 'd');
        assert_eq!(steps.reached(2), Some('a'));
        assert_eq!(steps.reached(3), None);
        steps.store(5, 'e');
        assert_eq!(steps.reached(3), Some('e'));
    }

    proptest! {
        #[test]
        fn gpu_91_as_a_search_through_all_signals(values in prop::collection::vec(0..8u64, 0..40)) {
            let mut steps = Steps::default();
            for (count, value) in values.iter().enumerate() {
                steps.store(*value, count);
                for wanted in 1..9 {
                    let run = values[..=count].iter().rev().take_while(|value| **value >= wanted);
                    let first = (count + 1) - run.count();
                    prop_assert_eq!(steps.reached(wanted), (first <= count).then_some(first));
                }
            }
        }
    }
}
