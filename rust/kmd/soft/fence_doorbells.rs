// SPDX-License-Identifier: GPL-2.0

//! The doorbells of native fences of other adapters, by which engines meet without a processor
//! (FEN-159). [`super::own_doorbell`] is the one that others ring.
//!
//! Who rings does what the CMP of the other adapter would do when it hears the doorbell: it looks
//! at the words that say whose queues wait, and wakes their engines. So it is the same meeting as
//! that of two engines of one adapter, and the barriers are those of GPU-53.
//!
//! LOCK: `places` is held while all that are connected are rung, so that nobody is ringing one that
//! was taken away. Inside of it are the list of the engine that is rung, and its wake-up, which are
//! leaves.

use crate::{
    ddi::native_fence::FenceDoorbell,
    platform::{
        self,
        Places,
        Shared,
        ShortLock,
        Word32, //
    }, //
};

/// How many other adapters one fence rings.
const MOST: usize = 15;

/// The doorbells that engines ring when they have stored to a fence.
pub(super) struct Others {
    /// How many there are, so that fences without any cost a load.
    count: Word32,
    places: ShortLock<Option<Places<Shared<dyn FenceDoorbell>, MOST>>>,
}

impl Others {
    /// None; `None` if there is no memory. May sleep.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            count: platform::word32(0),
            places: platform::short_lock!(None, "soft::Others::places")?,
        })
    }

    /// One more, and its number; `None` if there is no room. May sleep.
    pub(super) fn add(&self, doorbell: &Shared<dyn FenceDoorbell>) -> Option<usize> {
        // What is not used is dropped after the lock.
        let mut new = Some(platform::places()?);
        let mut places = self.places.lock();

        if places.is_none() {
            *places = new.take();
        }

        let mut all = Option::as_mut(&mut places)?.iter_mut().enumerate();
        let (number, place) = all.find(|(_, place)| place.is_none())?;

        *place = Some(doorbell.clone());
        // ORDERING: an engine that does not see this has stored its value before: a queue of the
        // other adapter that waits after this has its barrier before it looks.
        platform::fetch_add(&self.count, 1);
        Some(number)
    }

    /// One less: on return nobody rings it. May sleep.
    pub(super) fn remove(&self, number: usize) {
        let removed = {
            let mut places = self.places.lock();
            let place = Option::as_mut(&mut places).and_then(|all| all.get_mut(number));
            let removed = place.and_then(Option::take);

            if removed.is_some() {
                platform::fetch_sub(&self.count, 1);
            }
            removed
        };

        drop(removed);
    }

    /// An engine has stored a value, and all processors see that: rings all of them.
    ///
    /// Context: does not sleep.
    pub(super) fn ring(&self) {
        if platform::load32_acquire(&self.count) == 0 {
            return;
        }
        if let Some(all) = Option::as_ref(&self.places.lock()) {
            all.iter().flatten().for_each(|doorbell| doorbell.ring());
        }
    }
}
