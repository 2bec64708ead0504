// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that are killed at any moment.
//!
//! A tenth of them are killed beside a client that waits and signals all the time. How long that
//! one takes is compared with what it takes beside processes that only compute. It has a processor
//! of its own, if there is one, so it competes for nothing but what the kernel has once. The others
//! are killed on all processors at the same time, so that their ends meet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use selftests::child::Child;
use selftests::region::Region;
use selftests::rounds::{seed, Dice};
use selftests::stress::Figure;
use selftests::task::{named, stay_on};
use selftests::time::eventually;
use selftests::{fixture, Suite, TestResult};

use super::child::inside;
use super::lang::Lang;
use super::program::Program;
use super::value::Arena;

/// So many of a crowd run at the same time.
const AT_ONCE: usize = 4;

/// So many of a crowd may be dying: their ends overlap.
const DYING: usize = 12;

/// A client is killed after at most so many microseconds.
const LIFE: u32 = 4000;

/// How long the other client is measured while nobody else is there.
const QUIET: Duration = Duration::from_secs(2);

/// Where the kernel says on which processors workers run that belong to none.
const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

/// One of so many clients is killed beside the one that is measured.
const BESIDE: u32 = 10;

/// How far it has come is said after so many, because a million takes an hour or more.
const TELL: u32 = 10_000;

/// So many processes that only compute are killed, at most.
const COMPUTING: u32 = 1000;

/// Adds the test.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite.stress(
        "FEN-89 RES-110 clients that are killed at any moment",
        Duration::from_secs(120),
        Figure::new(100, 1_000_000),
        |figure| kills(figure.rounds()),
    )
}

fn kills(count: u32) -> TestResult {
    let _adapters = super::adapters()?;
    let lang = Lang::read()?;
    let seed = seed();
    let processors = std::thread::available_parallelism()?.get();
    let beside = count.div_ceil(BESIDE);
    let times = Times::new()?;
    let other = Child::spawn(|| {
        stay_on(None, 1);
        times.measure()
    })?;
    let workers = Workers::stay_on_first()?;
    stay_on(None, 0);
    std::thread::sleep(QUIET);
    times.is_going_on(Phase::Alone)?;

    times.begin(Phase::Computing);
    let computing = beside.min(COMPUTING);
    crowd(computing, &mut Dice::new(seed), || Child::spawn(compute))?;
    times.is_going_on(Phase::Computing)?;

    times.begin(Phase::Clients);
    clients(beside, seed, &lang)?;
    times.is_going_on(Phase::Clients)?;
    other.kill()?;
    drop(workers);

    println!("# another client, signal and wait by two threads, ns");
    println!("# alone: {}", times.show(Phase::Alone));
    println!(
        "# while {computing} processes that compute are killed: {}",
        times.show(Phase::Computing)
    );
    println!(
        "# while {beside} clients are killed: {}",
        times.show(Phase::Clients)
    );
    everywhere(count - beside, processors, seed, &lang)
}

/// Kills so many clients on all processors at the same time.
fn everywhere(count: u32, processors: usize, seed: u64, lang: &Lang) -> TestResult {
    let began = Instant::now();
    let crowds = (0..processors).map(|processor| {
        // These are `count` altogether.
        let share = (count as usize + processor) / processors;
        Child::spawn(|| {
            stay_on(None, processor);
            clients(share as u32, seed.wrapping_add(1 + processor as u64), lang)
        })
    });
    let crowds = crowds.collect::<TestResult<Vec<_>>>()?;
    for crowd in crowds {
        crowd.join()?;
    }
    let took = began.elapsed();
    println!("# {count} clients are killed on {processors} processors in {took:.0?}");
    Ok(())
}

/// Makes so many clients of the driver and kills them.
fn clients(count: u32, seed: u64, lang: &Lang) -> TestResult {
    let mut arenas = [Arena::new()?, Arena::new()?];
    let mut programs = Dice::new(seed);
    crowd(count, &mut Dice::new(seed), || {
        let program = Program::new(lang, &mut programs);
        Child::spawn(|| inside(lang, &program, None, &mut arenas))
    })
}

