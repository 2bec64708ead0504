// SPDX-License-Identifier: GPL-2.0

//! The doorbells of a double, so that a test can do what a GPU does with them: take one away.
//!
//! A test shares this with the double by [`Behaviour::doorbells`](super::Behaviour::doorbells), and
//! names a doorbell by the id that the OS part gave it, or by its turn.

use super::journal::{
    Journal,
    Kind, //
};
use crate::{
    ddi::{
        class::Passive,
        doorbell::{
            Connected,
            CreateDoorbellArgs,
            Disconnect,
            DoorbellCallbacks, //
        },
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Boxed,
        DoorbellPage,
        Shared,
        ShortLock,
        Word32, //
    }, //
};

/// How many doorbells there can be in one test.
const DOORBELLS: usize = 8;

/// What the double keeps of a doorbell.
struct Doorbell {
    cookie: u64,
    id: u64,
    callbacks: Shared<dyn DoorbellCallbacks>,
    is_connected: bool,
    rings: u32,
}

/// The doorbells of one double.
pub struct Doorbells {
    journal: Shared<Journal>,
    doorbells: ShortLock<Boxed<[Option<Doorbell>; DOORBELLS]>>,
    page: Shared<DoorbellPage>,
    /// Its doorbells trap, and want to be told of work.
    traps: Word32,
    notify: Word32,
}

impl Doorbells {
    /// None, of the double with this journal; `None` if there is no memory.
    pub fn new(journal: Shared<Journal>) -> Option<Self> {
        Some(Self {
            journal,
            doorbells: platform::short_lock!(
                platform::none_array()?,
                "fake::Doorbells::doorbells"
            )?,
            page: platform::doorbell_page()?,
            traps: platform::word32(0),
            notify: platform::word32(0),
        })
    }

    /// Connections from now on trap.
    pub fn trap_all(&self) {
        platform::cmpxchg(&self.traps, 0, 1);
    }

    /// Connections from now on want to be told of work.
    pub fn notify_all(&self) {
        platform::cmpxchg(&self.notify, 0, 1);
    }

    /// Its physical doorbell, of which there is one.
    pub fn page(&self) -> &Shared<DoorbellPage> {
        &self.page
    }

    /// The id of the doorbell that was made `turn` after the first one that is left.
    pub fn id(&self, turn: usize) -> Option<u64> {
        let doorbells = self.doorbells.lock();
        let id = doorbells.iter().flatten().nth(turn).map(|own| own.id);

        id
    }

    /// Whether this doorbell is connected, as far as the double knows.
    pub fn is_connected(&self, id: u64) -> bool {
        self.with(id, |own| own.is_connected).unwrap_or(false)
    }

    /// How often the double was told that this doorbell was rung.
    pub fn rings(&self, id: u64) -> u32 {
        self.with(id, |own| own.rings).unwrap_or(0)
    }

    /// DxgkCbDisconnectDoorbell; false if there is no such doorbell.
    pub fn disconnect(&self, id: u64, why: Disconnect) -> bool {
        let own = self.with(id, |own| {
            own.is_connected = false;
            (own.cookie, own.callbacks.clone())
        });

        if let Some((cookie, callbacks)) = &own {
            callbacks.disconnect(&Passive::here(), why);
            self.journal.set_rests(Kind::Doorbell, *cookie, true);
        }
        own.is_some()
    }

    /// The next access is told again; false if there is no such doorbell.
    pub fn trap(&self, id: u64) -> bool {
        let callbacks = self.with(id, |own| own.callbacks.clone());

        if let Some(callbacks) = &callbacks {
            callbacks.trap(&Passive::here());
        }
        callbacks.is_some()
    }

    fn with<T>(&self, id: u64, what: impl FnOnce(&mut Doorbell) -> T) -> Option<T> {
        let mut doorbells = self.doorbells.lock();
        let own = doorbells.iter_mut().flatten().find(|own| own.id == id)?;

        Some(what(own))
    }

    fn with_cookie<T>(&self, cookie: u64, what: impl FnOnce(&mut Doorbell) -> T) -> Option<T> {
        let mut doorbells = self.doorbells.lock();
        let own = doorbells
            .iter_mut()
            .flatten()
            .find(|own| own.cookie == cookie)?;

        Some(what(own))
    }

    pub(super) fn add(&self, cookie: u64, args: &CreateDoorbellArgs<'_>) {
        let mut doorbells = self.doorbells.lock();

        match doorbells.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(Doorbell {
                    cookie,
                    id: args.id.0,
                    callbacks: args.callbacks.clone(),
                    is_connected: false,
                    rings: 0,
                });
            }
            None => self.journal.too_many(),
        }
    }

    pub(super) fn connect(&self, cookie: u64) -> KmdResult<Connected> {
        self.with_cookie(cookie, |own| own.is_connected = true)
            .ok_or(KmdError::NoMemory)?;
        Ok(Connected {
            page: self.page.clone(),
            secondary: None,
            notify: platform::load32_acquire(&self.notify) != 0,
            traps: platform::load32_acquire(&self.traps) != 0,
        })
    }

    pub(super) fn disconnected(&self, cookie: u64) {
        self.with_cookie(cookie, |own| own.is_connected = false);
    }

    pub(super) fn rung(&self, cookie: u64) {
        // OVERFLOW: a test rings a few times.
        self.with_cookie(cookie, |own| own.rings = own.rings.wrapping_add(1));
    }

    /// It is destroyed. Whether it was disconnected, as it has to be.
    pub(super) fn remove(&self, cookie: u64) -> bool {
        let removed = self
            .doorbells
            .lock()
            .iter_mut()
            .find(|place| place.as_ref().is_some_and(|own| own.cookie == cookie))
            .and_then(Option::take);

        // The callbacks go where no lock is held.
        removed.is_none_or(|own| !own.is_connected)
    }
}
