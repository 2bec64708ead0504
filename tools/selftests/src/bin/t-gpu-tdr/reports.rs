// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reports that hangs, resets and faults leave, as `opendxg report` shows them. `PATH` has to
//! lead to the command.

use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Output};

use opendxg::pm4::{Compare, Pm4};
use opendxg::soft_gpu::FailResets;
use opendxg::ExecutionState;
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, one, reaches, Gpu, PAGE};
use selftests::time::{eventually, A_WHILE};
use selftests::{ensure, ensure_eq, Failure, Suite, TestResult};
use serde_json::Value;

use super::faulty::{Command, Faulty};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-95 GPU-98 the report of commands that never end",
            self_chaining,
        )
        .test(
            "GPU-93 GPU-95 the report of a wait that is not satisfied",
            unmet_wait,
        )
        .test(
            "GPU-95 the report of an engine that does not answer",
            engine_hangs,
        )
        .test(
            "GPU-67 MEM-59 the report of a page fault, with the way through page tables",
            page_fault,
        )
        .test(
            "GPU-96 GPU-98 the reports of an adapter that is reset, and stopped",
            adapter_resets,
        )
        .test(
            "GPU-68 GPU-95 faults do not push out what is told of a hang",
            many_faults,
        )
        .test(
            "RES-107 only root sees reports, and controls engines",
            other_users,
        )
        .test("GPU-98 root stops, continues and resets an engine", control)
        .test("GPU-98 engines are shown while one of them hangs", shown)
}

fn tool(args: &[&str]) -> Process {
    let mut command = Process::new("opendxg");
    command.args(args);
    command
}

fn output(output: Output) -> TestResult<String> {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {error}", output.status);
    ensure_eq!(error, "");
    String::from_utf8(output.stdout).map_err(|_| Failure::Failed("output is not UTF-8".into()))
}

impl Faulty {
    fn luid(&self) -> String {
        self.adapter.luid().to_string()
    }

    /// Its reports, as text.
    fn report(&self) -> TestResult<String> {
        output(tool(&["report", &self.luid()]).output()?)
    }

    /// Its reports, in the order of time.
    fn reports(&self) -> TestResult<Vec<Value>> {
        let text = output(tool(&["report", &self.luid(), "--json"]).output()?)?;
        let mut document: Value =
            serde_json::from_str(&text).map_err(|error| Failure::Failed(error.to_string()))?;
        match document["reports"].take() {
            Value::Array(reports) => Ok(reports),
            other => Err(format!("no reports: {other}").into()),
        }
    }

    /// The only report, when something was done.
    fn only_report(&self) -> TestResult<Value> {
        eventually("it is over", || {
            let last = self.reports().ok().and_then(|all| all.last().cloned());
            last.is_some_and(|last| last["done"] != "in-progress")
        })?;
        match &self.reports()?[..] {
            [report] => Ok(report.clone()),
            more => Err(format!("one report was due: {more:?}").into()),
        }
    }

    /// What the command says of its resets.
    fn recovery(&self) -> TestResult<(Option<u64>, Option<u64>, Option<u64>)> {
        let text = output(tool(&["engines", "--json"]).output()?)?;
        let document: Value =
            serde_json::from_str(&text).map_err(|error| Failure::Failed(error.to_string()))?;
        let all = document["recovery"].as_array().ok_or("no recovery")?;
        let own = all.iter().find(|one| one["luid"] == self.luid());
        let own = own.ok_or("not this adapter")?;
        let number = |name: &str| own[name].as_u64();
        Ok((
            number("tdr_delay_ms"),
            number("engine_resets"),
            number("adapter_resets"),
        ))
    }
}

/// What every report of this process has.
fn is_own(report: &Value, kind: &str, done: &str) -> TestResult {
    ensure_eq!(
        (&report["kind"], &report["done"]),
        (&kind.into(), &done.into())
    );
    ensure_eq!(report["pid"].as_u64(), Some(std::process::id().into()));
    ensure!(report["queue"].is_u64(), "{report}");
    // The reason comes first.
    ensure_eq!(report["queues"][0]["id"], report["queue"]);
    ensure_eq!(report["queues"][0]["pid"], report["pid"]);
    Ok(())
}

