// SPDX-License-Identifier: GPL-2.0

//! CPU events: who is told of what, and what is kept of it to be read (cpu-events.md section 8).
//!
//! What happens is noted where it is found, with `core` of the engine held, in the events of the
//! device that it happened to. DpcRoutine then signals these events, with nothing held.
//!
//! LOCK: `events`, then `devices`, then the state of an event or `noted`.

use super::{
    cause::{
        Cause,
        Log,
        Usage, //
    },
    listed::{
        List,
        Listed, //
    },
    save_area::SaveArea, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        cpu_event::{
            CpuEventCallbacks,
            CreateCpuEventArgs,
            CreatedCpuEvent, //
        },
        slab::{
            self,
            SharedSlab,
            Slab, //
        },
        types::{
            CpuEventCookie,
            DeviceCookie,
            KmdError,
            KmdResult,
            ProcessCookie, //
        }, //
    },
    platform::{
        self,
        Shared,
        ShortLock,
        Word64, //
    }, //
};

/// Most events of a device: what happens to it is noted in all of them under a spinlock.
const MOST_EVENTS: u32 = 1024;

/// Signals that one DpcRoutine gives, and those of them that one event gets at a time. How many are
/// due is for users to decide, so others get their turn in between.
const SIGNALS: u32 = 256;
const SIGNALS_OF_EVENT: u32 = 64;

/// A device: whose it is, its events, and what its contexts are saved to.
struct Device {
    process: ProcessCookie,
    save_area: Option<Shared<SaveArea>>,
    first: Option<u32>,
    count: u32,
}

/// The place of an event among those of its device.
struct Entry {
    event: Shared<Event>,
    /// What clients call it.
    client: u64,
    device: u32,
    before: Option<u32>,
    after: Option<u32>,
}

/// A CPU event.
struct Event {
    state: ShortLock<State>,
}

/// What it is for, and what it has to tell.
struct State {
    /// What signals it, until it is destroyed.
    callbacks: Option<Shared<dyn CpuEventCallbacks>>,
    usage: Usage,
    log: Log,
    /// How many signals are due.
    due: u32,
    /// It is noted.
    listed: bool,
    /// What is behind it on the list.
    next: Option<Shared<Event>>,
    /// DpcRoutine signals it now.
    signals: bool,
}

/// What DpcRoutine is to do with one.
struct Due {
    callbacks: Option<Shared<dyn CpuEventCallbacks>>,
    count: u32,
}

impl Listed for Event {
    type Told = Due;

    fn follow_by(&self, next: &Shared<Self>) {
        self.state.lock().next = Some(next.clone());
    }

    fn unlist(&self) -> (Option<Shared<Self>>, Due) {
        let mut state = self.state.lock();
        let due = Due {
            callbacks: state.callbacks.clone(),
            count: state.due.min(SIGNALS_OF_EVENT),
        };

        // OVERFLOW: not more than are due.
        state.due = state.due.wrapping_sub(due.count);
        state.listed = false;
        state.signals = due.callbacks.is_some();
        (state.next.take(), due)
    }
}

impl Event {
    fn new(callbacks: &Shared<dyn CpuEventCallbacks>) -> Option<Shared<Self>> {
        let state = State {
            callbacks: Some(callbacks.clone()),
            usage: Usage::default(),
            log: Log::new(),
            due: 0,
            listed: false,
            next: None,
            signals: false,
        };

        platform::shared(Self {
            state: platform::short_lock!(state, "soft::Event::state")?,
        })
    }

    /// Notes something if it is for this event. True if it has to be put on the list.
    fn note(&self, cause: &Cause, context: u64, now_ns: u64) -> bool {
        let mut state = self.state.lock();

        if state.callbacks.is_none() || !state.usage.wants(cause, context) {
            return false;
        }

        let cookie = state.usage.cookie();

        state.log.add(cause, now_ns, cookie);
        // OVERFLOW: signals that nobody could tell apart are as good as one.
        state.due = state.due.saturating_add(1);
        !core::mem::replace(&mut state.listed, true)
    }

    /// DpcRoutine has done with it for now. True if more is due, so that it has to be put on the
    /// list.
    fn signalled(&self) -> bool {
        let mut state = self.state.lock();

        state.signals = false;
        state.due != 0 && state.callbacks.is_some() && !core::mem::replace(&mut state.listed, true)
    }

    /// Nothing signals it any more. May sleep: DpcRoutine may be at it.
    fn end(&self) {
        loop {
            let callbacks = {
                let mut state = self.state.lock();

                match state.signals {
                    true => None,
                    false => Some(state.callbacks.take()),
                }
            };

            match callbacks {
                Some(callbacks) => return drop(callbacks),
                None => platform::nap(),
            }
        }
    }
}

/// The events of the device of one context, for whoever finds out what happens to it.
#[derive(Clone)]
pub(super) struct ContextEvents {
    pub(super) device: DeviceCookie,
    /// What the OS part calls the context; not 0.
    pub(super) context: u64,
    pub(super) all: Shared<CpuEvents>,
}

