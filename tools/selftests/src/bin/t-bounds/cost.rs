// SPDX-License-Identifier: MIT OR Apache-2.0
//! What calls cost, in instructions.

use std::hint::black_box;
use std::sync::OnceLock;

use rustix::time::{clock_gettime, ClockId};
use selftests::{skip, Failure, TestResult};

/// A number of instructions.
pub(crate) type Cost = u64;

/// Nanoseconds that this thread has run, its calls included.
fn ran() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether a nanosecond is an instruction: nearly every time, equal work takes as long as ever.
/// With OPENDXG_TEST_COUNTS in the environment it has to be.
fn is_counted() -> bool {
    const TIMES: usize = 1000;
    static COUNTED: OnceLock<bool> = OnceLock::new();
    *COUNTED.get_or_init(|| {
        let once = |_| {
            let began = ran();
            (0..1000).for_each(|step| {
                black_box(step);
            });
            ran() - began
        };
        let mut took: Vec<u64> = (0..TIMES).map(once).collect();
        took.sort_unstable();
        // Interrupts come into some of them. A clock that goes by ticks stands still in most.
        let counted = took[TIMES / 2] > 0 && took[TIMES / 100] == took[TIMES / 2];
        let must = std::env::var_os("OPENDXG_TEST_COUNTS").is_some();
        assert!(counted || !must, "the clock counts no instructions");
        counted
    })
}

/// Skips a test that is nothing but a comparison, where nothing can be compared.
pub(crate) fn needs_counting() -> TestResult {
    if !is_counted() {
        skip!("the clock counts no instructions: tools/vm/run --accel count");
    }
    Ok(())
}

/// What `work` costs this thread; the least of a few attempts.
pub(crate) fn least(mut work: impl FnMut() -> TestResult) -> TestResult<Cost> {
    (0..3).try_fold(Cost::MAX, |best, _| Ok(best.min(of(&mut work)?)))
}

/// What `work` costs this thread.
pub(crate) fn of(work: impl FnOnce() -> TestResult) -> TestResult<Cost> {
    let began = ran();
    work()?;
    Ok(ran() - began)
}

/// Demands that `much` is little more than `little`, if they are instructions.
#[track_caller]
pub(crate) fn hardly_more(what: &str, little: Cost, much: Cost) -> TestResult {
    let place = core::panic::Location::caller();
    println!("# {what}: {little} and {much}");
    if is_counted() && much > 2 * little + 10_000 {
        let text = format!("{place}: {what}: {little} instructions, then {much}");
        return Err(Failure::Failed(text));
    }
    Ok(())
}
