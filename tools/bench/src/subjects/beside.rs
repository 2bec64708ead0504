// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal while another thread of the process signals another fence, on another processor.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::{names, Bench};
use crate::machine;
use crate::measure::{Participant, Plan, Runner, Subject};

/// Name of the group.
pub const GROUP: &str = "signal-2";

/// The numbers of what the other thread does.
const REST: u32 = 0;
const WORK: u32 = 1;
const END: u32 = 2;

/// A thread on the second processor that repeats an operation as long as it is told to.
struct Other {
    state: Arc<AtomicU32>,
    /// What it was seen to do.
    seen: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Other {
    fn new(mut operation: impl FnMut() + Send + 'static) -> Self {
        let (state, seen) = (
            Arc::new(AtomicU32::new(REST)),
            Arc::new(AtomicU32::new(END)),
        );
        let (wanted, shown) = (state.clone(), seen.clone());
        let thread = thread::spawn(move || {
            machine::pin(1);
            loop {
                let state = wanted.load(Ordering::Acquire);
                shown.store(state, Ordering::Release);
                match state {
                    REST => thread::park(),
                    WORK => operation(),
                    _ => return,
                }
            }
        });
        Self {
            state,
            seen,
            thread: Some(thread),
        }
    }

    /// Has it do this, and waits until it does.
    fn tell(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
        while self.seen.load(Ordering::Acquire) != state {
            thread::yield_now();
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.tell(END);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

/// An operation of this thread while another one works.
struct Beside<F> {
    other: Other,
    operation: F,
}

impl<F: FnMut()> Subject for Beside<F> {
    fn begin(&mut self, _operations: usize) {
        self.other.tell(WORK);
    }

    fn run(&mut self) {
        (self.operation)();
    }

    fn end(&mut self) {
        self.other.tell(REST);
    }
}

/// A signal of a fence of its own, for as long as the process lives.
fn signal_one(bench: &Bench) -> impl FnMut() + Send + 'static {
    let fence = bench.device.create_fence(0).expect("create a fence");
    let mut value = 0;
    move || {
        value += 1;
        fence.signal(value).expect("signal a fence");
    }
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    if machine::cpus() < 2 {
        return;
    }
    machine::pin(0);
    let no_op = || {
        let dxg = bench.dxg.clone();
        move || dxg.no_op().expect("no-op")
    };
    let mut all = vec![
        Participant::new(
            names::OPENDXG,
            Beside {
                other: Other::new(signal_one(bench)),
                operation: signal_one(bench),
            },
        ),
        Participant::new(names::ALONE, signal_one(bench)),
        Participant::new(
            names::NO_OP,
            Beside {
                other: Other::new(no_op()),
                operation: no_op(),
            },
        ),
    ];
    if let Some(ntsync) = &bench.ntsync {
        let set = || {
            let event = ntsync.event(true, false).expect("make an event");
            move || event.set().expect("set an event")
        };
        all.push(Participant::new(
            names::NTSYNC,
            Beside {
                other: Other::new(set()),
                operation: set(),
            },
        ));
    }
    let title = "signal while another thread signals another fence of the process";
    runner.group(GROUP, title, plan, all);
    machine::unpin();
}
