// SPDX-License-Identifier: GPL-2.0

//! Context classes: what a function of the driver interface may do where it is called (GPU-100).
//!
//! Every entry takes the token of its class. A KMD gets no other token than the one it is called
//! with, so that it cannot call back into something that sleeps from where it must not sleep: that
//! does not compile. Tokens are made by the OS part alone, at the place that knows the context, and
//! debug kernels check there that the token tells the truth.
//!
//! Class H (hard interrupt) gets its token with the first KMD that has interrupts of hardware.

use crate::platform;
use core::marker::PhantomData;

/// Not for other threads: the context belongs to one.
type OfThisThread = PhantomData<*mut ()>;

/// Class P: process context. May sleep and allocate.
pub struct Passive {
    asks: Asks,
    _thread: OfThisThread,
}

/// What a KMD may ask the memory manager for where it is called, so that neither waits for the
/// other (MEM-88).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Whatever there is.
    Anything,
    /// UpdateContextAllocation.
    Updates,
    /// None of that.
    Nothing,
}

impl Passive {
    /// Here, in the OS part, where sleeping is allowed and no spinlock is held.
    pub fn here() -> Self {
        platform::might_sleep();
        Self {
            asks: Asks::Anything,
            _thread: PhantomData,
        }
    }

    /// The same for SetRootPageTable, where page tables are about to change.
    pub(super) fn setting_root(&self) -> Self {
        Self {
            asks: Asks::Updates,
            _thread: PhantomData,
        }
    }

    /// The same for BuildPagingBuffer, which the memory manager waits for.
    pub(super) fn building(&self) -> Self {
        Self {
            asks: Asks::Nothing,
            _thread: PhantomData,
        }
    }

    /// Whether context allocations may be made and mapped here.
    pub fn may_allocate(&self) -> bool {
        self.asks == Asks::Anything
    }

    /// Whether they may be updated here.
    pub fn may_update(&self) -> bool {
        self.asks != Asks::Nothing
    }
}

/// Class D: the adapter's ordered worker, or a caller that holds a spinlock. No sleep, no user
/// memory, no allocation that waits.
pub struct Dispatch(OfThisThread);

impl Dispatch {
    /// Here, in the OS part, under a lock that nothing sleeps under.
    pub fn under_lock() -> Self {
        Self(PhantomData)
    }

    /// Class D as a part of class P: what may be called there may be called here.
    pub fn within(_: &Passive) -> Self {
        Self(PhantomData)
    }

    /// Runs something as class D from where more is allowed, and where the token that says so
    /// cannot be used. It runs as an RCU reader: debug kernels complain about a sleep in it, and
    /// lockdep about a lock that may sleep, even if it does not.
    pub fn below<T>(_: &mut Passive, run: impl FnOnce(&Self) -> T) -> T {
        platform::without_sleep(|| run(&Self(PhantomData)))
    }
}

/// Class I: at device interrupt level, which is under the interrupt lock of an adapter. Atomics,
/// registers, and records that were made before; no sleep, no allocation, no user memory.
pub struct DeviceInterrupt(OfThisThread);

impl DeviceInterrupt {
    /// Here, under the lock.
    pub(super) fn under_lock() -> Self {
        Self(PhantomData)
    }
}
