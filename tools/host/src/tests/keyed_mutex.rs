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
        keyed_mutex::{Attempt, KeyedMutex, NotOwner, OwnerList, OwnerMap, Released, Taken},
        sleepers::{Listed, News, SleeperList, MAX_SLEEPERS},
        waiters::{WaitKey, WaitMap},
    },
    platform::{cmpxchg, load32_acquire, load_acquire, store_release, word32, word64},
    platform::{Word32, Word64},
    tests::harness::Stack,
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
    /// Its place, if it sleeps in memory of its own.
    place: Listed,
    /// That memory.
    stack: Stack,
}

impl Waiter {
    fn new(owner: u32) -> Arc<Self> {
        Arc::new(Self {
            owner,
            state: word32(0),
            fence: word64(0),
            woken: word32(0),
            wakes: AtomicU32::new(0),
            place: Listed::new(),
            stack: Stack::new(),
        })
    }

    /// Who owns the mutex now is told.
    fn make_owner(&self, fence: u64) -> u32 {
        store_release(&self.fence, fence);
        assert!(cmpxchg(&self.state, 0, GRANTED), "decided once");
        self.owner
    }

    /// The thread leaves, and uses its memory for something else.
    fn leave(&self) {
        while self.place.is_in() {
            yield_now();
        }
        self.stack.reuse();
    }

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

        Some((waiter.make_owner(fence), (key, waiter)))
    }
}

/// Those who sleep in memory of their own.
#[derive(Default)]
struct Sleepers(BTreeMap<WaitKey, Arc<Waiter>>);

impl Sleepers {
    /// Takes one out, tells it, and lets go of its place.
    fn end<T>(
        &mut self,
        key: &WaitKey,
        tell: impl FnOnce(&Waiter) -> T,
    ) -> Option<(T, Arc<Waiter>)> {
        let waiter = self.0.remove(key)?;
        let told = tell(&waiter);

        waiter.stack.touch();
        waiter.place.let_go();
        Some((told, waiter))
    }
}

impl SleeperList for Sleepers {
    type Place<'a> = Arc<Waiter>;
    type Wake = Arc<Waiter>;

    fn first(&self) -> Option<WaitKey> {
        self.0.keys().next().copied()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        self.0.keys().find(|own| *own > key).copied()
    }

    fn is_full(&self) -> bool {
        self.0.len() == MAX_SLEEPERS
    }

    fn put(&mut self, key: WaitKey, waiter: Arc<Waiter>) -> bool {
        assert!(waiter.place.enter(), "in no list yet");
        self.0.insert(key, waiter).is_none()
    }

    fn tell(&mut self, key: &WaitKey, news: News) -> Option<Option<Arc<Waiter>>> {
        assert_eq!(news, News::Orphaned);

        let abandon = |waiter: &Waiter| cmpxchg(&waiter.state, 0, ABANDONED);
        let (first, waiter) = self.end(key, abandon)?;

        assert!(first, "decided once");
        Some(Some(waiter))
    }

    fn take(&mut self, key: &WaitKey) -> bool {
        self.end(key, |_| ()).is_some()
    }
}

impl OwnerList for Sleepers {
    type Owner = u32;

    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(u32, Arc<Waiter>)> {
        self.end(key, |waiter| waiter.make_owner(fence))
    }
}

type Mutexed = KeyedMutex<Line, Sleepers>;

/// A wait that is queued.
struct Queued {
    waiter: Arc<Waiter>,
    place: WaitKey,
}

/// A keyed mutex. Threads are numbers; those with odd ones sleep in memory of their own.
struct Shared(Mutex<Mutexed>);

impl Shared {
    fn new(key: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(KeyedMutex::new(
            key,
            Line::default(),
            Sleepers::default(),
        ))))
    }

    /// Acquires or queues.
    fn start(&self, thread: u32, key: u64) -> Result<End, Queued> {
        let mut mutex = self.0.lock().unwrap();

        match mutex.acquire(key, thread) {
            Attempt::Acquired(fence) => Ok(End::Owns(fence)),
            Attempt::Abandoned(_) => Ok(End::Abandoned),
            Attempt::Busy(owner) => {
                let waiter = Waiter::new(owner);
                let on_stack = (owner % 2 == 1)
                    .then(|| mutex.queue_sleeper(key, waiter.clone()))
                    .flatten();
                let place = on_stack.unwrap_or_else(|| mutex.queue(key, waiter.clone()));

                Err(Queued { waiter, place })
            }
        }
    }

    /// What was decided about a wait whose place is gone.
    fn decided(waiter: &Waiter) -> End {
        let end = match load32_acquire(&waiter.state) {
            GRANTED => End::Owns(load_acquire(&waiter.fence)),
            // An abandonment takes all waiters out first and tells some of them later.
            _ => End::Abandoned,
        };

        waiter.leave();
        end
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
            Some(_) => {
                queued.waiter.leave();
                End::GaveUp
            }
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
            &mut Mutexed,
        ) -> Result<
            Released<u32, Taken<(WaitKey, Arc<Waiter>), Arc<Waiter>>>,
            NotOwner,
        >,
    ) -> Result<Option<u32>, NotOwner> {
        let released = release(&mut self.0.lock().unwrap())?;

        assert_eq!(released.before, thread);
        Ok(released.next.map(|taken| {
            let (Taken::Node((_, waiter)) | Taken::Sleeper(waiter)) = taken;

            waiter.wake();
            waiter.owner
        }))
    }

    /// The owner is gone. Returns who was told.
    fn abandon(&self) -> Vec<u32> {
        let Some(mut abandoned) = self.0.lock().unwrap().abandon(Line::default()) else {
            return Vec::new();
        };
        let woken = &mut abandoned.woken;
        let sleepers = std::iter::from_fn(|| {
            let waiter = woken.next_before(None)?;

            waiter.wake();
            Some(waiter.owner)
        });

        abandoned
            .waiters
            .0
            .into_values()
            .map(|waiter| {
                assert!(cmpxchg(&waiter.state, 0, ABANDONED), "decided once");
                waiter.wake();
                waiter.owner
            })
            .chain(sleepers)
            .collect()
    }

    fn owner(&self) -> Option<u32> {
        self.0.lock().unwrap().owner().copied()
    }

    fn waiting(&self) -> u32 {
        self.0.lock().unwrap().waiting()
    }
}
