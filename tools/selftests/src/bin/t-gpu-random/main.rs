// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs of calls against a model of what memory holds and what there is, in processes
//! that die at random. `OPENDXG_TEST_SEED` repeats a run, `OPENDXG_TEST_ROUNDS` makes it longer.

mod memory;
mod program;
mod steps;

use std::time::Duration;

use program::Program;
use selftests::child::Child;
use selftests::rounds::{rounds, seed, Dice};
use selftests::{fixture, Suite, TestResult};

/// Processes at a time.
const PROCESSES: u32 = 3;
/// Steps of one process, at most.
const STEPS: u32 = 120;

pub(crate) fn main() {
    Suite::new("gpu-random")
        .slow(
            "MEM-116 GPU-115 a random program against a model",
            Duration::from_secs(120),
            || alone(seed()),
        )
        .slow(
            "MEM-116 MEM-7 GPU-97 random programs side by side that die at random",
            Duration::from_secs(120),
            || side_by_side(seed()),
        )
        .run()
}

/// One program in this process: all that it has ends with it, step by step.
fn alone(seed: u64) -> TestResult {
    for round in 0..rounds(2) {
        let seed = seed.wrapping_add(round.into());
        let mut program = Program::new(&fixture::device()?, seed)?;
        program.steps(STEPS).map_err(|error| of(seed, error))?;
        program.end().map_err(|error| of(seed, error))?;
    }
    Ok(())
}

/// Several processes. Some end by themselves in the middle of a step, some are killed.
fn side_by_side(seed: u64) -> TestResult {
    let mut dice = Dice::new(seed);
    let luid = fixture::adapter()?.luid();
    for round in 0..rounds(3) {
        let start = |number: u32| {
            let seed = seed.wrapping_add(u64::from(round * PROCESSES + number) << 16);
            let last = dice.below(2 * STEPS);
            let child = Child::spawn(move || {
                let device = opendxg::Dxg::open()?.open_adapter(luid)?.create_device()?;
                let mut program = Program::new(&device, seed)?;
                let steps = last.min(STEPS);
                program.steps(steps).map_err(|error| of(seed, error))?;
                match last % 3 {
                    0 => program.end().map_err(|error| of(seed, error)),
                    // With everything that is queued.
                    _ => {
                        core::mem::forget(program);
                        Ok(())
                    }
                }
            })?;
            Ok((child, dice.below(4)))
        };
        let children: TestResult<Vec<(Child, u32)>> = (0..PROCESSES).map(start).collect();
        let mut kept = Vec::new();
        for (child, fate) in children? {
            match fate {
                0 => {
                    std::thread::sleep(Duration::from_micros(dice.below(200_000).into()));
                    child.signal(libc::SIGKILL)?;
                    // It may have ended before.
                    drop(child);
                }
                _ => kept.push(child),
            }
        }
        kept.into_iter().try_for_each(Child::join)?;
    }
    Ok(())
}

fn of(seed: u64, error: selftests::Failure) -> selftests::Failure {
    match error {
        selftests::Failure::Failed(text) => format!("program {seed}: {text}").into(),
        skipped => skipped,
    }
}
