// SPDX-License-Identifier: GPL-2.0

//! The state of one keyed mutex (RES-95 to RES-99).
//!
//! The caller owns the lock, the memory of the nodes and the threads; this file decides. A release
//! hands the mutex over directly: the first waiter of the new key owns it before the lock is
//! dropped. So no thread comes in between, and exactly one thread is woken (RES-97). A waiter that
//! gives up checks under the same lock whether that has happened. So no hand-over is lost between
//! release, time-out, signal and abandonment (RES-102).

use super::waiters::{
    WaitKey,
    WaitMap, //
};

/// A map of waiters that can be made owners. Keys are keys of the mutex, each with its arrivals.
pub trait OwnerMap: WaitMap {
    /// The owner of a mutex.
    type Owner;

    /// Removes a waiter, records that it owns the mutex now, with this fence value, and returns it
    /// as the owner. Wakes no thread.
    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(Self::Owner, Self::Node)>;
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
pub struct Abandoned<O, M> {
    /// The owner before, if there was one.
    pub before: Option<O>,
    /// All waiters, to be woken.
    pub waiters: M,
}

/// The state of one keyed mutex. Protected by the lock of the mutex.
pub struct KeyedMutex<M: OwnerMap> {
    key: u64,
    fence: u64,
    owner: Option<M::Owner>,
    abandoned: bool,
    waiters: M,
    waiting: u32,
    next_seq: u64,
}

impl<M: OwnerMap> KeyedMutex<M> {
    /// Without owner, with this first key and fence value 0 (RES-91); `waiters` must be empty.
    pub const fn new(key: u64, waiters: M) -> Self {
        Self {
            key,
            fence: 0,
            owner: None,
            abandoned: false,
            waiters,
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
        let place = WaitKey {
            value: key,
            seq: self.next_seq,
        };

        // OVERFLOW: 2^64 waits on one mutex take longer than any machine runs; wrapping is total.
        self.next_seq = self.next_seq.wrapping_add(1);
        // OVERFLOW: bounded by the number of threads.
        self.waiting = self.waiting.saturating_add(1);
        self.waiters.put(M::name(new_node, place));
        place
    }

    /// Takes one waiter out again; `None` if it was made the owner or the mutex was abandoned.
    pub fn cancel(&mut self, place: &WaitKey) -> Option<M::Node> {
        let node = self.waiters.take(place)?;

        self.waiting = self.waiting.saturating_sub(1);
        Some(node)
    }

    /// Sets key and fence value and hands the mutex to the first waiter of the new key (RES-97), if
    /// `is_owner` agrees with who owns it.
    pub fn release(
        &mut self,
        is_owner: impl FnOnce(&M::Owner) -> bool,
        key: u64,
        fence: u64,
    ) -> Result<Released<M::Owner, M::Node>, NotOwner> {
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
    ) -> Result<Released<M::Owner, M::Node>, NotOwner> {
        self.release(is_owner, self.key, self.fence)
    }

    /// Makes the first waiter of the current key the owner.
    fn hand_over(&mut self) -> Option<M::Node> {
        let before_all = WaitKey {
            value: self.key,
            seq: 0,
        };
        let first = self
            .waiters
            .next(&before_all)
            .filter(|place| place.value == self.key)?;
        let (owner, node) = self.waiters.make_owner(&first, self.fence)?;

        self.waiting = self.waiting.saturating_sub(1);
        self.owner = Some(owner);
        Some(node)
    }

    /// Abandons the mutex (RES-99); `None` if it was abandoned already.
    pub fn abandon(&mut self, empty: M) -> Option<Abandoned<M::Owner, M>> {
        if self.abandoned {
            return None;
        }
        self.abandoned = true;
        self.waiting = 0;
        Some(Abandoned {
            before: self.owner.take(),
            waiters: core::mem::replace(&mut self.waiters, empty),
        })
    }
}
