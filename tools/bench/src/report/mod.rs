// SPDX-License-Identifier: MIT OR Apache-2.0
//! From measurements to ratios, a table and plots.

pub mod against;
pub mod compare;
pub mod plot;
pub mod ratio;
pub mod rows;
pub mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::result::{Report, Unit};

/// What is published: the measurements, where they were made, and what follows from them.
#[derive(Debug, Serialize)]
pub struct Publication {
    /// What the machine inside does not know: QEMU, commit, date, load of the host …
    pub conditions: BTreeMap<String, String>,
    /// The ratios.
    pub comparisons: Vec<compare::Comparison>,
    /// The measurements.
    pub measured: Report,
}

/// A cost in words: a time, or a number of instructions.
pub fn cost(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => time(value),
        Unit::Instructions => format!("{value:.0}"),
    }
}

/// A number of nanoseconds with a fitting unit and three significant digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A number with three significant digits, at most three of them behind the point.
pub fn three_digits(value: f64) -> String {
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        value if value >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(time(3.21), "3.21 ns");
        assert_eq!(time(999.6), "1000 ns");
        assert_eq!(time(12_345.0), "12.3 us");
        assert_eq!(time(2e6), "2.00 ms");
        assert_eq!(three_digits(0.01234), "0.0123");
    }
}
