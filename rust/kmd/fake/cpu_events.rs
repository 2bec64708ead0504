// SPDX-License-Identifier: GPL-2.0

//! The CPU events of a double, so that a test can do what a GPU does with them: signal one.
//!
//! A test shares this with the double by [`Behaviour::cpu_events`](super::Behaviour::cpu_events),
//! and names an event by its turn.

use crate::{
    ddi::{
        class::Dispatch,
        cpu_event::CpuEventCallbacks,
        process::{
            CreateProcessArgs,
            ProcessCallbacks, //
        },
        types::KmdResult, //
    },
    platform::{
        self,
        Boxed,
        Shared,
        ShortLock,
        Word32, //
    }, //
};

/// How many events there can be in one test, and how many processes.
const EVENTS: usize = 8;
const PROCESSES: usize = 8;

/// What the double keeps of an event.
struct Event {
    cookie: u64,
    callbacks: Shared<dyn CpuEventCallbacks>,
}

/// What the double keeps of a process.
struct Process {
    cookie: u64,
    is_of_virtual_machine: bool,
    callbacks: Shared<dyn ProcessCallbacks>,
}

/// The CPU events of one double.
pub struct CpuEvents {
    processes: ShortLock<Boxed<[Option<Process>; PROCESSES]>>,
    events: ShortLock<Boxed<[Option<Event>; EVENTS]>>,
    /// How many signals DpcRoutine gives to each event.
    due: Word32,
    /// What it was told of them: how many times each of the two.
    delivered: Word32,
    refused: Word32,
}

impl CpuEvents {
    /// None; `None` if there is no memory.
    pub fn new() -> Option<Self> {
        Some(Self {
            processes: platform::short_lock!(
                platform::none_array()?,
                "fake::CpuEvents::processes"
            )?,
            events: platform::short_lock!(platform::none_array()?, "fake::CpuEvents::events")?,
            due: platform::word32(0),
            delivered: platform::word32(0),
            refused: platform::word32(0),
        })
    }

    /// The double has made a process.
    pub(super) fn add_process(&self, cookie: u64, process: &CreateProcessArgs<'_>) {
        let mut processes = self.processes.lock();

        if let Some(place) = processes.iter_mut().find(|place| place.is_none()) {
            *place = Some(Process {
                cookie,
                is_of_virtual_machine: process.is_of_virtual_machine,
                callbacks: process.callbacks.clone(),
            });
        }
    }

    /// A process is destroyed.
    pub(super) fn remove_process(&self, cookie: u64) {
        let removed = {
            let mut processes = self.processes.lock();
            let mut places = processes.iter_mut();

            places
                .find(|place| {
                    place
                        .as_ref()
                        .is_some_and(|process| process.cookie == cookie)
                })
                .and_then(Option::take)
        };

        drop(removed);
    }

    /// Whether the process of this turn is one of a virtual machine, and its callbacks.
    pub fn process(&self, turn: usize) -> Option<(bool, Shared<dyn ProcessCallbacks>)> {
        let processes = self.processes.lock();
        let process = processes.get(turn)?.as_ref()?;

        Some((process.is_of_virtual_machine, process.callbacks.clone()))
    }

    /// The double has made one.
    pub(super) fn add(&self, cookie: u64, callbacks: &Shared<dyn CpuEventCallbacks>) {
        let mut events = self.events.lock();

        if let Some(place) = events.iter_mut().find(|place| place.is_none()) {
            *place = Some(Event {
                cookie,
                callbacks: callbacks.clone(),
            });
        }
    }

    /// It is destroyed.
    pub(super) fn remove(&self, cookie: u64) {
        let removed = {
            let mut events = self.events.lock();
            let mut places = events.iter_mut();

            places
                .find(|place| place.as_ref().is_some_and(|event| event.cookie == cookie))
                .and_then(Option::take)
        };

        drop(removed);
    }

    /// What signals the event of this turn. A test that keeps it does what a KMD must not.
    pub fn callbacks(&self, turn: usize) -> Option<Shared<dyn CpuEventCallbacks>> {
        let events = self.events.lock();

        Some(events.get(turn)?.as_ref()?.callbacks.clone())
    }

    /// Notes a signal for each event, and asks for DpcRoutine by the event of this turn.
    pub fn note(&self, turn: usize) {
        platform::fetch_add(&self.due, 1);
        if let Some(callbacks) = self.callbacks(turn) {
            callbacks.queue_dpc();
        }
    }

    /// DpcRoutine.
    pub(super) fn dpc(&self, class: &Dispatch) {
        let due = platform::load32_acquire(&self.due);

        platform::fetch_sub(&self.due, due);
        for turn in 0..EVENTS {
            let Some(callbacks) = self.callbacks(turn) else {
                continue;
            };

            for _ in 0..due {
                self.count(callbacks.signal_event(class));
            }
        }
    }

    fn count(&self, result: KmdResult) {
        let counter = match result {
            Ok(()) => &self.delivered,
            Err(_) => &self.refused,
        };

        platform::fetch_add(counter, 1);
    }

    /// How many signals were delivered, and how many refused.
    pub fn told(&self) -> (u32, u32) {
        (
            platform::load32_acquire(&self.delivered),
            platform::load32_acquire(&self.refused),
        )
    }
}
