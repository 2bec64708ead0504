// SPDX-License-Identifier: GPL-2.0

//! The few names that pure code needs from its surroundings.
//!
//! In the module these are the kernel's atomics with the kernel's memory model; the host test
//! crate offers the same names over the standard library, and over loom.

use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        rcu,
        Arc,
        Mutex,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

pub(crate) use kernel::task::might_sleep;

/// A full barrier among the processors: `smp_mb`.
pub(crate) use crate::compat::full_fence;
use crate::sys::small_vec::InlineVec;

/// Something in allocated memory.
pub(crate) type Boxed<T> = KBox<T>;

/// Something in allocated memory that is shared.
pub(crate) type Shared<T> = Arc<T>;

/// Puts something into shared memory; `None` if there is no memory. May sleep.
pub(crate) fn shared<T>(value: T) -> Option<Shared<T>> {
    Arc::new(value, GFP_KERNEL_ACCOUNT).ok()
}

/// Something that happens once and can be waited for.
pub(crate) type Completion = Pin<KBox<kernel::sync::Completion>>;

/// A completion; `None` if there is no memory. May sleep.
pub(crate) fn completion() -> Option<Completion> {
    KBox::pin_init(kernel::sync::Completion::new(), GFP_KERNEL_ACCOUNT).ok()
}

/// Counts what happens in any context, and can be waited for.
pub(crate) type Arrivals = Pin<KBox<wait_queue::Arrivals>>;

/// Such a count; `None` if there is no memory. May sleep.
pub(crate) fn arrivals() -> Option<Arrivals> {
    pinned(wait_queue::Arrivals::new())
}

/// A lock around calls that may sleep.
pub(crate) struct Turns(Pin<KBox<Mutex<()>>>);

/// Such a lock; `None` if there is no memory. May sleep.
pub(crate) fn turns() -> Option<Turns> {
    KBox::pin_init(new_mutex!((), "ddi::Device::turns"), GFP_KERNEL_ACCOUNT)
        .ok()
        .map(Turns)
}

/// The same for a context, which may be taken inside of that of a device.
pub(crate) fn context_turns() -> Option<Turns> {
    KBox::pin_init(new_mutex!((), "ddi::Context::turns"), GFP_KERNEL_ACCOUNT)
        .ok()
        .map(Turns)
}

impl Turns {
    /// Takes it until the result is dropped. May sleep.
    pub(crate) fn take(&self) -> impl Drop + '_ {
        self.0.lock()
    }
}

/// Makes something in allocated memory that stays there; `None` if there is no memory. May sleep.
pub(crate) fn pinned<T>(init: impl PinInit<T>) -> Option<Pin<KBox<T>>> {
    pin_box(init, GFP_KERNEL_ACCOUNT).ok()
}

/// A lock under which nothing sleeps, and what it protects: by `lock()`.
pub(crate) type ShortLock<T> = Pin<KBox<SpinLock<T>>>;

/// Makes a [`ShortLock`] around a value, with a name for lockdep; `None` if there is no memory. May
/// sleep.
macro_rules! short_lock {
    ($value:expr, $name:literal) => {
        crate::platform::pinned(kernel::new_spinlock!($value, $name))
    };
}
pub(crate) use short_lock;

/// A lock under which one may sleep, and what it protects: by `lock()`.
pub(crate) type Lock<T> = Pin<KBox<Mutex<T>>>;

/// Makes a [`Lock`] around a value, with a name for lockdep; `None` if there is no memory. May
/// sleep.
macro_rules! lock {
    ($value:expr, $name:literal) => {
        crate::platform::pinned(kernel::new_mutex!($value, $name))
    };
}
pub(crate) use lock;

pub(crate) use crate::sys::task::kthread::{
    breathe,
    is_alone,
    Run,
    Thread,
    Wakeup, //
};

/// A [`Wakeup`] in allocated memory.
pub(crate) type BoxedWakeup = Pin<KBox<Wakeup>>;

/// Such a wakeup; `None` if there is no memory. May sleep.
pub(crate) fn wakeup() -> Option<BoxedWakeup> {
    pinned(Wakeup::new())
}

/// Lets a little time go by: about a millisecond. May sleep.
pub(crate) fn nap() {
    fsleep(Delta::from_millis(1));
}

/// Lets a very little time go by: about 50 microseconds. May sleep.
pub(crate) fn pause() {
    fsleep(Delta::from_micros(50));
}

/// Starts a thread for a part of the software adapter with this number; `None` if there is no
/// memory. May sleep.
pub(crate) fn thread<T: Run>(adapter: u32, part: &str, body: Shared<T>) -> Option<Thread<T>> {
    let name = CString::try_from_fmt(fmt!("opendxg/{adapter}:{part}")).ok()?;

    Thread::start(&name, body).ok()
}

pub(crate) use crate::sys::mem::physical::PhysicalMemory;

/// How processors reach the memory of a segment.
pub(crate) type SegmentMemory = Arc<LocalMemory>;

/// Zeroed memory of so many bytes for a segment, whose pages are taken at their first use; `None`
/// if there is no memory, or these are not whole pages. May sleep.
pub(crate) fn segment_memory(bytes: u64) -> Option<SegmentMemory> {
    let memory = LocalMemory::new(local_memory::page_count(bytes)?).ok()?;

    Arc::new(memory, GFP_KERNEL).ok()
}

