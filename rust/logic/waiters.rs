// SPDX-License-Identifier: GPL-2.0

//! The CPU waiters of one fence, ordered by the value they wait for.
//!
//! This is the half of the lost-wake-up protocol that runs under the fence lock (fences.md section
//! 3.4): `enqueue` is steps A1 to A2 of a CPU wait, `signal` is S0 to S3 of a CPU signal, `cancel`
//! is the cancel rule. The caller owns the lock, the memory of the nodes and the CurrentValue
//! word; this file decides. A signal looks at the waiters it releases and at one more (FEN-30), and
//! at none if it is below all that are waited for.
//!
//! Waiters are nodes of a map, or threads that sleep in memory of their own ([`SleeperList`]). One
//! order holds for both.
//!
//! Some wait until CurrentValue is another than the one they know (FEN-176), whichever. They are
//! queued at value 0, which nobody else waits for, and all of them know the same value.

use super::{
    fence_value,
    sleepers::{
        lower,
        News,
        Nobody,
        SleeperList,
        Woken, //
    }, //
};
use crate::platform::{
    load_acquire,
    store_release,
    Word64, //
};
use core::num::NonZero;

pub use super::wait_key::WaitKey;

/// CurrentValue, and who stores it.
pub trait CurrentValue {
    /// One 64-bit load with acquire ordering.
    fn load(&self) -> u64;

    /// One 64-bit store with release ordering. The caller holds the fence lock.
    fn store(&self, value: u64);

    /// The same for the highest value, which stays (FEN-104).
    fn store_always_signaled(&self) {
        self.store(u64::MAX);
    }
}

/// That of a monitored fence, which the OS part stores.
impl CurrentValue for Word64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        load_acquire(self)
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        store_release(self, value);
    }
}

/// MonitoredValue of a native fence, which the fence lock protects.
pub trait MonitoredValue {
    /// What was stored last.
    fn load(&self) -> u64;

    /// UpdateMonitoredValues: on return a store of an engine to CurrentValue is seen, or the engine
    /// decides with this value or a later one (FEN-73).
    fn store(&self, value: u64);
}

/// An ordered map of waiters that neither allocates nor frees in these calls.
///
/// In the module this is a red-black tree of preallocated nodes, on the host a `BTreeMap`.
pub trait WaitMap {
    /// A waiter and its key, in the map or taken out.
    type Node;
    /// A node without a key, allocated before the lock.
    type NewNode;

    /// The smallest key.
    fn first(&self) -> Option<WaitKey>;
    /// The smallest key above `key`.
    fn next(&self, key: &WaitKey) -> Option<WaitKey>;
    /// What the first waiter knows, which waits for a change. Only for maps of fences.
    fn known(&self) -> u64 {
        0
    }
    /// Takes out the waiter with the smallest key.
    fn take_first(&mut self) -> Option<Self::Node>;
    /// Takes out one waiter.
    fn take(&mut self, key: &WaitKey) -> Option<Self::Node>;
    /// Puts in a waiter whose key is not in the map.
    fn put(&mut self, node: Self::Node);
    /// Gives a new node its key.
    fn name(new_node: Self::NewNode, key: WaitKey) -> Self::Node;
}

/// Below every wait for a value, and above those who wait for a change.
const CHANGES_END: WaitKey = WaitKey {
    value: 0,
    seq: u64::MAX,
};

/// What became of a wait for a change that asked to be queued.
pub enum ChangeResult<S> {
    /// CurrentValue is another already: not queued, the node comes back.
    Changed(S),
    /// The fence has retired: not queued, the node comes back.
    Orphaned(S),
    /// Others wait for a change that has come, and nobody has told them: not queued, the node
    /// comes back. The caller looks at CurrentValue ([`Waiters::sample`]) and tries again.
    Stale(S),
    /// Queued under this key.
    Queued(WaitKey),
}

/// What became of a wait that asked to be queued.
pub enum EnqueueResult<S> {
    /// The value was there: not queued, the node comes back.
    Satisfied(S),
    /// The fence has retired (FEN-28): not queued, the node comes back.
    Orphaned(S),
    /// Queued under this key.
    Queued(WaitKey),
}

/// What became of the wait of a thread that asked to sleep in memory of its own.
pub enum SleepResult {
    /// The value was there: not queued.
    Satisfied,
    /// The fence has retired (FEN-28): not queued.
    Orphaned,
    /// Too many sleep so: not queued, a node has to be.
    Full,
    /// Queued under this key.
    Queued(WaitKey),
}

