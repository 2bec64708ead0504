// SPDX-License-Identifier: GPL-2.0

//! How many of everything exist, and the ids of objects.
//!
//! debugfs shows the numbers; tests compare them before and after. Counting happens
//! when things are made and freed, never in signals or in waits of sleeping threads.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// A number of existing things.
pub(crate) struct Counter(Atomic<u64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// The present number.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds to the number.
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// Subtracts from the number.
    pub(crate) fn sub(&self, number: u64) {
        self.0.fetch_sub(number, Relaxed);
    }

    /// Counts one more until the result is dropped.
    pub(crate) fn enter(&'static self) -> Counted {
        self.enter_by(1)
    }

    /// Counts this many more until the result is dropped.
    pub(crate) fn enter_by(&'static self, number: u64) -> Counted {
        self.add(number);
        Counted {
            gauge: self,
            number,
        }
    }
}

/// One or more existing things, counted until this is dropped.
pub(crate) struct Counted {
    gauge: &'static Counter,
    number: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.sub(self.number);
    }
}

/// One local handle, counted until this is dropped. Unlike [`Counted`] it takes no space.
pub(crate) struct CountedHandle(());

impl CountedHandle {
    /// Counts one more until the result is dropped.
    pub(crate) fn enter() -> Self {
        HANDLES.add(1);
        Self(())
    }
}

impl Drop for CountedHandle {
    fn drop(&mut self) {
        HANDLES.sub(1);
    }
}

/// Process objects.
pub(crate) static PROCESSES: Counter = Counter::new();
/// Devices, contexts, allocations and shareable objects.
pub(crate) static OBJECTS: Counter = Counter::new();
/// Local handles.
pub(crate) static HANDLES: Counter = Counter::new();
/// Pending waits that no thread sleeps in.
pub(crate) static WAITERS: Counter = Counter::new();
/// Pages of fence values.
pub(crate) static PAGES: Counter = Counter::new();
/// Bytes of storage, resident or not.
pub(crate) static BYTES: Counter = Counter::new();
/// dma-bufs that we exported.
pub(crate) static DMABUFS: Counter = Counter::new();
/// CPU mappings that have been locked, until they are revoked.
pub(crate) static CPU_MAPPINGS: Counter = Counter::new();
/// Shares, that is open file descriptions of NT handles.
pub(crate) static SHARES: Counter = Counter::new();

/// Weak references and watches.
pub(crate) static NOTICES: Counter = Counter::new();
/// Objects and processes that the worker still has to end. While this is 0, all other numbers are
/// final.
pub(crate) static RETIRING: Counter = Counter::new();
/// Values in information stores.
pub(crate) static VALUES: Counter = Counter::new();

/// A unique id, starting at 1 (RES-2).
pub(crate) fn next_id() -> u64 {
    static NEXT: Atomic<u64> = Atomic::new(1);

    // OVERFLOW: 2^64 objects take longer than any machine runs.
    NEXT.fetch_add(1, Relaxed)
}

/// What an object is, as shown in traces.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// `D3DDDI_SYNCHRONIZATION_MUTEX`.
    Mutex = 1,
    /// `D3DDDI_SEMAPHORE`.
    Semaphore = 2,
    /// `D3DDDI_FENCE`.
    Fence = 3,
    /// `D3DDDI_CPU_NOTIFICATION`.
    CpuNotification = 4,
    /// `D3DDDI_MONITORED_FENCE`.
    MonitoredFence = 5,
    /// An adapter.
    Adapter = 15,
    /// A device.
    Device = 16,
    /// A context.
    Context = 17,
    /// A resource.
    Resource = 32,
    /// An allocation.
    Allocation = 33,
    /// A keyed mutex.
    KeyedMutex = 34,
}

impl Kind {
    /// The name shown in fdinfo.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::Fence => "fence",
            Self::CpuNotification => "cpu-notification",
            Self::MonitoredFence => "monitored-fence",
            Self::Adapter => "adapter",
            Self::Device => "device",
            Self::Context => "context",
            Self::Resource => "resource",
            Self::Allocation => "allocation",
            Self::KeyedMutex => "keyed-mutex",
        }
    }

    /// The number shown in traces.
    pub(crate) fn number(self) -> u32 {
        // CAST: the discriminant is the number.
        self as u32
    }
}

/// The id of an object, counted as long as the object lives.
pub(crate) struct ObjectId {
    /// Never used for anything else.
    pub(crate) id: u64,
    /// What it is.
    pub(crate) kind: Kind,
}

impl ObjectId {
    /// A new object of this kind.
    pub(crate) fn new(kind: Kind) -> Self {
        let id = next_id();

        crate::sys::trace::create(id, kind.number());
        OBJECTS.add(1);
        Self { id, kind }
    }
}

impl Drop for ObjectId {
    fn drop(&mut self) {
        OBJECTS.sub(1);
        crate::sys::trace::destroy(self.id, self.kind.number());
    }
}