fn self_chaining() -> TestResult {
    let faulty = Faulty::new("r-chain")?;
    ensure_eq!(faulty.report()?, "nothing went wrong\n");
    ensure_eq!(faulty.recovery()?, (Some(300), Some(0), Some(0)));
    let (gpu, other) = (faulty.gpu(1)?, faulty.gpu(0)?);
    // A queue that waits for somebody else's fence meanwhile.
    let fence = other.device().create_fence(0)?;
    other.context().wait(&one(&fence, 7))?;
    let waits = other.mark()?;

    let commands = gpu.commands(&Pm4::new().chain(0, 16))?;
    let chain = Pm4::new().chain(commands.address(), 16);
    commands.buffer().write(0, chain.words());
    gpu.submit(&commands)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;

    let report = faulty.only_report()?;
    is_own(&report, "queue-hang", "engine-reset")?;
    ensure_eq!(report["node"].as_u64(), Some(1));
    ensure_eq!(report["packet"].as_u64(), Some(commands.address()));
    ensure_eq!(report["commands"][0]["name"], "INDIRECT_BUFFER");
    let words = report["commands"][0]["words"].as_array().ok_or("words")?;
    let words: Vec<u64> = words.iter().filter_map(Value::as_u64).collect();
    let own: Vec<u64> = chain.words().iter().map(|word| u64::from(*word)).collect();
    ensure_eq!(words, own);
    ensure!(
        report["walk"].is_null() && report["fault"].is_null(),
        "{report}"
    );
    // How it was before anything was put in error.
    let [hung, blocked] = &report["queues"].as_array().ok_or("queues")?[..] else {
        return Err(format!("two queues: {report}").into());
    };
    ensure_eq!(
        (&hung["state"], hung["in_flight"].as_u64()),
        (&"running".into(), Some(1))
    );
    ensure_eq!(blocked["state"], "blocked");
    ensure_eq!(blocked["blocked_on"]["value"].as_u64(), Some(7));
    ensure!(blocked["blocked_on"]["object"].is_u64(), "{blocked}");

    let text = faulty.report()?;
    for part in [
        "the work of a queue took too long",
        "the engine was reset",
        "INDIRECT_BUFFER",
        "to reach 7",
        "t-gpu-tdr",
    ] {
        ensure!(text.contains(part), "{part} in\n{text}");
    }
    ensure_eq!(faulty.recovery()?, (Some(300), Some(1), Some(0)));
    fence.signal(7)?;
    other.until(waits)
}

fn unmet_wait() -> TestResult {
    let faulty = Faulty::new("r-wait")?;
    let gpu = faulty.gpu(0)?;
    let word = gpu.buffer(PAGE)?;
    let wait = Pm4::new()
        .nop(0)
        .wait32(word.at(0), Compare::Equal, 1, u32::MAX);
    let commands = gpu.commands(&wait)?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;
    let report = faulty.only_report()?;
    is_own(&report, "queue-hang", "engine-reset")?;
    // Behind the NOP.
    ensure_eq!(report["packet"].as_u64(), Some(commands.address() + 4));
    ensure_eq!(report["commands"][0]["name"], "WAIT_REG_MEM");
    ensure_eq!(
        report["commands"][0]["words"][2].as_u64(),
        Some(word.address() & 0xffff_ffff)
    );
    Ok(())
}

/// The process is gone when the report is read.
fn engine_hangs() -> TestResult {
    let faulty = Faulty::new("r-engine")?;
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let adapter = faulty.soft.open()?;
        let gpu = Gpu::on(&adapter.create_device()?, 2)?;
        adapter.soft_gpu_command(Command::HangEngine, 2, 0)?;
        gpu.submit(&gpu.commands(&Pm4::new().nop(3))?)?;
        gpu.mark()?;
        reaches(gpu.done(), u64::MAX)?;
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    end.open()?;
    let pid = child.pid();
    child.join()?;
    let report = faulty.only_report()?;
    ensure_eq!(
        (&report["kind"], &report["done"]),
        (&"engine-hang".into(), &"engine-reset".into())
    );
    ensure_eq!(report["node"].as_u64(), Some(2));
    ensure_eq!(report["pid"].as_i64(), Some(pid.into()));
    ensure_eq!(report["stale"], true);
    Ok(())
}