impl ContextEvents {
    /// Notes what has happened to the context.
    ///
    /// Context: does not sleep.
    pub(super) fn note(&self, cause: &Cause) {
        self.all.note(self.device, self.context, cause);
    }
}

/// The devices and the CPU events of an adapter.
pub(super) struct CpuEvents {
    events: SharedSlab<Entry>,
    devices: SharedSlab<Device>,
    /// Those that DpcRoutine has to signal.
    noted: ShortLock<List<Event>>,
    generation: ShortLock<u32>,
    /// When everybody was told of a lack of memory.
    pressure_ns: Word64,
}

/// Not more often than this is everybody told of a lack of memory, which users can bring about.
const PRESSURE_NS: u64 = 100_000_000;

/// The number that a cookie is, or the place of what a client names.
fn number(cookie: u64) -> u32 {
    u32::try_from(cookie).unwrap_or(u32::MAX)
}

impl CpuEvents {
    /// None; `None` if there is no memory. May sleep.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            events: platform::short_lock!(Slab::new()?, "soft::CpuEvents::events")?,
            devices: platform::short_lock!(Slab::new()?, "soft::CpuEvents::devices")?,
            noted: platform::short_lock!(List::new(), "soft::CpuEvents::noted")?,
            generation: platform::short_lock!(0, "soft::CpuEvents::generation")?,
            pressure_ns: platform::word64(0),
        })
    }

    /// CreateDevice: without events.
    pub(super) fn create_device(
        &self,
        process: ProcessCookie,
        save_area: Option<Shared<SaveArea>>,
    ) -> KmdResult<DeviceCookie> {
        let device = Device {
            process,
            save_area,
            first: None,
            count: 0,
        };
        let number = slab::insert(&self.devices, device).ok_or(KmdError::NoMemory)?;

        Ok(DeviceCookie(number.into()))
    }

    /// DestroyDevice, whose events are gone. Returns what its contexts were saved to.
    pub(super) fn destroy_device(&self, device: DeviceCookie) -> Option<Shared<SaveArea>> {
        let removed = self.devices.lock().remove(number(device.0));

        removed?.object.save_area
    }

    /// What all contexts of a device are saved to.
    pub(super) fn save_area_of(&self, device: DeviceCookie) -> Option<Shared<SaveArea>> {
        let devices = self.devices.lock();

        devices.get(number(device.0))?.save_area.clone()
    }

    /// The process of a device.
    pub(super) fn process_of(&self, device: DeviceCookie) -> KmdResult<ProcessCookie> {
        let devices = self.devices.lock();
        let device = devices.get(number(device.0));

        device
            .map(|device| device.process)
            .ok_or(KmdError::InvalidParameter)
    }

    /// CreateCpuEvent.
    pub(super) fn create(
        &self,
        device: DeviceCookie,
        args: &CreateCpuEventArgs<'_>,
    ) -> KmdResult<CreatedCpuEvent> {
        let device = number(device.0);
        let event = Event::new(args.callbacks).ok_or(KmdError::NoMemory)?;
        let entry = Entry {
            event,
            client: 0,
            device,
            before: None,
            after: None,
        };
        let new = slab::insert(&self.events, entry).ok_or(KmdError::NoMemory)?;
        let client = (u64::from(self.next_generation()) << 32) | u64::from(new);

        if !self.link(device, new, client) {
            let removed = self.events.lock().remove(new);

            drop(removed);
            return Err(KmdError::NoMemory);
        }
        Ok(CreatedCpuEvent {
            cookie: CpuEventCookie(new.into()),
            client,
        })
    }

    /// Puts a new event in front of those of its device; false if that has as many as may be.
    fn link(&self, device: u32, new: u32, client: u64) -> bool {
        let mut events = self.events.lock();
        let mut devices = self.devices.lock();
        let Some(device) = devices
            .get_mut(device)
            .filter(|device| device.count < MOST_EVENTS)
        else {
            return false;
        };
        let first = device.first.replace(new);

        // OVERFLOW: below the limit.
        device.count = device.count.wrapping_add(1);
        if let Some(entry) = events.get_mut(new) {
            entry.client = client;
            entry.after = first;
        }
        if let Some(entry) = first.and_then(|first| events.get_mut(first)) {
            entry.before = Some(new);
        }
        true
    }

    /// What clients call an event has this above its number, so that it is used once.
    fn next_generation(&self) -> u32 {
        let mut generation = self.generation.lock();

        // OVERFLOW: it only has to differ from that of others, and 0 is left out.
        *generation = generation.wrapping_add(1).max(1);
        *generation
    }

    /// DestroyCpuEvent. May sleep.
    pub(super) fn destroy(&self, cookie: CpuEventCookie) {
        let removed = {
            let mut events = self.events.lock();
            let removed = events.remove(number(cookie.0));

            if let Some(removed) = &removed {
                let Entry {
                    device,
                    before,
                    after,
                    ..
                } = removed.object;

                if let Some(device) = self.devices.lock().get_mut(device) {
                    // OVERFLOW: this one was counted.
                    device.count = device.count.wrapping_sub(1);
                    if before.is_none() {
                        device.first = after;
                    }
                }
                if let Some(entry) = before.and_then(|before| events.get_mut(before)) {
                    entry.after = after;
                }
                if let Some(entry) = after.and_then(|after| events.get_mut(after)) {
                    entry.before = before;
                }
            }
            removed
        };

        if let Some(removed) = removed {
            removed.object.event.end();
        }
    }

    /// Notes what has happened to a context of a device, or to all of it if that is 0.
    ///
    /// Context: does not sleep.
    pub(super) fn note(&self, device: DeviceCookie, context: u64, cause: &Cause) {
        let events = self.events.lock();
        let mut next = {
            let devices = self.devices.lock();

            devices
                .get(number(device.0))
                .and_then(|device| device.first)
        };
        let now_ns = platform::now_ns();

        while let Some(entry) = next.and_then(|number| events.get(number)) {
            next = entry.after;
            self.tell(&entry.event, context, cause, now_ns);
        }
    }

    fn tell(&self, event: &Shared<Event>, context: u64, cause: &Cause, now_ns: u64) {
        if !event.note(cause, context, now_ns) {
            return;
        }
        self.noted.lock().push(event);

        let callbacks = event.state.lock().callbacks.clone();

        // Whoever is on the list will be looked at.
        if let Some(callbacks) = callbacks {
            callbacks.queue_dpc();
        }
    }

    /// Notes what has happened to the whole adapter, in the events of all devices. Users decide how
    /// many those are, so the lock is held for one at a time.
    ///
    /// Context: may sleep.
    pub(super) fn note_everywhere(&self, cause: &Cause) {
        let now_ns = platform::now_ns();
        let mut next = 0;

        loop {
            let found = {
                let events = self.events.lock();

                events
                    .next(next)
                    .map(|(number, entry)| (number, entry.event.clone()))
            };
            let Some((number, event)) = found else {
                return;
            };

            self.tell(&event, 0, cause, now_ns);
            // OVERFLOW: numbers never reach the last one.
            next = number.saturating_add(1);
            platform::breathe();
        }
    }

    /// There is no room for what somebody wants in memory.
    ///
    /// Context: may sleep.
    pub(super) fn memory_pressure(&self) {
        let before = platform::load_acquire(&self.pressure_ns);
        let now_ns = platform::now_ns();

        if before == 0 || now_ns.saturating_sub(before) >= PRESSURE_NS {
            // Two at the same time may both tell it.
            platform::store_release(&self.pressure_ns, now_ns);
            self.note_everywhere(&Cause::MEMORY_PRESSURE);
        }
    }

    /// StopDevice: tells everybody, as the last thing that they hear. No DpcRoutine comes any more.
    ///
    /// Context: may sleep.
    pub(super) fn stop(&self, class: &Passive) {
        self.note_everywhere(&Cause::REMOVED);
        while self.dpc(&Dispatch::within(class)) {
            platform::breathe();
        }
    }

    /// DpcRoutine: gives some of the signals that are due. True if there may be more: it has asked
    /// to be called again.
    pub(super) fn dpc(&self, class: &Dispatch) -> bool {
        let mut left = SIGNALS;

        while left != 0 {
            let popped = self.noted.lock().pop();
            let Some((event, due)) = popped else {
                return false;
            };
            let Some(callbacks) = due.callbacks else {
                continue;
            };

            for _ in 0..due.count {
                // It is not destroyed before `signals` is false again.
                let _delivered = callbacks.signal_event(class);
            }
            left = left.saturating_sub(due.count.max(1));
            if left == 0 {
                callbacks.queue_dpc();
            }
            drop(callbacks);
            if event.signalled() {
                self.noted.lock().push(&event);
            }
        }
        true
    }

    /// The usage escape, about what a client calls `client`.
    pub(super) fn set_usage(&self, device: DeviceCookie, client: u64, usage: Usage) -> KmdResult {
        self.with(device, client, |state| state.usage = usage)
    }

    /// Takes what was kept for an event out of it.
    pub(super) fn take_log(&self, device: DeviceCookie, client: u64) -> KmdResult<Log> {
        self.with(device, client, |state| state.log.take())
    }

    fn with<T>(
        &self,
        device: DeviceCookie,
        client: u64,
        act: impl FnOnce(&mut State) -> T,
    ) -> KmdResult<T> {
        let events = self.events.lock();
        // CAST: the lower half.
        let entry = events.get(client as u32);
        let event = entry
            .filter(|entry| entry.client == client && entry.device == number(device.0))
            .ok_or(KmdError::InvalidParameter)?;
        let mut state = event.event.state.lock();

        Ok(act(&mut state))
    }
}
