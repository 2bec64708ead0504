// SPDX-License-Identifier: GPL-2.0

//! Lists of threads that sleep, whose places are on their own stacks, as in the kernel's rwsem and
//! rt_mutex. Queueing takes no memory.
//!
//! A list is part of what the lock of an object protects. It points to places that it does not own.
//! What makes that safe is in this file alone: something on a stack stays where it is
//! ([`OnStack`] is pinned), and does not go as long as a place of it is in a list, because its drop
//! waits for that. It never has to, if the thread has left before; but for a moment, when it woke
//! by itself between the news and the last access to its place.

use crate::logic::{
    sleepers::{
        Listed,
        News,
        SleeperList,
        MAX_SLEEPERS, //
    },
    waiters::WaitKey, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// A place in a list.
struct Place<T> {
    listed: Listed,
    /// LOCK: that of the list it is in. In none, it belongs to who has entered it.
    link: UnsafeCell<Link<T>>,
}

struct Link<T> {
    key: WaitKey,
    /// What the place is for.
    what: NonNull<T>,
    next: Option<NonNull<Place<T>>>,
}

/// Something on the stack of a thread that sleeps, with `N` places in lists.
pub(crate) struct OnStack<T, const N: usize> {
    what: T,
    places: [Place<T>; N],
    _pinned: PhantomPinned,
}

// SAFETY: A place is used under the lock of its list, or by the one who has entered it. What it is
// for is used by reference, by any thread.
unsafe impl<T: Send + Sync, const N: usize> Sync for OnStack<T, N> {}

impl<T, const N: usize> OnStack<T, N> {
    /// This, with places in no list. To be pinned.
    pub(crate) fn new(what: T) -> Self {
        Self {
            what,
            places: core::array::from_fn(|_| Place {
                listed: Listed::new(),
                link: UnsafeCell::new(Link {
                    key: WaitKey { value: 0, seq: 0 },
                    what: NonNull::dangling(),
                    next: None,
                }),
            }),
            _pinned: PhantomPinned,
        }
    }

    /// What is on the stack.
    pub(crate) fn what(self: Pin<&Self>) -> &T {
        &self.get_ref().what
    }

    /// One of its places.
    pub(crate) fn place(self: Pin<&Self>, number: usize) -> Option<NewPlace<'_, T>> {
        let this = self.get_ref();

        Some(NewPlace {
            place: this.places.get(number)?,
            what: &this.what,
        })
    }
}

impl<T, const N: usize> Drop for OnStack<T, N> {
    fn drop(&mut self) {
        for place in &self.places {
            while place.listed.is_in() {
                // Who has taken it out holds a lock, and lets go of it next.
                fsleep(Delta::from_micros(50));
            }
        }
    }
}

/// A place that goes into a list.
///
/// INVARIANT: both are parts of one [`OnStack`], which is pinned: it is there until its drop has
/// returned, which waits until the place is in no list.
pub(crate) struct NewPlace<'a, T> {
    place: &'a Place<T>,
    what: &'a T,
}

/// A list of places, in the order of their keys.
pub(crate) struct StackList<T> {
    /// INVARIANT: each place from here on is in this list alone, and its [`OnStack`] is pinned and
    /// waits for it.
    first: Option<NonNull<Place<T>>>,
}

// SAFETY: Places are reached through the list only, so that who has the list has them. What they
// are for is used by reference.
unsafe impl<T: Send + Sync> Send for StackList<T> {}
// SAFETY: By reference keys and links are only read.
unsafe impl<T: Send + Sync> Sync for StackList<T> {}

