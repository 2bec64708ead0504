// SPDX-License-Identifier: MIT OR Apache-2.0
//! One operation again and again, between two marks that a log of executed instructions shows.
//! `make trace-instructions` makes such a log and reads it.

use std::fs::read_to_string;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::measure::Subject;
use crate::report::compare::label;

/// The machine logs while the operation is repeated: hundreds of times, or dozens if it is long.
/// Its clock counts a nanosecond for each instruction.
const LOGGED: Duration = Duration::from_millis(2);
/// The seconds of the host. The other clocks of the machine count instructions.
const SECONDS: &str = "/sys/class/rtc/rtc0/since_epoch";
/// Caches, slabs and page tables are warm before.
const WARM_UP: usize = 200;

/// Which operation is traced, and whether it was found.
pub struct Trace {
    group: String,
    participant: String,
    found: bool,
    others: Vec<String>,
}

impl Trace {
    /// An operation as `GROUP/PARTICIPANT`. Without a participant it is our own. A participant with
    /// a parameter is the first one of its name, or that of the parameter: `PARTICIPANT at N`.
    pub fn new(call: &str) -> Self {
        let (group, participant) = call
            .split_once('/')
            .unwrap_or((call, crate::subjects::names::OPENDXG));
        Self {
            group: group.into(),
            participant: participant.into(),
            found: false,
            others: Vec::new(),
        }
    }

    /// The group of benchmarks that has the operation.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Whether this participant is the one. Remembers it otherwise.
    pub(crate) fn wants(&mut self, group: &str, participant: (&str, u64)) -> bool {
        let label = label(participant);
        let is_named = participant.0 == self.participant || label == self.participant;
        let wanted = !self.found && group == self.group && is_named;
        self.found |= wanted;
        if !wanted {
            self.others.push(format!("{group}/{label}"));
        }
        wanted
    }

    /// Ok if the operation was traced, or the names of those that could be.
    pub fn finish(self) -> Result<(), String> {
        if self.found {
            return Ok(());
        }
        Err(format!(
            "no operation {}/{}; there are:\n  {}",
            self.group,
            self.participant,
            self.others.join("\n  ")
        ))
    }
}

/// The instructions from here to [`bench_trace_end`] are one operation.
#[no_mangle]
#[inline(never)]
extern "C" fn bench_trace_begin() {
    black_box(1u8);
}

/// See [`bench_trace_begin`].
#[no_mangle]
#[inline(never)]
extern "C" fn bench_trace_end() {
    black_box(2u8);
}

/// Tells on standard output where everything lies, then repeats the operation between
/// `trace: on` and `trace: off` on standard error.
pub(crate) fn run(subject: &mut dyn Subject) {
    println!("begin {:x}", bench_trace_begin as usize);
    println!("end {:x}", bench_trace_end as usize);
    println!("batch {}", subject.batch());
    println!(
        "release {}",
        rustix::system::uname().release().to_string_lossy()
    );
    for line in read("/proc/self/maps").lines() {
        println!("map {line}");
    }
    for line in read("/proc/kallsyms").lines() {
        println!("symbol {line}");
    }
    println!(
        "section .text {}",
        read("/sys/module/opendxg/sections/.text").trim()
    );
    subject.begin(WARM_UP);
    (0..WARM_UP).for_each(|_| once(subject));
    subject.end();
    eprintln!("trace: on");
    until_noticed();
    let began = Instant::now();
    while began.elapsed() < LOGGED {
        const BLOCK: usize = 20;
        subject.begin(BLOCK);
        (0..BLOCK).for_each(|_| once(subject));
        subject.end();
    }
    eprintln!("trace: off");
}

/// Gives the host a second to notice that it is to log, which a busy one needs.
fn until_noticed() {
    for _ in 0..2 {
        let second = read(SECONDS);
        while read(SECONDS) == second {}
    }
}

fn once(subject: &mut dyn Subject) {
    subject.before();
    bench_trace_begin();
    subject.run();
    bench_trace_end();
    subject.after();
}

fn read(path: &str) -> String {
    read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_is_found_by_its_name_or_its_parameter() {
        let mut first = Trace::new("g/move");
        assert!(!first.wants("other", ("move", 1)));
        assert!(first.wants("g", ("move", 1)));
        assert!(!first.wants("g", ("move", 2)), "one is enough");
        let mut second = Trace::new("g/move at 2");
        assert!(!second.wants("g", ("move", 1)));
        assert!(second.wants("g", ("move", 2)));
        assert!(second.finish().is_ok());
        assert!(Trace::new("g").finish().is_err());
    }
}
