// SPDX-License-Identifier: MIT OR Apache-2.0

//! The names of `rust/platform.rs` over the standard library, or over loom.
//!
//! The kernel's "fully ordered" is modelled as acquire and release on the operation itself. That
//! is weaker than the kernel's full barrier on both sides, so a proof here holds there.
//!
//! Under loom, [`mutation::without`] leaves one kind of ordering out. A test that still passes
//! then would not notice its absence in the code.

#[cfg(loom)]
use loom::sync::{
    atomic::{fence, AtomicU32, AtomicU64, Ordering},
    Condvar, Mutex,
};
#[cfg(not(loom))]
use std::sync::{
    atomic::{fence, AtomicU32, AtomicU64, Ordering},
    Condvar, Mutex,
};

use std::ops::{Deref, DerefMut};

/// Something in allocated memory.
pub(crate) type Boxed<T> = Box<T>;

/// Something in allocated memory that is shared.
pub(crate) type Shared<T> = std::sync::Arc<T>;

/// Puts something into shared memory.
pub(crate) fn shared<T>(value: T) -> Option<Shared<T>> {
    Some(Shared::new(value))
}

thread_local! {
    /// How many times the thread is in something that must not sleep.
    static SLEEPLESS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    /// How many of these are locks.
    static SHORT_LOCKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    /// How many of those it has taken so far.
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many locks under which nothing sleeps the caller has taken so far.
#[cfg(test)]
pub(crate) fn short_locks_taken() -> u64 {
    TAKEN.get()
}

/// Says that the caller may sleep here. Panics if that is not so. loom runs all threads of a model
/// on one thread, so it knows nothing there.
pub(crate) fn might_sleep() {
    if cfg!(not(loom)) {
        assert_eq!(SLEEPLESS.get(), 0, "sleeps where it must not");
    }
}

/// Whether the caller may sleep here.
pub(crate) fn may_sleep() -> Option<bool> {
    Some(SLEEPLESS.get() == 0)
}

/// Whether the caller holds a lock under which nothing sleeps.
pub(crate) fn holds_spinlock() -> Option<bool> {
    Some(SHORT_LOCKS.get() != 0)
}

/// A number of the thread that calls this.
pub(crate) fn thread_id() -> u64 {
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

    thread_local! {
        static OWN: u64 = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
    }
    OWN.with(|own| *own)
}

/// Runs what must not sleep.
pub(crate) fn without_sleep<T>(run: impl FnOnce() -> T) -> T {
    SLEEPLESS.set(SLEEPLESS.get() + 1);

    let result = run();

    SLEEPLESS.set(SLEEPLESS.get() - 1);
    result
}

thread_local! {
    /// How many gates the thread is inside of; negative if it has closed one.
    static GATES: std::cell::Cell<i32> = const { std::cell::Cell::new(0) };
}

/// Until this is dropped, the thread is inside of a gate or has closed one.
pub(crate) struct GateHeld(i32);

impl GateHeld {
    /// loom runs all threads of a model on one thread, so it counts for nothing there.
    fn new(change: i32) -> Self {
        if cfg!(not(loom)) {
            GATES.set(GATES.get() + change);
        }
        Self(change)
    }
}

impl Drop for GateHeld {
    fn drop(&mut self) {
        if cfg!(not(loom)) {
            GATES.set(GATES.get() - self.0);
        }
    }
}

/// The thread is inside of a gate. Panics if it may wait for one that it has closed itself.
pub(crate) fn gate_entered(may_wait: bool) -> GateHeld {
    assert!(!may_wait || GATES.get() >= 0, "a thread waits for itself");
    GateHeld::new(1)
}

/// The thread waits for those inside of a gate. Panics if it is one of them.
pub(crate) fn gate_closed() -> GateHeld {
    assert_eq!(GATES.get(), 0, "a thread waits for itself");
    GateHeld::new(-1)
}

/// Until this is dropped, the thread is on the way to the signal of a fence of the kernel.
pub(crate) struct Signalling(());

impl Signalling {
    /// The way begins.
    pub(crate) fn begin() -> Self {
        Self(())
    }
}

impl Drop for Signalling {
    /// As in the kernel, where it ends something.
    fn drop(&mut self) {}
}

/// Nanoseconds of a clock that does not go back.
pub(crate) fn now_ns() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let since = START.get_or_init(std::time::Instant::now).elapsed();

    u64::try_from(since.as_nanos()).expect("not that long")
}

/// A lock around calls that may sleep.
pub(crate) struct Turns(Mutex<()>);

/// Such a lock.
pub(crate) fn turns() -> Option<Turns> {
    Some(Turns(Mutex::new(())))
}

/// The same for a context.
pub(crate) fn context_turns() -> Option<Turns> {
    turns()
}

impl Turns {
    /// Takes it until the result is dropped.
    pub(crate) fn take(&self) -> impl Drop + '_ {
        self.0.lock().expect("nobody panics")
    }
}

