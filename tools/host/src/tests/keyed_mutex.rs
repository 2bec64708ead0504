// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keyed mutexes: their state machine with the locking and waking that
//! `rust/dxgk/keyed_mutex/mod.rs` puts around it, alone, against a model, and in all interleavings
//! of small scenes (RES-102).

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

#[cfg(loom)]
use loom::{
    sync::{Arc, Mutex},
    thread::yield_now,
};
#[cfg(not(loom))]
use std::{
    sync::{Arc, Mutex},
    thread::yield_now,
};

use crate::{
    logic::{
        keyed_mutex::{Attempt, KeyedMutex, NotOwner, OwnerMap, Released},
        waiters::{WaitKey, WaitMap},
    },
    platform::{cmpxchg, load32_acquire, load_acquire, store_release, word32, word64},
    platform::{Word32, Word64},
};

#[cfg(not(loom))]
mod alone;
#[cfg(loom)]
mod scenes;

const GRANTED: u32 = 1;
const ABANDONED: u32 = 2;

/// How an acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Owns the mutex; the fence value.
    Owns(u64),
    Abandoned,
    /// Gave up, because of its time-out or of a signal.
    GaveUp,
}

/// A thread that waits.
struct Waiter {
    owner: u32,
    /// What was decided; set before the thread is woken.
    state: Word32,
    fence: Word64,
    /// Set by the wake-up itself: a thread that sleeps looks at nothing else.
    woken: Word32,
    /// Not part of the protocol, so not loom's.
    wakes: AtomicU32,
}

impl Waiter {
    fn wake(&self) {
        self.wakes.fetch_add(1, Relaxed);
        cmpxchg(&self.woken, 0, 1);
    }
}

/// The ordered map of the host.
#[derive(Default)]
struct Line(BTreeMap<WaitKey, Arc<Waiter>>);

impl WaitMap for Line {
    type Node = (WaitKey, Arc<Waiter>);
    type NewNode = Arc<Waiter>;

    fn first(&self) -> Option<WaitKey> {
        self.0.keys().next().copied()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        use std::ops::Bound::{Excluded, Unbounded};

        let above = self.0.range((Excluded(key), Unbounded)).next();

        above.map(|(key, _)| *key)
    }

    fn take_first(&mut self) -> Option<Self::Node> {
        self.0.pop_first()
    }

    fn take(&mut self, key: &WaitKey) -> Option<Self::Node> {
        self.0.remove_entry(key)
    }

    fn put(&mut self, (key, waiter): Self::Node) {
        assert!(self.0.insert(key, waiter).is_none(), "key is new");
    }

    fn name(waiter: Arc<Waiter>, key: WaitKey) -> Self::Node {
        (key, waiter)
    }
}

impl OwnerMap for Line {
    type Owner = u32;

    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(u32, Self::Node)> {
        let (key, waiter) = self.0.remove_entry(key)?;

        store_release(&waiter.fence, fence);
        assert!(cmpxchg(&waiter.state, 0, GRANTED), "decided once");
        Some((waiter.owner, (key, waiter)))
    }
}

/// A wait that is queued.
struct Queued {
    waiter: Arc<Waiter>,
    place: WaitKey,
}

/// A keyed mutex. Threads are numbers.
struct Shared(Mutex<KeyedMutex<Line>>);

impl Shared {
    fn new(key: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(KeyedMutex::new(key, Line::default()))))
    }

    /// Acquires or queues.
    fn start(&self, thread: u32, key: u64) -> Result<End, Queued> {
        let mut mutex = self.0.lock().unwrap();

        match mutex.acquire(key, thread) {
            Attempt::Acquired(fence) => Ok(End::Owns(fence)),
            Attempt::Abandoned(_) => Ok(End::Abandoned),
            Attempt::Busy(owner) => {
                let waiter = Arc::new(Waiter {
                    owner,
                    state: word32(0),
                    fence: word64(0),
                    woken: word32(0),
                    wakes: AtomicU32::new(0),
                });
                let place = mutex.queue(key, waiter.clone());

                Err(Queued { waiter, place })
            }
        }
    }

    /// What was decided about a wait whose place is gone.
    fn decided(waiter: &Waiter) -> End {
        match load32_acquire(&waiter.state) {
            GRANTED => End::Owns(load_acquire(&waiter.fence)),
            // An abandonment takes all waiters out first and tells them later.
            _ => End::Abandoned,
        }
    }

    /// The thread sleeps until it is woken.
    fn sleep(&self, queued: &Queued) -> End {
        while load32_acquire(&queued.waiter.woken) == 0 {
            yield_now();
        }
        Self::decided(&queued.waiter)
    }

    /// Waits without limit.
    fn acquire(&self, thread: u32, key: u64) -> End {
        self.start(thread, key)
            .unwrap_or_else(|queued| self.sleep(&queued))
    }

    /// The time-out is over, or a signal came.
    fn give_up(&self, queued: &Queued) -> End {
        let node = self.0.lock().unwrap().cancel(&queued.place);

        match node {
            Some(_) => End::GaveUp,
            None => Self::decided(&queued.waiter),
        }
    }

    fn release(&self, thread: u32, key: u64, fence: u64) -> Result<Option<u32>, NotOwner> {
        self.hand_over(thread, |mutex| {
            mutex.release(|owner| *owner == thread, key, fence)
        })
    }

    /// An owner that never learned of it.
    fn pass_on(&self, thread: u32) -> Result<Option<u32>, NotOwner> {
        self.hand_over(thread, |mutex| mutex.pass_on(|owner| *owner == thread))
    }

    fn hand_over(
        &self,
        thread: u32,
        release: impl FnOnce(
            &mut KeyedMutex<Line>,
        ) -> Result<Released<u32, (WaitKey, Arc<Waiter>)>, NotOwner>,
    ) -> Result<Option<u32>, NotOwner> {
        let released = release(&mut self.0.lock().unwrap())?;

        assert_eq!(released.before, thread);
        Ok(released.next.map(|(_, waiter)| {
            waiter.wake();
            waiter.owner
        }))
    }

    /// The owner is gone. Returns who was told.
    fn abandon(&self) -> Vec<u32> {
        let Some(abandoned) = self.0.lock().unwrap().abandon(Line::default()) else {
            return Vec::new();
        };

        abandoned
            .waiters
            .0
            .into_values()
            .map(|waiter| {
                assert!(cmpxchg(&waiter.state, 0, ABANDONED), "decided once");
                waiter.wake();
                waiter.owner
            })
            .collect()
    }

    fn owner(&self) -> Option<u32> {
        self.0.lock().unwrap().owner().copied()
    }

    fn waiting(&self) -> u32 {
        self.0.lock().unwrap().waiting()
    }
}
