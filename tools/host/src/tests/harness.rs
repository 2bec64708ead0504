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
use loom::{
    sync::{atomic::fence, Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(loom))]
pub use std::sync::Arc;
#[cfg(not(loom))]
use std::{
    sync::{atomic::fence, Mutex, MutexGuard},
    thread::yield_now,
};

use crate::{
    logic::{
        fence_value,
        sleepers::{Listed, News, SleeperList, Woken, MAX_SLEEPERS},
        wait_set::{Mode, WaitEnd, WaitSet},
        waiters::{
            CurrentValue, EnqueueResult, MonitoredValue, SleepResult, Sweep, Taken, WaitKey,
            WaitMap, Waiters, WouldRewind,
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
    /// As in the module for a thread that sleeps in memory of its own, which it leaves with.
    OnStack,
    /// Mutation: such a thread does not look whether others still use its memory.
    #[cfg(loom)]
    NoLastLook,
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
    /// Threads that sleep in memory of their own.
    sleeping: AtomicU32,
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

/// Those who sleep in memory of their own, which belongs to a [`Wait`]: with the number of the
/// place.
#[derive(Default)]
pub(super) struct Sleepers {
    places: Vec<(WaitKey, Arc<Wait>, usize)>,
    counters: std::sync::Arc<Counters>,
}

impl Sleepers {
    fn count(&self) {
        let sleeping = self.places.len() as u32;

        self.counters.sleeping.store(sleeping, Relaxed);
    }

    /// Takes a place out; the last access to it is that of the caller.
    fn remove(&mut self, key: &WaitKey) -> Option<(Arc<Wait>, usize)> {
        let at = self.places.iter().position(|(own, ..)| own == key)?;
        let (_, wait, number) = self.places.remove(at);

        self.count();
        Some((wait, number))
    }
}

impl SleeperList for Sleepers {
    type Place<'a> = (Arc<Wait>, usize);
    type Wake = Arc<Wait>;

    fn first(&self) -> Option<WaitKey> {
        self.places.first().map(|(key, ..)| *key)
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        let mut keys = self.places.iter().map(|(own, ..)| *own);

        keys.find(|own| own > key)
    }

    fn is_full(&self) -> bool {
        self.places.len() == MAX_SLEEPERS
    }

    fn put(&mut self, key: WaitKey, (wait, number): Self::Place<'_>) -> bool {
        let at = self.places.partition_point(|(own, ..)| *own < key);

        assert!(wait.places[number].enter(), "in no list yet");
        self.places.insert(at, (key, wait, number));
        self.count();
        true
    }

    fn tell(&mut self, key: &WaitKey, news: News) -> Option<Option<Arc<Wait>>> {
        let (wait, number) = self.remove(key)?;
        let ended = match news {
            News::Satisfied => wait.set.satisfy(),
            News::Orphaned => wait.set.orphan(),
        };

        // What wakes the thread is in its memory, too.
        wait.stack.touch();
        wait.places[number].let_go();
        Some(ended.then_some(wait))
    }

    fn take(&mut self, key: &WaitKey) -> bool {
        let Some((wait, number)) = self.remove(key) else {
            return false;
        };

        wait.stack.touch();
        wait.places[number].let_go();
        true
    }
}

/// Those whom one hold of the lock has taken out.
#[derive(Default)]
struct Due {
    tree: Tree,
    woken: Option<Woken<Arc<Wait>>>,
}

impl Due {
    /// Room for both kinds.
    fn parts(&mut self) -> (&mut Tree, &mut Woken<Arc<Wait>>) {
        (&mut self.tree, self.woken.get_or_insert_with(Woken::new))
    }

    /// Tells those who are satisfied, outside the lock.
    fn deliver(mut self) {
        for (key, node) in std::mem::take(&mut self.tree.nodes) {
            self.wake(Some(&key));
            if node.wait.set.satisfy() {
                node.wait.finish();
            }
        }
        self.wake(None);
    }

    /// Wakes the threads that come before `key`.
    fn wake(&mut self, key: Option<&WaitKey>) {
        while let Some(wait) = self.parts().1.next_before(key) {
            wait.finish();
        }
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
    waiters: Mutex<Waiters<Tree, Sleepers>>,
    /// How far the worker came.
    #[cfg(not(loom))]
    worker: Mutex<Option<Sweep>>,
    counters: std::sync::Arc<Counters>,
}

impl Fence {
    pub(super) fn new(value: u64) -> Arc<Self> {
        let tree = Tree::default();
        let counters = tree.counters.clone();
        let sleepers = Sleepers {
            places: Vec::new(),
            counters: counters.clone(),
        };

        Arc::new(Self {
            current: word64(value),
            counters,
            waiters: Mutex::new(Waiters::with(tree, sleepers, false)),
            #[cfg(not(loom))]
            worker: Mutex::new(None),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters<Tree, Sleepers>> {
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

    /// A CPU signal as the call about one monitored fence makes it: the first few whom it releases
    /// are taken out with the lock of the handle table, and are released before the others. How
    /// many these are, and what there is left to do.
    #[cfg(not(loom))]
    pub(super) fn begin_few(
        &self,
        value: u64,
        rewind: bool,
    ) -> Result<(u32, Option<Sweep>), WouldRewind> {
        let mut few = Vec::new();
        let mut waiters = self.lock();
        let rest = waiters
            .signal(&self.current, value, rewind)?
            .and_then(|sweep| waiters.sweep_few(sweep, |taken| few.push(taken)));

        drop(waiters);

        let count = few.len() as u32;

        for taken in few {
            match taken {
                Taken::Node(node) if node.wait.set.satisfy() => node.wait.finish(),
                Taken::Sleeper(_, Some(wait)) => wait.finish(),
                _ => {}
            }
        }
        Ok((count, rest))
    }

    /// A CPU signal of one of several fences, or of a native fence: first without a look at waiters
    /// that it would have to release.
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
        let mut due = Due::default();
        let (tree, woken) = due.parts();
        let mut waiters = self.lock();
        let rest = waiters
            .signal(&self.current, value, rewind)?
            .and_then(|sweep| waiters.sweep(sweep, tree, woken));

        drop(waiters);
        due.deliver();
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
        let mut due = Due::default();
        let (tree, woken) = due.parts();
        let rest = self.lock().sweep(sweep, tree, woken);

        due.deliver();
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
        mut waiters: MutexGuard<'_, Waiters<Tree, Sleepers>>,
        mut rest: Option<Sweep>,
        monitored: &Word64,
        barrier: bool,
    ) {
        let mut due = Due::default();
        let (tree, woken) = due.parts();
        let monitored = Monitored {
            word: monitored,
            barrier,
        };

        loop {
            rest = match rest {
                Some(sweep) => waiters.sweep(sweep, tree, woken),
                None => match waiters.settle(&self.current, &monitored) {
                    None => break,
                    more => more,
                },
            };
        }
        drop(waiters);
        due.deliver();
    }

    /// Looks at the word once, as a part of [`Fence::monitor`].
    #[cfg(not(loom))]
    pub(super) fn sample(&self) -> Option<Sweep> {
        let mut due = Due::default();
        let (tree, woken) = due.parts();
        let mut waiters = self.lock();
        let rest = waiters
            .sample(&self.current)
            .and_then(|sweep| waiters.sweep(sweep, tree, woken));

        drop(waiters);
        due.deliver();
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
        let mut woken = Woken::new();
        let mut left = self.lock().orphan(&self.current, empty, &mut woken);
        let (released, orphans) = std::mem::take(&mut left.map.nodes)
            .into_iter()
            .partition(|(key, _)| left.is_satisfied(key));
        let released = Tree {
            nodes: released,
            counters: self.counters.clone(),
        };
        let due = Due {
            tree: released,
            woken: Some(woken),
        };

        self.counters.queued.store(0, Relaxed);
        due.deliver();
        for node in orphans.into_values() {
            if node.wait.set.orphan() {
                node.wait.finish();
            }
        }
    }

    /// The same if nobody waits; otherwise false, and nothing is done.
    #[cfg(not(loom))]
    pub(super) fn orphan_alone(&self) -> bool {
        self.lock().orphan_alone()
    }

    /// Leaves the rest of a signal to the worker.
    #[cfg(not(loom))]
    pub(super) fn defer(&self, sweep: Sweep) -> Option<Sweep> {
        self.lock().defer(sweep)
    }

    /// A step of the worker; false if that was all.
    #[cfg(not(loom))]
    pub(super) fn catch_up(&self) -> bool {
        let mut due = Due::default();
        let (tree, woken) = due.parts();
        let mut last = self.worker.lock().unwrap();

        *last = self.lock().catch_up(*last, tree, woken);

        due.deliver();
        last.is_some()
    }

    /// How many elements are queued, by the fence's own count.
    #[cfg(not(loom))]
    pub(super) fn counted(&self) -> u32 {
        self.lock().queued()
    }

    /// How many of them are places of threads that sleep in memory of their own.
    #[cfg(not(loom))]
    pub(super) fn sleeping(&self) -> u32 {
        self.counters.sleeping.load(Relaxed)
    }

    /// How many elements are queued.
    pub(super) fn queued(&self) -> u32 {
        self.counters.queued.load(Relaxed) + self.counters.sleeping.load(Relaxed)
    }
}

/// One CPU wait.
pub(super) struct Wait {
    set: WaitSet,
    mode: Mode,
    glue: Glue,
    elements: Handed<Vec<(Arc<Fence>, WaitKey)>>,
    deliveries: AtomicU32,
    /// A place for each element, if the thread sleeps in memory of its own.
    places: Vec<Listed>,
    /// That memory.
    stack: Stack,
}

impl Wait {
    /// A wait over `count` elements that is not registered yet.
    pub(super) fn new(glue: Glue, mode: Mode, count: usize) -> Arc<Self> {
        Arc::new(Self {
            set: WaitSet::new(mode, count as u32),
            mode,
            glue,
            elements: Handed::new(),
            deliveries: AtomicU32::new(0),
            places: (0..count).map(|_| Listed::new()).collect(),
            stack: Stack::new(),
        })
    }

    /// A wait of a thread that sleeps in memory of its own, or by nodes where too many do.
    pub(super) fn start_on_stack(mode: Mode, elements: &[(&Arc<Fence>, u64)]) -> Arc<Self> {
        let wait = Self::new(Glue::OnStack, mode, elements.len());

        match Self::register_on_stack(&wait, elements) {
            true => wait,
            false => Self::start(mode, elements),
        }
    }

    /// Puts a place for each element into a list. False if too many sleep so; then it has ended.
    pub(super) fn register_on_stack(wait: &Arc<Self>, elements: &[(&Arc<Fence>, u64)]) -> bool {
        let mut queued = Vec::new();
        let mut is_full = false;

        for (number, (fence, value)) in elements.iter().enumerate() {
            let place = (wait.clone(), number);
            let result = fence.lock().enqueue_sleeper(&fence.current, *value, place);
            let ended = match result {
                SleepResult::Satisfied => wait.set.satisfy(),
                SleepResult::Orphaned => wait.set.orphan(),
                SleepResult::Queued(key) => {
                    queued.push(((*fence).clone(), key));
                    false
                }
                SleepResult::Full => {
                    is_full = true;
                    break;
                }
            };

            if ended {
                wait.finish();
            }
            if wait.outcome().is_some() {
                break;
            }
        }
        wait.elements.put(queued);
        !is_full || wait.leave() != Some(WaitEnd::Cancelled)
    }

    /// The thread leaves, and its memory is used for something else.
    pub(super) fn leave(&self) -> Option<WaitEnd> {
        if !self.set.all_satisfied() {
            for (fence, key) in self.elements.take() {
                fence.lock().cancel_sleeper(&key);
            }
            self.set.cancel();
        }
        self.go();
        self.outcome()
    }

    /// The thread has to run a signal handler, and will come back. Nodes take its places. Returns
    /// the wait that goes on, or `None` if this one has ended.
    pub(super) fn move_off_stack(&self) -> Option<Arc<Self>> {
        let elements = self.elements.take();
        let waiter = Self::new(Glue::Complete, self.mode, self.places.len());
        let mut moved = Vec::new();

        for (fence, key) in elements {
            let replaced = fence.lock().replace_sleeper(&key, waiter.clone());

            if replaced.is_ok() {
                moved.push((fence, key));
            }
        }

        let told = self.places.len() - moved.len();
        let outcome = self.outcome();

        waiter.elements.put(moved);
        match outcome {
            Some(_) => {
                waiter.set.cancel();
                waiter.unlink();
            }
            None => {
                if waiter.set.go_on_for(&self.set, told as u32) {
                    waiter.finish();
                }
                if waiter.set.pass_through() {
                    waiter.unlink();
                }
            }
        }
        self.go();
        outcome.is_none().then_some(waiter)
    }

    /// The same if the thread sleeps in memory of its own and its wait goes on.
    #[cfg(not(loom))]
    pub(super) fn interrupt(&self) -> Option<Arc<Self>> {
        let sleeps = self.glue == Glue::OnStack && self.outcome().is_none();

        sleeps.then(|| self.move_off_stack()).flatten()
    }

    /// A thread that was woken leaves.
    #[cfg(not(loom))]
    pub(super) fn leave_if_ended(&self) {
        if self.glue == Glue::OnStack && self.outcome().is_some() {
            self.leave();
        }
    }

    fn go(&self) {
        let looks = match self.glue {
            #[cfg(loom)]
            Glue::NoLastLook => false,
            _ => true,
        };

        while looks && self.places.iter().any(Listed::is_in) {
            yield_now();
        }
        self.stack.reuse();
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
            Glue::NoSecondLook | Glue::Sleeper | Glue::NoLastLook => (),
            Glue::OnStack => (),
            _ if wait.set.pass_through() => wait.unlink(),
            _ => (),
        }
    }

    /// The owner gives up. False if the wait had ended before.
    pub(super) fn cancel(&self) -> bool {
        if self.glue == Glue::OnStack {
            let had_ended = self.outcome().is_some();

            self.leave();
            return !had_ended;
        }

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
            Glue::Sleeper | Glue::NoLastLook => (),
            Glue::OnStack => (),
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

/// The memory of a thread, which others look at while it sleeps, and which is used for something
/// else when it has left. loom reports a race if nothing orders that.
#[cfg(loom)]
pub(super) struct Stack(loom::cell::UnsafeCell<()>);

// SAFETY: loom checks every access and fails the test on two that are not ordered.
#[cfg(loom)]
unsafe impl Sync for Stack {}

#[cfg(loom)]
impl Stack {
    pub(super) fn new() -> Self {
        Self(loom::cell::UnsafeCell::new(()))
    }

    pub(super) fn touch(&self) {
        self.0.with(|_| ());
    }

    pub(super) fn reuse(&self) {
        self.0.with_mut(|_| ());
    }
}

/// As above, without the check.
#[cfg(not(loom))]
pub(super) struct Stack(());

#[cfg(not(loom))]
impl Stack {
    pub(super) fn new() -> Self {
        Self(())
    }

    pub(super) fn touch(&self) {}

    pub(super) fn reuse(&self) {}
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
