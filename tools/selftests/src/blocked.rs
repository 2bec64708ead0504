// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that sleep in a call of the driver.

use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use crate::time::{a_while, eventually};
use crate::{task, TestResult};

/// A thread that was seen asleep in its call.
pub struct Blocked<T> {
    thread: JoinHandle<T>,
    id: i32,
}

impl<T: Send + 'static> Blocked<T> {
    /// Runs `call` in a new thread and waits until the thread sleeps in the kernel.
    #[track_caller]
    pub fn new(call: impl FnOnce() -> T + Send + 'static) -> TestResult<Self> {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || {
            let _ = sender.send(task::me());
            call()
        });
        let id = receiver.recv().map_err(|_| "the thread did not start")?;
        let blocked = Self { thread, id };
        eventually("the thread sleeps in its call", || {
            blocked.thread.is_finished() || task::is_blocked(id)
        })?;
        match blocked.thread.is_finished() {
            false => Ok(blocked),
            true => Err("the call returned instead of blocking".into()),
        }
    }

    /// The thread's id.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Whether the call has returned.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Demands that the call does not return within a while.
    #[track_caller]
    pub fn stays(&self) -> TestResult {
        a_while();
        match self.thread.is_finished() {
            false => Ok(()),
            true => Err(format!(
                "{}: the call returned too early",
                core::panic::Location::caller()
            )
            .into()),
        }
    }

    /// Waits until the call returns.
    pub fn join(self) -> TestResult<T> {
        Ok(self.thread.join().map_err(|_| "panic in a thread")?)
    }

    /// Sends a signal to the thread.
    pub fn signal(&self, signal: i32) -> TestResult {
        let process = std::process::id() as i32;
        // SAFETY: plain system call; the thread is ours.
        if unsafe { libc::syscall(libc::SYS_tgkill, process, self.id, signal) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }
}
