// SPDX-License-Identifier: GPL-2.0

//! Which thread owns which keyed mutexes, so that a thread that is gone abandons them (RES-99,
//! RES-100).
//!
//! An owned mutex is in the bucket of its owner, in a node that was allocated with the mutex. The
//! probe at the end of a thread only moves its nodes to `gone` and queues work; the work abandons
//! the mutexes.
//!
//! The probes are registered from before the first mutex is owned until some time after the last one
//! was released. `watchers` is 0 without probes; with them it is 1 and one more for each mutex that
//! is owned or about to be.
//!
//! LOCK: `probes` is taken to register and unregister only. A bucket is taken under the lock of one
//! keyed mutex, or alone; `gone` is taken alone. Both are leaves.

use super::KeyedMutex;
use crate::sys::{
    task::{
        thread::Thread,
        thread_exit::{
            Gone,
            Listener,
            Probes, //
        }, //
    },
    work, //
};
use kernel::{
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow,
        Mutex,
        SpinLock, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// Threads are spread over this many locks.
const BUCKETS: usize = 64;
/// The probes are unregistered when nobody has acquired anything for one to two of these. Registering and
/// unregistering patch the text of the kernel, which stops every processor for a moment, so that no user may make
/// it happen often.
const GRACE_MS: u32 = 30_000;

/// The number of a thread, and the id of a mutex.
type Key = (u32, u64);

/// A mutex and the thread that owns it.
struct Owned {
    mutex: Arc<KeyedMutex>,
    thread: Thread,
}

/// The place of a mutex while nobody owns it.
pub(crate) struct Place(RBTreeNodeReservation<Key, Owned>);

impl Place {
    /// Allocates a place. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

/// Mutexes by owner.
#[derive(Default)]
struct Bucket(RBTree<Key, Owned>);

impl Bucket {
    /// Takes out one mutex of threads that are gone.
    fn take_one(&mut self, gone: &Gone) -> Option<RBTreeNode<Key, Owned>> {
        let number = gone.number();
        let mut from = 0;

        loop {
            let cursor = self.0.cursor_lower_bound(&(number, from))?;
            let (key, owned) = cursor.current();
            let key = *key;

            if key.0 != number {
                return None;
            }
            if gone.includes(&owned.thread) {
                return self.0.remove_node(&key);
            }
            // A thread that lives and got a number that was used before.
            from = key.1.checked_add(1)?;
        }
    }
}

/// See the module.
#[pin_data]
pub(crate) struct MutexOwners {
    watchers: Atomic<u32>,
    /// Whether somebody has acquired since the last look.
    recent: Atomic<u32>,
    #[pin]
    probes: Mutex<Option<Probes<MutexOwners>>>,
    #[pin]
    buckets: [SpinLock<Bucket>; BUCKETS],
    #[pin]
    gone: SpinLock<Bucket>,
    #[pin]
    reap: Work<MutexOwners, 0>,
    #[pin]
    look: DelayedWork<MutexOwners, 1>,
}

impl_has_work! {
    impl HasWork<Self, 0> for MutexOwners { self.reap }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for MutexOwners { self.look }
}

/// Makes sure that the end of a thread is heard of, until it is dropped.
pub(crate) struct Watch<'a>(&'a MutexOwners);

impl Watch<'_> {
    /// Goes on until [`MutexOwners::unwatch`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.unwatch();
    }
}

