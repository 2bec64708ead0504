// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `opendxg why` says of calls that were refused to other processes.

use std::os::unix::process::CommandExt;

use opendxg::{Error, MonitoredFence, Status};
use selftests::child::{Child, Gate};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, user, Suite, TestResult};
use serde_json::Value;

use super::{json, list, state_of, text, tool};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-15 RES-105 what was refused to a stopped process, and by which rules",
            refused,
        )
        .test(
            "RES-15 RES-107 the owner sees the refusals of a process, others do not",
            refused_to_users,
        )
}

/// What was refused to a process.
fn refusals_of(pid: i32) -> TestResult<Vec<Value>> {
    let refusals = json(&["why", &pid.to_string()], "refusals")?;
    Ok(list(&refusals).to_vec())
}

/// Call, status, how often, and rules of a refusal.
fn facts(refusal: &Value) -> (Option<u64>, &str, Option<u64>, &str) {
    let word = |name: &str| refusal[name].as_str().unwrap_or("-");
    let number = |name: &str| refusal[name].as_u64();
    (
        number("call"),
        word("status_name"),
        number("times"),
        word("rules"),
    )
}

/// Does what is refused: three signals that go back, and a call that is none. What was refused is
/// forgotten with the last open node, so the fence is to be kept.
fn do_what_is_refused() -> TestResult<MonitoredFence> {
    let fence = fixture::device()?.create_fence(5)?;
    fence.signal(6)?;
    for _ in 0..3 {
        let refused = fence.signal(2).map_err(Error::status);
        ensure_eq!(refused, Err(Status::INVALID_PARAMETER));
    }
    // No call has this number.
    ensure!(
        fixture::raw()?.ioctl(0xc008_477f, 0).is_err(),
        "0x7f is a call"
    );
    ensure_eq!(fence.value(), 6);
    Ok(fence)
}

fn refused() -> TestResult {
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let _kept = do_what_is_refused()?;
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    child.signal(libc::SIGSTOP)?;
    eventually("the child is stopped", || state_of(child.pid()) == 'T')?;
    let refusals = refusals_of(child.pid())?;
    // The last one comes first, and the same one counts.
    let found: Vec<_> = refusals.iter().map(facts).collect();
    ensure_eq!(
        found,
        [
            (Some(0x7f), "-", Some(1), "-"),
            (
                Some(0x31),
                "STATUS_INVALID_PARAMETER",
                Some(3),
                "FEN-18 FEN-32 FEN-35 MEM-11"
            ),
        ]
    );
    ensure!(refusals[0]["name"].is_null(), "{refusals:?}");
    ensure_eq!(refusals[1]["name"], "SIGNALSYNCHRONIZATIONOBJECTFROMCPU");
    let ago = |place: usize| refusals[place]["ago_ns"].as_u64().unwrap_or(u64::MAX);
    ensure!(ago(0) <= ago(1) && ago(1) < 600_000_000_000, "{refusals:?}");
    let table = text(tool(&["why", &child.pid().to_string()]).output()?)?;
    ensure!(table.contains("INVALID_PARAMETER"), "{table}");
    ensure!(table.contains("no such call"), "{table}");
    let pid = child.pid().to_string();
    child.kill()?;
    let gone = tool(&["why", &pid]).output()?;
    ensure_eq!(gone.status.code(), Some(1));
    Ok(())
}

fn refused_to_users() -> TestResult {
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        user::become_user(user::USER)?;
        // SAFETY: plain system call. A process that has changed its user is nobody's otherwise.
        ensure_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) }, 0);
        let _kept = do_what_is_refused()?;
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    let pid = child.pid().to_string();
    let as_user = |user: u32| tool(&["why", &pid]).uid(user).gid(user).output();
    let table = text(as_user(user::USER)?)?;
    ensure!(table.contains("FEN-32"), "{table}");
    ensure_eq!(as_user(user::OTHER)?.status.code(), Some(1));
    end.open()?;
    child.join()
}
