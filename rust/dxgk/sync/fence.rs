// SPDX-License-Identifier: GPL-2.0

//! A monitored or native fence: a 64-bit value that processes read in their own memory, CPU waits
//! on it, and CPU signals (fences.md sections 2 and 3).
//!
//! LOCK: `waiters` is the fence lock. It is never held together with the lock of another fence.
//! Waiters are woken and nodes freed after it is released. CurrentValue is stored only under it;
//! it is read at any time without it.

mod across;
mod engines;
pub(crate) mod one;

use super::{
    about::About,
    cross_adapter::CrossAdapter,
    fence_storage::FenceStorage,
    kmd_fence::KmdFence,
    native_fence::{
        NativeFence,
        Words, //
    },
    native_interrupts::Count,
    queue::{
        self,
        Knows,
        Queue, //
    },
    shown::Shown,
    stack_sleeper::{
        Ended,
        StackWait, //
    }, //
};
use crate::dxgk::{
    at_once::AT_ONCE,
    object::{
        Header,
        Object, //
    },
    stats::ObjectKind, //
};
use crate::{
    ddi::native_fence::CurrentValueUpdate,
    logic::{
        fence_value,
        sleepers::Woken,
        waiters::{
            ChangeResult,
            CurrentValue,
            EnqueueResult,
            Orphans,
            SleepResult,
            Sweep,
            WaitKey,
            Waiters,
            WouldRewind,
            BATCHES, //
        }, //
    },
    platform::load_acquire,
    sys::{
        alloc::pin_arc,
        stack_list::{
            NewPlace,
            StackList, //
        },
        task::stamp::Stamp,
        trace,
        work, //
    }, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::Relaxed,
        lock::{
            spinlock::SpinLockBackend,
            Guard, //
        },
        Arc,
        SpinLock, //
    },
    workqueue::{
        self as work_queue,
        Work,
        WorkItem, //
    }, //
};

/// A node that is not queued yet, and the waiter it will hold.
pub(crate) type NewNode = queue::NewNode<dyn FenceWaiter>;

/// A wait as its fences know it. Each element is reported once, by the call that has taken its
/// node out.
///
/// Context: may sleep, no locks held.
pub(crate) trait FenceWaiter: Knows + Send + Sync {
    /// One element was seen satisfied. True if that has ended the wait.
    fn satisfied(&self) -> bool;
    /// One element can never be satisfied (FEN-28).
    fn orphaned(&self);
    /// What fdinfo shows of it. Takes no lock, unlike the others.
    fn about(&self) -> Option<About> {
        None
    }
}

/// The waiters of a fence, in order.
type FenceQueue = Queue<dyn FenceWaiter>;

/// Those, and the threads that sleep in memory of their own.
type FenceWaiters = Waiters<FenceQueue, StackList<StackWait>>;

/// The fence lock, held.
type FenceGuard<'a> = Guard<'a, State, SpinLockBackend>;

/// What the fence lock protects.
struct State {
    waiters: FenceWaiters,
    /// Who signalled last, and when.
    signalled: Stamp,
    /// Where engines see CurrentValue.
    shown: Shown<dyn StoreWatch>,
}

/// Who notices stores of engines to the fences of one GPU address space.
pub(super) trait StoreWatch: Send + Sync {
    /// Somebody is queued on `fence`, or was just now: from now on it is looked at. What was stored
    /// before is looked at here.
    ///
    /// Context: may sleep, no locks held.
    fn wait_for(&self, fence: &Arc<Fence>);

    /// The id of the adapter whose engines these are.
    fn adapter(&self) -> u64;
}

impl Deref for State {
    type Target = FenceWaiters;

    fn deref(&self) -> &Self::Target {
        &self.waiters
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.waiters
    }
}

/// Those whom one hold of the fence lock has taken out of the fence.
struct Due {
    queue: FenceQueue,
    woken: Woken<Ended>,
}

impl Due {
    /// Nobody.
    fn new() -> Self {
        Self {
            queue: Queue::new(),
            woken: Woken::new(),
        }
    }