impl<T: Send + Sync + 'static> StackList<T> {
    /// An empty list.
    pub(crate) const fn new() -> Self {
        Self { first: None }
    }

    /// The keys, in order.
    fn keys(&self) -> impl Iterator<Item = WaitKey> + '_ {
        let mut next = self.first;

        core::iter::from_fn(move || {
            // SAFETY: By the invariant the place is there. Links of this list change by `&mut self`
            // only.
            let link = unsafe { &*next?.as_ref().link.get() };

            next = link.next;
            Some(link.key)
        })
    }

    /// The smallest key.
    pub(crate) fn first(&self) -> Option<WaitKey> {
        self.keys().next()
    }

    /// The smallest key above `key`.
    pub(crate) fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        self.keys().find(|own| *own > *key)
    }

    /// Calls `look` with what the place with this key is for. `None` if it is not here.
    pub(crate) fn look<R>(&self, key: &WaitKey, look: impl FnOnce(&T) -> R) -> Option<R> {
        let mut next = self.first;

        while let Some(place) = next {
            // SAFETY: By the invariant the place is there, with what it is for. Links of this list
            // change by `&mut self` only.
            let (link, what) = unsafe {
                let link = &*place.as_ref().link.get();

                (link, link.what.as_ref())
            };

            if link.key == *key {
                return Some(look(what));
            }
            next = link.next;
        }
        None
    }

    /// Whether it has as many places as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.keys().count() >= MAX_SLEEPERS
    }

    /// Puts a place in. False if it is in a list already.
    pub(crate) fn put(&mut self, key: WaitKey, new: NewPlace<'_, T>) -> bool {
        if !new.place.listed.enter() {
            return false;
        }

        let place = NonNull::from(new.place);
        let mut at = &mut self.first;

        // SAFETY: Those in the list are there, and change by `&mut self` only. The new one was in
        // no list and is ours since it was entered. It is not reached yet.
        unsafe {
            while let Some(other) = *at {
                let link = &mut *other.as_ref().link.get();

                if link.key > key {
                    break;
                }
                at = &mut link.next;
            }
            *new.place.link.get() = Link {
                key,
                what: NonNull::from(new.what),
                next: *at,
            };
        }
        // INVARIANT: by that of `NewPlace`.
        *at = Some(place);
        true
    }

    /// Takes out the place with this key, and calls `tell` with what it is for. `None` if it is not
    /// here.
    pub(crate) fn take<R>(&mut self, key: &WaitKey, tell: impl FnOnce(&T) -> R) -> Option<R> {
        let mut at = &mut self.first;

        loop {
            let place = (*at)?;
            // SAFETY: It is in the list, so that it is there, and changes by `&mut self` only.
            let link = unsafe { &mut *place.as_ref().link.get() };

            if link.key != *key {
                at = &mut link.next;
                continue;
            }
            *at = link.next.take();

            // SAFETY: It stays until the place is in no list, which is said below.
            let result = tell(unsafe { link.what.as_ref() });

            // SAFETY: As above. Nothing of it is used from here on.
            unsafe { place.as_ref() }.listed.let_go();
            return Some(result);
        }
    }
}

/// A thread that sleeps, in a place of its stack.
pub(crate) trait Sleeps: Send + Sync + 'static {
    /// What wakes it.
    type Wake;

    /// Tells it the news. What wakes it, if its wait has ended by that.
    fn tell(&self, news: News) -> Option<Self::Wake>;
}

impl<T: Sleeps> SleeperList for StackList<T> {
    type Place<'a> = NewPlace<'a, T>;
    type Wake = T::Wake;

    fn first(&self) -> Option<WaitKey> {
        self.first()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        self.next(key)
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }

    fn put(&mut self, key: WaitKey, place: Self::Place<'_>) -> bool {
        self.put(key, place)
    }

    fn tell(&mut self, key: &WaitKey, news: News) -> Option<Option<T::Wake>> {
        self.take(key, |sleeper| sleeper.tell(news))
    }

    fn take(&mut self, key: &WaitKey) -> bool {
        self.take(key, |_| ()).is_some()
    }
}

impl<T> Drop for StackList<T> {
    fn drop(&mut self) {
        while let Some(place) = self.first {
            // SAFETY: By the invariant it is there. It is let go of last.
            unsafe {
                self.first = (*place.as_ref().link.get()).next;
                place.as_ref().listed.let_go();
            }
        }
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_stack_list)]
mod tests {
    use super::*;
    use core::pin::pin;

    fn key(value: u64, seq: u64) -> WaitKey {
        WaitKey { value, seq }
    }

    #[test]
    fn places_are_in_order_and_leave_once() -> Result {
        let mut list = StackList::new();
        let one = pin!(OnStack::<u64, 2>::new(1));
        let other = pin!(OnStack::<u64, 2>::new(2));
        let (one, other) = (one.as_ref(), other.as_ref());

        assert!(list.put(key(7, 1), one.place(0).ok_or(EINVAL)?));
        assert!(list.put(key(5, 3), one.place(1).ok_or(EINVAL)?));
        assert!(list.put(key(5, 2), other.place(0).ok_or(EINVAL)?));
        assert!(!list.put(key(4, 4), other.place(0).ok_or(EINVAL)?));
        assert!(!list.is_full());
        assert!(list.put(key(9, 4), other.place(1).ok_or(EINVAL)?));
        assert!(list.is_full());
        assert!(other.place(2).is_none());

        assert_eq!(list.first(), Some(key(5, 2)));
        assert_eq!(list.next(&key(5, 2)), Some(key(5, 3)));
        assert_eq!(list.look(&key(5, 2), |what| *what), Some(2));
        assert_eq!(list.look(&key(5, 4), |what| *what), None);
        assert_eq!(list.next(&key(7, 1)), Some(key(9, 4)));
        assert_eq!(list.take(&key(7, 1), |what| *what), Some(1));
        assert_eq!(list.take(&key(7, 1), |what| *what), None);
        assert_eq!(list.take(&key(5, 2), |what| *what), Some(2));
        assert_eq!(list.take(&key(9, 4), |what| *what), Some(2));
        assert_eq!(list.first(), Some(key(5, 3)));

        // A place that has left may come again.
        assert!(list.put(key(6, 5), other.place(0).ok_or(EINVAL)?));
        assert_eq!(list.next(&key(5, 3)), Some(key(6, 5)));
        // What is dropped later finds its places free.
        drop(list);
        Ok(())
    }
}
