// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every allocation and every copy from and to user memory fails once, in every call: the call is
//! refused with the documented status, consumes no handle, and leaves nothing behind.

mod calls;
mod ends;
mod gpu;
mod handles;
mod inject;
mod memory;
mod nt_fence;
mod pending;
mod plain;
mod questions;
mod resources;
mod sharing;
mod windows;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use inject::Injector;
use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Dxg, Luid, Status};
use selftests::leak::Watch;
use selftests::time::scaled;
use selftests::{ensure, ensure_eq, fixture, skip, Suite, TestResult};

/// More steps than this in one call are a mistake.
const MOST: u32 = 1000;

/// How long what a call has queued may take to end.
const SETTLE: Duration = Duration::from_millis(500);

/// The next handle number of this process, told by opening an adapter, which uses it up.
fn next_handle(raw: &Raw, luid: Luid) -> TestResult<u32> {
    let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
    arg.AdapterLuid = luid.into();
    ensure_eq!(raw.exec(&mut arg), Ok(Status::SUCCESS));
    let mut close = D3DKMT_CLOSEADAPTER::zeroed();
    close.hAdapter = arg.hAdapter;
    ensure_eq!(raw.exec(&mut close), Ok(Status::SUCCESS));
    Ok(arg.hAdapter)
}

/// What this process and its user have been charged for, and what its GPU addresses are made of.
fn charges(node: &File) -> TestResult<Vec<String>> {
    const NAMES: [&str; 6] = [
        "dxg-user-objects:",
        "dxg-user-wait-elements:",
        "dxg-user-queues:",
        "dxg-user-queued-items:",
        "dxg-user-queued-bytes:",
        "dxg-gpu-memory:",
    ];
    let path = format!("/proc/thread-self/fdinfo/{}", node.as_raw_fd());
    let info = std::fs::read_to_string(path)?;
    let charged = |line: &&str| NAMES.iter().any(|name| line.starts_with(name));
    Ok(info.lines().filter(charged).map(String::from).collect())
}

/// Demands that the charges are as they were. What was queued may take a moment to end.
fn settled(node: &File, before: &[String]) -> TestResult {
    let end = Instant::now() + scaled(SETTLE);
    loop {
        let now = charges(node)?;
        if now == before {
            return Ok(());
        }
        if Instant::now() > end {
            let changed = before.iter().zip(&now).filter(|(old, new)| old != new);
            return Err(format!("left behind: {:?}", changed.collect::<Vec<_>>()).into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What a call does under injection.
pub(crate) trait Call {
    /// Runs the call once. Nothing else may be done here: everything else could fail as well.
    fn run(&mut self) -> rustix::io::Result<Status>;

    /// Undoes a success.
    fn undo(&mut self) -> TestResult {
        Ok(())
    }

    /// Begins anew after a refusal, where what was done until then makes later calls shorter.
    fn refused(&mut self) -> TestResult {
        Ok(())
    }

    /// How many handles a success uses up.
    fn handles(&self) -> u32 {
        0
    }
}

/// Raises the number of the step that fails until the call meets no failure any more.
fn sweep(call: &mut dyn Call) -> TestResult {
    let injector = Injector::new()?;
    let (raw, luid) = (fixture::raw()?, fixture::adapter()?.luid());
    // Once without failures: everything this process needs for the first time is there.
    ensure_eq!(
        call.run().map(Status::is_success),
        Ok(true),
        "without failures"
    );
    call.undo()?;

    let node = File::open(Dxg::open()?.path())?;
    let watch = Watch::start()?;
    let (charged, totals) = (charges(&node)?, watch.totals()?);
    let mut refused = 0;
    for step in 1..=MOST {
        let before = next_handle(&raw, luid)?;
        let (answer, injected) = injector.fail(step, || call.run())?;
        let used = match answer {
            Ok(status) if status.is_success() => {
                call.undo()?;
                call.handles()
            }
            Ok(Status::NO_MEMORY | Status::ACCESS_VIOLATION) | Err(rustix::io::Errno::FAULT)
                if injected =>
            {
                refused += 1;
                0
            }
            other => return Err(format!("step {step}: {other:?}").into()),
        };
        if watch.totals()? != totals {
            watch.unchanged()?;
        }
        settled(&node, &charged).map_err(|error| format!("step {step}: {error}"))?;
        let after = next_handle(&raw, luid)?;
        ensure_eq!(
            after,
            before + 0x40 * (used + 1),
            "step {step}: handle numbers"
        );
        if !answer.is_ok_and(Status::is_success) {
            call.refused()?;
        }
        if !injected {
            println!("# {} steps, {refused} refused", step - 1);
            ensure!(answer.is_ok_and(Status::is_success));
            return watch.ends_clean();
        }
    }
    Err(format!("failures never end after {MOST} steps").into())
}

pub(crate) fn main() {
    let prepared = inject::exists().then(inject::prepare);
    let test = |suite: Suite, (name, make): (&'static str, plain::Maker)| {
        let prepared = prepared.clone();
        suite.slow(
            format!("RES-25 FEN-54 {name}"),
            Duration::from_secs(120),
            move || match prepared {
                None => skip!("the kernel has no fault injection"),
                Some(Err(error)) => Err(error.into()),
                Some(Ok(())) => make(&mut sweep),
            },
        )
    };
    calls::ALL
        .iter()
        .chain(gpu::ALL)
        .chain(memory::ALL)
        .chain(ends::ALL)
        .chain(questions::ALL)
        .chain(resources::ALL)
        .chain(handles::ALL)
        .chain(nt_fence::ALL)
        .chain(sharing::ALL)
        .chain(pending::ALL)
        .chain(windows::ALL)
        .copied()
        .fold(Suite::new("failslab"), test)
        .run()
}