/// A page of a physical doorbell that is memory.
pub(crate) type DoorbellPage = ValuePage;

/// Such a page; `None` if there is no memory. May sleep.
pub(crate) fn doorbell_page() -> Option<Shared<DoorbellPage>> {
    Arc::new(ValuePage::new().ok()?, GFP_KERNEL_ACCOUNT).ok()
}

/// Forgets what was written to a physical doorbell that nobody has.
pub(crate) fn clear_doorbell_page(page: &DoorbellPage) {
    for word in page.words() {
        word.store(0, Relaxed);
    }
}

/// The physical address after the last byte of memory that processors always reach.
pub(crate) use crate::sys::mem::physical::memory_end;

/// Runs what must not sleep: as an RCU reader, in which debug kernels complain about a sleep.
pub(crate) fn without_sleep<T>(run: impl FnOnce() -> T) -> T {
    let _reader = rcu::read_lock();

    run()
}

use crate::sys::{
    alloc::pin_box,
    mem::{
        local_memory::{
            self,
            LocalMemory, //
        },
        value_page::ValuePage, //
    },
    wait_queue, //
};

pub(crate) use crate::sys::{
    dma_fence::Signalling,
    lockdep::{
        gate_closed,
        gate_entered,
        GateHeld, //
    },
    time::now_ns, //
};

pub(crate) use crate::sys::task::sleep::{
    holds_spinlock,
    may_sleep, //
};

/// A number of the thread that calls this.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) fn thread_id() -> u64 {
    // CAST: numbers of threads are positive.
    kernel::current!().pid() as u64
}

/// An array of nothing, made in place; `None` if there is no memory. May sleep.
pub(crate) fn none_array<T, const N: usize>() -> Option<Boxed<[Option<T>; N]>> {
    let nothing = pin_init::init_array_from_fn(|_| Ok::<_, Error>(None));

    KBox::init(nothing, GFP_KERNEL_ACCOUNT).ok()
}

/// Things one after the other. The only one takes no memory of its own.
pub(crate) type Growing<T> = InlineVec<T>;

/// Adds one at the end; `None` if there is no memory. May sleep.
pub(crate) fn push<T>(all: &mut Growing<T>, new: T) -> Option<()> {
    all.reserve(1).ok()?;
    all.push(new);
    Some(())
}

/// Takes the one in this place away; `None` if there is none.
pub(crate) fn remove<T>(all: &mut Growing<T>, place: usize) -> Option<T> {
    all.remove(place)
}

/// So many places for things, in memory that may be large.
pub(crate) type Places<T, const N: usize> = KVBox<[Option<T>; N]>;

/// Places with nothing in them, made where they are; `None` if there is no memory. May sleep, as
/// may their drop.
pub(crate) fn places<T, const N: usize>() -> Option<Places<T, N>> {
    let nothing = pin_init::init_array_from_fn(|_| Ok::<_, Error>(None));

    KVBox::init(nothing, GFP_KERNEL_ACCOUNT).ok()
}

/// A shared 64-bit word, such as CurrentValue.
pub(crate) type Word64 = Atomic<u64>;

/// A shared 32-bit word.
pub(crate) type Word32 = Atomic<u32>;

/// So many shared 32-bit words, in memory that may be large.
pub(crate) type Words32<const N: usize> = KVBox<[Word32; N]>;

/// Such words, which are 0, made where they are; `None` if there is no memory. May sleep, as may
/// their drop.
pub(crate) fn words32<const N: usize>() -> Option<Words32<N>> {
    let zeros = pin_init::init_array_from_fn(|_| Ok::<_, Error>(word32(0)));

    KVBox::init(zeros, GFP_KERNEL_ACCOUNT).ok()
}

/// A new 64-bit word.
pub(crate) fn word64(value: u64) -> Word64 {
    Atomic::new(value)
}

/// A new 32-bit word.
pub(crate) fn word32(value: u32) -> Word32 {
    Atomic::new(value)
}

/// One 64-bit load with acquire ordering.
pub(crate) fn load_acquire(word: &Word64) -> u64 {
    word.load(Acquire)
}

/// One 64-bit store with release ordering.
pub(crate) fn store_release(word: &Word64, value: u64) {
    word.store(value, Release)
}

/// One 32-bit load with acquire ordering.
pub(crate) fn load32_acquire(word: &Word32) -> u32 {
    word.load(Acquire)
}

/// One 32-bit store with release ordering.
pub(crate) fn store32_release(word: &Word32, value: u32) {
    word.store(value, Release)
}

/// Adds and returns what was there before; wraps; fully ordered.
pub(crate) fn fetch_add(word: &Word32, value: u32) -> u32 {
    word.fetch_add(value, Full)
}

/// Subtracts and returns what was there before; wraps; fully ordered.
pub(crate) fn fetch_sub(word: &Word32, value: u32) -> u32 {
    word.fetch_sub(value, Full)
}

/// Replaces `old` by `new`; true if it did; fully ordered.
pub(crate) fn cmpxchg(word: &Word32, old: u32, new: u32) -> bool {
    word.cmpxchg(old, new, Full).is_ok()
}
