// SPDX-License-Identifier: GPL-2.0

//! The state of one keyed mutex (RES-95 to RES-99).
//!
//! The caller owns the lock, the memory of the nodes and the threads; this file decides. A release
//! hands the mutex over directly: the first waiter of the new key owns it before the lock is
//! dropped. So no thread comes in between, and exactly one thread is woken (RES-97). A waiter that
//! gives up checks under the same lock whether that has happened. So no hand-over is lost between
//! release, time-out, signal and abandonment (RES-102).
//!
//! Waiters are nodes of a map, or threads that sleep in memory of their own. They are served in one
//! order.

use super::{
    sleepers::{
        lower,
        News,
        SleeperList,
        Woken, //
    },
    waiters::{
        WaitKey,
        WaitMap, //
    }, //
};

/// A map of waiters that can be made owners. Keys are keys of the mutex, each with its arrivals.
pub trait OwnerMap: WaitMap {
    /// The owner of a mutex.
    type Owner;

    /// Removes a waiter, records that it owns the mutex now, with this fence value, and returns it
    /// as the owner. Wakes no thread.
    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(Self::Owner, Self::Node)>;
}

/// A list of sleeping threads that can be made owners.
pub trait OwnerList: SleeperList {
    /// The owner of a mutex.
    type Owner;

    /// The same as [`OwnerMap::make_owner`] for a thread that sleeps in memory of its own: it is
    /// told. Returns what wakes it.
    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(Self::Owner, Self::Wake)>;
}

/// A waiter that is not queued any more.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<N, S> {
    /// In a node.
    Node(N),
    /// A thread that sleeps in memory of its own.
    Sleeper(S),
}

/// What became of an attempt to acquire.
#[derive(Debug, PartialEq, Eq)]
pub enum Attempt<O> {
    /// The caller owns the mutex now; this is the fence value of the last release.
    Acquired(u64),
    /// Its owner went without releasing it. The would-be owner comes back.
    Abandoned(O),
    /// It has an owner or another key.
    Busy(O),
}

/// A release by another thread than the owner.
#[derive(Debug, PartialEq, Eq)]
pub struct NotOwner;

/// What a release leaves to be done without the lock.
pub struct Released<O, N> {
    /// Who owned the mutex.
    pub before: O,
    /// The waiter that owns it now and has to be woken.
    pub next: Option<N>,
}

/// What an abandonment leaves to be done without the lock.
pub struct Abandoned<O, M, W> {
    /// The owner before, if there was one.
    pub before: Option<O>,
    /// All waiters in nodes, to be told and woken.
    pub waiters: M,
    /// Those who slept in memory of their own. They were told, and are to be woken.
    pub woken: Woken<W>,
}

/// The state of one keyed mutex. Protected by the lock of the mutex.
pub struct KeyedMutex<M: OwnerMap, L> {
    key: u64,
    fence: u64,
    owner: Option<M::Owner>,
    abandoned: bool,
    waiters: M,
    sleepers: L,
    waiting: u32,
    next_seq: u64,
}

/// What is left to be done after a release.
type ReleasedFrom<M, L> =
    Released<<M as OwnerMap>::Owner, Taken<<M as WaitMap>::Node, <L as SleeperList>::Wake>>;

impl<M: OwnerMap, L: OwnerList<Owner = M::Owner>> KeyedMutex<M, L> {
    /// Without owner, with this first key and fence value 0 (RES-91); `waiters` and `sleepers` must
    /// be empty.
    pub const fn new(key: u64, waiters: M, sleepers: L) -> Self {
        Self {
            key,
            fence: 0,
            owner: None,
            abandoned: false,
            waiters,
            sleepers,
            waiting: 0,
            // Arrivals count from 1, so that 0 comes before every waiter of a key.
            next_seq: 1,
        }
    }

    /// The current key.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The fence value of the last release.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Which thread owns the mutex, if one does.
    pub fn owner(&self) -> Option<&M::Owner> {
        self.owner.as_ref()
    }

    /// Whether it was abandoned, which is final (RES-99).
    pub fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// How many threads wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// The place of the waiter after this one, or of the first one, and where to look for it. For
    /// those who show what there is.
    pub fn after(&self, place: Option<&WaitKey>) -> Option<(WaitKey, &M, &L)> {
        let place = match place {
            None => lower(self.waiters.first(), self.sleepers.first()),
            Some(place) => lower(self.waiters.next(place), self.sleepers.next(place)),
        }?;

        Some((place, &self.waiters, &self.sleepers))
    }

