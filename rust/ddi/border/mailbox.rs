// SPDX-License-Identifier: GPL-2.0

//! What a host tells a guest: SIGNAL_GUEST_EVENT (CPU-50).
//!
//! A few ids are in a ring. When that is full, the generation of the event is stored at its place:
//! it sticks there until the guest looks, and later signals change nothing. The guest is
//! interrupted once, until it begins to look.
//!
//! Memory that both sides write to: whatever the guest writes, the host touches only words that
//! there are, and never waits. The same the other way round.
//!
//! LOCK: `tail` is a leaf of the host; the guest looks with one thread at a time.

use super::{
    EventName,
    MOST_EVENTS, //
};
use crate::platform::{
    self,
    ShortLock,
    Word32,
    Word64,
    Words32, //
};

/// Ids of a ring. Fewer where all interleavings are explored.
pub const RING: usize = if cfg!(loom) { 2 } else { 16 };

/// What a host tells one function of a guest.
pub struct Mailbox {
    ring: [Word64; RING],
    /// How many ids the guest has taken, and how many the host has put.
    taken: Word32,
    put: Word32,
    /// The generation of an event that was signalled when the ring was full, by its place.
    sticky: Words32<MOST_EVENTS>,
    /// There may be such.
    any_sticky: Word32,
    /// The guest is interrupted and has not begun to look.
    is_asked: Word32,
    /// What the host has put, which the guest cannot change.
    tail: ShortLock<u32>,
}

/// Says that there is something to look at, after it was stored. True if that was not said before.
fn announce(word: &Word32) -> bool {
    // ORDERING: who has not seen this word set sees what was stored, see `begin`.
    platform::full_fence();
    platform::cmpxchg(word, 0, 1)
}

/// Begins to look. True if there may be something.
fn begin(word: &Word32) -> bool {
    let is_set = platform::cmpxchg(word, 1, 0);

    // ORDERING: what is stored later is announced again, see `announce`.
    platform::full_fence();
    is_set
}

impl Mailbox {
    /// An empty one; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self {
            ring: core::array::from_fn(|_| platform::word64(0)),
            taken: platform::word32(0),
            put: platform::word32(0),
            sticky: platform::words32()?,
            any_sticky: platform::word32(0),
            is_asked: platform::word32(0),
            tail: platform::short_lock!(0, "border::Mailbox::tail")?,
        })
    }

    /// The host: an event is signalled. True if the guest is to be interrupted.
    ///
    /// Context: does not sleep.
    pub fn signal(&self, event: EventName) -> bool {
        {
            let mut tail = self.tail.lock();
            // What the guest says may be anything.
            let waiting = tail.wrapping_sub(platform::load32_acquire(&self.taken));
            // CAST: below `RING`, both of them.
            let place = self.ring.get(*tail as usize % RING);

            match place.filter(|_| waiting < RING as u32) {
                Some(place) => {
                    platform::store_release(place, event.id());
                    // OVERFLOW: modulo 2^32, of which the ring is a part.
                    *tail = tail.wrapping_add(1);
                    platform::fetch_add(&self.put, 1);
                }
                None => self.stick(event),
            }
        }
        announce(&self.is_asked)
    }

    fn stick(&self, event: EventName) {
        // CAST: 32 bits fit a usize.
        let Some(place) = self.sticky.get(event.place as usize) else {
            return;
        };
        let before = platform::load32_acquire(place);

        // It fails only if the guest has taken it meanwhile, or writes what it likes.
        if before != event.generation && !platform::cmpxchg(place, before, event.generation) {
            let _stuck = platform::cmpxchg(place, 0, event.generation);
        }
        announce(&self.any_sticky);
    }

    /// The host: nothing of an event is left to stick. It was destroyed.
    ///
    /// Context: does not sleep.
    pub fn forget(&self, event: EventName) {
        let _tail = self.tail.lock();

        // CAST: 32 bits fit a usize.
        if let Some(place) = self.sticky.get(event.place as usize) {
            platform::cmpxchg(place, event.generation, 0);
        }
    }

    /// The guest: takes all that is there. One thread at a time.
    ///
    /// Context: does not sleep.
    pub fn take(&self, mut tell: impl FnMut(EventName)) {
        begin(&self.is_asked);
        // Not more than fit, whatever the host writes.
        for _ in 0..RING {
            let taken = platform::load32_acquire(&self.taken);

            if taken == platform::load32_acquire(&self.put) {
                break;
            }
            // CAST: below `RING`.
            if let Some(place) = self.ring.get(taken as usize % RING) {
                let id = platform::load_acquire(place);

                platform::fetch_add(&self.taken, 1);
                tell(EventName::of_id(id));
            }
        }
        if begin(&self.any_sticky) {
            for (place, word) in (0..).zip(self.sticky.iter()) {
                let generation = platform::load32_acquire(word);

                // The host may have stored a later one, and says so again.
                if generation != 0 && platform::cmpxchg(word, generation, 0) {
                    tell(EventName { place, generation });
                }
            }
        }
    }
}
