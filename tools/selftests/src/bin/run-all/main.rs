// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the test programs (`t-*`) of its own directory, one after the other, and passes their TAP
//! on.
//!
//! Arguments select the programs whose name contains one of them. `--set` selects by what a run is
//! for: `all`, `bat` or `paths`, see below. `--part K/N` runs the K-th of N parts, which together
//! are all of them. `--jobs N` runs up to N programs at a time, if they can: each on an adapter of
//! its own, before the others. `--minutes N` ends the run after that time: the longest programs
//! come first, one that would take longer than what is left does not begin, one that does is
//! killed, and what did not run is told as skipped. Ends with status 1 if anything failed.

mod beside;
mod deadline;

use std::cmp::Reverse;
use std::io::{BufRead, BufReader, Result, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{exit, Command, Stdio};
use std::time::{Duration, Instant};

use deadline::{remove_adapters, Deadline, Killer};

/// The basic acceptance tests, in IGT's word: one program about each thing that the module has,
/// and those about what it uses of the kernel, which may differ from version to version.
const BAT: [&str; 42] = [
    "t-adapters",
    "t-c-client",
    "t-c-gpu-client",
    "t-c-gpu-raw",
    "t-c-gpu-raw-32",
    "t-c-raw",
    "t-c-raw-32",
    "t-cpu-events",
    "t-create",
    "t-crate",
    "t-cross-adapter",
    "t-destroy",
    "t-dmabuf",
    "t-fences",
    "t-gpu-client",
    "t-gpu-faults",
    "t-gpu-memory",
    "t-gpu-packets",
    "t-gpu-submit",
    "t-gpu-tdr",
    "t-hostile",
    "t-keyed-mutex",
    "t-limits",
    "t-lock",
    "t-mmap",
    "t-names",
    "t-native-fences",
    "t-negative",
    "t-nt-handle",
    "t-open",
    "t-paging",
    "t-process",
    "t-reclaim",
    "t-security",
    "t-soft-adapters",
    "t-store",
    "t-sync-files",
    "t-tool",
    "t-trace",
    "t-unload",
    "t-user-queues",
    "t-verifier",
];

/// Programs about user space and the runner. All that they do in the kernel others do too.
const USER_SPACE: [&str; 15] = [
    "t-c-client",
    "t-c-names",
    "t-crate",
    "t-dxcore",
    "t-dxcore-dlopen",
    "t-dxcore-events",
    "t-fence-timeline",
    "t-four-apis",
    "t-harness",
    "t-library",
    "t-library-cleanup",
    "t-questions",
    "t-timeline",
    "t-tool",
    "t-waiters",
];

/// Programs that compare what calls cost. A kernel with checks costs something else, and takes
/// seven minutes for these.
const COSTS: [&str; 1] = ["t-bounds"];

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    /// Everything.
    All,
    /// Another version of a kernel on which everything runs: [`BAT`].
    Bat,
    /// A kernel that checks what the module does: all but [`USER_SPACE`] and [`COSTS`].
    Paths,
}

impl Set {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            "bat" => Some(Self::Bat),
            "paths" => Some(Self::Paths),
            _ => None,
        }
    }

    fn has(self, program: &str) -> bool {
        match self {
            Self::All => true,
            Self::Bat => BAT.contains(&program),
            Self::Paths => !USER_SPACE.contains(&program) && !COSTS.contains(&program),
        }
    }
}

