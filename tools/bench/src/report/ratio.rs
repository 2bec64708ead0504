// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much more one participant takes than another, and how sure that is.

use serde::Serialize;

use crate::result::Series;
use crate::rng::Rng;

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Best guess.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

const RESAMPLES: usize = 2000;

/// The ratio of two series of a group: the median over the blocks of the ratio of the block
/// medians. Blocks with the same index were measured close to each other, so that load of the host
/// cancels out. The interval comes from drawing the blocks again and again with replacement
/// (bootstrap).
pub fn ratio(ours: &Series, theirs: &Series) -> Ratio {
    of_blocks(&ours.blocks, &theirs.blocks)
}

/// The same of two series that were not measured close to each other: each in units of a reference
/// that was measured beside it, so that a change of the machine's speed in between cancels out.
pub fn ratio_in_units(ours: (&Series, &Series), theirs: (&Series, &Series)) -> Ratio {
    let in_units = |(series, unit): (&Series, &Series)| -> Vec<f64> {
        let pairs = series.blocks.iter().zip(&unit.blocks);
        pairs.map(|(block, unit)| block / unit).collect()
    };
    of_blocks(&in_units(ours), &in_units(theirs))
}

/// As [`ratio`] of blocks of the same rounds.
pub(super) fn of_blocks(ours: &[f64], theirs: &[f64]) -> Ratio {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs
        .map(|(ours, theirs)| ours / theirs)
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.is_empty() {
        return Ratio {
            value: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
        };
    }
    let mut rng = Rng::new(1);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(ratios.iter().map(|_| ratios[rng.below(ratios.len())])))
        .collect();
    medians.sort_by(f64::total_cmp);
    Ratio {
        value: median(ratios.iter().copied()),
        low: medians[RESAMPLES * 25 / 1000],
        high: medians[RESAMPLES * 975 / 1000],
    }
}

/// The median of these values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Summary;

    fn series(blocks: &[f64]) -> Series {
        Series {
            name: String::new(),
            at: 0,
            operations: 0,
            ns: Summary::default(),
            blocks: blocks.to_vec(),
        }
    }

    #[test]
    fn load_that_hits_both_cancels_out() {
        let ours = series(&[2.0, 20.0, 4.0, 6.0]);
        let theirs = series(&[1.0, 10.0, 2.0, 3.0]);
        let exact = Ratio {
            value: 2.0,
            low: 2.0,
            high: 2.0,
        };
        assert_eq!(ratio(&ours, &theirs), exact);
    }

    #[test]
    fn units_cancel_a_change_of_the_machine_between_two_series() {
        // The machine has half its speed while `theirs` is measured.
        let (ours, unit) = (series(&[3.0, 6.0]), series(&[1.0, 2.0]));
        let (theirs, slow) = (series(&[4.0, 4.0]), series(&[2.0, 2.0]));
        assert_eq!(ratio(&ours, &theirs).value, 1.125);
        assert_eq!(ratio_in_units((&ours, &unit), (&theirs, &slow)).value, 1.5);
        let nothing = series(&[0.0, 0.0]);
        assert!(ratio_in_units((&ours, &nothing), (&theirs, &slow))
            .value
            .is_nan());
    }

    #[test]
    fn the_interval_holds_the_value_and_shows_the_spread() {
        let ours: Vec<f64> = (0..50).map(|block| 1.0 + f64::from(block % 10)).collect();
        let ratio = ratio(&series(&ours), &series(&[1.0; 50]));
        assert_eq!(ratio.value, 5.5);
        assert!(ratio.low < 5.5 && 5.5 < ratio.high, "{ratio:?}");
        assert!(ratio.low >= 3.0 && ratio.high <= 8.0, "{ratio:?}");
    }
}