    /// Makes `owner` the owner if the mutex is free at `key` (RES-95). An owner that acquires again
    /// finds it busy like everybody else (RES-97).
    pub fn acquire(&mut self, key: u64, owner: M::Owner) -> Attempt<M::Owner> {
        if self.abandoned {
            return Attempt::Abandoned(owner);
        }
        if self.owner.is_some() || key != self.key {
            return Attempt::Busy(owner);
        }
        self.owner = Some(owner);
        Attempt::Acquired(self.fence)
    }

    /// Queues a waiter for `key`, last of those.
    ///
    /// Under the same hold of the lock as the [`KeyedMutex::acquire`] that found the mutex busy, so
    /// that no release falls in between.
    pub fn queue(&mut self, key: u64, new_node: M::NewNode) -> WaitKey {
        let place = self.next_place(key);

        self.waiters.put(M::name(new_node, place));
        self.queued(place)
    }

    /// The same for a thread that sleeps in memory of its own; `None` if too many do.
    pub fn queue_sleeper(&mut self, key: u64, sleeper: L::Place<'_>) -> Option<WaitKey> {
        let place = self.next_place(key);

        if self.sleepers.is_full() || !self.sleepers.put(place, sleeper) {
            return None;
        }
        Some(self.queued(place))
    }

    /// The place of the next one who waits for `key`.
    fn next_place(&self, key: u64) -> WaitKey {
        WaitKey {
            value: key,
            seq: self.next_seq,
        }
    }

    /// One more is queued, in this place.
    fn queued(&mut self, place: WaitKey) -> WaitKey {
        // OVERFLOW: 2^64 waits on one mutex take longer than any machine runs; wrapping is total.
        self.next_seq = self.next_seq.wrapping_add(1);
        // OVERFLOW: bounded by the number of threads.
        self.waiting = self.waiting.saturating_add(1);
        place
    }

    /// Takes one waiter out again; `None` if it was made the owner or the mutex was abandoned.
    pub fn cancel(&mut self, place: &WaitKey) -> Option<Taken<M::Node, ()>> {
        let taken = match self.sleepers.take(place) {
            true => Taken::Sleeper(()),
            false => Taken::Node(self.waiters.take(place)?),
        };

        self.waiting = self.waiting.saturating_sub(1);
        Some(taken)
    }

    /// Sets key and fence value and hands the mutex to the first waiter of the new key (RES-97), if
    /// `is_owner` agrees with who owns it.
    pub fn release(
        &mut self,
        is_owner: impl FnOnce(&M::Owner) -> bool,
        key: u64,
        fence: u64,
    ) -> Result<ReleasedFrom<M, L>, NotOwner> {
        if !self.owner.as_ref().is_some_and(is_owner) {
            return Err(NotOwner);
        }

        let before = self.owner.take().ok_or(NotOwner)?;

        self.key = key;
        self.fence = fence;
        Ok(Released {
            before,
            next: self.hand_over(),
        })
    }

    /// A release by an owner that has not used the mutex: key and fence value stay.
    pub fn pass_on(
        &mut self,
        is_owner: impl FnOnce(&M::Owner) -> bool,
    ) -> Result<ReleasedFrom<M, L>, NotOwner> {
        self.release(is_owner, self.key, self.fence)
    }

    /// Makes the first waiter of the current key the owner.
    fn hand_over(&mut self) -> Option<Taken<M::Node, L::Wake>> {
        let before_all = WaitKey {
            value: self.key,
            seq: 0,
        };
        let first = lower(
            self.waiters.next(&before_all),
            self.sleepers.next(&before_all),
        )
        .filter(|place| place.value == self.key)?;
        let (owner, taken) = match self.sleepers.make_owner(&first, self.fence) {
            Some((owner, wake)) => (owner, Taken::Sleeper(wake)),
            None => {
                let (owner, node) = self.waiters.make_owner(&first, self.fence)?;

                (owner, Taken::Node(node))
            }
        };

        self.waiting = self.waiting.saturating_sub(1);
        self.owner = Some(owner);
        Some(taken)
    }

    /// Abandons the mutex (RES-99); `None` if it was abandoned already.
    pub fn abandon(&mut self, empty: M) -> Option<Abandoned<M::Owner, M, L::Wake>> {
        if self.abandoned {
            return None;
        }
        self.abandoned = true;
        self.waiting = 0;

        let mut woken = Woken::new();

        while let Some(place) = self.sleepers.first() {
            // It is there, so that this ends.
            let Some(wake) = self.sleepers.tell(&place, News::Orphaned) else {
                break;
            };

            woken.add(place, News::Orphaned, wake);
        }
        Some(Abandoned {
            before: self.owner.take(),
            waiters: core::mem::replace(&mut self.waiters, empty),
            woken,
        })
    }
}