    /// Tells the waiters, in order, that a signal has taken them out. No locks held.
    fn release(&mut self) -> Released {
        let mut released = Released {
            waiters: self.woken.satisfied().into(),
            ended: 0,
        };

        for (key, waiter) in self.queue.iter() {
            released.wake(&mut self.woken, Some(key));
            released.waiters = released.waiters.saturating_add(1);
            if waiter.satisfied() {
                released.ended = released.ended.saturating_add(1);
            }
        }
        released.wake(&mut self.woken, None);
        released
    }
}

/// What a release has done.
#[derive(Clone, Copy)]
struct Released {
    waiters: u64,
    ended: u64,
}

impl Released {
    /// Wakes the threads that come before the waiter under `key`, or all of them. No locks held.
    fn wake(&mut self, woken: &mut Woken<Ended>, key: Option<&WaitKey>) {
        while let Some(ended) = woken.next_before(key) {
            self.ended = self.ended.saturating_add(ended.wake().into());
        }
    }
}

// With the counts of its `Arc` it takes 256 bytes; the next larger piece of memory is 512, all of
// which is zeroed where the kernel is set up so. Checks of locks need more.
#[cfg(not(any(
    CONFIG_LOCKDEP,
    CONFIG_DEBUG_SPINLOCK,
    CONFIG_DEBUG_MUTEXES,
    CONFIG_PREEMPT_RT
)))]
const _: () = assert!(size_of::<Fence>() <= 248);

/// A monitored fence.
#[pin_data]
pub(crate) struct Fence {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
    /// CurrentValue, for all adapters, and MonitoredValue of a native fence.
    words: Words,
    #[pin]
    waiters: SpinLock<State>,
    /// What is left to the worker: what signals have begun, and the cleanup, see
    /// [`crate::dxgk::retire`]. `waiters` knows which.
    #[pin]
    work: Work<Fence>,
}

impl_has_work! {
    impl HasWork<Self> for Fence { self.work }
}

impl WorkItem for Fence {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        match this.words {
            Words::Monitored(_) => this.catch_up(),
            _ => this.catch_up_and_settle(),
        }

        let has_cleanup = this.waiters.lock().take_cleanup();

        if has_cleanup {
            Object::Fence(this).cleanup_now();
        }
    }
}

impl Fence {
    /// A fence whose value is in `words`. `keeps_value` is NoSignalMaxValueOnTdr.
    pub(crate) fn new(
        header: impl PinInit<Header>,
        words: Words,
        keeps_value: bool,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                header <- header,
                words,
                waiters <- new_spinlock!(
                    State {
                        waiters: Waiters::with(Queue::new(), StackList::new(), keeps_value),
                        signalled: Stamp::NEVER,
                        shown: Shown::List(None),
                    },
                    "Fence::waiters"
                ),
                work <- new_work!("Fence::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Binds it to the adapter it was made on, if it may be shared.
    pub(in crate::dxgk) fn bind(self: &Arc<Self>) -> Result<(), AllocError> {
        if let (Some(binding), Some(adapter)) = (self.words.binding(), &*self.header.adapter) {
            if let Some(native) = self.words.native() {
                native.name(self.header.id());
            }
            binding.store(adapter.fences.add(self.clone())?, Relaxed);
        }
        Ok(())
    }

    /// Ends what [`Fence::bind`] began. It retires.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn unbind(&self) {
        if let (Some(binding), Some(adapter)) = (self.words.binding(), &*self.header.adapter) {
            adapter.fences.remove(binding.load(Relaxed));
        }
    }

    /// Where CurrentValue is.
    pub(super) fn storage(&self) -> &FenceStorage {
        self.words.place()
    }

    /// CurrentValue now, with acquire ordering.
    pub(crate) fn value(&self) -> u64 {
        self.words.load()
    }

    /// How many waits are queued.
    pub(crate) fn waiting(&self) -> usize {
        // CAST: 32 bits fit a usize.
        self.waiters.lock().queued() as usize
    }

    /// The wait after the one under this key, or the first one. Something is known of most.
    pub(crate) fn wait_after(&self, key: Option<&WaitKey>) -> Option<(WaitKey, Option<About>)> {
        let waiters = self.waiters.lock();
        let (key, queue, sleepers) = waiters.after(key)?;
        let about = sleepers
            .look(&key, |sleeper| Some(sleeper.about()))
            .unwrap_or_else(|| queue.get(&key)?.about());

        Some((key, about))
    }

    /// Who signalled last, and when, as far as the OS knows.
    pub(crate) fn signalled(&self) -> Stamp {
        self.waiters.lock().signalled
    }

    /// What it has if it is a native fence of one adapter.
    pub(in crate::dxgk) fn native(&self) -> Option<&NativeFence> {
        self.words.native()
    }

    /// What it has if it is a cross-adapter fence.
    pub(crate) fn cross_adapter(&self) -> Option<&CrossAdapter> {
        self.words.cross_adapter()
    }

    /// Whether it was made as a native fence.
    pub(in crate::dxgk) fn is_native(&self) -> bool {
        self.header.kind() == ObjectKind::NativeFence
    }

    /// Whether packets alone use it (FEN-130): processes do not see its value.
    pub(crate) fn is_intra_gpu(&self) -> bool {
        !self.storage().is_mapped()
    }

    /// Waiters were queued or taken out: MonitoredValue of a native fence follows. If that finds
    /// that others are satisfied, the caller goes on with [`Fence::release`].
    #[inline(always)]
    fn settle(&self, waiters: &mut State) -> Option<Sweep> {
        match &self.words {
            Words::Monitored(_) => None,
            _ => self.settle_native(waiters),
        }
    }

    /// The same for a fence that is native somewhere, or may be.
    #[inline(never)]
    fn settle_native(&self, waiters: &mut State) -> Option<Sweep> {
        match &self.words {
            Words::Monitored(_) => None,
            Words::Native(native) => waiters.settle(&self.words, &**native),
            Words::CrossAdapter(cross) => cross
                .monitor(waiters.monitored())
                .then(|| waiters.sample(&self.words))
                .flatten(),
        }
    }

    /// The same where the lock is given up then.
    #[inline(always)]
    fn settle_with<'a>(self: &'a Arc<Self>, mut waiters: FenceGuard<'a>) {
        if let Some(sweep) = self.settle(&mut waiters) {
            self.release(waiters, sweep, &mut { BATCHES });
        }
    }

