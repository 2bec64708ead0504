// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures in this machine and prints the result as JSON; progress goes to standard error.
//!
//! ```text
//! bench [--seed N] [--percent P] [--instructions] [GROUP]...
//! bench [--seed N] [--percent P] [--instructions] --wine PROGRAM
//! bench --trace GROUP[/PARTICIPANT]
//! ```
//!
//! `--percent` scales how much is measured. `--instructions` says that the clock of this machine
//! counts instructions (`tools/vm/run --accel count`); then little has to be measured. The exit
//! status depends on counts alone, never on times. `--trace` repeats one operation for a log of its
//! instructions (`tools/vm/run --trace`) and measures nothing. `--wine` measures against Wine
//! alone, whose side is this Windows program (`tools/wine/run`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bench::measure::{Plan, Runner};
use bench::result::{Report, Unit};
use bench::subjects::{
    addresses, beside, cpu_events, crowd, doorbells, event_loop, gpu, idle, interrupt_forms,
    lifecycle, native_fences, objects, open, paging_fences, ping_pong, population, process,
    queued_wait, resets, residency, satisfied, signal, sync_files, waiters, wine, working_set,
    Bench,
};
use bench::trace::Trace;
use bench::{machine, memory, peer};

struct Options {
    seed: u64,
    percent: u64,
    unit: Unit,
    groups: Vec<String>,
    trace: Option<String>,
    wine: Option<PathBuf>,
}

/// What is counted in instructions unless groups are named: the calls of which others have
/// something alike, and work of engines.
const COUNTED: [&str; 13] = [
    "signal",
    "satisfied",
    "ping-pong",
    "lifecycle",
    "open",
    "objects",
    "process",
    "submit",
    "queued-wait",
    "bandwidth",
    "sync-files",
    event_loop::ALL,
    event_loop::NEXT,
];

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            seed: 1,
            percent: 100,
            unit: Unit::Nanoseconds,
            groups: Vec::new(),
            trace: None,
            wine: None,
        };
        while let Some(arg) = args.next() {
            if arg == "--trace" {
                let call = args.next().ok_or("--trace needs an operation")?;
                options.groups.push(Trace::new(&call).group().into());
                options.trace = Some(call);
                continue;
            }
            if arg == "--wine" {
                let program = args.next().ok_or("--wine needs a Windows program")?;
                options.groups.push("wine".into());
                options.wine = Some(program.into());
                continue;
            }
            let mut number = || {
                let value = args.next().and_then(|value| value.parse().ok());
                value.ok_or_else(|| format!("{arg} needs a number"))
            };
            match arg.as_str() {
                "--seed" => options.seed = number()?,
                "--percent" => options.percent = number()?,
                "--instructions" => {
                    options.percent = 1; // As few blocks as there may be.
                    options.unit = Unit::Instructions;
                }
                group if !group.starts_with('-') => options.groups.push(arg),
                _ => return Err(format!("unknown option {arg}")),
            }
        }
        Ok(options)
    }

    fn wants(&self, group: &str) -> bool {
        match (self.groups.as_slice(), self.unit) {
            ([], Unit::Nanoseconds) => true,
            ([], Unit::Instructions) => COUNTED.contains(&group),
            _ => self.names(group),
        }
    }

    /// Whether it was named. Some groups take too long for all others.
    fn names(&self, group: &str) -> bool {
        self.groups.iter().any(|name| name == group)
    }

    fn plan(&self, blocks: usize, operations: usize, seconds: u64) -> Plan {
        Plan {
            blocks: (blocks * self.percent as usize / 100).max(Plan::FEWEST),
            operations,
            budget: Duration::from_millis(seconds * 10 * self.percent),
        }
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    if args.peek().is_some_and(|arg| arg == peer::ARGUMENT) {
        peer::serve();
        return ExitCode::SUCCESS;
    }
    if args.peek().is_some_and(|arg| arg == process::EXIT) {
        return ExitCode::SUCCESS;
    }
    if args.next_if(|arg| arg == addresses::ARGUMENT).is_some() {
        addresses::serve(args.next());
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("bench: {error}");
            return ExitCode::from(2);
        }
    };
    if options.unit == Unit::Instructions && !machine::clock_is_exact() {
        eprintln!("bench: the clock of this machine does not count instructions");
        return ExitCode::from(2);
    }
    machine::raise_descriptor_limit();
    let bench = match Bench::open() {
        Ok(bench) => bench,
        Err(error) => {
            eprintln!("bench: /dev/dxg: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut runner = Runner::new(options.seed);
    runner.trace = options.trace.as_deref().map(Trace::new);
    let report = measure(&options, &mut runner, bench);
    if let Some(trace) = runner.trace {
        return match trace.finish() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench: {error}");
                ExitCode::from(2)
            }
        };
    }
    println!("{}", serde_json::to_string(&report).expect("plain data"));
    let wrong = report.counts.iter().filter(|count| !count.is_right());
    for count in wrong.clone() {
        eprintln!(
            "bench: {}: {}, not {}",
            count.what,
            count.found,
            count.expected.unwrap_or_default()
        );
    }
    ExitCode::from(u8::from(wrong.count() > 0))
}