/// A lock that is held, while the thread must not sleep.
pub(crate) struct Sleepless<T>(T);

impl<T> Sleepless<T> {
    fn new(held: T) -> Self {
        SLEEPLESS.set(SLEEPLESS.get() + 1);
        SHORT_LOCKS.set(SHORT_LOCKS.get() + 1);
        TAKEN.set(TAKEN.get() + 1);
        Self(held)
    }
}

impl<T> Drop for Sleepless<T> {
    fn drop(&mut self) {
        SLEEPLESS.set(SLEEPLESS.get() - 1);
        SHORT_LOCKS.set(SHORT_LOCKS.get() - 1);
    }
}

impl<T: Deref> Deref for Sleepless<T> {
    type Target = T::Target;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: DerefMut> DerefMut for Sleepless<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// A lock under which nothing sleeps, and what it protects.
pub(crate) struct ShortLock<T>(Mutex<T>);

impl<T> ShortLock<T> {
    /// Such a lock; by [`short_lock`].
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Takes it until the result is dropped.
    pub(crate) fn lock(&self) -> impl DerefMut<Target = T> + '_ {
        Sleepless::new(self.0.lock().expect("nobody panics"))
    }
}

/// Makes a [`ShortLock`] around a value.
macro_rules! short_lock {
    ($value:expr, $name:literal) => {
        Some(crate::platform::ShortLock::new($value))
    };
}
pub(crate) use short_lock;

/// A lock under which one may sleep, and what it protects.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// Such a lock; by [`lock`].
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Takes it until the result is dropped.
    pub(crate) fn lock(&self) -> impl DerefMut<Target = T> + '_ {
        might_sleep();
        self.0.lock().expect("nobody panics")
    }

    /// Takes it until the result is dropped, unless somebody has it.
    pub(crate) fn try_lock(&self) -> Option<impl DerefMut<Target = T> + '_> {
        self.0.try_lock().ok()
    }
}

/// Makes a [`Lock`] around a value.
macro_rules! lock {
    ($value:expr, $name:literal) => {
        Some(crate::platform::Lock::new($value))
    };
}
pub(crate) use lock;

pub(crate) use crate::{
    physical::{memory_end, segment_memory, PhysicalMemory, SegmentMemory},
    thread::{breathe, is_alone, thread, wakeup, BoxedWakeup, Run, Thread, Wakeup},
};

/// Lets a little time go by.
pub(crate) fn nap() {
    might_sleep();
    std::thread::sleep(std::time::Duration::from_millis(1));
}

/// Lets a very little time go by.
pub(crate) fn pause() {
    might_sleep();
    std::thread::sleep(std::time::Duration::from_micros(50));
}

/// A page of a physical doorbell that is memory.
pub(crate) struct DoorbellPage(());

/// Such a page.
pub(crate) fn doorbell_page() -> Option<Shared<DoorbellPage>> {
    Some(Shared::new(DoorbellPage(())))
}

/// Forgets what was written to a physical doorbell. There is nothing here that one could write to.
pub(crate) fn clear_doorbell_page(_: &DoorbellPage) {}

/// Something that happens once and can be waited for.
pub(crate) struct Completion {
    done: Mutex<bool>,
    changed: Condvar,
}

/// A completion.
pub(crate) fn completion() -> Option<Completion> {
    Some(Completion {
        done: Mutex::new(false),
        changed: Condvar::new(),
    })
}

impl Completion {
    /// It has happened, for everybody who waits now or later.
    pub(crate) fn complete_all(&self) {
        *self.done.lock().expect("nobody panics") = true;
        self.changed.notify_all();
    }

    /// Returns when it has happened.
    pub(crate) fn wait_for_completion(&self) {
        let mut done = self.done.lock().expect("nobody panics");

        while !*done {
            done = self.changed.wait(done).expect("nobody panics");
        }
    }
}

/// Counts what happens in any context, and can be waited for.
pub(crate) struct Arrivals {
    count: Mutex<u32>,
    changed: Condvar,
}

/// Such a count.
pub(crate) fn arrivals() -> Option<Arrivals> {
    Some(Arrivals {
        count: Mutex::new(0),
        changed: Condvar::new(),
    })
}

impl Arrivals {
    /// How much has happened so far.
    pub(crate) fn count(&self) -> u32 {
        *self.count.lock().expect("nobody panics")
    }

    /// One more.
    pub(crate) fn arrive(&self) {
        *self.count.lock().expect("nobody panics") += 1;
        self.changed.notify_all();
    }

    /// Returns when so much has happened.
    pub(crate) fn wait_until(&self, count: u32) {
        might_sleep();

        let mut now = self.count.lock().expect("nobody panics");

        while (now.wrapping_sub(count) as i32) < 0 {
            now = self.changed.wait(now).expect("nobody panics");
        }
    }
}

/// An array of nothing.
pub(crate) fn none_array<T, const N: usize>() -> Option<Boxed<[Option<T>; N]>> {
    Some(Box::new([const { None }; N]))
}