/// A refused signal: the value lies below CurrentValue and rewinding was not allowed (FEN-32).
#[derive(Debug, PartialEq, Eq)]
pub struct WouldRewind;

/// How many waiters one hold of the fence lock looks at. A signal that releases more drops the
/// lock in between.
pub const BATCH: u32 = 64;

/// The same where the lock of a table of handles is held as well.
pub const FEW: u32 = 2;

/// How many times a signal takes the fence lock for the waiters that it releases. It leaves the
/// others to the worker, so that no signaller pays for waits that others have piled up.
pub const BATCHES: u32 = 64;

/// Whom a signal releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    /// The signalled value.
    value: u64,
    /// Waiters with this arrival number or a later one came after the signal. It does not release
    /// them: the fence may have been rewound meanwhile.
    before: NonZero<u64>,
}

/// A signal that has more waiters to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    due: Due,
    /// Where to continue, once a waiter was passed over.
    passed: Option<WaitKey>,
}

impl From<Due> for Sweep {
    fn from(due: Due) -> Self {
        Self { due, passed: None }
    }
}

impl Due {
    /// Whether it releases the waiter that is queued under this key.
    fn releases(&self, key: &WaitKey) -> bool {
        fence_value::satisfies(self.value, key.value) && key.seq < self.before.get()
    }

    /// Whether it releases every waiter that `other` does.
    fn includes(&self, other: &Self) -> bool {
        self.value >= other.value && self.before >= other.before
    }
}

/// What a signal meets.
enum Ahead {
    /// Nobody waits for a lower value than this, so that most signals need not look at a waiter. It
    /// follows whoever comes; who has left is noticed by the next signal that looks.
    Lowest(u64),
    /// What a signal has left to the worker.
    Backlog(Due),
}

/// A signal that is not refused.
struct Step {
    /// CurrentValue as it was seen.
    before: u64,
    /// CurrentValue as it becomes.
    value: u64,
    /// Whom that releases.
    due: Option<Due>,
}

impl Step {
    #[inline(always)]
    fn store(&self, current: &impl CurrentValue) {
        if self.value != self.before {
            // ORDERING: release: a thread that sees the value also sees what its signaller wrote
            // before (FEN-10). Pairs with `load_acquire` in `enqueue`, and with the acquire load
            // of a user that polls the mapped page.
            current.store(self.value);
        }
    }
}

/// One whom a signal has taken out.
pub enum Taken<N, W> {
    /// A node, whose waiter is to be told.
    Node(N),
    /// A thread that was told, and what wakes it if that has ended its wait.
    Sleeper(WaitKey, Option<W>),
}

/// Those who waited when the last one who could signal was gone.
pub struct Orphans<M> {
    /// All of them.
    pub map: M,
    /// What a last look at the value and what signals had left to the worker release.
    due: [Option<Due>; 2],
}

impl<M> Orphans<M> {
    /// Whether the waiter under this key is satisfied still. One who waits for a change never is.
    pub fn is_satisfied(&self, key: &WaitKey) -> bool {
        key.value != 0 && self.due.iter().flatten().any(|due| due.releases(key))
    }
}

/// The waiters of one fence. Protected by the fence lock.
pub struct Waiters<M, L = Nobody> {
    map: M,
    /// Those who sleep in memory of their own. None of them waits for a change.
    sleepers: L,
    /// How many there are of both.
    queued: u32,
    next_seq: NonZero<u64>,
    ahead: Ahead,
    /// The cleanup is left to the worker, too.
    has_cleanup: bool,
    orphaned: bool,
    /// AlwaysSignaled is refused.
    keeps_value: bool,
    always_signaled: bool,
}

impl<M: WaitMap> Waiters<M> {
    /// No waiters; `map` must be empty. Nobody will sleep in memory of his own.
    pub const fn new(map: M) -> Self {
        Self::with(map, Nobody, false)
    }
}

impl<M: WaitMap, L: SleeperList> Waiters<M, L> {
    /// No waiters; `map` and `sleepers` must be empty. With `keeps_value`, which is
    /// NoSignalMaxValueOnTdr, AlwaysSignaled does nothing.
    pub const fn with(map: M, sleepers: L, keeps_value: bool) -> Self {
        Self {
            map,
            sleepers,
            queued: 0,
            next_seq: NonZero::<u64>::MIN,
            ahead: Ahead::Lowest(u64::MAX),
            has_cleanup: false,
            orphaned: false,
            keeps_value,
            always_signaled: false,
        }
    }