/// The report of a store to an address where nothing is, of a new device each time: there is no way
/// through page tables in it if these are being changed in that moment.
fn fault_at(faulty: &Faulty, address: u64) -> TestResult<Value> {
    for _ in 0..20 {
        let gpu = faulty.gpu(0)?;
        gpu.fails(
            &Pm4::new().nop(0).write64(address, 1),
            ExecutionState::DmaPageFault,
        )?;
        let report = faulty.reports()?.pop().ok_or("a report was due")?;
        is_own(&report, "fault", "none")?;
        let fault = &report["fault"];
        ensure_eq!(fault["kind"], "page");
        ensure_eq!(fault["address"].as_u64(), Some(address));
        if !report["walk"].is_null() {
            return Ok(report);
        }
    }
    Err("page tables are always being changed".into())
}

/// Level, index and entry of each step.
fn way(report: &Value) -> Vec<(u64, u64, &str)> {
    let steps = report["walk"].as_array().map_or(&[][..], Vec::as_slice);
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let steps = steps.iter().map(|step| {
        let entry = step["entry"].as_str().unwrap_or("-");
        (number(&step["level"]), number(&step["index"]), entry)
    });
    steps.collect()
}

fn page_fault() -> TestResult {
    const NOWHERE: u64 = 0x7_0000_0000;
    let faulty = Faulty::new("r-fault")?;
    // Four levels of 512 entries: nothing is mapped in the 28th GiB.
    let report = fault_at(&faulty, NOWHERE)?;
    ensure_eq!(way(&report), [(3, 0, "table"), (2, 28, "invalid")]);
    ensure!(report["walk"][0]["address"].is_u64(), "{report}");

    // Beside a page that is there: all tables are there, and the entry is not valid.
    let gpu = faulty.gpu(0)?;
    let buffer = gpu.buffer(PAGE)?;
    let beside = buffer.end();
    let report = fault_at(&faulty, beside)?;
    let index = |level: u32| (beside >> (12 + 9 * level)) & 511;
    ensure_eq!(
        way(&report),
        [
            (3, index(3), "table"),
            (2, index(2), "table"),
            (1, index(1), "table"),
            (0, index(0), "invalid")
        ]
    );

    let text = faulty.report()?;
    for part in [
        "a queue has faulted",
        "write to 0x700000000",
        "level 3, entry 0: table at 0x",
        "level 2, entry 28: invalid",
    ] {
        ensure!(text.contains(part), "{part} in\n{text}");
    }
    Ok(())
}

fn adapter_resets() -> TestResult {
    let faulty = Faulty::new("r-adapter")?;
    let gpu = faulty.gpu(0)?;
    gpu.run(&Pm4::new().nop(0))?;
    faulty.adapter.reset(None)?;
    reaches(gpu.done(), u64::MAX)?;
    let report = faulty.only_report()?;
    ensure_eq!(
        (&report["kind"], &report["done"]),
        (&"requested".into(), &"adapter-reset".into())
    );
    ensure!(
        report["node"].is_null() && report["queue"].is_null(),
        "{report}"
    );
    ensure_eq!(faulty.recovery()?, (Some(300), Some(0), Some(1)));

    // The next one hangs, and nothing helps. What was told stays as long as it is enabled.
    let fails = FailResets::ENGINE | FailResets::ADAPTER;
    faulty.command(Command::FailResets, 0, fails.bits())?;
    let gpu = faulty.gpu(0)?;
    faulty.command(Command::HangQueue, 0, 0)?;
    gpu.submit(&gpu.commands(&Pm4::new().nop(0))?)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Stopped)?;
    let reports = faulty.reports()?;
    let last = reports.last().ok_or("two reports")?;
    is_own(last, "queue-hang", "adapter-stopped")?;
    ensure_eq!(last["number"].as_u64(), Some(2));
    ensure!(faulty.report()?.contains("the adapter was stopped"));
    Ok(())
}

