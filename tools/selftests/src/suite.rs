// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runner.

use std::cell::RefCell;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::exit;
use std::time::Duration;

use crate::leak::{Watch, SETTLE};
use crate::rounds::longer;
use crate::stress::{is_stress, Figure};
use crate::time::scaled;
use crate::watchdog::Watchdog;
use crate::{Failure, TestResult};

/// Time a test may take unless it asks for more.
const LIMIT: Duration = Duration::from_secs(90);

/// A program of tests.
pub struct Suite {
    name: &'static str,
    tests: Vec<Test>,
    /// How long what a test made may take to end after it.
    settle: Duration,
}

struct Test {
    name: String,
    limit: Duration,
    /// Has a figure of the specification.
    is_stress: bool,
    body: Box<dyn FnOnce() -> TestResult>,
}

thread_local! {
    /// Place and message of the last panic of the thread that runs the tests.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Suite {
    /// A suite without tests.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            tests: Vec::new(),
            settle: scaled(SETTLE),
        }
    }

    /// Gives what tests leave behind no more time than this to end.
    pub fn settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
    }

    /// Adds a test. Its name begins with the requirements it is about.
    pub fn test(
        self,
        name: impl Into<String>,
        body: impl FnOnce() -> TestResult + 'static,
    ) -> Self {
        self.slow(name, LIMIT, body)
    }

    /// Adds a test that may take longer than the others.
    pub fn slow(
        self,
        name: impl Into<String>,
        limit: Duration,
        body: impl FnOnce() -> TestResult + 'static,
    ) -> Self {
        self.add(Test {
            name: name.into(),
            limit: limit.mul_f64(longer()),
            is_stress: false,
            body: Box::new(body),
        })
    }

    /// Adds a test that a stress run makes longer: the body does what the figure says.
    pub fn stress(
        self,
        name: impl Into<String>,
        limit: Duration,
        figure: Figure,
        body: impl FnOnce(Figure) -> TestResult + 'static,
    ) -> Self {
        self.add(Test {
            name: name.into(),
            limit: figure.limit(limit),
            is_stress: true,
            body: Box::new(move || body(figure)),
        })
    }

    fn add(mut self, test: Test) -> Self {
        self.tests.push(test);
        self
    }

    /// Adds the tests of a function, to spread a suite over several files.
    pub fn with(self, tests: impl FnOnce(Self) -> Self) -> Self {
        tests(self)
    }

    /// Runs the tests that the arguments of the program select, and ends the program: status 0 if
    /// nothing failed.
    pub fn run(self) -> ! {
        let wanted: Vec<String> = std::env::args().skip(1).collect();
        self.run_selected(&wanted)
    }

    /// The same with a selection of its own; an empty one selects all tests.
    pub fn run_selected(self, wanted: &[String]) -> ! {
        let is_wanted = |test: &Test| {
            let named = wanted.is_empty() || wanted.iter().any(|part| test.name.contains(part));
            named && (test.is_stress || !is_stress())
        };
        let tests: Vec<Test> = self.tests.into_iter().filter(is_wanted).collect();

        line(&format!(
            "TAP version 13\n# suite: {}\n1..{}",
            self.name,
            tests.len() + 1
        ));
        std::panic::set_hook(Box::new(|info| {
            PANIC.with_borrow_mut(|text| *text = info.to_string());
        }));
        let start = match Watch::start() {
            Ok(watch) => watch,
            Err(error) => {
                line(&format!("Bail out! {error}"));
                exit(1);
            }
        };
        let watchdog = Watchdog::start();

        let mut failed = 0;
        let last = tests.len() + 1;
        for (number, test) in (1..).zip(tests) {
            let guard = watchdog.guard(&test.name, test.limit);
            let outcome = isolated(test.body, self.settle);
            drop(guard);
            failed += u32::from(report(number, &test.name, outcome));
        }
        let name = format!("{}: the driver is as it was at the start", self.name);
        let outcome = start.ends_clean_within(self.settle);
        failed += u32::from(report(last, &name, outcome));
        exit(i32::from(failed != 0));
    }
}

/// Runs one test: catches panics, and looks for what it left behind.
fn isolated(body: Box<dyn FnOnce() -> TestResult>, settle: Duration) -> TestResult {
    let watch = Watch::start()?;
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(panicked()))?;
    watch.ends_clean_within(settle)
}

/// What the panic hook wrote down.
fn panicked() -> Failure {
    Failure::Failed(PANIC.with_borrow_mut(core::mem::take))
}

/// Prints the result of a test; true if it failed.
fn report(number: usize, name: &str, outcome: TestResult) -> bool {
    match outcome {
        Ok(()) => {
            line(&format!("ok {number} - {name}"));
            false
        }
        Err(Failure::Skipped(reason)) => {
            line(&format!("ok {number} - {name} # SKIP {reason}"));
            false
        }
        Err(Failure::Failed(text)) => {
            let text = text.replace('\n', "\n# ");
            line(&format!("not ok {number} - {name}\n# {text}"));
            true
        }
    }
}

/// Prints at once: the program may be killed at any time.
fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
