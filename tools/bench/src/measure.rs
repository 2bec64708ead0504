// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timing: participants take turns in short blocks, in an order that changes every time, so that
//! whatever else the machine does hits all of them alike.

use std::time::{Duration, Instant};

use crate::result::{Group, Series, Summary};
use crate::rng::Rng;
use crate::trace::{self, Trace};

/// An operation to measure. Anything that goes wrong panics, which fails the run.
pub trait Subject {
    /// Called before a block of `operations`, not timed.
    fn begin(&mut self, _operations: usize) {}
    /// Called before every operation, not timed.
    fn before(&mut self) {}
    /// The operation.
    fn run(&mut self);
    /// Called after every operation, not timed.
    fn after(&mut self) {}
    /// Called after a block, not timed.
    fn end(&mut self) {}
    /// How long the last operation took, if the time until its end is not what is asked for.
    fn own_ns(&mut self) -> Option<u64> {
        None
    }
    /// How many operations one `run` does.
    fn batch(&self) -> u32 {
        1
    }
}

impl<F: FnMut()> Subject for F {
    fn run(&mut self) {
        self();
    }
}

/// A subject that does its operation many times in one run, for operations shorter than the
/// clock's step.
pub struct Batch<F>(pub u32, pub F);

impl<F: FnMut()> Subject for Batch<F> {
    fn run(&mut self) {
        for _ in 0..self.0 {
            (self.1)();
        }
    }

    fn batch(&self) -> u32 {
        self.0
    }
}

/// A subject with its name and all that was measured of it.
pub struct Participant<'a> {
    name: String,
    at: u64,
    subject: Box<dyn Subject + 'a>,
    /// In 1/16 of a nanosecond, so that 32 bits hold up to a quarter of a second.
    samples: Vec<u32>,
    blocks: Vec<f64>,
}

/// Samples are kept in this part of a nanosecond.
const UNIT: f64 = 16.0;

impl<'a> Participant<'a> {
    /// A participant without a parameter.
    pub fn new(name: &str, subject: impl Subject + 'a) -> Self {
        Self::at(name, 0, subject)
    }