fn many_faults() -> TestResult {
    let faulty = Faulty::new("r-many")?;
    let gpu = faulty.gpu(0)?;
    faulty.command(Command::HangQueue, 0, 0)?;
    gpu.submit(&gpu.commands(&Pm4::new().nop(0))?)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;
    for _ in 0..12 {
        let gpu = faulty.gpu(0)?;
        gpu.fails(&Pm4::new().word(0x1234_5678), ExecutionState::DmaFault)?;
    }
    let reports = faulty.reports()?;
    let numbers: Vec<_> = reports.iter().map(|one| one["number"].as_u64()).collect();
    ensure_eq!(numbers, [1, 7, 8, 9, 10, 11, 12, 13].map(Some));
    ensure_eq!(reports[0]["kind"], "queue-hang");
    ensure_eq!(reports[7]["fault"]["header"].as_u64(), Some(0x1234_5678));
    Ok(())
}

fn other_users() -> TestResult {
    let faulty = Faulty::new("r-users")?;
    let luid = faulty.luid();
    let denied = "ACCESS_DENIED";
    for (args, why) in [
        (&["report"][..], "are you root?"),
        (&["report", &luid, "--json"], "are you root?"),
        (&["reset", &luid], denied),
        (&["reset", &luid, "--node", "0"], denied),
        (&["stop", &luid, "--node", "0"], denied),
        (&["continue", &luid, "--node", "0"], denied),
    ] {
        let output = tool(args).uid(1000).gid(1000).output()?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure_eq!(output.status.code(), Some(1));
        ensure!(output.stdout.is_empty(), "{args:?}");
        ensure!(
            error.starts_with("opendxg: ") && error.contains(why),
            "{args:?}: {error}"
        );
    }
    ensure_eq!(faulty.reports()?.len(), 0);
    faulty.gpu(0)?.run(&Pm4::new().nop(0))
}

fn control() -> TestResult {
    let faulty = Faulty::with_delay("r-control", "600000")?;
    let luid = faulty.luid();
    let run = |args: &[&str]| output(tool(args).output()?);
    let (gpu, other) = (faulty.gpu(1)?, faulty.gpu(0)?);
    let word = gpu.buffer(PAGE)?;
    ensure_eq!(run(&["stop", &luid, "--node", "1"])?, "");
    gpu.submit(&gpu.commands(&Pm4::new().set32(word.at(0), 1))?)?;
    let mark = gpu.mark()?;
    std::thread::sleep(A_WHILE);
    ensure_eq!(word.get32(0), 0);
    ensure_eq!(run(&["continue", &luid, "--node", "1"])?, "");
    gpu.until(mark)?;
    ensure_eq!(word.get32(0), 1);

    faulty.command(Command::HangQueue, 1, 0)?;
    gpu.submit(&gpu.commands(&Pm4::new().nop(0))?)?;
    gpu.mark()?;
    // Until the engine has run it.
    eventually("the device hangs", || {
        run(&["reset", &luid, "--node", "1"]).is_ok() && gpu.done().is_reached(u64::MAX)
    })?;
    is_in(gpu.device(), ExecutionState::Hung)?;
    other.run(&Pm4::new().nop(0))?;
    ensure_eq!(run(&["reset", &luid])?, "");
    is_in(other.device(), ExecutionState::Reset)?;

    for (args, why) in [
        (&["reset", &luid, "--node", "9"][..], "no node 9"),
        (&["stop", &luid, "--node", "9"], "no node 9"),
        (&["reset", "77:77"], "no adapter 00000077:00000077 runs"),
        (&["report", "77:77"], "no adapter 00000077:00000077"),
    ] {
        let output = tool(args).output()?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure_eq!(output.status.code(), Some(1));
        ensure!(error.contains(why), "{args:?}: {error}");
    }
    Ok(())
}

/// Whoever looks for the reason of a hang must not hang.
fn shown() -> TestResult {
    let faulty = Faulty::with_delay("shown", "600000")?;
    let gpu = faulty.gpu(1)?;
    faulty.command(Command::HangEngine, 1, 0)?;
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    for _ in 0..3 {
        faulty.recovery()?;
    }
    output(tool(&["queues"]).output()?)?;
    faulty.adapter.reset(Some(1))?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Hung)
}
