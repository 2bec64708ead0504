// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runner itself: that a test which should fail does fail. Each case is a suite that runs in a
//! child process.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Duration;

use opendxg::{Access, Dxg};
use selftests::child::{in_child, Child, Gate};
use selftests::fixture::ADAPTER_VARIABLE;
use selftests::rounds::ROUNDS_VARIABLE;
use selftests::soft_adapter::SoftAdapter;
use selftests::stress::{Figure, STRESS_VARIABLE};
use selftests::time::SCALE_VARIABLE;
use selftests::{ensure, ensure_eq, fds, fixture, program, skip, Suite, TestResult};

pub(crate) fn main() {
    // Most of these tests run into a time limit, so that stretching it has no use.
    std::env::set_var(SCALE_VARIABLE, "2");
    Suite::new("harness")
        .test("HARNESS a test that passes", passing)
        .test("HARNESS a condition that does not hold", condition)
        .test("HARNESS a panic", panic)
        .test("HARNESS a skipped test", skipped)
        .test("HARNESS a test that does not end", hanging)
        .test("HARNESS an NT handle left open", leaked_descriptor)
        .test("HARNESS an object left behind", leaked_object)
        .test(
            "HARNESS a child process that fails, and one that dies",
            children,
        )
        .test(
            "HARNESS on an adapter of its own, only what is there counts",
            own_adapter,
        )
        .test("HARNESS only the selected tests run", selection)
        .stress(
            "HARNESS a figure of the specification",
            Duration::from_secs(30),
            Figure::new(100, 1_000_000),
            figures,
        )
        .run()
}

/// Runs a suite in a child process; returns its output and its exit status.
fn run(suite: Suite, wanted: &[&str]) -> TestResult<(String, i32)> {
    let wanted: Vec<String> = wanted.iter().map(|part| part.to_string()).collect();
    let (reader, writer) = fds::pipe()?;
    // SAFETY: as in `Child::spawn`: the child has one thread and ends by itself.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(writer.as_raw_fd(), 1) };
        drop((reader, writer));
        suite.run_selected(&wanted)
    }
    ensure!(pid > 0, "fork");
    drop(writer);
    let mut text = String::new();
    std::fs::File::from(reader).read_to_string(&mut text)?;
    let mut status = 0;
    // SAFETY: `status` is a live int.
    ensure_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    ensure!(libc::WIFEXITED(status), "wait status {status:#x}: {text}");
    Ok((text, libc::WEXITSTATUS(status)))
}

/// A suite of one test, of whose output the lines with results are returned.
fn results(body: fn() -> TestResult) -> TestResult<(Vec<String>, i32)> {
    results_of(Suite::new("inner").test("subject", body))
}

fn results_of(suite: Suite) -> TestResult<(Vec<String>, i32)> {
    let (text, status) = run(suite, &[])?;
    let lines = text.lines().filter(|line| line.contains("ok "));
    Ok((lines.map(str::to_owned).collect(), status))
}

fn passing() -> TestResult {
    let (text, status) = run(Suite::new("inner").test("subject", || Ok(())), &[])?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let last = "ok 2 - inner: the driver is as it was at the start";
    ensure_eq!(lines, ["TAP version 13", "1..2", "ok 1 - subject", last]);
    ensure_eq!(status, 0);
    Ok(())
}

/// The inner test failed and the suite with it; nothing is left at its end.
fn fails(body: fn() -> TestResult) -> TestResult {
    let (lines, status) = results(body)?;
    ensure!(lines[0].starts_with("not ok 1 - subject"), "{lines:?}");
    ensure!(lines[1].starts_with("ok 2"), "{lines:?}");
    ensure_eq!(status, 1);
    Ok(())
}

fn condition() -> TestResult {
    fails(|| {
        ensure_eq!(1 + 1, 3);
        Ok(())
    })
}

fn panic() -> TestResult {
    fails(|| panic!("on purpose"))
}

fn skipped() -> TestResult {
    let (lines, status) = results(|| skip!("no {}", "reason"))?;
    ensure_eq!(lines[0], "ok 1 - subject # SKIP no reason");
    ensure_eq!(status, 0);
    Ok(())
}

fn hanging() -> TestResult {
    let suite = Suite::new("inner").slow("subject", Duration::from_millis(50), || {
        let fence = fixture::device()?.create_fence(0)?;
        Ok(fence.wait(1)?)
    });
    let (text, status) = run(suite, &[])?;
    ensure!(
        text.ends_with("Bail out! subject: did not end in time\n"),
        "{text}"
    );
    ensure_eq!(status, 1);
    Ok(())
}

