// SPDX-License-Identifier: GPL-2.0

//! Recovery of an adapter: what follows when work takes too long or an engine does not answer
//! (GPU-95, GPU-96). `queue/watch.rs` finds that out.
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

use super::queue::Queue;
use crate::dxgk::{
    adapter::Adapter,
    device::Device,
    recovery::Turn,
    report::{
        Done,
        Kind, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object::EngineRecovery,
        recovery::DebugInfo, //
    },
    sys::{
        time::now_ns,
        trace, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// Why an adapter is to recover.
#[derive(Clone, Copy)]
enum Cause<'a> {
    /// The work of this queue has taken too long.
    Queue(&'a Arc<Queue>),
    /// The engine of this node does not yield.
    Engine(u32),
    /// Somebody wants an engine to be reset, or all of it.
    Requested(Option<u32>),
    /// The paging node cannot do its work.
    Paging,
}

impl Cause<'_> {
    fn kind(&self) -> Kind {
        match self {
            Self::Queue(_) => Kind::QueueHang,
            Self::Engine(_) => Kind::EngineHang,
            Self::Requested(_) => Kind::Requested,
            Self::Paging => Kind::Paging,
        }
    }
}

impl Adapter {
    /// The work of a queue has taken too long. When this returns, it runs no more.
    ///
    /// Context: may sleep, no locks held; not inside the KMD, and no worker but that of recovery.
    pub(in crate::dxgk) fn queue_hangs(self: &Arc<Self>, queue: &Arc<Queue>) {
        self.recover(Cause::Queue(queue));
    }

    /// The engine of a node does not yield. As [`Adapter::queue_hangs`].
    pub(in crate::dxgk) fn engine_hangs(self: &Arc<Self>, node: u32) {
        self.recover(Cause::Engine(node));
    }

    /// Recovers, one at a time.
    fn recover(self: &Arc<Self>, cause: Cause<'_>) {
        let done = {
            let mut turn = self.recovery.turn.lock();
            let kind = cause.kind();
            let done = match cause {
                Cause::Queue(queue) => self.reset_engine(&mut turn, kind, queue.node, Some(queue)),
                Cause::Engine(node) | Cause::Requested(Some(node)) => {
                    self.reset_engine(&mut turn, kind, node, None)
                }
                Cause::Requested(None) | Cause::Paging => self.reset_adapter(&mut turn, kind),
            };

            if let Some(report) = turn.report.take() {
                self.reports.end(report, done);
            }
            done
        };

        // What the resets have noted while nothing could be signalled.
        self.dpc.call();
        if done == Done::Stopped {
            pr_warn!(
                "adapter {}: stopped, because it does not recover\n",
                self.luid.low
            );
            self.owner.remove_adapter(self);
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
            // If no context was named as the reason, it is the one that the engine has stopped in.
            // A device that is in error already stays what it is.
            queue.end_if_lost(guilty.is_none());
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

        self.abandon_batches(true);

        let succeeds = match self.port.begin_reset(&class) {
            Some(resets) => resets.reset(&class).is_ok(),
            // It is removed.
            None => return Done::Nothing,
        };

        self.abandon_batches(!succeeds);

        if !succeeds {
            return Done::Stopped;
        }
        self.owner.lose_devices(self);
        self.recovery.adapter_resets.add(1, Relaxed);
        Done::AdapterReset
    }

    /// The paging node has faulted, or cannot do its work: the content of memory counts as lost,
    /// and all devices are in error (MEM-102).
    ///
    /// Context: the worker of recovery, no locks held.
    pub(in crate::dxgk) fn paging_fails(self: &Arc<Self>) {
        self.recover(Cause::Paging);
    }

    /// Resets an engine, or all of the adapter, because somebody wants it (D3DKMTEscape,
    /// TDRDBGCTRL).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn force_reset(self: &Arc<Self>, node: Option<u32>) {
        self.recover(Cause::Requested(node));
    }
}