/// How many seconds programs take that run much longer than the others, on the debug kernel, which
/// takes longest. Parts are shared out by these; a number that is wrong makes a run longer and
/// nothing else.
const LONG: [(&str, u32); 33] = [
    ("t-failslab", 400),
    ("t-negative", 350),
    ("t-gpu-submit", 190),
    ("t-gpu-memory", 130),
    ("t-gpu-races", 130),
    ("t-cross-adapter", 130),
    ("t-gpu-tdr", 120),
    ("t-native-fences", 120),
    ("t-quota", 90),
    ("t-process", 70),
    ("t-reclaim", 70),
    ("t-soft-adapters", 70),
    ("t-user-queues", 70),
    ("t-gpu-fair", 70),
    ("t-fences", 60),
    ("t-native-shadow", 60),
    ("t-mmap", 60),
    ("t-weak", 50),
    ("t-unload", 50),
    ("t-gpu-packets", 50),
    ("t-names", 40),
    ("t-lifetime", 40),
    ("t-create", 40),
    ("t-cpu-border", 40),
    ("t-cpu-events", 40),
    ("t-nt-handle", 40),
    ("t-dmabuf", 40),
    ("t-hoard", 30),
    ("t-gpu-faults", 30),
    ("t-limits", 30),
    ("t-keyed-mutex", 30),
    ("t-sync-files", 30),
    ("t-gpu-machine", 120),
];

/// How many seconds all others take.
const SHORT: u32 = 10;

/// About how many seconds a program takes.
fn seconds(path: &Path) -> u32 {
    let name = path.file_name().unwrap_or_default();

    LONG.iter()
        .find(|(long, _)| name == *long)
        .map_or(SHORT, |(_, seconds)| *seconds)
}

/// What the output of one program told.
#[derive(Default)]
struct Told {
    failure: bool,
    /// How many tests it has, once it said so.
    planned: usize,
    results: usize,
}

impl Told {
    /// Takes a line; true if it is a result.
    fn line(&mut self, line: &str) -> bool {
        let failed = line.starts_with("not ok ");
        let result = failed || line.starts_with("ok ");
        self.failure |= failed || line.starts_with("Bail out!");
        self.results += usize::from(result);
        if let Some(Ok(planned)) = line.strip_prefix("1..").map(str::parse) {
            self.planned = planned;
        }
        result
    }
}

/// One of several parts of all programs.
struct Part {
    number: usize,
    of: usize,
}

impl Part {
    const WHOLE: Self = Self { number: 0, of: 1 };

    /// Reads `K/N`, with K from 1 to N.
    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let of = of.parse::<usize>().ok()?;
        let number = number.parse::<usize>().ok()?.checked_sub(1)?;

        (number < of).then_some(Self { number, of })
    }

    /// What belongs here of these. The longest is shared out first, and each goes to the part that
    /// has least to do so far.
    fn of(&self, mut programs: Vec<PathBuf>) -> Vec<PathBuf> {
        programs.sort_by_key(|path| (Reverse(seconds(path)), path.clone()));
        let mut parts = vec![(0, Vec::new()); self.of];
        for path in programs {
            if let Some((busy, part)) = parts.iter_mut().min_by_key(|(busy, _)| *busy) {
                *busy += seconds(&path);
                part.push(path);
            }
        }
        parts.swap_remove(self.number).1
    }
}

fn programs(directory: &Path, wanted: &[String], set: Set, part: &Part) -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_wanted = wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
        if name.starts_with("t-") && is_wanted && set.has(&name) {
            programs.push(path);
        }
    }
    Ok(part.of(programs))
}

