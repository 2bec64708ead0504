// SPDX-License-Identifier: GPL-2.0

//! What a guest does with the signals of its host: from ids to the events of its processes.
//!
//! It knows nothing of requests: the guest's interrupt has it, and the host's side has that.

use super::{
    mailbox::Mailbox,
    EventName,
    MOST_EVENTS, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        cpu_event::CpuEventCallbacks, //
    },
    platform::{
        self,
        Lock,
        Places,
        Shared,
        ShortLock,
        Word32, //
    }, //
};

/// A place for an event.
struct Place {
    /// How many events there were here.
    generation: u32,
    /// What tells the process of the one that is here, or is being made or destroyed.
    callbacks: Option<Shared<dyn CpuEventCallbacks>>,
}

struct Table {
    places: Places<Place, MOST_EVENTS>,
    /// No place before this one is free.
    first_free: usize,
}

/// The events of one function, as its guest knows them.
pub struct Receiver {
    mailbox: Shared<Mailbox>,
    /// LOCK: one look at a time; events are told under it, and `table` is taken.
    turn: Lock<()>,
    /// LOCK: leaf.
    table: ShortLock<Table>,
    /// Signals that were for no event (CPU-51).
    dropped: Word32,
}

impl Receiver {
    /// One without events; `None` if there is no memory. May sleep.
    pub fn new(mailbox: Shared<Mailbox>) -> Option<Self> {
        let table = Table {
            places: platform::places()?,
            first_free: 0,
        };

        Some(Self {
            mailbox,
            turn: platform::lock!((), "border::Receiver::turn")?,
            table: platform::short_lock!(table, "border::Receiver::table")?,
            dropped: platform::word32(0),
        })
    }

    /// Takes all that the host has put into the mailbox, and tells the processes. Whatever was
    /// there before the call is told when it returns.
    ///
    /// Context: may sleep, no locks held.
    pub fn look(&self) {
        let here = Passive::here();
        let class = Dispatch::within(&here);
        let _turn = self.turn.lock();

        self.mailbox.take(|event| {
            let told = self
                .callbacks(event)
                .is_some_and(|callbacks| callbacks.signal_event(&class).is_ok());

            if !told {
                platform::fetch_add(&self.dropped, 1);
            }
        });
    }

    /// How many signals were for no event, modulo 2^32.
    pub fn dropped(&self) -> u32 {
        platform::load32_acquire(&self.dropped)
    }

    fn callbacks(&self, event: EventName) -> Option<Shared<dyn CpuEventCallbacks>> {
        let table = self.table.lock();
        // CAST: 32 bits fit a usize.
        let place = table.places.get(event.place as usize)?.as_ref()?;

        place
            .callbacks
            .as_ref()
            .filter(|_| place.generation == event.generation)
            .cloned()
    }

    /// A new event, which may be signalled from now on; `None` if there are as many as may be.
    pub(super) fn add(&self, callbacks: Shared<dyn CpuEventCallbacks>) -> Option<EventName> {
        let mut table = self.table.lock();
        let Table { places, first_free } = &mut *table;

        for (number, place) in places.iter_mut().enumerate().skip(*first_free) {
            let place = place.get_or_insert(Place {
                generation: 0,
                callbacks: None,
            });

            if place.callbacks.is_none() {
                place.callbacks = Some(callbacks);
                // OVERFLOW: it only has to differ from that of a signal on its way.
                place.generation = place.generation.wrapping_add(1).max(1);
                // OVERFLOW: at most `MOST_EVENTS`.
                *first_free = number.saturating_add(1);
                return Some(EventName {
                    // CAST: below `MOST_EVENTS`.
                    place: number as u32,
                    generation: place.generation,
                });
            }
        }
        *first_free = MOST_EVENTS;
        None
    }

    /// The event is gone. What is still signalled for it is dropped.
    pub(super) fn remove(&self, event: EventName) {
        let removed = {
            let mut table = self.table.lock();
            let Table { places, first_free } = &mut *table;
            // CAST: 32 bits fit a usize.
            let number = event.place as usize;

            places
                .get_mut(number)
                .and_then(Option::as_mut)
                .filter(|place| place.generation == event.generation)
                .and_then(|place| {
                    *first_free = number.min(*first_free);
                    place.callbacks.take()
                })
        };

        drop(removed);
    }
}
