// SPDX-License-Identifier: GPL-2.0

//! CPU events: event objects of processes that a KMD signals (cpu-events.md).
//!
//! The OS part keeps the event of the process; the KMD gets what signals it. Between the two is
//! [`Signals`], which says when that is over: whatever the KMD still does after DestroyCpuEvent
//! does not reach the process.

use super::{
    class::Dispatch,
    gate::Gate,
    types::{
        CpuEventCookie,
        CpuEventId,
        KmdError,
        KmdResult, //
    }, //
};
use crate::platform::{
    self,
    Shared,
    Word32, //
};

/// Whether a driver has them (`DXGK_FEATURE_KMD_SIGNAL_CPU_EVENT`).
pub const FEATURE: u32 = 3;

/// What CreateCpuEvent gets (`DXGKARG_CREATECPUEVENT`).
#[derive(Clone, Copy)]
pub struct CreateCpuEventArgs<'a> {
    /// Its name (`hDxgCpuEvent`).
    pub id: CpuEventId,
    /// What signals it. The KMD has it until DestroyCpuEvent.
    pub callbacks: &'a Shared<dyn CpuEventCallbacks>,
}

/// What CreateCpuEvent has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedCpuEvent {
    /// What the KMD calls it.
    pub cookie: CpuEventCookie,
    /// What the KMD calls it towards clients (`hKmdCpuEvent`), who see it in the usage escape and
    /// may hand it to the KMD in private data. Not 0, and no address (CPU-8).
    pub client: u64,
}

/// Calls from a KMD to the OS part about one CPU event.
pub trait CpuEventCallbacks: Send + Sync {
    /// QueueDpc: DpcRoutine is called soon, once for all that was asked meanwhile. It may be called
    /// in any context class and under locks of the KMD: it touches atomics and queues work.
    fn queue_dpc(&self);

    /// SignalEvent with `CpuEventObject`: the process is told once. Fails with InvalidHandle if the
    /// event is destroyed. Called with no lock of the KMD held: whoever waits for the event runs
    /// inside.
    fn signal_event(&self, class: &Dispatch) -> KmdResult;
}

/// The way from the signals of a KMD to the event of a process, until it ends.
pub struct Signals {
    gate: Gate,
    sent: Word32,
    late: Word32,
}

impl Signals {
    /// A way that is open; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self {
            gate: Gate::new()?,
            sent: platform::word32(0),
            late: platform::word32(0),
        })
    }

    /// Delivers one signal by `deliver`, which does not sleep; InvalidHandle if the way has ended.
    pub fn send(&self, deliver: impl FnOnce()) -> KmdResult {
        let Ok(_inside) = self.gate.enter() else {
            platform::fetch_add(&self.late, 1);
            return Err(KmdError::InvalidHandle);
        };

        platform::fetch_add(&self.sent, 1);
        deliver();
        Ok(())
    }

    /// Nothing is delivered any more once this has returned. May sleep.
    pub fn end(&self) {
        drop(self.gate.close());
    }

    /// How many signals were delivered, modulo 2^32.
    pub fn sent(&self) -> u32 {
        platform::load32_acquire(&self.sent)
    }

    /// How many came too late, which a KMD must not do.
    pub fn late(&self) -> u32 {
        platform::load32_acquire(&self.late)
    }
}