/// Things one after the other.
pub(crate) type Growing<T> = Vec<T>;

/// Adds one at the end.
pub(crate) fn push<T>(all: &mut Growing<T>, new: T) -> Option<()> {
    all.push(new);
    Some(())
}

/// Takes the one in this place away; `None` if there is none.
pub(crate) fn remove<T>(all: &mut Growing<T>, place: usize) -> Option<T> {
    (place < all.len()).then(|| all.remove(place))
}

/// So many places for things.
pub(crate) type Places<T, const N: usize> = Box<[Option<T>; N]>;

/// Places with nothing in them, made where they are: threads of loom have small stacks.
pub(crate) fn places<T, const N: usize>() -> Option<Places<T, N>> {
    let all: Box<[Option<T>]> = (0..N).map(|_| None).collect();

    all.try_into().ok()
}

/// A shared 64-bit word, such as CurrentValue.
pub(crate) type Word64 = AtomicU64;

/// A shared 32-bit word.
pub(crate) type Word32 = AtomicU32;

/// So many shared 32-bit words.
pub(crate) type Words32<const N: usize> = Box<[Word32; N]>;

/// Such words, which are 0, made where they are: threads of loom have small stacks.
pub(crate) fn words32<const N: usize>() -> Option<Words32<N>> {
    let all: Box<[Word32]> = (0..N).map(|_| word32(0)).collect();

    all.try_into().ok()
}

/// A kind of ordering that a mutation can leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The release of a 64-bit store.
    Release64,
    /// The acquire of a 64-bit load.
    Acquire64,
    /// The release of a 32-bit store.
    Release32,
    /// The acquire of a 32-bit load.
    Acquire32,
    /// The ordering of `fetch_add` and `fetch_sub`.
    FullAdd,
    /// The ordering of `cmpxchg`.
    FullCmpxchg,
    /// The whole of `full_fence`.
    FullFence,
}

/// Orderings left out on purpose.
#[cfg(loom)]
pub(crate) mod mutation {
    use std::cell::Cell;

    use super::{Ordering, Part};

    thread_local! {
        /// loom runs all threads of a model on the thread that started it, so this reaches them.
        static LEFT_OUT: Cell<Option<Part>> = const { Cell::new(None) };
    }

    /// Runs `test` with one kind of ordering left out.
    pub(crate) fn without(part: Part, test: impl FnOnce()) {
        struct Restore;

        impl Drop for Restore {
            fn drop(&mut self) {
                LEFT_OUT.set(None);
            }
        }

        let _restore = Restore;

        LEFT_OUT.set(Some(part));
        test();
    }

    pub(super) fn ordering(part: Part, ordering: Ordering) -> Ordering {
        match LEFT_OUT.get() == Some(part) {
            true => Ordering::Relaxed,
            false => ordering,
        }
    }
}

#[cfg(loom)]
use mutation::ordering;

#[cfg(not(loom))]
fn ordering(_: Part, ordering: Ordering) -> Ordering {
    ordering
}

/// A new 64-bit word.
pub(crate) fn word64(value: u64) -> Word64 {
    Word64::new(value)
}

/// A new 32-bit word.
pub(crate) fn word32(value: u32) -> Word32 {
    Word32::new(value)
}

/// One 64-bit load with acquire ordering.
pub(crate) fn load_acquire(word: &Word64) -> u64 {
    word.load(ordering(Part::Acquire64, Ordering::Acquire))
}

/// One 64-bit store with release ordering.
pub(crate) fn store_release(word: &Word64, value: u64) {
    word.store(value, ordering(Part::Release64, Ordering::Release));
}

/// One 32-bit load with acquire ordering.
pub(crate) fn load32_acquire(word: &Word32) -> u32 {
    word.load(ordering(Part::Acquire32, Ordering::Acquire))
}

/// One 32-bit store with release ordering.
pub(crate) fn store32_release(word: &Word32, value: u32) {
    word.store(value, ordering(Part::Release32, Ordering::Release));
}

/// Adds and returns what was there before; wraps.
pub(crate) fn fetch_add(word: &Word32, value: u32) -> u32 {
    word.fetch_add(value, ordering(Part::FullAdd, Ordering::AcqRel))
}

/// Subtracts and returns what was there before; wraps.
pub(crate) fn fetch_sub(word: &Word32, value: u32) -> u32 {
    word.fetch_sub(value, ordering(Part::FullAdd, Ordering::AcqRel))
}

/// Replaces `old` by `new`; true if it did.
pub(crate) fn cmpxchg(word: &Word32, old: u32, new: u32) -> bool {
    let order = ordering(Part::FullCmpxchg, Ordering::AcqRel);

    word.compare_exchange(old, new, order, Ordering::Relaxed)
        .is_ok()
}

/// A full barrier among the threads.
pub(crate) fn full_fence() {
    match ordering(Part::FullFence, Ordering::SeqCst) {
        // Left out: there is no relaxed barrier.
        Ordering::Relaxed => {}
        ordering => fence(ordering),
    }
}