    /// A participant at one point of a curve.
    pub fn at(name: &str, at: u64, subject: impl Subject + 'a) -> Self {
        Self {
            name: name.into(),
            at,
            subject: Box::new(subject),
            samples: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Runs a block and returns its samples.
    fn time(&mut self, operations: usize, timer_ns: f64) -> Vec<u32> {
        let subject = &mut self.subject;
        let scale = UNIT / f64::from(subject.batch());
        let mut samples = Vec::with_capacity(operations);
        subject.begin(operations);
        for _ in 0..operations {
            subject.before();
            let began = Instant::now();
            subject.run();
            let elapsed = began.elapsed().as_nanos() as u64;
            let ns = subject.own_ns().unwrap_or(elapsed) as f64;
            subject.after();
            samples.push(((ns - timer_ns).max(0.0) * scale) as u32); // Saturates.
        }
        subject.end();
        samples
    }

    /// A block whose samples are dropped.
    pub fn warm_up(&mut self, operations: usize) {
        self.time(operations, 0.0);
    }

    /// A block that counts.
    pub fn block(&mut self, operations: usize, timer_ns: f64) {
        let mut samples = self.time(operations, timer_ns);
        self.samples.extend_from_slice(&samples);
        samples.sort_unstable();
        self.blocks.push(percentile(&samples, 0.5));
    }

    /// What was measured.
    pub fn finish(mut self) -> Series {
        self.samples.sort_unstable();
        Series {
            name: self.name,
            at: self.at,
            operations: self.samples.len() as u64 * u64::from(self.subject.batch()),
            ns: summary(&self.samples),
            blocks: self.blocks,
        }
    }
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Blocks of every participant.
    pub blocks: usize,
    /// Timed operations in a block.
    pub operations: usize,
    /// No more blocks after this time, but at least [`Plan::FEWEST`].
    pub budget: Duration,
}

impl Plan {
    /// Fewer blocks would say nothing about how sure a ratio is.
    pub const FEWEST: usize = 8;
}

/// Runs groups one after the other.
pub struct Runner {
    rng: Rng,
    /// Cost of reading the clock.
    pub timer_ns: f64,
    /// What was measured so far.
    pub groups: Vec<Group>,
    /// If set, this is done instead of measuring.
    pub trace: Option<Trace>,
}

impl Runner {
    /// How many rounds are measured before a crowd changes its size.
    const ROUNDS_OF_A_STAGE: usize = 2;

    /// Measures the clock itself first.
    pub fn new(seed: u64) -> Self {
        let mut clock = Participant::new("clock", || ());
        clock.warm_up(10_000);
        clock.block(100_000, 0.0);
        Self {
            rng: Rng::new(seed),
            timer_ns: clock.finish().ns.median,
            groups: Vec::new(),
            trace: None,
        }
    }

    /// Whether this group is not to be measured, because an operation is traced: perhaps one of
    /// this group.
    fn traces(&mut self, name: &str, participants: &mut [Participant<'_>]) -> bool {
        let Some(wanted) = &mut self.trace else {
            return false;
        };
        for participant in participants {
            if wanted.wants(name, (&participant.name, participant.at)) {
                trace::run(&mut *participant.subject);
            }
        }
        true
    }

    /// Measures a group: every participant has one block per round, in an order shuffled every
    /// round.
    pub fn group(
        &mut self,
        name: &str,
        title: &str,
        plan: Plan,
        mut participants: Vec<Participant<'_>>,
    ) {
        if self.traces(name, &mut participants) {
            return;
        }
        let progress = Progress::begin(name);
        for participant in &mut participants {
            participant.warm_up(plan.operations / 5 + 1);
        }
        let mut order: Vec<usize> = (0..participants.len()).collect();
        while progress.goes_on(&plan) {
            self.rng.shuffle(&mut order);
            for &index in &order {
                participants[index].block(plan.operations, self.timer_ns);
            }
            progress.round();
        }
        self.finish(name, title, progress, participants);
    }

    /// As [`Runner::group`], for parameters that are expensive to set up: all participants of a
    /// round with the same parameter run together, after `set_up`. The parameters rise and then
    /// fall, so that the largest crowd is made only every other time.
    pub fn staged_group(
        &mut self,
        name: &str,
        title: &str,
        plan: Plan,
        mut participants: Vec<Participant<'_>>,
        mut set_up: impl FnMut(u64),
    ) {
        if self.trace.is_some() {
            // Its crowds are made for measurements.
            return;
        }
        let progress = Progress::begin(name);
        let mut stages: Vec<u64> = participants.iter().map(|one| one.at).collect();
        stages.sort_unstable();
        stages.dedup();
        while progress.goes_on(&plan) {
            for &stage in &stages {
                set_up(stage);
                for _ in 0..Self::ROUNDS_OF_A_STAGE {
                    let mut order: Vec<usize> = (0..participants.len()).collect();
                    order.retain(|&index| participants[index].at == stage);
                    self.rng.shuffle(&mut order);
                    for index in order {
                        participants[index].warm_up(plan.operations / 5 + 1);
                        participants[index].block(plan.operations, self.timer_ns);
                    }
                }
            }
            stages.reverse();
            (0..Self::ROUNDS_OF_A_STAGE).for_each(|_| progress.round());
        }
        self.finish(name, title, progress, participants);
    }

    fn finish(
        &mut self,
        name: &str,
        title: &str,
        progress: Progress,
        participants: Vec<Participant<'_>>,
    ) {
        progress.end();
        self.groups.push(Group {
            name: name.into(),
            title: title.into(),
            series: participants.into_iter().map(Participant::finish).collect(),
        });
    }
}

/// A line on standard error that grows while a group is measured.
struct Progress {
    began: Instant,
    rounds: std::cell::Cell<usize>,
}

impl Progress {
    fn begin(name: &str) -> Self {
        eprint!("  {name:<12}");
        Self {
            began: Instant::now(),
            rounds: 0.into(),
        }
    }

    fn goes_on(&self, plan: &Plan) -> bool {
        let rounds = self.rounds.get();
        rounds < plan.blocks && (rounds < Plan::FEWEST || self.began.elapsed() < plan.budget)
    }

    fn round(&self) {
        let rounds = self.rounds.get();
        if rounds % 5 == 0 {
            eprint!(".");
        }
        self.rounds.set(rounds + 1);
    }

    fn end(self) {
        let seconds = self.began.elapsed().as_secs_f64();
        eprintln!(" {} rounds in {seconds:.1} s", self.rounds.get());
    }
}

/// The value that a part of the sorted samples does not exceed (nearest rank), in nanoseconds.
fn percentile(sorted: &[u32], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    f64::from(sorted[rank.clamp(1, sorted.len()) - 1]) / UNIT
}

fn summary(sorted: &[u32]) -> Summary {
    let sum: f64 = sorted.iter().copied().map(f64::from).sum();
    Summary {
        min: percentile(sorted, 0.0),
        median: percentile(sorted, 0.5),
        p99: percentile(sorted, 0.99),
        p999: percentile(sorted, 0.999),
        max: percentile(sorted, 1.0),
        mean: sum / sorted.len() as f64 / UNIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let sorted: Vec<u32> = (1..=1000).map(|ns| ns * 16).collect();
        let summary = summary(&sorted);
        assert_eq!(summary.min, 1.0);
        assert_eq!(summary.median, 500.0);
        assert_eq!(summary.p99, 990.0);
        assert_eq!(summary.p999, 999.0);
        assert_eq!(summary.max, 1000.0);
        assert_eq!(summary.mean, 500.5);
    }

    #[test]
    fn every_participant_has_every_block() {
        let (mut slow, mut fast) = (0, 0);
        let mut runner = Runner::new(1);
        let plan = Plan {
            blocks: 9,
            operations: 5,
            budget: Duration::ZERO,
        };
        runner.group(
            "g",
            "title",
            plan,
            vec![
                Participant::new("slow", || slow += 1),
                Participant::at("fast", 7, Batch(3, || fast += 1)),
            ],
        );
        let group = &runner.groups[0];
        assert_eq!(group.find("slow", 0).unwrap().operations, 40);
        assert_eq!(group.find("fast", 7).unwrap().operations, 120);
        assert_eq!(group.find("fast", 7).unwrap().blocks.len(), Plan::FEWEST);
        assert_eq!((slow, fast), (42, 126), "with the warm-up");
    }
}
