// SPDX-License-Identifier: GPL-2.0

//! What a KMD tells about a process, a queue, a doorbell, a CPU event or a fence, through a
//! verifier.
//!
//! The interrupt rule holds here too: nothing but atomics. Those of a doorbell may sleep.

use super::{
    entry::Entry,
    objects::Work,
    rule::{
        Log,
        Rule, //
    }, //
};
use crate::{
    ddi::{
        class::{
            DeviceInterrupt,
            Dispatch,
            Passive, //
        },
        cpu_event::CpuEventCallbacks,
        doorbell::{
            Disconnect,
            DoorbellCallbacks, //
        },
        native_fence::{
            FenceDoorbell,
            NativeFenceCallbacks, //
        },
        power::EngineState,
        process::ProcessCallbacks,
        queue::{
            Fault,
            NativeFenceSignaled,
            QueueCallbacks, //
        },
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Shared, //
    }, //
};

/// The callbacks of one object, as its KMD gets them.
pub(super) struct Verified<C: ?Sized> {
    /// Those of the OS part.
    inner: Shared<C>,
    work: Shared<Work>,
    log: Shared<dyn Log>,
    /// What the OS part calls the object.
    id: u64,
}

impl<C: ?Sized> Verified<C> {
    fn new(inner: &Shared<C>, work: &Shared<Work>, log: &Shared<dyn Log>, id: u64) -> Self {
        Self {
            inner: inner.clone(),
            work: work.clone(),
            log: log.clone(),
            id,
        }
    }

    /// A callback. What breaks a rule is told all the same: the OS part can stand it.
    fn tell(&self, entry: Entry, is_good: bool) {
        self.log.called(entry, self.id);
        if platform::load32_acquire(&self.work.ended) != 0 {
            self.log.broken(Rule::CallbackAfterEnd, entry, self.id);
        }
        if !is_good {
            self.log.broken(Rule::BadCallback, entry, self.id);
        }
    }
}

impl<C: ?Sized> Drop for Verified<C> {
    fn drop(&mut self) {
        platform::cmpxchg(&self.work.released, 0, 1);
    }
}

/// The callbacks of a queue.
pub(super) type VerifiedQueue = Verified<dyn QueueCallbacks>;

impl VerifiedQueue {
    /// The callbacks for a KMD; `None` if there is no memory.
    pub(super) fn around(
        inner: &Shared<dyn QueueCallbacks>,
        work: &Shared<Work>,
        log: &Shared<dyn Log>,
        id: u64,
    ) -> Option<Shared<dyn QueueCallbacks>> {
        let verified: Shared<dyn QueueCallbacks> =
            platform::shared(Self::new(inner, work, log, id))?;

        Some(verified)
    }

    /// Whether it was given so much.
    fn has_submitted(&self, number: u64) -> bool {
        number != 0 && number <= platform::load_acquire(&self.work.submitted)
    }
}

impl QueueCallbacks for VerifiedQueue {
    fn ran(&self, ns: u64, switched: bool) {
        self.inner.ran(ns, switched);
    }

    fn polled(&self, ns: u64) {
        self.inner.polled(ns);
    }

    fn waits(&self, since_ns: u64) {
        self.inner.waits(since_ns);
    }

    fn waited(&self, ns: u64) {
        self.inner.waited(ns);
    }

    fn fetched(&self, number: u64) {
        self.tell(Entry::Fetched, self.has_submitted(number));
        self.inner.fetched(number);
    }

    fn completed(&self, class: &DeviceInterrupt, number: u64) {
        let goes_back = number < platform::load_acquire(&self.work.completed);

        self.tell(Entry::Completed, self.has_submitted(number) && !goes_back);
        if !goes_back {
            // Before the OS part can submit more.
            platform::store_release(&self.work.completed, number);
        }
        self.inner.completed(class, number);
    }

    fn monitored_fence_signaled(&self, class: &DeviceInterrupt) {
        self.tell(Entry::Signaled, true);
        self.inner.monitored_fence_signaled(class);
    }

    fn native_fence_signaled(&self, class: &DeviceInterrupt, record: NativeFenceSignaled) {
        self.tell(Entry::NativeFencesSignaled, true);
        self.inner.native_fence_signaled(class, record);
    }

    fn faulted(&self, class: &DeviceInterrupt, fault: &Fault) {
        let is_first = platform::cmpxchg(&self.work.faulted, 0, 1);

        let is_of_ring = fault.number == 0 && self.work.is_filled_by_process;

        self.tell(
            Entry::Faulted,
            is_first && (is_of_ring || self.has_submitted(fault.number)),
        );
        self.inner.faulted(class, fault);
    }

    fn engine_state_changed(&self, class: &DeviceInterrupt, state: EngineState) {
        self.tell(Entry::EngineStateChanged, true);
        self.inner.engine_state_changed(class, state);
    }

    fn invalidated(&self) {
        self.tell(Entry::Invalidated, true);
        self.inner.invalidated();
    }

    fn suspended(&self, class: &DeviceInterrupt, id: u64) {
        let before = platform::fetch_add(&self.work.answers, 1);
        let asked = platform::load32_acquire(&self.work.suspensions);

        // OVERFLOW: both count modulo 2^32, and the first is not ahead.
        self.tell(Entry::Suspended, asked.wrapping_sub(before) as i32 > 0);
        self.inner.suspended(class, id);
    }
}

