// SPDX-License-Identifier: GPL-2.0

//! Threads that sleep for an object in memory of their own, so that queueing them takes none.
//!
//! Such a thread has a place on its stack, as in the kernel's own rwsem and rt_mutex. A list of
//! places is protected by the lock of the object that has it, and everything that others do with a
//! place is done under that lock: who takes it out tells its thread there, and lets go of it with
//! the last access of all ([`Listed::let_go`]). Only what wakes the thread is kept until the lock
//! was released. A thread that leaves early takes its place out itself.
//!
//! A list is short, and whoever finds it full is queued by a node of a [`WaitMap`]. Both are served
//! in one order.
//!
//! [`WaitMap`]: crate::logic::waiters::WaitMap

use super::wait_key::WaitKey;
use crate::platform::{
    cmpxchg,
    load32_acquire,
    store32_release,
    word32,
    Word32, //
};

/// So many threads sleep in one list. A signal keeps what wakes them on its stack.
pub const MAX_SLEEPERS: usize = 4;

/// Whether a place is in a list.
pub struct Listed(Word32);

const OUT: u32 = 0;
const IN: u32 = 1;

impl Listed {
    /// In none.
    pub fn new() -> Self {
        Self(word32(OUT))
    }

    /// The place goes into a list, if it is in none. True if so.
    pub fn enter(&self) -> bool {
        cmpxchg(&self.0, OUT, IN)
    }

    /// Lets go of a place that was taken out of its list. From now on it may be gone.
    pub fn let_go(&self) {
        // ORDERING: release: every access to the place is before. Pairs with `is_in`.
        store32_release(&self.0, OUT);
    }

    /// Whether others may still use the place. Its thread must not leave before this is false.
    pub fn is_in(&self) -> bool {
        // ORDERING: acquire: what the thread does with its memory comes after. Pairs with `let_go`.
        load32_acquire(&self.0) == IN
    }
}

/// What a thread that sleeps is told about one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// What it waits for is there.
    Satisfied,
    /// It can never be there.
    Orphaned,
}

/// The places of threads that sleep for one object, in the order of their keys. Protected by the
/// lock of the object.
pub trait SleeperList {
    /// A place that is in no list.
    type Place<'a>;
    /// What wakes its thread.
    type Wake;

    /// The smallest key.
    fn first(&self) -> Option<WaitKey>;
    /// The smallest key above `key`.
    fn next(&self, key: &WaitKey) -> Option<WaitKey>;
    /// Whether there are [`MAX_SLEEPERS`].
    fn is_full(&self) -> bool;
    /// Puts a place in, with a key that is not in the list. False if it is in a list already.
    fn put(&mut self, key: WaitKey, place: Self::Place<'_>) -> bool;
    /// Takes a place out and tells its thread; `None` if it is not here. What wakes the thread, if
    /// its wait has ended by that.
    fn tell(&mut self, key: &WaitKey, news: News) -> Option<Option<Self::Wake>>;
    /// Takes a place out without a word. True if it was here.
    fn take(&mut self, key: &WaitKey) -> bool;
}

/// Nobody sleeps so.
pub struct Nobody;

impl SleeperList for Nobody {
    type Place<'a> = core::convert::Infallible;
    type Wake = core::convert::Infallible;

    fn first(&self) -> Option<WaitKey> {
        None
    }

    fn next(&self, _key: &WaitKey) -> Option<WaitKey> {
        None
    }

    fn is_full(&self) -> bool {
        true
    }

    fn put(&mut self, _key: WaitKey, place: Self::Place<'_>) -> bool {
        match place {}
    }

    fn tell(&mut self, _key: &WaitKey, _news: News) -> Option<Option<Self::Wake>> {
        None
    }

    fn take(&mut self, _key: &WaitKey) -> bool {
        false
    }
}

/// The smaller one of two keys, each of which may be missing.
pub fn lower(one: Option<WaitKey>, other: Option<WaitKey>) -> Option<WaitKey> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Threads that were told under one hold of a lock, to be woken after it, in the order of their
/// keys.
pub struct Woken<W> {
    ended: [Option<(WaitKey, W)>; MAX_SLEEPERS],
    /// How many of them are still to be woken.
    left: u32,
    satisfied: u32,
    orphaned: u32,
}

impl<W> Woken<W> {
    /// Nobody.
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            // Places that are not filled, as an array of one value would be.
            ended: core::array::from_fn(|_| None),
            left: 0,
            satisfied: 0,
            orphaned: 0,
        }
    }

    /// Somebody was told, and is woken by `wake` if that has ended a wait.
    pub fn add(&mut self, key: WaitKey, news: News, wake: Option<W>) {
        let count = match news {
            News::Satisfied => &mut self.satisfied,
            News::Orphaned => &mut self.orphaned,
        };

        // OVERFLOW: at most `MAX_SLEEPERS`.
        *count = count.saturating_add(1);

        let Some(wake) = wake else {
            return;
        };

        // A list has no more places than there are here, and nobody comes in under the lock.
        if let Some(free) = self.ended.iter_mut().find(|place| place.is_none()) {
            *free = Some((key, wake));
            // OVERFLOW: at most `MAX_SLEEPERS`.
            self.left = self.left.saturating_add(1);
        }
    }

    /// How many places were told that what they wait for is there.
    pub fn satisfied(&self) -> u32 {
        self.satisfied
    }

    /// How many places were told that it can never be there.
    pub fn orphaned(&self) -> u32 {
        self.orphaned
    }

    /// The next one to be woken, if it comes before the waiter under this key; `None` is for the
    /// end.
    #[inline(always)]
    pub fn next_before(&mut self, key: Option<&WaitKey>) -> Option<W> {
        match self.left {
            0 => None,
            _ => self.take_before(key),
        }
    }

    fn take_before(&mut self, key: Option<&WaitKey>) -> Option<W> {
        let next = self.ended.iter_mut().find(|place| place.is_some())?;
        let is_before = |(own, _): &mut (WaitKey, W)| key.is_none_or(|key| *own < *key);

        let (_, wake) = next.take_if(is_before)?;

        self.left = self.left.saturating_sub(1);
        Some(wake)
    }
}
