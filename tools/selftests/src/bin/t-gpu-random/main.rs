// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs of calls against a model of what memory holds and what there is, in processes
//! that die at random. `OPENDXG_TEST_SEED` repeats a run. `make stress` runs more of them at a
//! time, and for as long as the specification says.

mod memory;
mod program;
mod steps;

use std::time::{Duration, Instant};

use program::{Neighbours, Program};
use selftests::child::Child;
use selftests::rounds::{crowd, seed, Dice};
use selftests::stress::{is_stress, Figure};
use selftests::{fixture, Suite, TestResult};

/// Steps of one program, at most.
const STEPS: u32 = 120;

/// How many programs run at a time.
#[derive(Clone, Copy)]
struct Crowd {
    processes: u32,
    /// Threads of each, which have one device and so one address space.
    threads: u32,
}

impl Crowd {
    /// Ordinary runs have fewer than the specification says.
    fn new() -> Self {
        let (processes, threads) = if is_stress() { (8, 4) } else { (3, 2) };
        Self { processes, threads }
    }
}

pub(crate) fn main() {
    let limit = Duration::from_secs(120);
    Suite::new("gpu-random")
        .stress(
            "MEM-116 GPU-115 a random program against a model",
            limit,
            Figure::new(2, 200),
            |figure| alone(seed(), figure.rounds()),
        )
        .stress(
            "MEM-116 MEM-7 GPU-97 random programs side by side that die at random",
            limit,
            Figure::new(10, 3600),
            |figure| side_by_side(seed(), figure.time()),
        )
        .run()
}

/// One program in this process: all that it has ends with it, step by step.
fn alone(seed: u64, rounds: u32) -> TestResult {
    for round in 0..rounds {
        let seed = seed.wrapping_add(round.into());
        let mut program = Program::new(&fixture::device()?, seed, Neighbours::None)?;
        program.steps(STEPS).map_err(|error| of(seed, error))?;
        program.end().map_err(|error| of(seed, error))?;
    }
    Ok(())
}

/// Several processes for so long. Some end by themselves in the middle of a step, some are killed.
fn side_by_side(seed: u64, time: Duration) -> TestResult {
    let Crowd { processes, threads } = Crowd::new();
    let mut dice = Dice::new(seed);
    let luid = fixture::adapter()?.luid();
    let end = Instant::now() + time;
    let mut number = 0u64;
    while number == 0 || Instant::now() < end {
        let start = |_| {
            number += 1;
            let seed = seed.wrapping_add(number << 16);
            let last = dice.below(2 * STEPS);
            let child = Child::spawn(move || {
                let device = opendxg::Dxg::open()?.open_adapter(luid)?.create_device()?;
                // One in two processes has one thread and counts its handles.
                let (count, neighbours) = match last % 2 {
                    0 => (threads as usize, Neighbours::Threads),
                    _ => (1, Neighbours::None),
                };
                crowd(count, |thread| {
                    let seed = seed.wrapping_add(thread as u64);
                    run(&device, seed, last, neighbours).map_err(|error| of(seed, error))
                })
            })?;
            Ok((child, dice.below(4)))
        };
        let children: TestResult<Vec<(Child, u32)>> = (0..processes).map(start).collect();
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
    println!("# {number} processes");
    Ok(())
}

/// One program of a process: it ends step by step, or with everything that is queued.
fn run(device: &opendxg::Device, seed: u64, last: u32, neighbours: Neighbours) -> TestResult {
    let mut program = Program::new(device, seed, neighbours)?;
    program.steps(last.min(STEPS))?;
    match last % 3 {
        0 => program.end(),
        _ => {
            core::mem::forget(program);
            Ok(())
        }
    }
}

fn of(seed: u64, error: selftests::Failure) -> selftests::Failure {
    match error {
        selftests::Failure::Failed(text) => format!("program {seed}: {text}").into(),
        skipped => skipped,
    }
}