    /// How many waiters are queued.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// The key of the waiter after this one, or of the first one, and where to look for it. For
    /// those who show what there is.
    pub fn after(&self, key: Option<&WaitKey>) -> Option<(WaitKey, &M, &L)> {
        let key = match key {
            None => self.first(),
            Some(key) => self.next(key),
        }?;

        Some((key, &self.map, &self.sleepers))
    }

    /// The smallest key.
    fn first(&self) -> Option<WaitKey> {
        lower(self.map.first(), self.sleepers.first())
    }

    /// The smallest key above `key`.
    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        lower(self.map.next(key), self.sleepers.next(key))
    }

    /// Queues a wait for `value` unless it is satisfied already.
    ///
    /// The caller holds the fence lock, so no CPU signal falls between the check of the value and
    /// the queueing.
    pub fn enqueue(
        &mut self,
        current: &impl CurrentValue,
        value: u64,
        new_node: M::NewNode,
    ) -> EnqueueResult<M::NewNode> {
        match self.news(current, value) {
            None => EnqueueResult::Queued(self.put(value, new_node)),
            Some(News::Satisfied) => EnqueueResult::Satisfied(new_node),
            Some(News::Orphaned) => EnqueueResult::Orphaned(new_node),
        }
    }

    /// What there is to say to a wait for `value` that is not queued; `None` if it has to wait.
    #[inline(always)]
    fn news(&self, current: &impl CurrentValue, value: u64) -> Option<News> {
        // While an engine takes its store back that came beside AlwaysSignaled, CurrentValue may be
        // another one (M23).
        if self.always_signaled || fence_value::satisfies(current.load(), value) {
            return Some(News::Satisfied);
        }
        self.orphaned.then_some(News::Orphaned)
    }

    /// The same for a thread that sleeps in memory of its own, if there is a place.
    pub fn enqueue_sleeper(
        &mut self,
        current: &impl CurrentValue,
        value: u64,
        place: L::Place<'_>,
    ) -> SleepResult {
        match self.news(current, value) {
            None if self.sleepers.is_full() => return SleepResult::Full,
            None => {}
            Some(News::Satisfied) => return SleepResult::Satisfied,
            Some(News::Orphaned) => return SleepResult::Orphaned,
        }

        let key = self.next_key(value);

        match self.sleepers.put(key, place) {
            true => SleepResult::Queued(self.queue(key)),
            false => SleepResult::Full,
        }
    }

    /// Queues a wait until CurrentValue is another than `known`, unless it is already. It is
    /// released once, by the first signal or look that finds another value. The waiter tells
    /// `known` ([`WaitMap::known`]) as long as it is queued.
    pub fn enqueue_change(
        &mut self,
        current: &impl CurrentValue,
        known: u64,
        new_node: M::NewNode,
    ) -> ChangeResult<M::NewNode> {
        if current.load() != known {
            return ChangeResult::Changed(new_node);
        }
        if self.orphaned {
            return ChangeResult::Orphaned(new_node);
        }
        if self.has_untold(known) {
            return ChangeResult::Stale(new_node);
        }
        ChangeResult::Queued(self.put(0, new_node))
    }

    /// Whether somebody waits for a change, knows something else than `value`, and the worker was
    /// not left to tell.
    fn has_untold(&self, value: u64) -> bool {
        let told = Due {
            value,
            before: self.next_seq,
        };

        self.map.first().is_some_and(|first| first.value == 0)
            && self.map.known() != value
            && !self
                .backlog()
                .is_some_and(|backlog| backlog.includes(&told))
    }

    /// What a signal has left to the worker.
    fn backlog(&self) -> Option<Due> {
        match self.ahead {
            Ahead::Backlog(due) => Some(due),
            Ahead::Lowest(_) => None,
        }
    }

    /// The same, which is forgotten.
    fn take_backlog(&mut self) -> Option<Due> {
        let due = self.backlog()?;

        // The next signal looks.
        self.ahead = Ahead::Lowest(0);
        Some(due)
    }

    #[inline(always)]
    fn put(&mut self, value: u64, new_node: M::NewNode) -> WaitKey {
        let key = self.next_key(value);

        self.map.put(M::name(new_node, key));
        self.queue(key)
    }

    /// The key of the next one who waits for `value`.
    fn next_key(&self, value: u64) -> WaitKey {
        WaitKey {
            value,
            seq: self.next_seq.get(),
        }
    }

    /// One more is queued, under this key.
    fn queue(&mut self, key: WaitKey) -> WaitKey {
        // OVERFLOW: 2^64 waits on one fence take longer than any machine runs; saturating is total.
        self.next_seq = self.next_seq.saturating_add(1);
        // OVERFLOW: each takes memory, and users have limits.
        self.queued = self.queued.saturating_add(1);
        if let Ahead::Lowest(lowest) = &mut self.ahead {
            *lowest = key.value.min(*lowest);
        }
        key
    }

    /// Whether a waiter is still queued under this key.
    pub fn is_queued(&self, key: &WaitKey) -> bool {
        let below = WaitKey {
            value: key.value,
            seq: key.seq.saturating_sub(1),
        };

        self.next(&below) == Some(*key)
    }

    /// Stores `value` and returns what is left to do about waiters; `None` if no waiter is
    /// satisfied. The caller continues with [`Waiters::sweep`] under the same hold of the lock.
    ///
    /// Waiters are compared with the signalled value itself, not with a later look at the word, so
    /// a signal followed by a rewind loses no waiter (FEN-34).
    #[inline(always)]
    pub fn signal(
        &mut self,
        current: &impl CurrentValue,
        value: u64,
        allow_rewind: bool,
    ) -> Result<Option<Sweep>, WouldRewind> {
        let Some(step) = self.step(current, value, allow_rewind)? else {
            return Ok(None);
        };

        step.store(current);
        Ok(step.due.and_then(|due| self.left_of(due)))
    }

    /// The same, if no waiter is satisfied by it; otherwise nothing is done, and it is false.
    #[inline(always)]
    pub fn signal_alone(
        &mut self,
        current: &impl CurrentValue,
        value: u64,
        allow_rewind: bool,
    ) -> Result<bool, WouldRewind> {
        let Some(step) = self.step(current, value, allow_rewind)? else {
            return Ok(true);
        };

        if step.due.is_some() {
            return Ok(false);
        }
        step.store(current);
        Ok(true)
    }

    /// What a signal does; `None` if that is nothing.
    #[inline(always)]
    fn step(
        &mut self,
        current: &impl CurrentValue,
        value: u64,
        allow_rewind: bool,
    ) -> Result<Option<Step>, WouldRewind> {
        if self.always_signaled {
            return Ok(None);
        }

        let before = current.load();

        if !fence_value::may_signal(before, value, allow_rewind) {
            return Err(WouldRewind);
        }
        Ok(Some(Step {
            before,
            value,
            // The value from before was seen here. If an engine has stored it, this may have been
            // the only look at it (FEN-82).
            due: self.due(value.max(before), value),
        }))
    }

    /// What the caller has to do about these waiters; `None` if the worker has to release some
    /// anyway, and releases these as well.
    fn left_of(&mut self, due: Due) -> Option<Sweep> {
        match &mut self.ahead {
            Ahead::Backlog(backlog) if due.includes(backlog) => {
                *backlog = due;
                None
            }
            _ => Some(due.into()),
        }
    }

    /// Those who wait now for at most `reached`, if there are any, or for another value than they
    /// know if `value` is one.
    #[inline(always)]
    fn due(&mut self, reached: u64, value: u64) -> Option<Due> {
        if let Ahead::Lowest(lowest) = self.ahead {
            if !fence_value::satisfies(reached, lowest) {
                return None;
            }
        }
        self.look(reached, value)
    }

    /// The same by a look at the first waiter.
    #[inline(never)]
    fn look(&mut self, reached: u64, value: u64) -> Option<Due> {
        let first = self.first();

        if let Ahead::Lowest(lowest) = &mut self.ahead {
            *lowest = first.map_or(u64::MAX, |first| first.value);
        }

        let lowest = first?;

        if !fence_value::satisfies(reached, lowest.value)
            || (lowest.value == 0 && !self.is_change(reached, value))
        {
            return None;
        }
        Some(Due {
            value: reached,
            before: self.next_seq,
        })
    }

    /// Whether somebody is due, while there are some who wait for a change.
    ///
    /// If an engine has stored what others wait for, and that was taken back, those who wait for a
    /// change are told with the others.
    #[cold]
    #[inline(never)]
    fn is_change(&self, reached: u64, value: u64) -> bool {
        let wanted = || self.next(&CHANGES_END);

        value != self.map.known()
            || wanted().is_some_and(|key| fence_value::satisfies(reached, key.value))
    }

    /// Looks at the word again, and says what is to be done about waiters, as [`Waiters::signal`]
    /// does. For words that were stored by other means than a signal: when a device is lost. And
    /// for the last look at a word, before nobody looks any more.
    pub fn sample(&mut self, current: &impl CurrentValue) -> Option<Sweep> {
        let value = current.load();
        let due = self.due(value, value)?;

        self.left_of(due)
    }

    /// The same when a value is known to have been stored some time before, and may be gone again
    /// (FEN-82).
    pub fn sample_beside(&mut self, current: &impl CurrentValue, stored: u64) -> Option<Sweep> {
        let value = current.load();
        let due = self.due(value.max(stored), value)?;

        self.left_of(due)
    }

    /// AlwaysSignaled (FEN-104): stores the highest value, which releases every waiter. From then
    /// on signals do nothing. The caller goes on as after [`Waiters::signal`]; `None` if nothing
    /// was stored.
    pub fn always_signal(&mut self, current: &impl CurrentValue) -> Option<Option<Sweep>> {
        if self.keeps_value || self.always_signaled {
            return None;
        }
        // ORDERING: release, as in `signal`.
        current.store_always_signaled();
        self.always_signaled = true;

        // The value itself, as in `signal`: an engine that does not know yet may be storing another
        // one, which it takes back without a word (M23).
        let due = self.due(u64::MAX, u64::MAX);

        Some(due.and_then(|due| self.left_of(due)))
    }

    /// Whether signals do nothing any more.
    pub fn is_always_signaled(&self) -> bool {
        self.always_signaled
    }

    /// Leaves the rest of a signal to the worker. Hands it back if an earlier signal has left
    /// something that cannot be combined with it.
    pub fn defer(&mut self, sweep: Sweep) -> Option<Sweep> {
        match &self.ahead {
            Ahead::Backlog(backlog) if backlog.includes(&sweep.due) => {}
            Ahead::Backlog(backlog) if !sweep.due.includes(backlog) => return Some(sweep),
            _ => self.ahead = Ahead::Backlog(sweep.due),
        }
        None
    }

    /// Leaves the cleanup of the fence to the worker.
    pub fn leave_cleanup(&mut self) {
        self.has_cleanup = true;
    }

    /// Whether the cleanup was left to the worker, who does it now.
    pub fn take_cleanup(&mut self) -> bool {
        core::mem::take(&mut self.has_cleanup)
    }

    /// The worker's next step: moves waiters that were left to it into `released`. `last` is how
    /// far the step before came; `None` if that was all.
    pub fn catch_up(
        &mut self,
        last: Option<Sweep>,
        released: &mut M,
        woken: &mut Woken<L::Wake>,
    ) -> Option<Sweep> {
        let due = self.backlog()?;
        // From the start, if another signal was left meanwhile.
        let sweep = last.filter(|last| last.due == due).unwrap_or(due.into());
        let rest = self.sweep(sweep, released, woken);

        if rest.is_none() {
            self.take_backlog();
        }
        rest
    }

    /// Moves the next waiters that a signal releases into `due`, tells those who sleep in memory of
    /// their own, and hands back what is left to do when they are many. `woken` is of this hold of
    /// the lock alone.
    pub fn sweep(
        &mut self,
        mut sweep: Sweep,
        due: &mut M,
        woken: &mut Woken<L::Wake>,
    ) -> Option<Sweep> {
        for _ in 0..BATCH {
            match self.take_next(&mut sweep)? {
                None => {}
                Some(Taken::Node(node)) => due.put(node),
                Some(Taken::Sleeper(key, wake)) => woken.add(key, News::Satisfied, wake),
            }
        }
        self.rest_of(sweep)
    }

    /// The same for at most [`FEW`] of them, each of which is handed to `add`, in order.
    pub fn sweep_few(
        &mut self,
        mut sweep: Sweep,
        mut add: impl FnMut(Taken<M::Node, L::Wake>),
    ) -> Option<Sweep> {
        for _ in 0..FEW {
            if let Some(taken) = self.take_next(&mut sweep)? {
                add(taken);
            }
        }
        self.rest_of(sweep)
    }

    /// What is left of it, if somebody is.
    fn rest_of(&self, sweep: Sweep) -> Option<Sweep> {
        (self.queued != 0).then_some(sweep)
    }

    /// Takes out the next one whom a signal releases, if it is not to be passed over; `None` if
    /// there is nobody else.
    #[inline(always)]
    fn take_next(&mut self, sweep: &mut Sweep) -> Option<Option<Taken<M::Node, L::Wake>>> {
        if self.queued == 0 {
            return None;
        }

        let (of_map, of_list) = match &sweep.passed {
            None => (self.map.first(), self.sleepers.first()),
            Some(passed) => (self.map.next(passed), self.sleepers.next(passed)),
        };
        let key = lower(of_map, of_list)?;

        if !fence_value::satisfies(sweep.due.value, key.value) {
            return None;
        }
        if key.seq >= sweep.due.before.get() {
            sweep.passed = Some(key);
            return Some(None);
        }

        let taken = match of_list == Some(key) {
            true => Taken::Sleeper(key, self.sleepers.tell(&key, News::Satisfied)?),
            false => Taken::Node(self.map.take(&key)?),
        };

        self.queued = self.queued.saturating_sub(1);
        Some(Some(taken))
    }

    /// Takes one waiter out again; `None` if it was released already.
    pub fn cancel(&mut self, key: &WaitKey) -> Option<M::Node> {
        let node = self.map.take(key)?;

        self.queued = self.queued.saturating_sub(1);
        Some(node)
    }

    /// The same for a thread that sleeps in memory of its own; false if it was told already.
    pub fn cancel_sleeper(&mut self, key: &WaitKey) -> bool {
        let was_queued = self.sleepers.take(key);

        if was_queued {
            self.queued = self.queued.saturating_sub(1);
        }
        was_queued
    }

    /// Puts a node into the place of a thread that slept in memory of its own, and now runs a
    /// signal handler. It keeps its turn: a signal that has begun before, or was followed by a
    /// rewind, releases it still (FEN-34). If the thread was told already, the node comes back.
    pub fn replace_sleeper(
        &mut self,
        key: &WaitKey,
        new_node: M::NewNode,
    ) -> Result<(), M::NewNode> {
        if !self.sleepers.take(key) {
            return Err(new_node);
        }
        self.map.put(M::name(new_node, *key));
        Ok(())
    }

    /// Nobody can signal any more: refuses new waiters, if none is queued. False otherwise, and
    /// nothing is done: [`Waiters::orphan`] has to follow.
    pub fn orphan_alone(&mut self) -> bool {
        let is_alone = self.queued == 0;

        self.orphaned |= is_alone;
        is_alone
    }

    /// Nobody can signal any more: refuses new waiters and hands out the queued ones (FEN-28).
    /// Those who sleep in memory of their own are told.
    pub fn orphan(
        &mut self,
        current: &impl CurrentValue,
        empty: M,
        woken: &mut Woken<L::Wake>,
    ) -> Orphans<M> {
        let last = self.sample(current);

        self.orphaned = true;
        self.queued = 0;

        let orphans = Orphans {
            map: core::mem::replace(&mut self.map, empty),
            due: [last.map(|last| last.due), self.take_backlog()],
        };

        while let Some(key) = self.sleepers.first() {
            let news = match orphans.is_satisfied(&key) {
                true => News::Satisfied,
                false => News::Orphaned,
            };
            // It is there, so that this ends.
            let Some(wake) = self.sleepers.tell(&key, news) else {
                break;
            };

            woken.add(key, news, wake);
        }
        orphans
    }

    /// Makes MonitoredValue say what the waiters want, and looks at CurrentValue again after each
    /// store: steps A3 and A4 of a CPU wait, and the end of each reaping (FEN-69, FEN-72). Called
    /// whenever waiters were queued or taken out, before the fence lock is released. If this
    /// returns something the caller goes on with [`Waiters::sweep`], and calls it again.
    pub fn settle(
        &mut self,
        current: &impl CurrentValue,
        monitored: &impl MonitoredValue,
    ) -> Option<Sweep> {
        let wanted = self.monitored();

        if wanted == monitored.load() {
            return None;
        }
        monitored.store(wanted);
        self.sample(current)
    }

    /// What MonitoredValue has to say (FEN-55).
    pub fn monitored(&self) -> u64 {
        fence_value::monitored(self.first().map(|key| key.value))
    }
}
