// SPDX-License-Identifier: GPL-2.0

//! The host's side of signals: what a KMD signals events of a guest with.

use super::{
    mailbox::Mailbox,
    Bell,
    EventName,
    MOST_EVENTS, //
};
use crate::{
    ddi::{
        class::Dispatch,
        cpu_event::{
            CpuEventCallbacks,
            Signals, //
        },
        process::ProcessCallbacks,
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Places,
        Shared,
        ShortLock, //
    }, //
};

/// What a KMD signals an event of a guest with. It is as quick as a local one, and waits for
/// nobody.
pub(super) struct Way {
    pub(super) signals: Signals,
    pub(super) event: EventName,
    /// Whose it is, as the guest calls it.
    pub(super) process: u64,
    pub(super) mailbox: Shared<Mailbox>,
    pub(super) interrupt: Shared<dyn Bell>,
    pub(super) dpc: Shared<dyn Bell>,
}

impl CpuEventCallbacks for Way {
    fn queue_dpc(&self) {
        self.dpc.ring();
    }

    fn signal_event(&self, _: &Dispatch) -> KmdResult {
        self.signals.send(|| {
            if self.mailbox.signal(self.event) {
                self.interrupt.ring();
            }
        })
    }
}

/// The ways to all events of a function, by their places.
pub(super) struct Ways {
    /// LOCK: leaf.
    all: ShortLock<Places<Shared<Way>, MOST_EVENTS>>,
}

impl Ways {
    /// None; `None` if there is no memory. May sleep.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            all: platform::short_lock!(platform::places()?, "border::Ways::all")?,
        })
    }

    /// Whoever signals an event by its id finds this from now on.
    pub(super) fn put(&self, event: EventName, way: Option<Shared<Way>>) {
        let before = {
            let mut all = self.all.lock();
            // CAST: 32 bits fit a usize.
            let place = all.get_mut(event.place as usize);

            place.and_then(|place| core::mem::replace(place, way))
        };

        drop(before);
    }

    /// The way to an event of a process.
    fn find(&self, process: u64, event: EventName) -> Option<Shared<Way>> {
        let all = self.all.lock();
        // CAST: 32 bits fit a usize.
        let way = all.get(event.place as usize)?.as_ref()?;

        (way.process == process && way.event == event).then(|| way.clone())
    }

    /// What a KMD may call about a process of the guest, by the guest's name for it; `None` if
    /// there is no memory. May sleep.
    pub(super) fn of_process(
        this: &Shared<Self>,
        process: u64,
    ) -> Option<Shared<dyn ProcessCallbacks>> {
        let callbacks: Shared<dyn ProcessCallbacks> = platform::shared(GuestProcess {
            process,
            ways: this.clone(),
        })?;

        Some(callbacks)
    }
}

/// A process of the guest, as the KMD has it.
struct GuestProcess {
    process: u64,
    ways: Shared<Ways>,
}

impl ProcessCallbacks for GuestProcess {
    /// All that is known here of the handles of a guest's process are ids that have crossed
    /// (CPU-47): those of its events.
    fn signal_handle(&self, class: &Dispatch, handle: u64) -> KmdResult {
        if handle == 0 {
            return Err(KmdError::InvalidParameter);
        }
        self.ways
            .find(self.process, EventName::of_id(handle))
            .ok_or(KmdError::InvalidHandle)?
            .signal_event(class)
    }
}
