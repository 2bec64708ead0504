// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests for which the specification says how often or how long. Ordinary runs do less; `make
//! stress` does it all.

use std::sync::OnceLock;
use std::time::Duration;

use crate::rounds::ROUNDS_VARIABLE;
use crate::time::factor;

/// Environment variable of a stress run: how many rounds to run where the specification says a
/// million. Other figures shrink in proportion, but never below what ordinary runs do.
pub const STRESS_VARIABLE: &str = "OPENDXG_TEST_STRESS";

/// The part of the specification's figures that is asked for; none in ordinary runs.
fn part() -> Option<f64> {
    static PART: OnceLock<Option<f64>> = OnceLock::new();
    *PART.get_or_init(|| {
        let rounds: f64 = std::env::var(STRESS_VARIABLE).ok()?.parse().ok()?;
        Some((rounds / 1e6).clamp(0.0, 1.0))
    })
}

/// Whether this is a stress run, which consists of the tests with figures only.
pub fn is_stress() -> bool {
    part().is_some()
}

/// How often or how long something is tried: in ordinary runs, and by the specification.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    usual: u32,
    full: u32,
}

impl Figure {
    /// A figure of the specification, and what ordinary runs do.
    pub const fn new(usual: u32, full: u32) -> Self {
        Self { usual, full }
    }

    /// How many times as much as usually. `slow` is the factor in a slow kernel.
    fn factor(self, slow: f64) -> f64 {
        let wanted = part().unwrap_or(0.0) * f64::from(self.full) / f64::from(self.usual);
        wanted.max(factor(ROUNDS_VARIABLE, slow))
    }

    /// The number of rounds.
    pub fn rounds(self) -> u32 {
        ((f64::from(self.usual) * self.factor(0.25)) as u32).max(1)
    }

    /// The time, if the figure is one in seconds.
    pub fn time(self) -> Duration {
        Duration::from_secs_f64(f64::from(self.usual) * self.factor(1.0))
    }

    /// The time limit of a test that takes at most `limit` usually.
    pub(crate) fn limit(self, limit: Duration) -> Duration {
        limit.mul_f64(self.factor(1.0).max(1.0))
    }
}
