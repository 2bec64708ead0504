// SPDX-License-Identifier: GPL-2.0

//! The few names that pure code needs from its surroundings.
//!
//! In the module these are the kernel's atomics with the kernel's memory model; the host test
//! crate offers the same names over the standard library, and over loom.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        rcu,
        Arc,
        Mutex, //
    }, //
};

pub(crate) use kernel::task::might_sleep;

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

/// A lock around calls that may sleep.
pub(crate) struct Turns(Pin<KBox<Mutex<()>>>);

/// Such a lock; `None` if there is no memory. May sleep.
pub(crate) fn turns() -> Option<Turns> {
    KBox::pin_init(new_mutex!((), "ddi::Device::turns"), GFP_KERNEL_ACCOUNT)
        .ok()
        .map(Turns)
}

impl Turns {
    /// Takes it until the result is dropped. May sleep.
    pub(crate) fn take(&self) -> impl Drop + '_ {
        self.0.lock()
    }
}

/// Runs what must not sleep: as an RCU reader, in which debug kernels complain about a sleep.
pub(crate) fn without_sleep<T>(run: impl FnOnce() -> T) -> T {
    let _reader = rcu::read_lock();

    run()
}

pub(crate) use crate::sys::{
    lockdep::{
        gate_closed,
        gate_entered,
        GateHeld, //
    },
    time::now_ns, //
};

#[cfg(CONFIG_KUNIT = "y")]
pub(crate) use crate::sys::task::sleep::may_sleep;

/// An array of nothing, made in place; `None` if there is no memory. May sleep.
pub(crate) fn none_array<T, const N: usize>() -> Option<Boxed<[Option<T>; N]>> {
    let nothing = pin_init::init_array_from_fn(|_| Ok::<_, Error>(None));

    KBox::init(nothing, GFP_KERNEL_ACCOUNT).ok()
}

/// A shared 64-bit word, such as CurrentValue.
pub(crate) type Word64 = Atomic<u64>;

/// A shared 32-bit word.
pub(crate) type Word32 = Atomic<u32>;

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
