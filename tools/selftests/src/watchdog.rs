// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends the program when a test does not end: a thread blocked in the kernel cannot be stopped
//! otherwise.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::time::scaled;

/// The test that is running and when its time is over.
type Running = Option<(String, Instant)>;

/// The watching thread and what it looks at.
pub(crate) struct Watchdog {
    shared: Arc<(Mutex<Running>, Condvar)>,
}

/// A running test; the watch ends when it is dropped.
pub(crate) struct Guard<'a>(&'a Watchdog);

impl Watchdog {
    pub(crate) fn start() -> Self {
        let shared = Arc::new((Mutex::new(None), Condvar::new()));
        let watched = shared.clone();
        std::thread::spawn(move || watch(&watched));
        Self { shared }
    }

    /// Begins to watch a test.
    pub(crate) fn guard(&self, name: &str, limit: Duration) -> Guard<'_> {
        self.set(Some((name.into(), Instant::now() + scaled(limit))));
        Guard(self)
    }

    fn set(&self, running: Running) {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner) = running;
        self.shared.1.notify_one();
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

fn watch((running, changed): &(Mutex<Running>, Condvar)) {
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let left = match &*running {
            None => Duration::MAX,
            Some((name, end)) => match end.checked_duration_since(Instant::now()) {
                Some(left) => left,
                None => {
                    println!("Bail out! {name}: did not end in time");
                    // SAFETY: takes no locks and cannot be blocked by what other threads do.
                    unsafe { libc::_exit(1) };
                }
            },
        };
        // PANIC: poisoning is ignored everywhere.
        running = changed
            .wait_timeout(running, left.min(Duration::from_secs(3600)))
            .map_or_else(|poison| poison.into_inner().0, |(guard, _)| guard);
    }
}
