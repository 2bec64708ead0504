// SPDX-License-Identifier: MIT OR Apache-2.0

//! Fences and waits put together from the pure parts the way the module does it: the fence lock
//! around `Waiters`, delivery outside it, and the hand-over between registration and ending.

use std::{
    collections::BTreeMap,
    sync::atomic::{
        AtomicU32,
        Ordering::{Relaxed, SeqCst},
    },
};

#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(loom)]
use loom::sync::{atomic::fence, Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::{atomic::fence, Mutex, MutexGuard};

use crate::{
    logic::{
        fence_value,
        wait_set::{Mode, WaitEnd, WaitSet},
        waiters::{
            CurrentValue, EnqueueResult, MonitoredValue, Sweep, WaitKey, WaitMap, Waiters,
            WouldRewind,
        },
    },
    platform::{load_acquire, word64, Word64},
};

/// Who takes the remaining elements out when a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glue {
    /// As in the module for a wait that no thread sleeps in: the second of registration and ending
    /// takes the remaining elements out.
    Complete,
    /// As in the module for a thread that sleeps: it takes its elements out itself.
    #[cfg(loom)]
    Sleeper,
    /// Mutation: the registration does not look whether the wait has ended meanwhile.
    #[cfg(loom)]
    NoSecondLook,
    /// Mutation: the one that ends a wait takes the elements out at once, without waiting for the
    /// registration.
    #[cfg(loom)]
    NoHandOver,
}

/// One element of a wait in the queue of a fence.
pub(super) struct Node {
    key: WaitKey,
    wait: Arc<Wait>,
}

/// What a queue did so far. Not part of the protocol, so not loom's.
#[derive(Default)]
struct Counters {
    /// Waiters that were looked at or moved.
    touched: AtomicU32,
    /// Waiters that are queued.
    queued: AtomicU32,
}

/// The ordered map of the host.
#[derive(Default)]
pub(super) struct Tree {
    nodes: BTreeMap<WaitKey, Node>,
    counters: std::sync::Arc<Counters>,
}

impl Tree {
    fn count(&self) {
        self.counters.touched.fetch_add(1, Relaxed);
        self.counters.queued.store(self.nodes.len() as u32, Relaxed);
    }
}

impl WaitMap for Tree {
    type Node = Node;
    type NewNode = Arc<Wait>;

    fn first(&self) -> Option<WaitKey> {
        self.count();
        self.nodes.keys().next().copied()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        use std::ops::Bound::{Excluded, Unbounded};

        self.count();
        self.nodes
            .range((Excluded(key), Unbounded))
            .next()
            .map(|(key, _)| *key)
    }

    fn take_first(&mut self) -> Option<Node> {
        let first = self.nodes.pop_first();

        self.count();
        first.map(|(_, node)| node)
    }

    fn take(&mut self, key: &WaitKey) -> Option<Node> {
        let node = self.nodes.remove(key);

        self.count();
        node
    }

    fn put(&mut self, node: Node) {
        assert!(self.nodes.insert(node.key, node).is_none(), "key is new");
        self.count();
    }

    fn name(wait: Arc<Wait>, key: WaitKey) -> Node {
        Node { key, wait }
    }
}

/// MonitoredValue, with or without the barrier of update_mv.
struct Monitored<'a> {
    word: &'a Word64,
    barrier: bool,
}

impl MonitoredValue for Monitored<'_> {
    fn load(&self) -> u64 {
        self.word.load(Relaxed)
    }

    fn store(&self, value: u64) {
        match self.barrier {
            true => fence_value::store_monitored(self.word, value),
            false => self.word.store(value, Relaxed),
        }
    }
}

/// A monitored fence that only the CPU signals.
pub(super) struct Fence {
    current: Word64,
    waiters: Mutex<Waiters<Tree>>,
    /// How far the worker came.
    #[cfg(not(loom))]
    worker: Mutex<Option<Sweep>>,
    counters: std::sync::Arc<Counters>,
}