    /// Whether a wait for `value` would be satisfied now.
    #[inline(always)]
    pub(crate) fn satisfies(&self, value: u64) -> bool {
        let current = match &self.words {
            Words::Monitored(place) => load_acquire(place.word()),
            _ => self.value(),
        };

        fence_value::satisfies(current, value)
    }

    /// Stores `value` and releases every waiter for at most `value` (FEN-31 to FEN-34). If there
    /// are very many, the worker releases the rest.
    ///
    /// Context: may sleep after the fact (wake-ups free memory), no locks held. Allocates nothing.
    pub(crate) fn signal(
        self: &Arc<Self>,
        value: u64,
        allow_rewind: bool,
    ) -> core::result::Result<(), WouldRewind> {
        let by = Stamp::of_caller();

        self.signal_within(by, None, value, allow_rewind, &mut { BATCHES })
    }

    /// The same for a device of an adapter, which is named by its id: others are told, if it is a
    /// cross-adapter fence (FEN-138). `None` is for the adapter that the fence was made on.
    ///
    /// Context: as [`Fence::signal`].
    pub(crate) fn signal_on(
        self: &Arc<Self>,
        adapter: Option<u64>,
        value: u64,
        allow_rewind: bool,
    ) -> core::result::Result<(), WouldRewind> {
        let by = Stamp::of_caller();

        self.signal_within(by, adapter, value, allow_rewind, &mut { BATCHES })
    }

    /// The same, one of several signals that release so many batches of waiters altogether: the
    /// worker releases the rest. `by` says whose signal it is.
    ///
    /// Context: as [`Fence::signal`].
    pub(in crate::dxgk) fn signal_within(
        self: &Arc<Self>,
        by: Stamp,
        adapter: Option<u64>,
        value: u64,
        allow_rewind: bool,
        batches: &mut u32,
    ) -> core::result::Result<(), WouldRewind> {
        if let Some(cross) = self.cross_adapter() {
            return self.signal_across(cross, by, adapter, value, allow_rewind, batches);
        }

        let mut waiters = self.waiters.lock();
        let due = waiters.signal(&self.words, value, allow_rewind)?;

        waiters.signalled = by;
        // Under the lock, so that no wake-up is traced before its signal.
        trace::signal(self.header.id(), value);
        if let Some(sweep) = due {
            self.release(waiters, sweep, batches);
        }
        Ok(())
    }