/// The callbacks of a doorbell.
pub(super) type VerifiedDoorbell = Verified<dyn DoorbellCallbacks>;

impl VerifiedDoorbell {
    /// The callbacks for a KMD; `None` if there is no memory.
    pub(super) fn around(
        inner: &Shared<dyn DoorbellCallbacks>,
        work: &Shared<Work>,
        log: &Shared<dyn Log>,
        id: u64,
    ) -> Option<Shared<dyn DoorbellCallbacks>> {
        let verified: Shared<dyn DoorbellCallbacks> =
            platform::shared(Self::new(inner, work, log, id))?;

        Some(verified)
    }

    /// A callback; it may sleep.
    fn tell_passive(&self, entry: Entry) {
        self.tell(entry, platform::may_sleep() != Some(false));
    }
}

impl DoorbellCallbacks for VerifiedDoorbell {
    fn disconnect(&self, class: &Passive, why: Disconnect) {
        self.tell_passive(Entry::DoorbellDisconnected);
        self.inner.disconnect(class, why);
    }

    fn trap(&self, class: &Passive) {
        self.tell_passive(Entry::DoorbellTrapped);
        self.inner.trap(class);
    }
}

/// The callbacks of a CPU event.
pub(super) type VerifiedCpuEvent = Verified<dyn CpuEventCallbacks>;

impl VerifiedCpuEvent {
    /// The callbacks for a KMD; `None` if there is no memory.
    pub(super) fn around(
        inner: &Shared<dyn CpuEventCallbacks>,
        work: &Shared<Work>,
        log: &Shared<dyn Log>,
        id: u64,
    ) -> Option<Shared<dyn CpuEventCallbacks>> {
        let verified: Shared<dyn CpuEventCallbacks> =
            platform::shared(Self::new(inner, work, log, id))?;

        Some(verified)
    }
}

impl CpuEventCallbacks for VerifiedCpuEvent {
    fn queue_dpc(&self) {
        self.tell(Entry::QueueDpc, true);
        self.inner.queue_dpc();
    }

    fn signal_event(&self, class: &Dispatch) -> KmdResult {
        self.tell(Entry::SignalEvent, true);
        self.inner.signal_event(class)
    }
}

/// The callbacks of a process.
pub(super) type VerifiedProcess = Verified<dyn ProcessCallbacks>;

impl VerifiedProcess {
    /// The callbacks for a KMD; `None` if there is no memory.
    pub(super) fn around(
        inner: &Shared<dyn ProcessCallbacks>,
        work: &Shared<Work>,
        log: &Shared<dyn Log>,
        id: u64,
    ) -> Option<Shared<dyn ProcessCallbacks>> {
        let verified: Shared<dyn ProcessCallbacks> =
            platform::shared(Self::new(inner, work, log, id))?;

        Some(verified)
    }
}

impl ProcessCallbacks for VerifiedProcess {
    fn signal_handle(&self, class: &Dispatch, handle: u64) -> KmdResult {
        let signalled = self.inner.signal_handle(class, handle);
        let is_good = signalled != Err(KmdError::InvalidParameter);

        self.tell(Entry::SignalEvent, is_good);
        signalled
    }
}

/// The callbacks of a native fence.
pub(super) type VerifiedNativeFence = Verified<dyn NativeFenceCallbacks>;

impl VerifiedNativeFence {
    /// The callbacks for a KMD; `None` if there is no memory.
    pub(super) fn around(
        inner: &Shared<dyn NativeFenceCallbacks>,
        work: &Shared<Work>,
        log: &Shared<dyn Log>,
        id: u64,
    ) -> Option<Shared<dyn NativeFenceCallbacks>> {
        let verified: Shared<dyn NativeFenceCallbacks> =
            platform::shared(Self::new(inner, work, log, id))?;

        Some(verified)
    }
}

impl NativeFenceCallbacks for VerifiedNativeFence {
    fn signaled(&self, class: &DeviceInterrupt) {
        self.tell(Entry::NativeFenceSignaled, true);
        self.inner.signaled(class);
    }

    fn destroyed(&self) {
        // The OS part calls its own.
        self.tell(Entry::NativeFenceSignaled, false);
    }
}

/// The doorbell of a fence of another adapter.
pub(super) type VerifiedFenceDoorbell = Verified<dyn FenceDoorbell>;

impl VerifiedFenceDoorbell {
    /// The doorbell for a KMD; `None` if there is no memory.
    pub(super) fn around(
        inner: &Shared<dyn FenceDoorbell>,
        work: &Shared<Work>,
        log: &Shared<dyn Log>,
        id: u64,
    ) -> Option<Shared<dyn FenceDoorbell>> {
        let verified: Shared<dyn FenceDoorbell> =
            platform::shared(Self::new(inner, work, log, id))?;

        Some(verified)
    }
}

impl FenceDoorbell for VerifiedFenceDoorbell {
    fn ring(&self) {
        self.tell(Entry::FenceDoorbellRung, true);
        self.inner.ring();
    }
}