/// The inner test left something, and it is still there at the end.
fn leaks(body: fn() -> TestResult) -> TestResult {
    // What is left behind stays there however long one waits.
    let suite = Suite::new("inner").settle(Duration::from_millis(50));
    let (lines, status) = results_of(suite.test("subject", body))?;
    ensure!(lines[0].starts_with("not ok 1 - subject"), "{lines:?}");
    ensure!(lines[1].starts_with("not ok 2"), "{lines:?}");
    ensure_eq!(status, 1);
    Ok(())
}

fn leaked_descriptor() -> TestResult {
    leaks(|| {
        let shared = fixture::device()?
            .create_shareable_fence(0)?
            .share(Access::ALL)?;
        core::mem::forget(shared);
        Ok(())
    })
}

fn leaked_object() -> TestResult {
    leaks(|| {
        let fence = fixture::device()?.create_shareable_fence(0)?;
        // An opening that belongs to no device, in the process object that the runner keeps.
        Dxg::open()?.open_nt(&fence.share(Access::ALL)?)?.into_raw();
        Ok(())
    })
}

fn children() -> TestResult {
    fails(|| in_child(|| Err("on purpose".into())))?;
    fails(|| in_child(|| panic!("on purpose")))?;
    fails(|| {
        let child = Child::spawn(|| {
            // SAFETY: ends this process.
            unsafe { libc::abort() }
        })?;
        child.join()
    })
}

/// A suite on the adapter `used`, while another process makes something on `disturbed` that stays.
fn beside(used: &SoftAdapter, disturbed: &SoftAdapter) -> TestResult<(Vec<String>, i32)> {
    let (begin, made) = (Rc::new(Gate::new()?), Rc::new(Gate::new()?));
    let (begun, done) = (begin.clone(), made.clone());
    let _maker = Child::spawn(|| {
        begun.wait()?;
        let _fence = disturbed.device()?.create_fence(0)?;
        done.open()?;
        loop {
            std::thread::park();
        }
    })?;
    let suite = Suite::new("inner").settle(Duration::from_millis(50));
    let suite = suite.test("subject", move || {
        begin.open()?;
        made.wait()
    });
    let before = std::env::var_os(ADAPTER_VARIABLE);
    std::env::set_var(ADAPTER_VARIABLE, used.get("luid")?);
    let results = results_of(suite);
    match before {
        Some(before) => std::env::set_var(ADAPTER_VARIABLE, before),
        None => std::env::remove_var(ADAPTER_VARIABLE),
    }
    results
}

fn own_adapter() -> TestResult {
    let (own, other) = (SoftAdapter::enabled("own")?, SoftAdapter::enabled("other")?);
    let (lines, status) = beside(&own, &other)?;
    ensure_eq!(status, 0, "{lines:?}");
    let (lines, status) = beside(&own, &own)?;
    ensure!(lines[0].starts_with("not ok 1 - subject"), "{lines:?}");
    ensure!(lines[1].starts_with("not ok 2"), "{lines:?}");
    ensure_eq!(status, 1);
    Ok(())
}

fn selection() -> TestResult {
    let suite = Suite::new("inner")
        .test("one", || Err("not selected".into()))
        .test("two", || Ok(()))
        .test("three", || Err("not selected".into()));
    let (text, status) = run(suite, &["tw"])?;
    ensure!(
        text.contains("\nok 1 - two\n") && text.contains("\n1..2\n"),
        "{text}"
    );
    ensure_eq!(status, 0);
    Ok(())
}

/// In a child of its own this test prints what its figure is, in a stress run and in an ordinary
/// one.
fn figures(figure: Figure) -> TestResult {
    const INNER: &str = "OPENDXG_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        println!("# {} rounds, {:?}", figure.rounds(), figure.time());
        return Ok(());
    }
    for (variable, value, told) in [
        (STRESS_VARIABLE, "1000000", "1000000 rounds, 1000000s"),
        (STRESS_VARIABLE, "5000", "5000 rounds, 5000s"),
        // Never less than usually.
        (STRESS_VARIABLE, "1", "100 rounds, 100s"),
        (ROUNDS_VARIABLE, "3", "300 rounds, 300s"),
    ] {
        let output = program::again()
            .env_remove(STRESS_VARIABLE)
            .env(ROUNDS_VARIABLE, "1")
            .env(INNER, "yes")
            .env(variable, value)
            .args((variable == ROUNDS_VARIABLE).then_some("HARNESS a figure"))
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{text}");
        ensure!(text.contains(told), "{variable}={value}: {text}");
        // A stress run has no other tests.
        ensure!(text.contains("\n1..2\n"), "{variable}={value}: {text}");
    }
    Ok(())
}