    /// The same, if nobody is released by it; otherwise nothing is done, and it is false. `by` says
    /// whose signal it is.
    ///
    /// Context: no lock but that of a handle table. Allocates and frees nothing, wakes nobody.
    #[inline(always)]
    pub(crate) fn signal_alone(
        &self,
        by: Stamp,
        value: u64,
        allow_rewind: bool,
    ) -> core::result::Result<bool, WouldRewind> {
        match &self.words {
            Words::Monitored(place) => self.store_alone(place.word(), by, value, allow_rewind),
            Words::Native(_) => self.signal_native_alone(by, value, allow_rewind),
            // Other adapters may have to be told.
            Words::CrossAdapter(_) => Ok(false),
        }
    }

    #[inline(never)]
    fn signal_native_alone(
        &self,
        by: Stamp,
        value: u64,
        allow_rewind: bool,
    ) -> core::result::Result<bool, WouldRewind> {
        self.store_alone(&self.words, by, value, allow_rewind)
    }

    /// The same with CurrentValue as it is stored.
    #[inline(always)]
    fn store_alone(
        &self,
        current: &impl CurrentValue,
        by: Stamp,
        value: u64,
        allow_rewind: bool,
    ) -> core::result::Result<bool, WouldRewind> {
        let mut waiters = self.waiters.lock();
        let is_done = waiters.signal_alone(current, value, allow_rewind)?;

        if is_done {
            waiters.signalled = by;
            // Under the lock, as in `signal_within`.
            trace::signal(self.header.id(), value);
        }
        Ok(is_done)
    }

    /// A device that could signal it is lost: everybody is released, and from now on no signal
    /// changes anything (FEN-104), unless it was made to keep its value.
    ///
    /// Context: as [`Fence::signal`].
    pub(in crate::dxgk) fn always_signal(self: &Arc<Self>) {
        let mut waiters = self.waiters.lock();
        let Some(due) = waiters.always_signal(&self.words) else {
            return;
        };

        trace::signal(self.header.id(), u64::MAX);
        match self.cross_adapter() {
            Some(cross) => self.always_signal_across(cross, waiters, due),
            None => {
                if let Some(sweep) = due {
                    self.release(waiters, sweep, &mut { BATCHES });
                }
            }
        }
    }

    /// A device opens it. If it is always signaled, the KMD of the device is told so again: it
    /// could not be told while its adapter was reset, or before it had the fence (FEN-104).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn tell_always_signaled(&self, kmd: &KmdFence) {
        let waiters = self.waiters.lock();