fn measure(options: &Options, runner: &mut Runner, mut bench: Bench) -> Report {
    let began = Instant::now();
    let mut counts = Vec::new();
    let wants = |group| options.wants(group);
    if wants("signal") {
        signal::measure(runner, &bench, options.plan(200, 5_000, 30));
    }
    if wants(beside::GROUP) {
        beside::measure(runner, &bench, options.plan(100, 2_000, 15));
    }
    if wants("satisfied") {
        satisfied::measure(runner, &bench, options.plan(200, 5_000, 20));
    }
    if wants("ping-pong") || wants("ping-pong-2") {
        let near = options.plan(100, 100, 20);
        let far = options.plan(200, 50, 25);
        ping_pong::measure(runner, &bench, near, far);
    }
    if wants("waiters") || wants("wake") {
        let signal = options.plan(50, 200, 20);
        let wake = options.plan(50, 100, 15);
        counts.extend(waiters::measure(runner, &bench, signal, wake));
    }
    if wants(event_loop::ALL) || wants(event_loop::NEXT) {
        counts.extend(event_loop::measure(
            runner,
            &bench,
            options.plan(50, 40, 20),
        ));
    }
    if wants("lifecycle") {
        lifecycle::measure(runner, &bench, options.plan(100, 500, 15));
    }
    if wants("open") {
        open::measure(runner, &bench, options.plan(100, 100, 10));
    }
    if wants("objects") {
        objects::measure(runner, &bench, options.plan(100, 100, 25));
    }
    if wants("process") {
        process::measure(runner, &bench, options.plan(50, 50, 20));
    }
    if wants("population") {
        population::measure(runner, &bench, options.plan(16, 300, 40));
    }
    if wants("crowd") {
        crowd::measure(runner, &bench, options.plan(20, 2_000, 20));
    }
    if wants("submit") {
        gpu::submit(runner, &bench, options.plan(100, 100, 15));
    }
    if wants(doorbells::START) {
        doorbells::start(runner, &bench, options.plan(50, 50, 10));
    }
    if wants(cpu_events::GROUP) {
        cpu_events::measure(runner, &bench, options.plan(20, 100, 15));
    }
    if wants(resets::GROUP) {
        resets::measure(runner, &bench, options.plan(20, 8, 10));
    }
    if wants(doorbells::SHARED) {
        doorbells::shared(runner, &mut bench, options.plan(30, 64, 20));
    }
    let of_native = [
        native_fences::SIGNALS,
        native_fences::LOGS,
        native_fences::WAKE,
    ];
    if of_native.into_iter().any(wants) {
        let plan = options.plan(50, 20, 15);
        counts.extend(native_fences::measure(runner, &bench, plan));
    }
    for form in interrupt_forms::FORMS {
        if wants(form.0) {
            interrupt_forms::measure(runner, &mut bench, form, options.plan(30, 20, 15));
        }
    }
    if wants("queued-wait") {
        let plan = options.plan(50, 5, 15);
        counts.extend(queued_wait::measure(runner, &mut bench, plan));
    }
    if wants("bandwidth") {
        gpu::bandwidth(runner, &bench, options.plan(30, 20, 15));
    }
    if wants("sync-files") {
        sync_files::measure(runner, &bench, options.plan(100, 500, 15));
    }
    if wants("queues") {
        gpu::queues(runner, &bench, options.plan(16, 100, 30));
    }
    if wants(addresses::GROUP) {
        addresses::measure(runner, &bench, options.plan(16, 200, 30));
    }
    if options.names(addresses::OF_OTHERS) {
        addresses::of_others(runner, &bench, options.plan(8, 200, 30));
    }
    for group in [residency::BY_NODE, residency::BY_PROCESSOR] {
        if wants(group) {
            residency::measure(runner, &mut bench, group, options.plan(30, 4, 20));
        }
    }
    if wants(paging_fences::GROUP) {
        paging_fences::measure(runner, &bench, options.plan(30, 20, 10));
    }
    if wants(working_set::GROUP) {
        let plan = options.plan(20, 8, 30);
        counts.extend(working_set::measure(runner, &mut bench, plan));
    }
    if wants("idle") {
        counts.extend(idle::measure(&bench));
    }
    if let Some(program) = &options.wine {
        let (near, far) = (options.plan(60, 100, 20), options.plan(100, 50, 25));
        counts.extend(wine::measure(runner, &bench, program, near, far));
        bench.competitors.push(wine::competitor(&bench));
    }
    let memory = if wants("memory") {
        memory::measure(&bench)
    } else {
        Vec::new()
    };
    Report {
        machine: machine::describe(),
        unit: options.unit,
        seed: options.seed,
        seconds: began.elapsed().as_secs_f64(),
        timer_ns: runner.timer_ns,
        groups: std::mem::take(&mut runner.groups),
        counts,
        memory,
        missing: bench.missing,
        competitors: bench.competitors,
    }
}
