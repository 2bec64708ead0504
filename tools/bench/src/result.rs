// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured, as it travels from the virtual machine to the report.

use serde::{Deserialize, Serialize};

/// What costs are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Time.
    Nanoseconds,
    /// Executed instructions, of a machine whose clock counts them.
    Instructions,
}

/// Everything one run has measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// The unit of all costs, also of those that are called nanoseconds.
    pub unit: Unit,
    /// Seed of the order in which the blocks ran.
    pub seed: u64,
    /// Seconds for everything.
    pub seconds: f64,
    /// Cost of the clock, already subtracted from all samples.
    pub timer_ns: f64,
    /// Times.
    pub groups: Vec<Group>,
    /// Events that were counted.
    pub counts: Vec<Count>,
    /// Memory.
    pub memory: Vec<Memory>,
    /// Competitors that this machine does not have.
    pub missing: Vec<String>,
    /// Competitors whose version matters.
    pub competitors: Vec<Competitor>,
}

/// Another program that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Competitor {
    /// In its own words.
    pub version: String,
    /// What its figures stand for.
    pub note: String,
}

/// The machine that was measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Kernel version text.
    pub version: String,
    /// `KVM`, `TCG`, another hypervisor's signature, or `none`.
    pub accelerator: String,
    /// Processors.
    pub cpus: usize,
    /// Clock source of the kernel.
    pub clock: String,
}

/// Operations that were measured in turns with each other.
#[derive(Debug, Serialize, Deserialize)]
pub struct Group {
    /// Short name.
    pub name: String,
    /// What an operation is.
    pub title: String,
    /// Who took part.
    pub series: Vec<Series>,
}

/// One participant of a group.
#[derive(Debug, Serialize, Deserialize)]
pub struct Series {
    /// Name of the participant.
    pub name: String,
    /// The parameter on the horizontal axis; 0 if there is none.
    pub at: u64,
    /// How many operations were timed.
    pub operations: u64,
    /// Cost of an operation, in nanoseconds or the unit of the report.
    pub ns: Summary,
    /// Median of each block. Blocks with the same index ran close to each other in time.
    pub blocks: Vec<f64>,
}

/// A distribution.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Smallest.
    pub min: f64,
    /// 50 % are not larger.
    pub median: f64,
    /// 99 % are not larger.
    pub p99: f64,
    /// 99.9 % are not larger.
    pub p999: f64,
    /// Largest.
    pub max: f64,
    /// Average.
    pub mean: f64,
}

/// Something that was counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Count {
    /// What.
    pub what: String,
    /// Out of how many.
    pub of: u64,
    /// How many there were.
    pub found: u64,
    /// How many there must be; `None` for what is only shown.
    pub expected: Option<u64>,
}

impl Count {
    /// Whether the count is as it must be, if it must be anything.
    pub fn is_right(&self) -> bool {
        self.expected.is_none_or(|expected| self.found == expected)
    }
}

/// Memory per object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Kind of object.
    pub what: String,
    /// How many were made.
    pub objects: u64,
    /// Kernel memory each takes.
    pub bytes: f64,
    /// How much of it is charged to the memory cgroup of the process.
    /// `None` if there are no memory cgroups.
    pub charged: Option<f64>,
}

impl Group {
    /// The series of a participant.
    pub fn find(&self, name: &str, at: u64) -> Option<&Series> {
        self.series
            .iter()
            .find(|series| series.name == name && series.at == at)
    }
}

impl Report {
    /// A group by name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}
