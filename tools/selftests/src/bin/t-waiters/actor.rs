// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the processes of a situation do.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use opendxg::{
    Access, Acquired, Device, Dxg, EventFd, FenceValues, GlobalHandle, KeyedMutex, MonitoredFence,
    NtHandle, SyncFlags, Timeout,
};
use selftests::child::Gate;
use selftests::gpu::{one, Gpu};
use selftests::{ensure_eq, fixture, TestResult};

use super::situations::{Part, Situation};

/// One thing that a process does. Fences and mutexes are numbered.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Signal(usize, u64),
    Rewind(usize, u64),
    /// Has the fence open no longer.
    Close(usize),
    Wait(usize, u64),
    WaitAny(&'static [(usize, u64)]),
    WaitAll(&'static [(usize, u64)]),
    /// Sleeps for an event that a wait signals.
    WaitEvent(usize, u64),
    /// Has its queue wait, and waits for the queue.
    WaitQueue(usize, u64),
    Acquire(usize, u64),
    /// Waits for the key, with a time limit: otherwise the wait goes when the process is stopped.
    AcquireLater(usize, u64),
    Release(usize, u64),
}

impl Step {
    /// Whether it never comes to an end.
    pub(crate) fn blocks(&self) -> bool {
        matches!(
            self,
            Self::Wait(..)
                | Self::WaitAny(_)
                | Self::WaitAll(_)
                | Self::WaitEvent(..)
                | Self::WaitQueue(..)
                | Self::AcquireLater(..)
        )
    }
}

/// What the processes open.
pub(crate) struct Shared {
    fences: Vec<(MonitoredFence, NtHandle)>,
    mutexes: Vec<(KeyedMutex, GlobalHandle)>,
}

impl Shared {
    pub(crate) fn new(situation: &Situation) -> TestResult<Self> {
        let (device, dxg) = (fixture::device()?, Dxg::open()?);
        let fence = || -> TestResult<_> {
            let fence =
                device.create_fence_with(0, SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING)?;
            let nt_handle =
                dxg.share(&[fence.handle()], &opendxg::ShareOptions::new(Access::ALL))?;
            Ok((fence, nt_handle))
        };
        let mutex = || -> TestResult<_> {
            let mutex = dxg.create_keyed_mutex(0)?;
            let global = mutex.global_handle().ok_or("no global handle")?;
            Ok((mutex, global))
        };
        Ok(Self {
            fences: (0..situation.fences)
                .map(|_| fence())
                .collect::<TestResult<_>>()?,
            mutexes: (0..situation.mutexes)
                .map(|_| mutex())
                .collect::<TestResult<_>>()?,
        })
    }

    /// Those who have opened it are on their own.
    pub(crate) fn close(self) -> TestResult {
        for (fence, nt_handle) in self.fences {
            drop(nt_handle);
            fence.destroy()?;
        }
        for (mutex, _) in self.mutexes {
            mutex.destroy()?;
        }
        Ok(())
    }
}

/// What one process has open.
struct Own {
    device: Device,
    fences: Vec<Option<MonitoredFence>>,
    mutexes: Vec<Option<KeyedMutex>>,
}

impl Own {
    fn open(part: &Part, shared: &Shared) -> TestResult<Self> {
        let device = fixture::device()?;
        let fence = |number: usize, (_, nt_handle): &(MonitoredFence, NtHandle)| -> TestResult<_> {
            let flags = match part.waits_only.contains(&number) {
                true => SyncFlags::NO_SIGNAL,
                false => SyncFlags::empty(),
            };
            let opened = part.fences.contains(&number);
            let fence = opened
                .then(|| device.open_fence(nt_handle.as_fd(), flags))
                .transpose()?;
            // It was inherited, and the parent's is another one.
            // SAFETY: nothing in this process uses the descriptor again: it ends without drops.
            unsafe { libc::close(nt_handle.as_fd().as_raw_fd()) };
            Ok(fence)
        };
        let mutex = |number: usize, global: GlobalHandle| -> TestResult<_> {
            let opened = part.mutexes.contains(&number);
            Ok(opened
                .then(|| Dxg::open()?.open_keyed_mutex(global))
                .transpose()?)
        };
        let fences = shared.fences.iter().enumerate();
        let mutexes = shared.mutexes.iter().enumerate();
        Ok(Self {
            fences: fences
                .map(|(at, one)| fence(at, one))
                .collect::<TestResult<_>>()?,
            mutexes: mutexes
                .map(|(at, one)| mutex(at, one.1))
                .collect::<TestResult<_>>()?,
            device,
        })
    }

    fn fence(&self, number: usize) -> TestResult<&MonitoredFence> {
        Ok(self.fences[number].as_ref().ok_or("not open here")?)
    }

    fn mutex(&self, number: usize) -> TestResult<&KeyedMutex> {
        Ok(self.mutexes[number].as_ref().ok_or("not open here")?)
    }

    fn values(&self, elements: &[(usize, u64)]) -> TestResult<FenceValues> {
        elements
            .iter()
            .try_fold(FenceValues::new(), |values, &(number, value)| {
                Ok(values.with(self.fence(number)?, value))
            })
    }

    fn step(&mut self, step: Step, done: &Gate) -> TestResult {
        match step {
            Step::Signal(number, value) => self.fence(number)?.signal(value)?,
            Step::Rewind(number, value) => self.fence(number)?.signal_rewind(value)?,
            Step::Close(number) => self.fences[number]
                .take()
                .ok_or("not open here")?
                .destroy()?,
            Step::Acquire(number, key) => {
                let acquired = self.mutex(number)?.acquire(key, Timeout::Forever)?;
                ensure_eq!(matches!(acquired, Acquired::Owned(_)), true);
            }
            Step::Release(number, key) => self.mutex(number)?.release(key, 0)?,
            blocking => {
                done.open()?;
                self.block(blocking)?;
                return Err("the wait has ended".into());
            }
        }
        Ok(())
    }

    fn block(&self, step: Step) -> TestResult {
        match step {
            Step::Wait(number, value) => self.fence(number)?.wait(value)?,
            Step::WaitAny(elements) => self.device.wait_any(&self.values(elements)?)?,
            Step::WaitAll(elements) => self.device.wait_all(&self.values(elements)?)?,
            Step::WaitEvent(number, value) => {
                let event = EventFd::new()?;
                self.fence(number)?.wait_async(value, &event)?;
                event.wait(None)?;
            }
            Step::WaitQueue(number, value) => {
                let gpu = Gpu::on(&self.device, 0)?;
                gpu.context().wait(&one(self.fence(number)?, value))?;
                let mark = gpu.mark()?;
                gpu.done().wait(mark)?;
            }
            Step::AcquireLater(number, key) => {
                let limit = Timeout::After(Duration::from_secs(3600));
                self.mutex(number)?.acquire(key, limit)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Plays a part, and never returns of itself.
pub(crate) fn act(
    part: &Part,
    shared: &Shared,
    ready: &Gate,
    go: &Gate,
    done: &Gate,
) -> TestResult {
    let mut own = Own::open(part, shared)?;
    ready.open()?;
    go.wait_for_parent()?;
    for &step in part.steps {
        own.step(step, done)?;
    }
    done.open()?;
    // The parent ends it.
    go.wait_for_parent()
}
