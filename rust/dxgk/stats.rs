// SPDX-License-Identifier: GPL-2.0

//! How many of everything exist, and the ids of objects.
//!
//! What belongs to an adapter is counted twice: for the module, and for its adapter. What belongs
//! to none is counted for the module only: processes, their pending waits and pages, and keyed
//! mutexes. The counters of an adapter live as long as anything that they count, so they may
//! outlive the adapter.
//!
//! debugfs shows the numbers; tests compare them before and after. Counting happens when things are
//! made and freed, never in signals or in waits of sleeping threads.

use core::ops::Deref;
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// Objects and processes that the worker still has to end. While this is 0, all other numbers are
/// final. It is the first one, so that it is read before the others.
pub(crate) const RETIRING: usize = 0;
/// Devices, contexts, allocations and shareable objects.
pub(crate) const OBJECTS: usize = 1;
/// Local handles.
pub(crate) const HANDLES: usize = 2;
/// Shares, that is open file descriptions of NT handles.
pub(crate) const SHARES: usize = 3;
/// Bytes of storage, resident or not.
pub(crate) const BYTES: usize = 4;
/// dma-bufs that we exported.
pub(crate) const DMABUFS: usize = 5;
/// CPU mappings that have been locked, until they are revoked.
pub(crate) const CPU_MAPPINGS: usize = 6;
/// Weak references and watches.
pub(crate) const NOTICES: usize = 7;
/// Values in information stores.
pub(crate) const VALUES: usize = 8;
/// Pages that the paging process shows.
pub(crate) const SYSTEM_PAGES: usize = 9;
/// How many of these an adapter has; the others belong to processes.
const OF_ADAPTER: usize = 10;
/// Process objects.
pub(crate) const PROCESSES: usize = 10;
/// Pending waits that no thread sleeps in. One may be for fences of several adapters.
pub(crate) const WAITERS: usize = 11;
/// Pages of fence values. Fences of several adapters may share one.
pub(crate) const PAGES: usize = 12;

/// What debugfs calls them.
const NAMES: [&str; 13] = [
    "retiring",
    "objects",
    "handles",
    "shares",
    "bytes",
    "dmabufs",
    "cpu-mappings",
    "notices",
    "values",
    "system-pages",
    "processes",
    "waiters",
    "pages",
];

/// How many things of each sort exist.
pub(crate) struct Stats([Atomic<u64>; NAMES.len()]);

/// Those of the module.
pub(crate) static TOTALS: Stats = Stats::new();

impl Stats {
    const fn new() -> Self {
        Self([const { Atomic::new(0) }; NAMES.len()])
    }

    /// Those of a new adapter.
    pub(crate) fn of_adapter() -> Result<Arc<Self>, AllocError> {
        Arc::new(Self::new(), GFP_KERNEL)
    }

    /// The names and present numbers of everything that belongs to an adapter.
    pub(crate) fn each_of_adapter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.each().take(OF_ADAPTER)
    }

    /// All names and present numbers.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let numbers = self.0.iter().map(|number| number.load(Relaxed));

        NAMES.into_iter().zip(numbers)
    }

    #[inline(always)]
    fn add(&self, what: usize, number: u64) {
        if let Some(count) = self.0.get(what) {
            count.add(number, Relaxed);
        }
    }

    #[inline(always)]
    fn sub(&self, what: usize, number: u64) {
        // It wraps, as the counter does.
        self.add(what, number.wrapping_neg());
    }
}

/// What something is counted on.
pub(crate) trait CountedOn {
    /// The counters of the adapter that it belongs to, if it belongs to one.
    fn stats(&self) -> Option<&Arc<Stats>>;
}

impl<T: CountedOn> CountedOn for Arc<T> {
    fn stats(&self) -> Option<&Arc<Stats>> {
        (**self).stats()
    }
}

impl<T: CountedOn> CountedOn for Option<T> {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.as_ref().and_then(T::stats)
    }
}

/// The counters of an adapter, kept by what does not keep the adapter.
#[derive(Clone)]
pub(crate) struct OwnStats(Option<Arc<Stats>>);

impl OwnStats {
    /// Those that `owner` is counted on.
    pub(crate) fn of(owner: &impl CountedOn) -> Self {
        Self(owner.stats().cloned())
    }

