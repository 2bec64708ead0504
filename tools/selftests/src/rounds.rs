// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races: how often one is run, and threads that begin together.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Barrier, OnceLock};

use crate::time::factor;
use crate::TestResult;

/// Environment variable with the factor of all numbers of rounds.
pub const ROUNDS_VARIABLE: &str = "OPENDXG_TEST_ROUNDS";

/// Environment variable of a brief run: one that is after code paths, where the same were already
/// tried with all values and figures elsewhere.
pub const BRIEF_VARIABLE: &str = "OPENDXG_TEST_BRIEF";

/// Environment variable with the number that random tests begin with.
pub const SEED_VARIABLE: &str = "OPENDXG_TEST_SEED";

/// A number to begin random tests with: the one of the environment, or another one in each run.
/// Printed, so that a run can be repeated.
pub fn seed() -> u64 {
    let given = std::env::var(SEED_VARIABLE).ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now();
        let since = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        u64::from(since.subsec_nanos()) ^ (since.as_secs() << 20)
    });
    println!("# {SEED_VARIABLE}={seed}");
    seed
}

/// Whether a test may leave out values and figures that lead through the same code again.
pub fn is_brief() -> bool {
    std::env::var_os(BRIEF_VARIABLE).is_some()
}

/// A number of rounds, multiplied by what the environment asks for (a quarter in a slow kernel);
/// at least 1.
pub fn rounds(count: u32) -> u32 {
    static FACTOR: OnceLock<f64> = OnceLock::new();
    let factor = FACTOR.get_or_init(|| factor(ROUNDS_VARIABLE, 0.25));
    ((f64::from(count) * factor) as u32).max(1)
}

/// Goes through at least so many rounds, and through more until there was enough of what has to
/// happen meanwhile. How fast the machine is does not decide then.
pub fn rounds_until(
    least: u32,
    enough: impl Fn() -> bool,
    mut round: impl FnMut() -> TestResult,
) -> TestResult {
    let mut done = 0;
    while done < least || !enough() {
        round()?;
        done = done.saturating_add(1);
    }
    Ok(())
}

/// How much longer tests may take for it; at least 1.
pub(crate) fn longer() -> f64 {
    factor(ROUNDS_VARIABLE, 1.0).max(1.0)
}

/// One part of a race.
pub type Part<'a> = Box<dyn FnOnce() -> TestResult + Send + 'a>;

/// Runs every part in a thread of its own, all beginning at the same moment, and waits for all of
/// them. The first failure is the result.
pub fn together(parts: Vec<Part<'_>>) -> TestResult {
    let start = Barrier::new(parts.len());
    let run = |part: Part<'_>| {
        start.wait();
        catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|_| Err("panic in a thread".into()))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .into_iter()
            .map(|part| scope.spawn(|| run(part)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, TestResult>| {
            thread
                .join()
                .unwrap_or_else(|_| Err("lost a thread".into()))
        };
        threads.into_iter().try_for_each(join)
    })
}

/// The same part for each number below `count`.
pub fn crowd<'a>(count: usize, part: impl Fn(usize) -> TestResult + Sync + 'a) -> TestResult {
    let part = &part;
    together(
        (0..count)
            .map(|index| Box::new(move || part(index)) as Part<'_>)
            .collect(),
    )
}

/// A small source of numbers that differ from round to round, the same in every run.
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall in an order given by `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as u32).checked_rem(limit).unwrap_or(0)
    }

    /// Spends a moment, so that the other side of a race is met at different places.
    pub fn dawdle(&mut self) {
        for _ in 0..self.below(200) {
            core::hint::spin_loop();
        }
    }
}