impl MutexOwners {
    /// Nobody owns anything.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                watchers: Atomic::new(0),
                recent: Atomic::new(0),
                probes <- new_mutex!(None, "MutexOwners::probes"),
                buckets <- pin_init::pin_init_array_from_fn(
                    |_| new_spinlock!(Bucket::default(), "MutexOwners::buckets")
                ),
                gone <- new_spinlock!(Bucket::default(), "MutexOwners::gone"),
                reap <- new_work!("MutexOwners::reap"),
                look <- new_delayed_work!("MutexOwners::look"),
            }),
            GFP_KERNEL,
        )
    }

    /// From the return of this on, the end of the calling thread will be heard of. To be called
    /// before a mutex is owned.
    ///
    /// Context: may sleep, no locks held. Takes no memory once the probes are registered.
    pub(crate) fn watch(self: &Arc<Self>) -> Result<Watch<'_>> {
        // Written only once in a while, so that threads do not fight for the line.
        if self.recent.load(Relaxed) == 0 {
            self.recent.store(1, Relaxed);
        }
        if !self.watch_with_others() {
            self.register()?;
        }
        Ok(Watch(self))
    }

    /// Counts one more, if the probes are registered.
    fn watch_with_others(&self) -> bool {
        let mut count = self.watchers.load(Relaxed);

        loop {
            // Bounded by mutexes and threads, far below the overflow.
            let Some(more) = count.checked_add(1).filter(|_| count != 0) else {
                return false;
            };

            match self.watchers.cmpxchg(count, more, Full) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
    }

    /// Registers the probes, with one watcher.
    fn register(self: &Arc<Self>) -> Result {
        let mut probes = self.probes.lock();

        if self.watch_with_others() {
            return Ok(());
        }
        *probes = Some(Probes::new(self.clone())?);
        self.watchers.store(2, Release);
        self.look_later();
        Ok(())
    }

    /// A mutex is not owned any more.
    pub(crate) fn unwatch(&self) {
        self.watchers.fetch_sub(1, Full);
    }

    /// LOCK: under `probes`, so that nothing is queued once [`MutexOwners::stop`] has taken them.
    fn look_later(self: &Arc<Self>) {
        let delay: Jiffies = msecs_to_jiffies(GRACE_MS);

        // It fails only if it is queued already.
        let _queued = work::worker()
            .is_some_and(|worker| worker.enqueue_delayed::<_, 1>(self.clone(), delay).is_ok());
    }

    /// Unregisters the probes if nothing was owned for a while.
    fn look(self: &Arc<Self>) {
        let mut probes = self.probes.lock();

        if probes.is_none() {
            return;
        }
        // Nobody can start from 0 as long as we have the lock.
        if self.recent.xchg(0, Relaxed) != 0 || self.watchers.cmpxchg(1, 0, Full).is_err() {
            self.look_later();
            return;
        }

        // The same probes cannot be registered twice, so that they go while we have the lock; others
        // need not wait until they are quiet.
        let old = probes.take().map(|mut old| {
            old.unregister();
            old
        });

        drop(probes);
        drop(old);
    }

    /// The module goes: nobody has a mutex any more. No probe runs after this, and nothing is queued but
    /// what the worker has.
    ///
    /// Context: may sleep; not from our work.
    pub(crate) fn stop(&self) {
        let probes = self.probes.lock().take();

        // Waits until none of them runs.
        drop(probes);
        work::run_now(&self.look);
    }

    fn bucket(&self, number: u32) -> &SpinLock<Bucket> {
        // CAST: 32 bits fit a usize. Numbers are given out one after the other, so that the low bits
        // spread them.
        let index = number as usize % BUCKETS;

        // The index is below the length, so that the first one is never taken instead.
        self.buckets.get(index).unwrap_or(&self.buckets[0])
    }

    /// `thread` owns `mutex` from now on, and a [`Watch`] was kept for it. Takes no memory.
    ///
    /// LOCK: under the lock of `mutex`.
    pub(crate) fn enter(&self, place: Place, mutex: Arc<KeyedMutex>, thread: Thread) {
        let number = thread.number();
        let key = (number, mutex.header.id());
        let node = place.0.into_node(key, Owned { mutex, thread });
        // A mutex has one place, so that nothing is replaced.
        let _nothing = self.bucket(number).lock().0.insert(node);
    }

    /// `thread` does not own `mutex` any more. `None` if the thread is gone and the mutex is about to
    /// be abandoned.
    ///
    /// LOCK: under the lock of `mutex`, to which the caller has a reference.
    pub(crate) fn leave(&self, mutex: &KeyedMutex, thread: &Thread) -> Option<Place> {
        let number = thread.number();
        let key = (number, mutex.header.id());
        let node = self.bucket(number).lock().0.remove_node(&key)?;

        // Neither reference in it is the last one.
        Some(Place(node.into_reservation()))
    }
}

impl Listener for MutexOwners {
    fn gone(this: ArcBorrow<'_, Self>, gone: &Gone) {
        let mut any = false;

        loop {
            let Some(node) = this.bucket(gone.number()).lock().take_one(gone) else {
                break;
            };
            // A mutex has one place, so that nothing is replaced.
            let _nothing = this.gone.lock().0.insert(node);

            any = true;
        }
        if any {
            // It fails only if it is queued already and has not started.
            let _queued = work::worker()
                .is_some_and(|worker| worker.enqueue::<_, 0>(Arc::<Self>::from(this)).is_ok());
        }
    }
}

impl WorkItem<0> for MutexOwners {
    type Pointer = Arc<Self>;

    /// Abandons the mutexes of threads that are gone.
    fn run(this: Arc<Self>) {
        let gone = core::mem::take(&mut *this.gone.lock());

        for owned in gone.0.values() {
            owned.mutex.owner_is_gone(&owned.thread);
        }
    }
}

impl WorkItem<1> for MutexOwners {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
    }
}