        if waiters.is_always_signaled() {
            let how = CurrentValueUpdate::AlwaysSignaled;

            kmd.store_under_lock(self.storage().word(), u64::MAX, how);
        }
    }

    /// Releases the waiters that a signal satisfies, `batches` of them; the worker releases the
    /// rest. Called with the fence lock held; drops it.
    #[inline(never)]
    fn release<'a>(
        self: &'a Arc<Self>,
        mut waiters: FenceGuard<'a>,
        mut sweep: Sweep,
        batches: &mut u32,
    ) {
        loop {
            let rest = match batches.checked_sub(1) {
                Some(fewer) => {
                    let mut due = Due::new();
                    let mut rest = waiters.sweep(sweep, &mut due.queue, &mut due.woken);

                    if rest.is_none() {
                        rest = self.settle(&mut waiters);
                    }

                    *batches = fewer;
                    drop(waiters);
                    self.count(due.release());
                    rest
                }
                None => {
                    drop(waiters);
                    Some(sweep)
                }
            };

            sweep = match rest {
                Some(rest) if *batches != 0 => rest,
                rest => match rest.and_then(|rest| self.defer(rest)) {
                    // It is for this call alone.
                    Some(own) => {
                        *batches = 1;
                        own
                    }
                    None => return,
                },
            };
            waiters = self.waiters.lock();
        }
    }

    /// Counts those that were released, if it is a native fence.
    fn count(&self, released: Released) {
        if let Some(native) = self.words.native() {
            native.add(Count::WaitsReleased, released.waiters);
            native.add(Count::Wakes, released.ended);
        }
    }

    /// Leaves what a signal still has to release to the worker; hands it back if that is not
    /// possible.
    fn defer(self: &Arc<Self>, sweep: Sweep) -> Option<Sweep> {
        let Some(worker) = work::worker() else {
            return Some(sweep);
        };
        let own = self.waiters.lock().defer(sweep);

        if own.is_none() {
            // It fails only if it is queued already and has not started.
            let _queued = worker.enqueue(self.clone()).is_ok();
        }
        own
    }

    /// The worker's part of signals.
    fn catch_up(&self) {
        let mut last = None;

        loop {
            let mut due = Due::new();

            last = self
                .waiters
                .lock()
                .catch_up(last, &mut due.queue, &mut due.woken);
            self.count(due.release());
            if last.is_none() {
                return;
            }
            work::breathe();
        }
    }

    /// The same for a native fence, whose MonitoredValue follows.
    fn catch_up_and_settle(self: &Arc<Self>) {
        self.catch_up();
        self.settle_with(self.waiters.lock());
    }

    /// Queues a waiter for `value`, unless there is nothing to wait for. `id` is that of the
    /// waiter, for traces.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enqueue(
        self: &Arc<Self>,
        value: u64,
        new_node: NewNode,
        id: u64,
    ) -> EnqueueResult<NewNode> {
        let mut waiters = self.waiters.lock();
        let result = waiters.enqueue(&self.words, value, new_node);

        if matches!(result, EnqueueResult::Queued(_)) {
            self.has_queued_one(waiters, value, id);
        }
        result
    }

    /// The same for a thread that sleeps in memory of its own: this takes none.
    ///
    /// Context: as [`Fence::enqueue`].
    pub(in crate::dxgk) fn enqueue_sleeper(
        self: &Arc<Self>,
        value: u64,
        place: NewPlace<'_, StackWait>,
        id: u64,
    ) -> SleepResult {
        let mut waiters = self.waiters.lock();
        let result = waiters.enqueue_sleeper(&self.words, value, place);

        if matches!(result, SleepResult::Queued(_)) {
            self.has_queued_one(waiters, value, id);
        }
        result
    }

    /// A waiter for `value` was queued just now. Gives up the fence lock.
    #[inline(always)]
    fn has_queued_one<'a>(self: &'a Arc<Self>, mut waiters: FenceGuard<'a>, value: u64, id: u64) {
        // Under the lock, so that no signal that ends the wait is traced before it.
        trace::wait(self.header.id(), value, id);
        if let Some(native) = self.words.native() {
            native.begin_wait();
            self.settle_with(waiters);
            return;
        }

        let is_first = waiters.queued() == 1;

        // Most fences have one.
        if let (true, Shown::In(space)) = (is_first, &waiters.shown) {
            let space = space.clone();

            self.settle_with(waiters);
            space.wait_for(self);
            return;
        }

        let last = match is_first {
            true => waiters.shown.last_to_tell(),
            false => None,
        };

        self.settle_with(waiters);
        if let Some(last) = last {
            self.wait_for_engines(last);
        }
    }

    /// Queues one who waits until CurrentValue is another than `known` (FEN-176). `id` is for
    /// traces. If it is queued, [`Fence::look_for_changes`] has to follow.
    ///
    /// Context: no lock but that of the waiter. Allocates and frees nothing, wakes nobody.
    pub(in crate::dxgk) fn enqueue_change(
        &self,
        known: u64,
        new_node: NewNode,
        id: u64,
    ) -> ChangeResult<NewNode> {
        let mut waiters = self.waiters.lock();
        let result = waiters.enqueue_change(&self.words, known, new_node);

        if matches!(result, ChangeResult::Queued(_)) {
            // Under the lock, as in `enqueue`.
            trace::wait(self.header.id(), 0, id);
            if let Some(native) = self.words.native() {
                native.begin_wait();
            }
            // Who is satisfied meanwhile is found by the look that follows.
            let _later = self.settle(&mut waiters);
        }
        result
    }

    /// Somebody waits for a change: those who look for stores of engines look at this fence.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn look_for_changes(self: &Arc<Self>) {
        if self.words.native().is_none() {
            self.look_for_engines();
        }
        if !matches!(self.words, Words::Monitored(_)) {
            self.sample();
        }
    }

    /// Whether a waiter is still queued under this key.
    ///
    /// Context: no lock but that of the waiter.
    pub(in crate::dxgk) fn has_queued(&self, key: &WaitKey) -> bool {
        self.waiters.lock().is_queued(key)
    }

    /// Takes a waiter out, if it is still queued.
    pub(in crate::dxgk) fn cancel(
        self: &Arc<Self>,
        key: &WaitKey,
    ) -> Option<queue::Node<dyn FenceWaiter>> {
        let mut waiters = self.waiters.lock();
        let node = waiters.cancel(key)?;

        self.has_cancelled_one(waiters);
        Some(node)
    }

    /// Takes the place of a thread that sleeps in memory of its own out, if it is still queued.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn cancel_sleeper(self: &Arc<Self>, key: &WaitKey) {
        let mut waiters = self.waiters.lock();

        if waiters.cancel_sleeper(key) {
            self.has_cancelled_one(waiters);
        }
    }

    /// Puts a node into the place of such a thread, if it is still queued; otherwise the node comes
    /// back.
    ///
    /// Context: no locks held.
    pub(in crate::dxgk) fn replace_sleeper(
        &self,
        key: &WaitKey,
        new_node: NewNode,
    ) -> core::result::Result<(), NewNode> {
        self.waiters.lock().replace_sleeper(key, new_node)
    }

    /// A waiter was taken out that was not satisfied. Gives up the fence lock.
    fn has_cancelled_one<'a>(self: &'a Arc<Self>, waiters: FenceGuard<'a>) {
        if let Some(native) = self.words.native() {
            native.add(Count::WaitsCancelled, 1);
        }
        self.settle_with(waiters);
    }

    /// Orphans the waits: no signal can come any more (FEN-28). Only if they are few enough to do
    /// it at once; true if so.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn orphan_at_once(&self) -> bool {
        let mut waiters = self.waiters.lock();

        if waiters.orphan_alone() {
            return true;
        }
        // CAST: 32 bits fit a usize.
        if waiters.queued() as usize > AT_ONCE {
            return false;
        }
        self.orphan_few(waiters);
        true
    }

    /// The same for few waits. Gives up the fence lock.
    #[inline(never)]
    fn orphan_few(&self, mut waiters: FenceGuard<'_>) {
        let mut woken = Woken::new();
        let orphans = waiters.orphan(&self.words, Queue::new(), &mut woken);
        // Nobody is left who could be satisfied.
        let _nobody = self.settle(&mut waiters);

        drop(waiters);
        self.tell_orphans(&orphans, woken);
    }

    /// Orphans all waits.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn orphan(&self) {
        let mut woken = Woken::new();
        let orphans = {
            let mut waiters = self.waiters.lock();
            let orphans = waiters.orphan(&self.words, Queue::new(), &mut woken);
            // As above.
            let _nobody = self.settle(&mut waiters);

            orphans
        };

        self.tell_orphans(&orphans, woken);
    }

    fn tell_orphans(&self, orphans: &Orphans<FenceQueue>, mut woken: Woken<Ended>) {
        let mut released = Released {
            waiters: woken.satisfied().into(),
            ended: 0,
        };
        let mut orphaned = u64::from(woken.orphaned());

        for (number, (key, waiter)) in orphans.map.iter().enumerate() {
            if number % AT_ONCE == AT_ONCE - 1 {
                work::breathe();
            }
            released.wake(&mut woken, Some(key));
            // A signal may not have come to it yet.
            if orphans.is_satisfied(key) {
                released.waiters = released.waiters.saturating_add(1);
                released.ended = released.ended.saturating_add(waiter.satisfied().into());
            } else {
                orphaned = orphaned.saturating_add(1);
                waiter.orphaned();
            }
        }
        released.wake(&mut woken, None);
        self.count(released);
        if let Some(native) = self.words.native() {
            native.add(Count::WaitsCancelled, orphaned);
        }
    }

    /// Hands the cleanup to the worker.
    pub(in crate::dxgk) fn cleanup_by(self: Arc<Self>, worker: &work_queue::Queue) {
        self.waiters.lock().leave_cleanup();
        // It fails only if it is queued already and has not started: then it sees that.
        let _queued = worker.enqueue(self).is_ok();
    }
}
