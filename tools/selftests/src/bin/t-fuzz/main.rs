// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls by chance, led by coverage, for `OPENDXG_FUZZ_SECONDS`.
//!
//! Programs are made from `Documentation/abi/dxg.txt`, the descriptions that syzkaller can read.
//! One that runs code of the module in a new order is kept, and changed again and again. Each runs
//! in a process of its own, which is killed if it takes too long. A warning in the kernel log, a
//! process that does not die, and anything that is left at the end fail the run.

#[path = "child.rs"]
mod child;
#[path = "choices.rs"]
mod choices;
#[path = "coverage.rs"]
mod coverage;
#[path = "kills.rs"]
mod kills;
#[path = "lang.rs"]
mod lang;
#[path = "program.rs"]
mod program;
#[path = "value.rs"]
mod value;

use std::time::{Duration, Instant};

use selftests::kernel_log::KernelLog;
use selftests::rounds::{seed, Dice};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, Suite, TestResult};

use child::End;
use coverage::{Coverage, Kcov};
use lang::{Lang, System};
use program::Program;
use value::Arena;

/// The codes of all calls.
const CODES: &str = include_str!("../../../../../Documentation/abi/ioctls.tsv");

/// How long it runs if nobody says so.
const SECONDS: u64 = 30;

/// How often it says how far it is.
const SAYS: Duration = Duration::from_secs(60);

/// Adapters besides the usual one, and what is unusual about them.
const ADAPTERS: [(&str, &[(&str, &str)]); 3] = [
    (
        "fuzz-doc2",
        &[("profile", "doc2"), ("monitored_values", "shadow")],
    ),
    (
        "fuzz-uma",
        &[
            ("local_memory", "0"),
            ("profile", "uma"),
            ("fence_doorbells", "1"),
        ],
    ),
    (
        "fuzz-small",
        &[
            ("local_memory", "1048576"),
            ("tdr_delay_ms", "50"),
            ("lazy_logs", "1"),
        ],
    ),
];

/// Runs it.
pub(crate) fn main() {
    Suite::new("t-fuzz")
        .test(
            "each call is described, with a struct of the right size",
            described,
        )
        .slow("no program of calls breaks anything", limit(), fuzz)
        .with(kills::tests)
        .run();
}

/// How long the whole test may take.
fn limit() -> Duration {
    Duration::from_secs(2 * seconds() + 120)
}

fn seconds() -> u64 {
    let text = std::env::var("OPENDXG_FUZZ_SECONDS").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(SECONDS)
}

/// The adapters that programs find.
fn adapters() -> TestResult<Vec<SoftAdapter>> {
    let make = |(name, attributes): (&str, &[(&str, &str)])| {
        let adapter = SoftAdapter::new(name)?;
        for (attribute, value) in attributes {
            adapter.set(attribute, value)?;
        }
        adapter.set("enabled", "1")?;
        Ok(adapter)
    };
    ADAPTERS.into_iter().map(make).collect()
}

fn described() -> TestResult {
    let lang = Lang::read()?;
    for line in CODES.lines().filter(|line| !line.starts_with('#')) {
        let code = line
            .rsplit('\t')
            .next()
            .and_then(|code| code.strip_prefix("0x"));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        let known = lang.calls.iter().any(|call| match call.system {
            System::Ioctl(number, _) => Some(number) == code,
            _ => false,
        });
        ensure!(known, "{line}");
    }
    Ok(())
}

fn fuzz() -> TestResult {
    let kcov = Kcov::new()?;
    let lang = Lang::read()?;
    let _adapters = adapters()?;
    let mut arenas = [Arena::new()?, Arena::new()?];
    let mut log = KernelLog::new()?;
    let mut run = Run {
        coverage: Coverage::new()?,
        corpus: Vec::new(),
        dice: Dice::new(seed()),
        programs: 0,
        killed: 0,
        calls: 0,
    };
    let began = Instant::now();
    let end = began + Duration::from_secs(seconds());
    let mut says = began + SAYS;
    while Instant::now() < end {
        let program = run.next(&lang);
        let outcome = child::run(&lang, &program, &kcov, &mut arenas)?;
        if outcome == End::Stuck {
            return Err(format!("does not die: {}", program.show(&lang)).into());
        }
        if let Some(report) = report(&mut log)? {
            return Err(format!("{report}\n# {}", program.show(&lang)).into());
        }
        run.programs += 1;
        run.killed += usize::from(outcome == End::Killed);
        run.calls += program.steps.len() * if program.is_double { 2 } else { 1 };
        if run.coverage.add(&kcov) {
            run.corpus.push(program);
        }
        if Instant::now() > says {
            says += SAYS;
            println!("# {}", run.show(began));
        }
    }
    println!("# {}", run.show(began));
    Ok(())
}

/// How far it is.
struct Run {
    coverage: Coverage,
    corpus: Vec<Program>,
    dice: Dice,
    programs: usize,
    killed: usize,
    calls: usize,
}

impl Run {
    /// The next program: a new one, or one that was good, changed.
    fn next(&mut self, lang: &Lang) -> Program {
        let count = self.corpus.len();
        if count < 4 || self.dice.below(5) == 0 {
            return Program::new(lang, &mut self.dice);
        }
        // The younger half is chosen as often as all.
        let from = if self.dice.below(2) == 0 {
            count / 2
        } else {
            0
        };
        let one = &self.corpus[from + self.dice.below((count - from) as u32) as usize];
        let other = &self.corpus[self.dice.below(count as u32) as usize];
        one.changed(lang, &mut self.dice, other)
    }

    fn show(&self, began: Instant) -> String {
        let points = std::env::var("OPENDXG_FUZZ_BLOCKS").unwrap_or_else(|_| "?".into());
        format!(
            "{} s: {} programs, {} of them killed, {} calls, {} of {points} blocks and {} edges \
             of the module, {} programs kept, no report",
            began.elapsed().as_secs(),
            self.programs,
            self.killed,
            self.calls,
            self.coverage.blocks.len(),
            self.coverage.edges.len(),
            self.corpus.len()
        )
    }
}

/// The first warning since the last look, or something worse. What the run does on purpose is none.
fn report(log: &mut KernelLog) -> TestResult<Option<String>> {
    while let Some((level, text)) = log.record()? {
        if level <= 4 {
            return Ok(Some(text));
        }
    }
    Ok(None)
}