/// Runs a program, whose output goes to `out`; true if it failed. Each result is followed by how
/// long it was in coming, which is what the test took: a program prints results as it has them.
/// What it has not done at the deadline is skipped.
fn run(
    program: &Path,
    mut command: Command,
    deadline: Option<&Deadline>,
    out: &mut dyn Write,
) -> Result<bool> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let began = Instant::now();
    let mut last = began;
    writeln!(out, "# program: {name}")?;
    // A group of its own, with its children.
    let mut child = command.process_group(0).stdout(Stdio::piped()).spawn()?;
    let killer = deadline.map(|deadline| Killer::new(&child, deadline));
    let mut told = Told::default();
    let output = child.stdout.take().into_iter();
    for line in output.flat_map(|output| BufReader::new(output).split(b'\n')) {
        let line = String::from_utf8_lossy(&line?).into_owned();
        let result = told.line(&line);
        writeln!(out, "{line}")?;
        if result {
            writeln!(out, "# took: {:.2} s", last.elapsed().as_secs_f64())?;
            last = Instant::now();
        }
    }
    let status = child.wait()?;
    if killer.is_some_and(Killer::has_killed) {
        if told.planned == 0 {
            told.planned = 1;
            writeln!(out, "TAP version 13\n1..1")?;
        }
        for number in told.results + 1..=told.planned {
            writeln!(
                out,
                "ok {number} - the rest of {name} # SKIP no time was left"
            )?;
        }
        // Without configfs there is none.
        if let Err(error) = remove_adapters() {
            writeln!(out, "# adapters of {name}: {error}")?;
        }
        writeln!(out, "# took: {} s {name}", began.elapsed().as_secs())?;
        return Ok(told.failure);
    }
    if !status.success() && !told.failure {
        // Nothing in the output says so: a crash, or a program that is wrong itself.
        match status.signal() {
            Some(signal) => writeln!(out, "Bail out! killed by signal {signal}")?,
            None => writeln!(out, "Bail out! {status}")?,
        }
    }
    writeln!(out, "# took: {} s {name}", began.elapsed().as_secs())?;
    Ok(told.failure || !status.success())
}

fn run_all() -> Result<bool> {
    let began = Instant::now();
    let own = std::env::current_exe()?;
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let (mut set, mut part, mut jobs, mut minutes) = (Set::All, Part::WHOLE, 1, None);
    while let Some(word) = wanted.first().filter(|word| word.starts_with("--")) {
        let value = wanted.get(1).map_or("", String::as_str);
        let (as_set, as_part, as_number) = (Set::parse(value), Part::parse(value), value.parse());
        match (word.as_str(), as_set, as_part, as_number) {
            ("--set", Some(asked), _, _) => set = asked,
            ("--part", _, Some(asked), _) => part = asked,
            ("--jobs", _, _, Ok(asked @ 1..=beside::MOST)) => jobs = asked,
            ("--minutes", _, _, Ok(asked)) => minutes = Some(asked),
            _ => {
                println!(
                    "Bail out! {word} {value}: \
                     use --set all|bat|paths, --part K/N, --jobs N, --minutes N"
                );
                return Ok(true);
            }
        }
        wanted.drain(..2);
    }
    let directory = own.parent().unwrap_or(Path::new("/"));
    // Nobody would notice that one of these is not run any more.
    if let Some(gone) = BAT
        .iter()
        .find(|name| set == Set::Bat && !directory.join(name).exists())
    {
        println!("Bail out! no program {gone}");
        return Ok(true);
    }
    let mut programs = programs(directory, &wanted, set, &part)?;
    if minutes.is_none() {
        programs.sort();
    }
    if programs.is_empty() {
        println!("Bail out! no test program");
        return Ok(true);
    }
    let mut failed = false;
    let (beside, alone) = match jobs {
        1 => (Vec::new(), programs),
        _ => programs.into_iter().partition(|path| beside::is_able(path)),
    };
    if !beside.is_empty() {
        failed |= beside::run(beside, jobs)?;
    }
    let end = minutes.map(|minutes| began + Duration::from_secs(60 * minutes as u64));
    let mut deadline = end.map(Deadline::new);
    for program in alone {
        let expected = Duration::from_secs(seconds(&program).into());
        if deadline.as_ref().is_some_and(|end| !end.is_far(expected)) {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            println!("# program: {name}\nTAP version 13\n1..1");
            println!("ok 1 - the whole program # SKIP no time was left");
            continue;
        }
        let began = Instant::now();
        let command = Command::new(&program);
        failed |= run(&program, command, deadline.as_ref(), &mut std::io::stdout())?;
        if let Some(deadline) = &mut deadline {
            deadline.learn(expected, began.elapsed());
        }
    }
    Ok(failed)
}

pub(crate) fn main() {
    match run_all() {
        Ok(failed) => exit(failed.into()),
        Err(error) => {
            println!("Bail out! {error}");
            exit(1);
        }
    }
}
