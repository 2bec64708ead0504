// SPDX-License-Identifier: MIT OR Apache-2.0

//! Threads of an object, by the names of `rust/sys/task/kthread.rs`.

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::{sync::Arc, thread::JoinHandle, time::Duration};

use crate::platform::now_ns;

/// What there is for a thread.
#[derive(Default)]
struct State {
    rung: bool,
    stopped: bool,
}

/// What one thread sleeps on until somebody has something for it.
pub(crate) struct Wakeup {
    state: Mutex<State>,
    changed: Condvar,
}

impl Wakeup {
    /// There is something for the thread.
    pub(crate) fn ring(&self) {
        self.state.lock().expect("nobody panics").rung = true;
        self.changed.notify_all();
    }

    /// Whether there is something for the thread, or it has to end.
    pub(crate) fn is_rung(&self) -> bool {
        let state = self.state.lock().expect("nobody panics");

        state.rung || state.stopped
    }

    /// Whether the thread has to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().expect("nobody panics").stopped
    }

    /// Returns when there is something for the thread since the last call, when it has to end, or
    /// at the deadline. False if the thread has to end.
    pub(crate) fn wait(&self, deadline_ns: Option<u64>) -> bool {
        let mut state = self.state.lock().expect("nobody panics");

        while !state.rung && !state.stopped {
            state = match deadline_ns {
                None => self.changed.wait(state).expect("nobody panics"),
                Some(at) => match at.checked_sub(now_ns()) {
                    None | Some(0) => break,
                    Some(ns) => self.sleep(state, Duration::from_nanos(ns)),
                },
            };
        }
        state.rung = false;
        !state.stopped
    }

    /// Sleeps until it rings, or for so long. There is no time under loom.
    fn sleep<'a>(&'a self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        if cfg!(loom) {
            return self.changed.wait(state).expect("nobody panics");
        }

        let wait = self.changed.wait_timeout(state, time);

        wait.expect("nobody panics").0
    }

    /// The thread has to end.
    pub(crate) fn stop(&self) {
        self.state.lock().expect("nobody panics").stopped = true;
        self.changed.notify_all();
    }
}

/// A [`Wakeup`] in allocated memory.
pub(crate) type BoxedWakeup = Box<Wakeup>;

/// Such a wakeup.
pub(crate) fn wakeup() -> Option<BoxedWakeup> {
    Some(Box::new(Wakeup {
        state: Mutex::new(State::default()),
        changed: Condvar::new(),
    }))
}

/// What a thread does.
pub(crate) trait Run: Send + Sync + 'static {
    /// What it sleeps on.
    fn wakeup(&self) -> &Wakeup;

    /// Does it, until it has to end.
    fn run(&self);
}

/// A thread that runs. Dropping it ends it, and returns when it is gone.
pub(crate) struct Thread<T: Run> {
    body: Arc<T>,
    handle: Option<JoinHandle<()>>,
}

impl<T: Run> Drop for Thread<T> {
    fn drop(&mut self) {
        self.body.wakeup().stop();
        if let Some(handle) = self.handle.take() {
            handle.join().expect("it does not panic");
        }
    }
}

/// Starts a thread for a part of an adapter.
pub(crate) fn thread<T: Run>(adapter: u32, part: &str, body: Arc<T>) -> Option<Thread<T>> {
    let run = body.clone();
    let handle = std::thread::Builder::new()
        .name(format!("{adapter}:{part}"))
        .spawn(move || run.run())
        .ok()?;

    Some(Thread {
        body,
        handle: Some(handle),
    })
}

/// Lets others run.
pub(crate) fn breathe() {
    std::thread::yield_now();
}

/// Whether no other thread wants the processor: the host does not say.
pub(crate) fn is_alone() -> bool {
    true
}