    /// These.
    pub(crate) fn new(stats: &Arc<Stats>) -> Self {
        Self(Some(stats.clone()))
    }
}

impl CountedOn for OwnStats {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.0.as_ref()
    }
}

/// What belongs to no adapter.
pub(crate) struct Module;

impl CountedOn for Module {
    fn stats(&self) -> Option<&Arc<Stats>> {
        None
    }
}

/// Counts so many more.
#[inline(always)]
pub(crate) fn add<const WHAT: usize>(on: &impl CountedOn, number: u64) {
    TOTALS.add(WHAT, number);
    if let Some(stats) = on.stats() {
        stats.add(WHAT, number);
    }
}

/// Counts so many less. `on` is counted on the same adapter as before.
#[inline(always)]
pub(crate) fn sub<const WHAT: usize>(on: &impl CountedOn, number: u64) {
    if let Some(stats) = on.stats() {
        stats.sub(WHAT, number);
    }
    TOTALS.sub(WHAT, number);
}

/// Counts one thing until this is dropped: on the adapter of what it has, which is a field that the
/// thing has anyway.
pub(crate) struct Counted<T: CountedOn, const WHAT: usize>(T);

impl<T: CountedOn, const WHAT: usize> Counted<T, WHAT> {
    /// Counts one more until the result is dropped.
    pub(crate) fn new(on: T) -> Self {
        add::<WHAT>(&on, 1);
        Self(on)
    }
}

impl<T: CountedOn, const WHAT: usize> Deref for Counted<T, WHAT> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: CountedOn, const WHAT: usize> Drop for Counted<T, WHAT> {
    fn drop(&mut self) {
        sub::<WHAT>(&self.0, 1);
    }
}

/// Bytes of storage, counted until this is dropped.
pub(crate) struct CountedBytes {
    stats: OwnStats,
    bytes: u64,
}

impl CountedBytes {
    /// Counts so many more until the result is dropped.
    pub(crate) fn new(stats: OwnStats, bytes: u64) -> Self {
        add::<BYTES>(&stats, bytes);
        Self { stats, bytes }
    }
}

impl CountedOn for CountedBytes {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.stats.stats()
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        sub::<BYTES>(&self.stats, self.bytes);
    }
}

/// A unique id, starting at 1 (RES-2).
pub(crate) fn next_id() -> u64 {
    static NEXT: Atomic<u64> = Atomic::new(1);

    // OVERFLOW: 2^64 objects take longer than any machine runs.
    NEXT.fetch_add(1, Relaxed)
}

/// The id of a new object of this kind, for one that traces its end by itself.
pub(in crate::dxgk) fn created(kind: ObjectKind) -> u64 {
    let id = next_id();

    crate::sys::trace::create(id, kind.number());
    id
}

/// What an object is, as shown in traces.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ObjectKind {
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
    /// `D3DDDI_NATIVE_FENCE`.
    NativeFence = 7,
    Adapter = 15,
    Device = 16,
    Context = 17,
    HwQueue = 18,
    PagingQueue = 19,
    Doorbell = 20,
    Resource = 32,
    Allocation = 33,
    KeyedMutex = 34,
}

impl ObjectKind {
    /// The name shown in fdinfo.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::Fence => "fence",
            Self::CpuNotification => "cpu-notification",
            Self::MonitoredFence => "monitored-fence",
            Self::NativeFence => "native-fence",
            Self::Adapter => "adapter",
            Self::Device => "device",
            Self::Context => "context",
            Self::HwQueue => "hw-queue",
            Self::Doorbell => "doorbell",
            Self::PagingQueue => "paging-queue",
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

/// The id of an object. Traces show its life.
pub(crate) struct ObjectId {
    /// Never used for anything else.
    pub(crate) id: u64,
    /// What it is.
    pub(crate) kind: ObjectKind,
}

impl ObjectId {
    /// A new object of this kind.
    pub(crate) fn new(kind: ObjectKind) -> Self {
        Self {
            id: created(kind),
            kind,
        }
    }
}

impl Drop for ObjectId {
    fn drop(&mut self) {
        crate::sys::trace::destroy(self.id, self.kind.number());
    }
}
