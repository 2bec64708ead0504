// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reset of an engine costs those who use another one (GPU-94).
//!
//! The call resets the engine itself, so that another thread does it than the one that is measured.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;

use opendxg::pm4::Pm4;
use opendxg::{Adapter, Context, Device, ExecutionState, MonitoredFence, PagingQueue};

use super::gpu::{Line, Work, NODES};
use super::Bench;
use crate::gpu::{one, Buffer, PAGE};
use crate::measure::{Participant, Plan, Runner, Subject};

/// The group.
pub const GROUP: &str = "resets";

/// Names of participants.
pub mod names_of_resets {
    /// The other engine has nothing to do.
    pub const IDLE: &str = "beside an idle engine";
    /// It has work without an end.
    pub const HANGS: &str = "beside an engine with endless work";
    /// It is reset while it has work without an end.
    pub const RESET: &str = "beside an engine that is reset";
}
use names_of_resets::*;

/// Command buffers of one operation. A reset takes about as long as some of them.
const BURST: u32 = 64;

/// A device whose work has begun and does not end.
struct Victim {
    _context: Context,
    _paging: PagingQueue,
    _memory: [Buffer; 2],
    /// Behind the work, so that it has a value when the device is in error.
    done: MonitoredFence,
    device: Device,
}

impl Victim {
    fn new(adapter: &Adapter) -> Self {
        let device = adapter.create_device().expect("create a device");
        let paging = device.create_paging_queue().expect("create a paging queue");
        let [word, commands] = [(); 2].map(|()| Buffer::new(&paging, PAGE));
        let store = Pm4::new().write64(word.address, 1);
        let length = store.clone().chain(0, 0).bytes().len();
        let packets = store.chain(commands.address, length as u64);
        let mapped = commands.allocation.lock_write();
        mapped
            .expect("map an allocation")
            .write(0, &packets.bytes());
        let context = device.create_context(NODES[1]).expect("create a context");
        context
            .submit(commands.address, length as u32)
            .expect("submit");
        let done = device.create_fence(0).expect("create a fence");
        context.signal(&one(&done, 1)).expect("queue a signal");
        let has_begun = || {
            let mut value = [0; 8];
            let mapped = word.allocation.lock().expect("map an allocation");
            mapped.read(0, &mut value);
            value != [0; 8]
        };
        while !has_begun() {
            thread::yield_now();
        }
        Self {
            _context: context,
            _paging: paging,
            _memory: [word, commands],
            done,
            device,
        }
    }
}

/// A thread that resets the engine of the victims.
struct Resetter {
    asks: Sender<()>,
    done: Receiver<()>,
}

/// Work of one engine while another one has a victim.
struct Beside<'a> {
    line: &'a Line<'a>,
    work: &'a Work<'a>,
    adapter: &'a Adapter,
    is_busy: bool,
    resetter: Option<Resetter>,
    victim: Option<Victim>,
}

impl Subject for Beside<'_> {
    fn before(&mut self) {
        self.victim = self.is_busy.then(|| Victim::new(self.adapter));
    }

    fn run(&mut self) {
        if let Some(resetter) = &self.resetter {
            resetter.asks.send(()).expect("ask for a reset");
        }
        for _ in 0..BURST {
            self.line.run(&self.work.nothing);
        }
    }

    fn after(&mut self) {
        let Some(victim) = self.victim.take() else {
            return;
        };
        if let Some(resetter) = &self.resetter {
            resetter.done.recv().expect("reset an engine");
            victim.done.wait(1).expect("wait for the reset");
            let state = victim.device.execution_state().expect("ask for the state");
            assert_eq!(state, ExecutionState::Hung, "the engine was not reset");
        }
    }

    fn batch(&self) -> u32 {
        BURST
    }
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let work = Work::new(bench);
    let context = work.device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let line = Line::new(&context);
    let adapters = bench.dxg.adapters().expect("enumerate");
    let adapter = &adapters[0];
    let beside = |is_busy, resetter| Beside {
        line: &line,
        work: &work,
        adapter,
        is_busy,
        resetter,
        victim: None,
    };
    let (asks, asked) = channel();
    let (tells, done) = channel();
    thread::scope(|scope| {
        // Until nobody asks any more.
        scope.spawn(move || {
            for () in asked {
                let reset = adapter.reset(Some(NODES[1]));
                reset.expect("reset an engine");
                tells.send(()).expect("tell of a reset");
            }
        });
        let all = vec![
            Participant::new(IDLE, beside(false, None)),
            Participant::new(HANGS, beside(true, None)),
            Participant::new(RESET, beside(true, Some(Resetter { asks, done }))),
        ];
        runner.group(
            GROUP,
            "a command buffer of one engine, until its end is known, beside another engine",
            plan,
            all,
        );
    });
}