/// A crowd: makes so many processes, a few at a time, and kills each of them soon.
fn crowd(count: u32, dice: &mut Dice, mut spawn: impl FnMut() -> TestResult<Child>) -> TestResult {
    let (mut processes, mut dying) = (VecDeque::new(), VecDeque::new());
    for made in 1..=count {
        processes.push_back(spawn()?);
        if made % TELL == 0 {
            println!("# {made} of {count} in process {}", std::process::id());
        }
        if processes.len() < AT_ONCE {
            continue;
        }
        std::thread::sleep(Duration::from_micros(dice.below(LIFE).into()));
        // The oldest one, or any: one that has ended already is not killed.
        let which = dice.below(AT_ONCE as u32) as usize;
        if let Some(process) = processes.swap_remove_back(which) {
            process.signal(libc::SIGKILL)?;
            dying.push_back(process);
        }
        if dying.len() > DYING {
            // Waits for its end.
            drop(dying.pop_front());
        }
    }
    Ok(())
}

/// As much work for a processor as a client is, without calls.
fn compute() -> TestResult {
    let end = Instant::now() + Duration::from_micros(LIFE.into());
    while Instant::now() < end {
        core::hint::spin_loop();
    }
    Ok(())
}

/// On which processors the workers that belong to none and the engines ran before.
struct Workers {
    mask: String,
    engines: Vec<(Pid, CpuSet)>,
}

impl Workers {
    /// Workers of the kernel and engines of software GPUs stay on the first processor.
    fn stay_on_first() -> TestResult<Self> {
        let mask = std::fs::read_to_string(WORKERS)?;
        std::fs::write(WORKERS, "1")?;
        let mut engines = Vec::new();
        for thread in named("opendxg/")? {
            if let Ok(processors) = sched_getaffinity(Some(thread)) {
                engines.push((thread, processors));
                stay_on(Some(thread), 0);
            }
        }
        Ok(Self { mask, engines })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let _ = std::fs::write(WORKERS, &self.mask);
        for (thread, processors) in &self.engines {
            let _ = sched_setaffinity(Some(*thread), processors);
        }
    }
}

/// What there is beside the client that is measured.
#[derive(Clone, Copy)]
enum Phase {
    Alone,
    Computing,
    Clients,
}

impl Phase {
    const COUNT: usize = 3;
}

/// Slots for times: eight for each power of two.
const SLOTS: usize = 8 * 40;

/// How often what time was needed, in memory that the client and the test share. The first word is
/// the phase.
struct Times(Region);

impl Times {
    fn new() -> TestResult<Self> {
        Ok(Self(Region::shared(4 * (1 + Phase::COUNT * SLOTS))?))
    }

    fn begin(&self, phase: Phase) {
        self.0.set_word(0, phase as u32);
    }

    /// Where the number of a slot is.
    fn place(phase: u32, slot: usize) -> usize {
        4 * (1 + phase as usize * SLOTS + slot)
    }

    /// Measures until it is killed.
    fn measure(&self) -> TestResult {
        let device = fixture::device()?;
        let (there, back) = (device.create_fence(0)?, device.create_fence(0)?);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for value in 1.. {
                    if there.wait(value).and_then(|()| back.signal(value)).is_err() {
                        break;
                    }
                }
            });
            for value in 1.. {
                let start = Instant::now();
                there.signal(value)?;
                back.wait(value)?;
                let slot = slot_of(start.elapsed().as_nanos() as u64);
                let place = Self::place(self.0.word(0), slot);
                self.0.set_word(place, self.0.word(place).wrapping_add(1));
            }
            Ok(())
        })
    }

    fn counts(&self, phase: Phase) -> [u64; SLOTS] {
        core::array::from_fn(|slot| self.0.word(Self::place(phase as u32, slot)).into())
    }

    /// Demands that something is measured.
    fn is_going_on(&self, phase: Phase) -> TestResult {
        eventually("the other client goes on", || {
            self.counts(phase).iter().any(|&count| count > 0)
        })
    }

    /// Half, 99 % and all of the times are at most so long.
    fn show(&self, phase: Phase) -> String {
        let counts = self.counts(phase);
        let all: u64 = counts.iter().sum();
        let part = |part: f64| {
            let wanted = (all as f64 * part).ceil() as u64;
            let mut seen = 0;
            let slot = counts.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            end_of(slot.unwrap_or(SLOTS - 1))
        };
        format!(
            "{all} times, half {}, 99 % {}, all {}",
            part(0.5),
            part(0.99),
            part(1.0)
        )
    }
}

/// The slot of a time.
fn slot_of(ns: u64) -> usize {
    let power = ns.max(8).ilog2();
    let eighth = (ns.max(8) >> (power - 3)) & 7;
    (8 * (power as usize - 3) + eighth as usize).min(SLOTS - 1)
}

/// The largest time of a slot.
fn end_of(slot: usize) -> u64 {
    let power = slot / 8;
    ((8 + slot as u64 % 8 + 1) << power) - 1
}
