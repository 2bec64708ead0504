// SPDX-License-Identifier: GPL-2.0

//! Recovery of an adapter: what follows when work takes too long or an engine does not answer
//! (GPU-95, GPU-96). `sched/queue/watch.rs` finds that out.
//!
//! ```text
//! a queue or an engine hangs
//!   | CollectDbgInfo, ResetHwEngine: the KMD names the contexts that are hit
//!   |   their devices are in error; ResumeHwEngine: all others go on
//!   v if that fails
//! ResetFromTimeout, RestartFromTimeout: all devices of the adapter are in error
//!   v if that fails, or it is the sixth time in a minute
//! the adapter is stopped, as if it were removed
//! ```
//!
//! A device in error ends as with any other error: its queues discard what they have, its doorbells
//! say ABORT, its fences are signaled for good. The module's worker does that, because users decide
//! how much it is: the engine does not wait for it, and runs nothing of the device any more.
//!
//! Each recovery leaves a report (`report/mod.rs`), which is written before anything is in error.
//!
//! LOCK: `turn` is held for one recovery, and outside of all locks of a KMD. Nobody who is inside a
//! KMD takes it.

use super::{
    adapter::Adapter,
    device::Device,
    report::{
        Done,
        Kind, //
    },
    sched::queue::Queue, //
};
use crate::{
    ddi::{
        class::Passive,
        object::EngineRecovery,
        recovery::DebugInfo, //
    },
    logic::tdr::{
        look_after_ms,
        RecentResets,
        DEFAULT_DELAY_MS,
        MAX_DELAY_MS,
        MIN_DELAY_MS, //
    },
    sys::{
        params,
        time::now_ns,
        trace,
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
        Arc,
        Mutex, //
    }, //
};

/// Why an adapter is to recover.
#[derive(Clone, Copy)]
pub(in crate::dxgk) enum Cause<'a> {
    /// The work of this queue has taken too long.
    Queue(&'a Arc<Queue>),
    /// The engine of this node does not yield.
    Engine(u32),
    /// Somebody wants an engine to be reset, or all of it.
    Requested(Option<u32>),
}

impl Cause<'_> {
    fn kind(&self) -> Kind {
        match self {
            Self::Queue(_) => Kind::QueueHang,
            Self::Engine(_) => Kind::EngineHang,
            Self::Requested(_) => Kind::Requested,
        }
    }
}

/// How often an adapter has recovered, for people who watch it.
pub(in crate::dxgk) struct Counts {
    /// Resets of engines that have succeeded.
    pub(in crate::dxgk) engine_resets: u64,
    /// Resets of the adapter that have succeeded.
    pub(in crate::dxgk) adapter_resets: u64,
}

struct Turn {
    resets: RecentResets,
    /// The report of the recovery that is in progress, once there is one.
    report: Option<u64>,
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
    engine_resets: Atomic<u64>,
    adapter_resets: Atomic<u64>,
    #[pin]
    turn: Mutex<Turn>,
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

impl Adapter {
    /// Recovers, one at a time. When this returns, what has hung runs no more.
    ///
    /// Context: may sleep, no locks held; not inside the KMD, and no worker but that of recovery.
    pub(in crate::dxgk) fn recover(self: &Arc<Self>, cause: Cause<'_>) {
        let done = {
            let mut turn = self.recovery.turn.lock();
            let kind = cause.kind();
            let done = match cause {
                Cause::Queue(queue) => self.reset_engine(&mut turn, kind, queue.node, Some(queue)),
                Cause::Engine(node) | Cause::Requested(Some(node)) => {
                    self.reset_engine(&mut turn, kind, node, None)
                }
                Cause::Requested(None) => self.reset_adapter(&mut turn, kind),
            };

            if let Some(report) = turn.report.take() {
                self.reports.end(report, done);
            }
            done
        };

        if done == Done::Stopped {
            pr_warn!(
                "adapter {}: stopped, because it does not recover\n",
                self.luid.low
            );
            self.running.remove_adapter(self);
        }
    }

    /// Resets an engine (GPU-95), or all of the adapter if that fails.
    fn reset_engine(
        self: &Arc<Self>,
        turn: &mut Turn,
        kind: Kind,
        node: u32,
        hung: Option<&Arc<Queue>>,
    ) -> Done {
        let class = Passive::here();
        let own = hung.map(|queue| queue.kmd_now());
        // If the queue has ended, there is nothing to recover from.
        let own = match &own {
            Some(None) => return Done::Nothing,
            Some(Some(own)) => Some(own.owner()),
            None => None,
        };
        // Nothing runs on an adapter that is removed.
        let Ok(engine) = EngineRecovery::begin(&self.port, node, own) else {
            return Done::Nothing;
        };
        let mut info = DebugInfo::default();

        engine.collect_dbg_info(&class, &mut info);
        trace::reset(self.id, node, info.queue.unwrap_or(0));
        turn.report = Some(self.report_recovery(kind, Some(node), hung.map(|own| &**own), &info));
        if engine.reset(&class).is_err() {
            drop(engine);
            return self.reset_adapter(turn, kind);
        }
        self.lose_invalidated(hung.map(|queue| &queue.device));
        engine.resume(&class);
        self.recovery.engine_resets.add(1, Relaxed);
        Done::EngineReset
    }

    /// Steps (3) and (4) for the devices of the contexts that a reset of an engine has hit. Those
    /// are the reason of it, or only one of them is.
    fn lose_invalidated(&self, guilty: Option<&Arc<Device>>) {
        if let Some(device) = guilty {
            device.hung();
        }
        for queue in self.queues.iter() {
            if let Some(device) = queue.invalidated() {
                match guilty {
                    // The KMD names the context that the engine has stopped in.
                    None => device.hung(),
                    // One that is in error already stays what it is.
                    Some(_) => device.was_reset(),
                }
            }
        }
    }

    /// Resets all of the adapter (GPU-96).
    fn reset_adapter(self: &Arc<Self>, turn: &mut Turn, kind: Kind) -> Done {
        let class = Passive::here();

        trace::reset(self.id, u32::MAX, 0);
        if turn.report.is_none() {
            let nothing = DebugInfo::default();

            turn.report = Some(self.report_recovery(kind, None, None, &nothing));
        }
        if !turn.resets.add(now_ns()) {
            return Done::Stopped;
        }

        let succeeds = match self.port.begin_reset(&class) {
            Some(resets) => resets.reset(&class).is_ok(),
            // It is removed.
            None => return Done::Nothing,
        };

        if !succeeds {
            return Done::Stopped;
        }
        self.running.lose_devices(self);
        self.recovery.adapter_resets.add(1, Relaxed);
        Done::AdapterReset
    }

    /// Resets an engine, or all of the adapter, because somebody wants it (D3DKMTEscape,
    /// TDRDBGCTRL).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn force_reset(self: &Arc<Self>, node: Option<u32>) {
        self.recover(Cause::Requested(node));
    }

    /// Returns when no recovery is in progress that was when this was called, so that what is made
    /// is not hit by it.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn wait_for_recovery(&self) {
        drop(self.recovery.turn.lock());
    }
}