impl Fence {
    pub(super) fn new(value: u64) -> Arc<Self> {
        let tree = Tree::default();

        Arc::new(Self {
            current: word64(value),
            counters: tree.counters.clone(),
            waiters: Mutex::new(Waiters::new(tree)),
            #[cfg(not(loom))]
            worker: Mutex::new(None),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters<Tree>> {
        self.waiters.lock().unwrap()
    }

    /// What a program sees that polls the mapped page.
    pub(super) fn current(&self) -> u64 {
        load_acquire(&self.current)
    }

    /// MonitoredValue.
    #[cfg(not(loom))]
    pub(super) fn monitored(&self) -> u64 {
        self.lock().monitored()
    }

    /// A CPU signal.
    pub(super) fn signal(&self, value: u64, rewind: bool) -> Result<(), WouldRewind> {
        let mut rest = self.begin_signal(value, rewind)?;

        while let Some(sweep) = rest {
            rest = self.continue_signal(sweep);
        }
        Ok(())
    }

    /// A CPU signal as the call about one fence makes it: first without a look at waiters that it
    /// would have to release.
    pub(super) fn signal_quickly(&self, value: u64, rewind: bool) -> Result<(), WouldRewind> {
        if self.signal_alone(value, rewind)? {
            return Ok(());
        }
        self.signal(value, rewind)
    }

    /// The first part of that: false if there are such waiters, and nothing was done.
    pub(super) fn signal_alone(&self, value: u64, rewind: bool) -> Result<bool, WouldRewind> {
        self.lock().signal_alone(&self.current, value, rewind)
    }

    /// A CPU signal up to where it lets go of the fence lock for the first time.
    pub(super) fn begin_signal(
        &self,
        value: u64,
        rewind: bool,
    ) -> Result<Option<Sweep>, WouldRewind> {
        let mut due = Tree::default();
        let mut waiters = self.lock();
        let rest = waiters
            .signal(&self.current, value, rewind)?
            .and_then(|sweep| waiters.sweep(sweep, &mut due));

        drop(waiters);
        deliver(due, WaitSet::satisfy);
        Ok(rest)
    }

    /// AlwaysSignaled.
    pub(super) fn always_signal(&self) {
        self.always_signal_by(&self.current);
    }

    /// The same for a value that is stored in another way.
    pub(super) fn always_signal_by(&self, current: &impl CurrentValue) {
        let mut rest = self.lock().always_signal(current).flatten();

        while let Some(sweep) = rest {
            rest = self.continue_signal(sweep);
        }
    }

    /// The next hold of the fence lock.
    pub(super) fn continue_signal(&self, sweep: Sweep) -> Option<Sweep> {
        let mut due = Tree::default();
        let rest = self.lock().sweep(sweep, &mut due);

        deliver(due, WaitSet::satisfy);
        rest
    }

    /// What an engine does that stores `value` without the lock (FEN-76): `barrier` is G3, and
    /// MonitoredValue decides whether there is an interrupt, which looks at the word again.
    pub(super) fn engine_signal(&self, monitored: &Word64, value: u64, barrier: bool) {
        self.current.store(value, Relaxed);
        if barrier {
            fence(SeqCst);
        }
        if value > monitored.load(Relaxed) {
            self.interrupt(monitored);
        }
    }

    /// The same of an engine whose store leaves the store buffer after it has decided (FEN-73).
    #[cfg(loom)]
    pub(super) fn engine_signal_late(&self, monitored: &Word64, value: u64, redecides: bool) {
        let before = monitored.load(Relaxed);

        self.current.store(value, Relaxed);
        fence(SeqCst);

        let decides = match redecides {
            true => monitored.load(Relaxed),
            false => before,
        };

        if value > decides {
            self.interrupt(monitored);
        }
    }

    /// What the worker does after an interrupt.
    fn interrupt(&self, monitored: &Word64) {
        let mut waiters = self.lock();
        let rest = waiters.sample(&self.current);

        if rest.is_some() {
            self.reap(waiters, rest, monitored, true);
        }
    }

    /// Waiters were queued or taken out: MonitoredValue follows (FEN-72). `barrier` is the one of
    /// update_mv.
    pub(super) fn monitor(&self, monitored: &Word64, barrier: bool) {
        self.reap(self.lock(), None, monitored, barrier);
    }

    fn reap(
        &self,
        mut waiters: MutexGuard<'_, Waiters<Tree>>,
        mut rest: Option<Sweep>,
        monitored: &Word64,
        barrier: bool,
    ) {
        let mut due = Tree::default();
        let monitored = Monitored {
            word: monitored,
            barrier,
        };

        loop {
            rest = match rest {
                Some(sweep) => waiters.sweep(sweep, &mut due),
                None => match waiters.settle(&self.current, &monitored) {
                    None => break,
                    more => more,
                },
            };
        }
        drop(waiters);
        deliver(due, WaitSet::satisfy);
    }

    /// Looks at the word once, as a part of [`Fence::monitor`].
    #[cfg(not(loom))]
    pub(super) fn sample(&self) -> Option<Sweep> {
        let mut due = Tree::default();
        let mut waiters = self.lock();
        let rest = waiters
            .sample(&self.current)
            .and_then(|sweep| waiters.sweep(sweep, &mut due));

        drop(waiters);
        deliver(due, WaitSet::satisfy);
        rest
    }

    /// Stores CurrentValue without the lock, and tells nobody.
    #[cfg(not(loom))]
    pub(super) fn store(&self, value: u64) {
        self.current.store(value, Relaxed);
    }

    /// How many times a queued waiter was looked at or moved.
    #[cfg(not(loom))]
    pub(super) fn touched(&self) -> u32 {
        self.counters.touched.load(Relaxed)
    }

    /// The last one who could signal is gone.
    pub(super) fn orphan(&self) {
        let empty = Tree {
            nodes: BTreeMap::new(),
            counters: self.counters.clone(),
        };
        let mut left = self.lock().orphan(&self.current, empty);
        let (released, orphans) = std::mem::take(&mut left.map.nodes)
            .into_iter()
            .partition(|(key, _)| left.is_satisfied(key));
        let mut left = left.map;
        let released = Tree {
            nodes: released,
            counters: self.counters.clone(),
        };

        left.nodes = orphans;
        self.counters.queued.store(0, Relaxed);
        deliver(released, WaitSet::satisfy);
        deliver(left, WaitSet::orphan);
    }

    /// Leaves the rest of a signal to the worker.
    #[cfg(not(loom))]
    pub(super) fn defer(&self, sweep: Sweep) -> Option<Sweep> {
        self.lock().defer(sweep)
    }

    /// A step of the worker; false if that was all.
    #[cfg(not(loom))]
    pub(super) fn catch_up(&self) -> bool {
        let mut due = Tree::default();
        let mut last = self.worker.lock().unwrap();

        *last = self.lock().catch_up(*last, &mut due);

        deliver(due, WaitSet::satisfy);
        last.is_some()
    }

    /// How many elements are queued, by the fence's own count.
    #[cfg(not(loom))]
    pub(super) fn counted(&self) -> u32 {
        self.lock().queued()
    }

    /// How many elements are queued.
    pub(super) fn queued(&self) -> u32 {
        self.counters.queued.load(Relaxed)
    }
}

/// Tells the waits of `due`, outside the fence lock, what became of one of their elements.
fn deliver(due: Tree, event: fn(&WaitSet) -> bool) {
    for node in due.nodes.into_values() {
        if event(&node.wait.set) {
            node.wait.finish();
        }
    }
}

/// One CPU wait.
pub(super) struct Wait {
    set: WaitSet,
    glue: Glue,
    elements: Handed<Vec<(Arc<Fence>, WaitKey)>>,
    deliveries: AtomicU32,
}

impl Wait {
    /// A wait over `count` elements that is not registered yet.
    pub(super) fn new(glue: Glue, mode: Mode, count: usize) -> Arc<Self> {
        Arc::new(Self {
            set: WaitSet::new(mode, count as u32),
            glue,
            elements: Handed::new(),
            deliveries: AtomicU32::new(0),
        })
    }

    /// Registers a wait for `elements`, pairs of a fence and a value.
    pub(super) fn start(mode: Mode, elements: &[(&Arc<Fence>, u64)]) -> Arc<Self> {
        let wait = Self::new(Glue::Complete, mode, elements.len());

        Self::register(&wait, elements);
        wait
    }

    /// Queues the elements.
    pub(super) fn register(wait: &Arc<Self>, elements: &[(&Arc<Fence>, u64)]) {
        let mut queued = Vec::new();
        let mut ended = false;

        for (fence, value) in elements {
            let result = fence.lock().enqueue(&fence.current, *value, wait.clone());

            match result {
                EnqueueResult::Satisfied(_) => ended = wait.set.satisfy(),
                EnqueueResult::Orphaned(_) => ended = wait.set.orphan(),
                EnqueueResult::Queued(key) => queued.push(((*fence).clone(), key)),
            }
            if ended {
                break;
            }
        }

        wait.elements.put(queued);
        if ended {
            wait.finish();
        }
        match wait.glue {
            #[cfg(loom)]
            Glue::NoSecondLook | Glue::Sleeper => (),
            _ if wait.set.pass_through() => wait.unlink(),
            _ => (),
        }
    }

    /// The owner gives up. False if the wait had ended before.
    pub(super) fn cancel(&self) -> bool {
        let ended = self.set.cancel();

        if ended {
            self.pass();
        }
        ended
    }

    pub(super) fn outcome(&self) -> Option<WaitEnd> {
        self.set.outcome()
    }

    /// How many times the owner was told.
    pub(super) fn deliveries(&self) -> u32 {
        self.deliveries.load(Relaxed)
    }

    /// The one that ended the wait tells its owner, once.
    fn finish(&self) {
        self.deliveries.fetch_add(1, Relaxed);
        self.pass();
    }

    fn pass(&self) {
        match self.glue {
            #[cfg(loom)]
            Glue::NoHandOver => self.unlink(),
            #[cfg(loom)]
            Glue::Sleeper => (),
            _ if self.set.pass_through() => self.unlink(),
            _ => (),
        }
    }

    /// Takes out what is still queued, outside every fence lock.
    pub(super) fn unlink(&self) {
        for (fence, key) in self.elements.take() {
            let node = fence.lock().cancel(&key);

            drop(node);
        }
    }
}

/// A value that one party puts and another takes, ordered by what they do in between. loom
/// reports a race if nothing orders them.
#[cfg(loom)]
pub(super) struct Handed<T>(loom::cell::UnsafeCell<T>);

// SAFETY: loom checks every access and fails the test on two that are not ordered.
#[cfg(loom)]
unsafe impl<T: Send> Sync for Handed<T> {}

#[cfg(loom)]
impl<T: Default> Handed<T> {
    pub(super) fn new() -> Self {
        Self(loom::cell::UnsafeCell::new(T::default()))
    }

    pub(super) fn put(&self, value: T) {
        // SAFETY: loom has checked that nobody else accesses the cell.
        self.0.with_mut(|place| unsafe { *place = value });
    }

    pub(super) fn take(&self) -> T {
        // SAFETY: loom has checked that nobody else accesses the cell.
        self.0
            .with_mut(|place| unsafe { std::mem::take(&mut *place) })
    }
}

/// As above, without the check.
#[cfg(not(loom))]
pub(super) struct Handed<T>(Mutex<T>);

#[cfg(not(loom))]
impl<T: Default> Handed<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(T::default()))
    }

    pub(super) fn put(&self, value: T) {
        *self.0.lock().unwrap() = value;
    }

    pub(super) fn take(&self) -> T {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
