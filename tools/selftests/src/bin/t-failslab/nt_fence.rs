// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls on the NT handle of a fence that are made to fail.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, NtHandle, Status};
use selftests::blocked::Blocked;
use selftests::sharing::exec_on;
use selftests::task::{is_blocked, me};
use selftests::{ensure_eq, fixture, TestResult};

use crate::t_failslab::plain::{Maker, Sweep};
use crate::t_failslab::Call;

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("a signal on an NT handle", |sweep| {
        sweep(&mut Signal::new()?)
    }),
    ("a wait on an NT handle, asleep", |sweep| {
        Asleep::sweep(sweep, 0)
    }),
    ("a wait on an NT handle, asleep in memory", |sweep| {
        Asleep::sweep(sweep, ON_STACKS)
    }),
];

/// So many threads sleep without taking memory.
const ON_STACKS: u64 = 4;

fn shared() -> TestResult<NtHandle> {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    Ok(fence.share(Access::ALL)?)
}

fn signal(raw: &Raw, handle: &NtHandle, value: u64) -> rustix::io::Result<Status> {
    let mut arg = opendxg_signal_nt::zeroed();
    arg.value = value;
    exec_on(raw, handle.as_fd(), &mut arg)
}

/// A signal that nobody waits for.
struct Signal {
    raw: Raw,
    handle: NtHandle,
    value: u64,
}

impl Signal {
    fn new() -> TestResult<Self> {
        Ok(Self {
            raw: fixture::raw()?,
            handle: shared()?,
            value: 1,
        })
    }
}

impl Call for Signal {
    fn run(&mut self) -> rustix::io::Result<Status> {
        signal(&self.raw, &self.handle, self.value)
    }

    fn undo(&mut self) -> TestResult {
        ensure_eq!(self.handle.fence_value()?, self.value);
        self.value += 1;
        Ok(())
    }

    fn refused(&mut self) -> TestResult {
        ensure_eq!(self.handle.fence_value()?, self.value - 1);
        Ok(())
    }
}

/// A wait that sleeps until another thread signals.
struct Asleep<'a> {
    raw: Raw,
    handle: &'a NtHandle,
    value: &'a AtomicU64,
}

impl Asleep<'_> {
    /// While so many others sleep for the same fence, until the end.
    fn sweep(sweep: Sweep<'_>, others: u64) -> TestResult {
        let handle = shared()?;
        let other = |_| {
            let other = handle.try_clone()?;
            Blocked::new(move || other.wait(u64::MAX))
        };
        let others = (0..others).map(other).collect::<TestResult<Vec<_>>>()?;
        let (value, done, sleeper) = (AtomicU64::new(1), AtomicBool::new(false), me());
        std::thread::scope(|scope| {
            let signaller = scope.spawn(|| -> TestResult {
                while !done.load(Ordering::Acquire) {
                    if is_blocked(sleeper) {
                        handle.signal(value.load(Ordering::Acquire))?;
                    }
                    std::thread::yield_now();
                }
                Ok(())
            });
            let outcome = sweep(&mut Asleep {
                raw: fixture::raw()?,
                handle: &handle,
                value: &value,
            });
            done.store(true, Ordering::Release);
            signaller.join().map_err(|_| "panic in a thread")??;
            outcome
        })?;
        handle.signal(u64::MAX)?;
        for other in others {
            other.join()??;
        }
        Ok(())
    }
}

impl Call for Asleep<'_> {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let mut arg = opendxg_wait_nt::zeroed();
        arg.value = self.value.load(Ordering::Relaxed);
        arg.deadline = OPENDXG_NO_DEADLINE as u64;
        exec_on(&self.raw, self.handle.as_fd(), &mut arg)
    }

    fn undo(&mut self) -> TestResult {
        let value = self.value.load(Ordering::Relaxed);
        ensure_eq!(self.handle.fence_value()?, value);
        self.value.store(value + 1, Ordering::Release);
        Ok(())
    }
}
