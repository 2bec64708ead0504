// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Windows program under Wine that times operations on named objects when told to, and the
//! server that serves them (`tools/wine/requests.c`).

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::measure::Subject;

const LOADER: &str = "/usr/lib/wine/wine64";
const SERVER: &str = "/usr/lib/wine/wineserver";
/// What the server's process is called.
const PROCESS: &str = "wineserver64";

/// Which Wine this is, in its own words.
///
/// # Panics
///
/// Wine is not installed.
pub fn version() -> String {
    let said = Command::new(LOADER).arg("--version").output();
    let text = String::from_utf8(said.expect("ask Wine").stdout);
    text.expect("a version").trim().into()
}

/// Waits until the server has ended, which it does with the last program.
pub fn wait_for_end_of_server() {
    // Its status says whether there was a server at all.
    let _ = Command::new(SERVER).arg("-w").status();
}

/// How many reads the server has made: each request takes one or more.
///
/// # Panics
///
/// There is no server.
pub fn reads_of_server() -> u64 {
    let processes = fs::read_dir("/proc").expect("a list of processes");
    let mut servers = processes
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == PROCESS)
        });
    let server = servers.next().expect("a process of wineserver");
    let text = fs::read_to_string(server.join("io")).expect("accounts of wineserver");
    reads(&text).expect("reads of wineserver")
}

/// The number of reads in a file `io` of procfs.
fn reads(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    line?.parse().ok()
}

/// The clock that the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    /// Ticks of a second.
    frequency: u64,
    /// Ticks that a look at it takes.
    look: u64,
}

impl Clock {
    /// From what the program says first.
    fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = match words[..] {
            ["clock", frequency, look] => frequency.parse().ok().zip(look.parse().ok()),
            _ => None,
        };
        match numbers {
            Some((frequency, look)) if frequency > 0 => Ok(Self { frequency, look }),
            _ => Err(format!("not a description of a clock: {line:?}")),
        }
    }

    fn ns(self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency)) as u64
    }

    /// The times of an answer, in nanoseconds.
    fn times(self, answer: &str, count: usize) -> Result<Vec<u64>, String> {
        let times: Result<Vec<u64>, String> = answer
            .split_whitespace()
            .map(|word| match word.parse() {
                Ok(ticks) => Ok(self.ns(ticks)),
                Err(_) => Err(format!("not a time: {word:?}")),
            })
            .collect();
        match times {
            Ok(times) if times.len() != count => Err(format!("{} times, not {count}", times.len())),
            times => times,
        }
    }
}

/// The program, while it runs. Ends when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// `None` once it was told to end.
    input: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    clock: Clock,
}

impl Program {
    /// Starts it under Wine, and the server with it. The Windows side is in `prefix` beside it.
    pub fn start(program: &Path) -> Self {
        let mut command = Command::new(LOADER);
        command.env("WINEPREFIX", program.with_file_name("prefix"));
        command.env("WINEDEBUG", "-all");
        Self::run(command.arg(program))
    }

    fn run(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("start the Windows program");
        let output = child.stdout.take().expect("a pipe");
        let mut answers = BufReader::new(output).lines();
        let first = answers.next().expect("an answer of the Windows program");
        let clock = Clock::parse(&first.expect("a line")).expect("a clock");
        Self {
            input: child.stdin.take(),
            child,
            answers,
            clock,
        }
    }

    /// Has it do an operation so many times, and returns how long each took, in nanoseconds, with
    /// one look at its clock in it.
    pub fn time(&mut self, operation: &str, count: usize) -> Vec<u64> {
        let input = self.input.as_mut().expect("open until drop");
        writeln!(input, "{operation} {count}").expect("tell the Windows program");
        let answer = self.answers.next().expect("the Windows program goes on");
        let times = self.clock.times(&answer.expect("a line"), count);
        times.unwrap_or_else(|error| panic!("{operation}: {error}"))
    }

    /// What a look at its clock takes, in nanoseconds.
    pub fn look_ns(&self) -> u64 {
        self.clock.ns(self.clock.look)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.input.take());
        let ended = self.child.wait().expect("the Windows program ends");
        assert!(ended.success(), "the Windows program failed: {ended}");
    }
}

/// An operation of the program. A block of it is done and timed there, all at once.
pub struct Request<'a> {
    program: &'a core::cell::RefCell<Program>,
    operation: &'static str,
    times: std::vec::IntoIter<u64>,
    /// What a look at its clock takes more than one at ours, which is subtracted anyway.
    dearer_ns: u64,
}

