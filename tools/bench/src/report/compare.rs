// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ratios of a run and whether they reach their targets.

use serde::Serialize;

use super::ratio::{ratio, ratio_in_units, Ratio};
use super::rows::Row;
use crate::result::Report;

/// A ratio that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Group of both participants.
    pub group: String,
    /// What is judged.
    pub ours: String,
    /// What it is compared with.
    pub theirs: String,
    /// Time of ours divided by time of theirs; `None` if one was not measured.
    pub ratio: Option<Ratio>,
    /// The ratio must not be higher.
    pub target: Option<f64>,
    /// How it ended.
    pub verdict: Verdict,
    /// What to know about it.
    pub note: String,
}

/// How a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The target is reached.
    Pass,
    /// Reached, but the target lies inside the interval.
    NearlyPass,
    /// Missed, but the target lies inside the interval.
    NearlyMiss,
    /// The target is missed.
    Miss,
    /// There is no target.
    Shown,
    /// It was not measured.
    NotMeasured,
}

impl Verdict {
    fn of(ratio: Option<Ratio>, target: Option<f64>) -> Self {
        let (Some(ratio), Some(target)) = (ratio, target) else {
            return if ratio.is_some() {
                Self::Shown
            } else {
                Self::NotMeasured
            };
        };
        match ratio.value <= target {
            true if ratio.high > target => Self::NearlyPass,
            true => Self::Pass,
            false if ratio.low <= target => Self::NearlyMiss,
            false => Self::Miss,
        }
    }

    /// As it is printed.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NearlyPass => "pass ~",
            Self::NearlyMiss => "MISS ~",
            Self::Miss => "MISS",
            Self::Shown => "",
            Self::NotMeasured => "not measured",
        }
    }
}

/// Name of a participant with its parameter.
pub fn label((name, at): (&str, u64)) -> String {
    match at {
        0 => name.into(),
        at => format!("{name} at {at}"),
    }
}

/// Compares the participants of the rows whose group was measured.
pub fn compare(report: &Report, rows: &[Row]) -> Vec<Comparison> {
    let measured = |row: &&Row| report.group(row.group).is_some();
    rows.iter()
        .filter(measured)
        .map(|row| {
            let find = |(name, at)| report.group(row.group)?.find(name, at);
            let pair = find(row.ours).zip(find(row.theirs));
            let units = row.unit.map(|unit| {
                let at = |(_, at)| find((unit, at));
                at(row.ours).zip(at(row.theirs))
            });
            let ratio = match units {
                None => pair.map(|(ours, theirs)| ratio(ours, theirs)),
                Some(units) => pair
                    .zip(units)
                    .map(|((ours, theirs), (our_unit, their_unit))| {
                        ratio_in_units((ours, our_unit), (theirs, their_unit))
                    }),
            };
            let ratio = ratio.filter(|ratio| ratio.value.is_finite());
            Comparison {
                group: row.group.into(),
                ours: label(row.ours),
                theirs: label(row.theirs),
                ratio,
                target: row.target,
                verdict: Verdict::of(ratio, row.target),
                note: row.note.into(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let ratio = |value, low, high| Some(Ratio { value, low, high });
        let target = Some(1.0);
        assert_eq!(Verdict::of(ratio(0.8, 0.7, 0.9), target), Verdict::Pass);
        assert_eq!(
            Verdict::of(ratio(0.8, 0.7, 1.1), target),
            Verdict::NearlyPass
        );
        assert_eq!(
            Verdict::of(ratio(1.2, 0.9, 1.5), target),
            Verdict::NearlyMiss
        );
        assert_eq!(Verdict::of(ratio(1.2, 1.1, 1.5), target), Verdict::Miss);
        assert_eq!(Verdict::of(ratio(1.2, 1.1, 1.5), None), Verdict::Shown);
        assert_eq!(Verdict::of(None, target), Verdict::NotMeasured);
    }
}
