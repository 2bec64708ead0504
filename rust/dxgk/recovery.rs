// SPDX-License-Identifier: GPL-2.0

//! What an adapter needs to recover from work that hangs: the TDR time, a worker, and how often it
//! has recovered. `sched/queue/watch.rs` finds hangs, `sched/recover.rs` has what follows.

use crate::{
    logic::tdr::{
        look_after_ms,
        RecentResets,
        DEFAULT_DELAY_MS,
        MAX_DELAY_MS,
        MIN_DELAY_MS, //
    },
    sys::{
        params,
        work::OrderedWorker, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    }, //
};

/// How often an adapter has recovered, for people who watch it.
pub(in crate::dxgk) struct Counts {
    /// Resets of engines that have succeeded.
    pub(in crate::dxgk) engine_resets: u64,
    /// Resets of the adapter that have succeeded.
    pub(in crate::dxgk) adapter_resets: u64,
}

/// What one recovery at a time has.
pub(in crate::dxgk) struct Turn {
    /// The last resets of the whole adapter.
    pub(in crate::dxgk) resets: RecentResets,
    /// The report of the recovery that is in progress, once there is one.
    pub(in crate::dxgk) report: Option<u64>,
}

/// What an adapter needs to recover.
#[pin_data]
pub(crate) struct Recovery {
    /// Looks at queues, and recovers. It waits for nobody who could wait for an engine.
    pub(in crate::dxgk) worker: OrderedWorker,
    /// The TDR time, in milliseconds.
    delay_ms: Atomic<u32>,
    /// The last PreemptCommand.
    last_preempt: Atomic<u64>,
    /// How many resets have succeeded. Written with `turn` held.
    pub(in crate::dxgk) engine_resets: Atomic<u64>,
    pub(in crate::dxgk) adapter_resets: Atomic<u64>,
    /// LOCK: held for one recovery, and outside of all locks of a KMD. Nobody who is inside a KMD
    /// takes it.
    #[pin]
    pub(in crate::dxgk) turn: Mutex<Turn>,
}

impl Recovery {
    /// That of a new adapter.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new() -> Result<impl PinInit<Self>, AllocError> {
        let worker = OrderedWorker::start(c"dxg-tdr")?;

        Ok(pin_init!(Self {
            worker,
            delay_ms: Atomic::new(params::tdr_delay_ms()),
            last_preempt: Atomic::new(0),
            engine_resets: Atomic::new(0),
            adapter_resets: Atomic::new(0),
            turn <- new_mutex!(
                Turn {
                    resets: RecentResets::new(),
                    report: None,
                },
                "Recovery::turn"
            ),
        }))
    }

    /// The TDR time, in milliseconds.
    pub(crate) fn delay_ms(&self) -> u32 {
        self.delay_ms.load(Relaxed)
    }

    /// Sets the TDR time; EINVAL if it makes no sense. Work that runs now is measured by it from
    /// the next look on.
    pub(crate) fn set_delay_ms(&self, ms: u32) -> Result {
        if !is_delay(ms) {
            return Err(EINVAL);
        }
        self.delay_ms.store(ms, Relaxed);
        Ok(())
    }

    /// The same in nanoseconds.
    pub(in crate::dxgk) fn limit_ns(&self) -> u64 {
        u64::from(self.delay_ms()).saturating_mul(1_000_000)
    }

    /// How long it is between two looks.
    pub(in crate::dxgk) fn look_after_ms(&self) -> u32 {
        look_after_ms(self.delay_ms())
    }

    /// The number of the next PreemptCommand.
    pub(in crate::dxgk) fn next_preempt(&self) -> u64 {
        // OVERFLOW: 2^64 requests take longer than any machine runs.
        self.last_preempt.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Returns when no recovery is in progress that was when this was called, so that what is made
    /// is not hit by it.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn wait(&self) {
        drop(self.turn.lock());
    }

    /// How often the adapter has recovered. Waits for no recovery.
    pub(in crate::dxgk) fn counts(&self) -> Counts {
        Counts {
            engine_resets: self.engine_resets.load(Relaxed),
            adapter_resets: self.adapter_resets.load(Relaxed),
        }
    }
}

/// Whether a TDR time makes sense.
pub(crate) fn is_delay(ms: u32) -> bool {
    (MIN_DELAY_MS..=MAX_DELAY_MS).contains(&ms)
}

const _: () = assert!(DEFAULT_DELAY_MS >= MIN_DELAY_MS && DEFAULT_DELAY_MS <= MAX_DELAY_MS);