impl<'a> Request<'a> {
    /// An operation by its name; `timer_ns` is what a look at our clock takes.
    pub fn new(
        program: &'a core::cell::RefCell<Program>,
        operation: &'static str,
        timer_ns: f64,
    ) -> Self {
        let dearer_ns = program.borrow().look_ns().saturating_sub(timer_ns as u64);
        Self {
            program,
            operation,
            times: Vec::new().into_iter(),
            dearer_ns,
        }
    }
}

impl Subject for Request<'_> {
    fn begin(&mut self, operations: usize) {
        let times = self.program.borrow_mut().time(self.operation, operations);
        self.times = times.into_iter();
    }

    fn run(&mut self) {}

    fn own_ns(&mut self) -> Option<u64> {
        let time = self.times.next().expect("one time for each operation");
        Some(time.saturating_sub(self.dearer_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;
    use crate::measure::{Participant, Plan, Runner};
    use crate::report::ratio::ratio;

    const CLOCK: Clock = Clock {
        frequency: 10_000_000,
        look: 3,
    };

    #[test]
    fn a_clock_is_described() {
        assert_eq!(Clock::parse("clock 10000000 3\r"), Ok(CLOCK));
        for line in [
            "",
            "clock 10000000",
            "clock 0 3",
            "clock 1 2 3",
            "set 1 2",
            "clock 1 -2",
        ] {
            assert!(Clock::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn ticks_are_nanoseconds() {
        assert_eq!(CLOCK.times("152 7 0\r", 3), Ok(vec![15_200, 700, 0]));
        assert_eq!(CLOCK.times("\r", 0), Ok(Vec::new()));
        let quick = Clock {
            frequency: 3_000_000_000,
            look: 0,
        };
        assert_eq!(quick.times("4", 1), Ok(vec![1]));
        // A day, whose nanoseconds times the frequency need more than 64 bits.
        assert_eq!(quick.ns(86_400 * 3_000_000_000), 86_400 * 1_000_000_000);
    }

    #[test]
    fn an_answer_has_as_many_times_as_asked_for() {
        assert_eq!(CLOCK.times("1 2", 3), Err("2 times, not 3".into()));
        assert_eq!(CLOCK.times("1 2 3 4", 3), Err("4 times, not 3".into()));
        assert_eq!(CLOCK.times("1 -2 3", 3), Err("not a time: \"-2\"".into()));
        assert_eq!(CLOCK.times("1 x 3", 3), Err("not a time: \"x\"".into()));
    }

    #[test]
    fn reads_are_those_of_the_process() {
        let text = "rchar: 1948\nwchar: 0\nsyscr: 7\nsyscw: 1\nread_bytes: 0\n";
        assert_eq!(reads(text), Some(7));
        assert_eq!(reads("rchar: 1948\n"), None);
        assert_eq!(reads("syscr: many\n"), None);
    }

    /// A program that needs 40 ticks for an operation, or 20 for `wait`, and 4 for its clock.
    const SCRIPT: &str = "printf 'clock 1000000 4\\r\\n'
        while read -r operation count; do
            ticks=40
            [ $operation != wait ] || ticks=20
            line=
            while [ $count -gt 0 ]; do line=\"$line $ticks\" count=$((count - 1)); done
            printf '%s\\r\\n' \"$line\"
        done";

    #[test]
    fn blocks_of_the_program_become_ratios() {
        let program = RefCell::new(Program::run(Command::new("sh").args(["-c", SCRIPT])));
        assert_eq!(program.borrow().look_ns(), 4_000);
        let mut runner = Runner::new(1);
        runner.timer_ns = 0.0;
        let plan = Plan {
            blocks: Plan::FEWEST,
            operations: 6,
            budget: Duration::ZERO,
        };
        let timer_ns = runner.timer_ns;
        runner.group(
            "g",
            "title",
            plan,
            vec![
                Participant::new("set", Request::new(&program, "set", timer_ns)),
                Participant::new("wait", Request::new(&program, "wait", timer_ns)),
            ],
        );
        let find = |name| runner.groups[0].find(name, 0).expect("measured");
        let (set, wait) = (find("set"), find("wait"));
        assert_eq!((set.ns.median, wait.ns.median), (36_000.0, 16_000.0));
        assert_eq!((set.operations, set.blocks.len()), (48, 8));
        let ratio = ratio(wait, set);
        assert_eq!(
            (ratio.value, ratio.low, ratio.high),
            (4.0 / 9.0, 4.0 / 9.0, 4.0 / 9.0)
        );
    }

    #[test]
    #[should_panic(expected = "set: 1 times, not 5")]
    fn an_answer_that_lacks_times_fails_the_run() {
        let script = "echo clock 10 1; read -r line; echo 7";
        Program::run(Command::new("sh").args(["-c", script])).time("set", 5);
    }
}
