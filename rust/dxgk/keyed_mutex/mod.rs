// SPDX-License-Identifier: GPL-2.0

//! A keyed mutex: a release names the key for which it is free (RES-91 to RES-102).
//!
//! Its private runtime data is the entry with the zero key of its store (RES-67), see
//! [`Attachments`]. `Documentation/keyed-mutexes.md` describes states, ownership, hand-over and
//! time-outs.
//!
//! [`Attachments`]: super::info::attachments::Attachments
//!
//! LOCK: inside `state` are only the wait queue of the owner's exit and the lock of the
//! attachments, one at a time. Threads are woken, and nodes and references dropped, after it is
//! released.

pub(crate) mod creation;
pub(crate) mod open;

use self::open::OpenKeyedMutex;
use super::{
    at_once::AT_ONCE,
    info::attachments::{
        self,
        Applied,
        Value, //
    },
    object::Header,
    sync::{
        about::About,
        queue::{
            self,
            Knows,
            Queue, //
        },
        wake::THREAD, //
    }, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        keyed_mutex::{
            Attempt,
            KeyedMutex as Rules,
            NotOwner,
            OwnerList,
            OwnerMap,
            Released,
            Taken, //
        },
        sleepers::News,
        timeout::Deadline,
        wait_set::Mode,
        waiters::{
            WaitKey,
            WaitMap, //
        }, //
    },
    platform::Word32,
    sys::{
        alloc::pin_arc,
        stack_list::{
            OnStack,
            Sleeps,
            StackList, //
        },
        task::{
            sleep::{
                self,
                Early,
                Signals, //
            },
            stamp::Stamp,
            thread::Thread,
            thread_exit::{
                ExitListener,
                ExitWatch,
                Idle, //
            }, //
        },
        trace,
        work, //
    }, //
};
use core::pin::pin;
use kernel::{
    alloc::AllocError,
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_spinlock,
    new_work,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        lock::{
            spinlock::SpinLockBackend,
            Guard, //
        },
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    task::Task,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// The owner of a mutex: a thread, through a handle.
#[derive(Clone)]
pub(crate) struct Owner {
    thread: Thread,
    open: Arc<OpenKeyedMutex>,
}

impl Owner {
    /// Whether it is the calling thread, in the process of `open`.
    fn is_caller_beside(&self, open: &OpenKeyedMutex) -> bool {
        self.thread.is_caller() && self.open.is_beside(open)
    }
}

/// A thread that waits for a key.
pub(crate) struct Sleeper {
    owner: Owner,
    /// Its process, and since when it waits.
    begun: Stamp,
    task: ARef<Task>,
    /// 0 while it waits; then one of the values below, stored before the thread is woken.
    state: Word32,
    /// The fence value, once it is owner.
    fence: Atomic<u64>,
}

/// [`Sleeper::state`]: it owns the mutex.
const MADE_OWNER: u32 = 1;
/// [`Sleeper::state`]: the mutex is abandoned.
const ABANDONED: u32 = 2;

/// How often the module checks whether the owner has ended, while threads wait.
const LOOK_MS: u32 = 1_000;

type Node = <Queue<Sleeper> as WaitMap>::Node;

type MutexRules = Rules<Queue<Sleeper>, StackList<Sleeper>>;

/// What became of a thread that asked to be queued.
enum Queued {
    /// It owns the mutex.
    Owner(Acquired),
    /// It is queued in this place.
    In(WaitKey),
    /// Nothing: there was no place.
    Nowhere,
}

impl Knows for Sleeper {}

impl OwnerMap for Queue<Sleeper> {
    type Owner = Owner;

    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(Owner, Node)> {
        let sleeper = self.get(key)?;
        let owner = sleeper.make_owner(fence);

        Some((owner, self.take(key)?))
    }
}

impl Sleeper {
    /// The calling thread, which will own the mutex as `owner`.
    fn of_caller(owner: Owner) -> Self {
        Self {
            owner,
            begun: Stamp::of_caller(),
            task: sleep::me(),
            state: Atomic::new(0),
            fence: Atomic::new(0),
        }
    }

    /// What fdinfo shows of it, in this place.
    fn about(&self, place: &WaitKey) -> About {
        About {
            id: place.seq,
            begun: self.begun,
            receiver: THREAD,
            thread: sleep::number(&self.task),
            mode: Mode::All,
        }
    }

    /// Tells it that it owns the mutex, with this fence value.
    fn make_owner(&self, fence: u64) -> Owner {
        let owner = self.owner.clone();

        self.fence.store(fence, Relaxed);
        // ORDERING: release, for the fence value. Pairs with the acquire load in the sleep.
        self.state.store(MADE_OWNER, Release);
        owner
    }

    /// Tells it that the mutex is abandoned.
    fn abandon(&self) {
        self.state.store(ABANDONED, Release);
    }
}

impl Sleeps for Sleeper {
    type Wake = ARef<Task>;

    /// It is abandoned: who gets the mutex is told by [`Sleeper::make_owner`].
    fn tell(&self, _abandoned: News) -> Option<ARef<Task>> {
        self.abandon();
        Some(self.task.clone())
    }
}

impl OwnerList for StackList<Sleeper> {
    type Owner = Owner;

    fn make_owner(&mut self, key: &WaitKey, fence: u64) -> Option<(Owner, ARef<Task>)> {
        self.take(key, |sleeper| {
            (sleeper.make_owner(fence), sleeper.task.clone())
        })
    }
}

/// Tells the mutex that its owner has ended.
enum OwnerWatch {
    /// There was no owner yet; nor is there a watch when the mutex is abandoned.
    Idle(Option<Idle<KeyedMutex>>),
    /// The owner is watched, or the last one.
    Owner(ExitWatch<KeyedMutex>),
}

/// What the lock protects.
struct State {
    rules: MutexRules,
    /// Follows the owner of `rules`, see [`State::watch_owner`].
    watch: OwnerWatch,
    /// Who has acquired or released it last, and when. A release may hand it over.
    changed: Stamp,
    /// Whether `look_again` is queued or runs.
    looks_later: bool,
}

impl State {
    /// Whether the owner makes no more calls.
    fn owner_ended(&self) -> bool {
        self.rules
            .owner()
            .is_some_and(|owner| owner.thread.is_dead())
    }

    /// Whether the calling thread owns the mutex, through any handle of the process of `open`.
    fn is_owned_by_caller(&self, open: &OpenKeyedMutex) -> bool {
        self.rules
            .owner()
            .is_some_and(|owner| owner.is_caller_beside(open))
    }

    /// Watches the thread that owns the mutex now. If none does, the last owner stays watched: it
    /// may well be the next one, and then nothing has to be done. Gives back a reference to the
    /// mutex that a watch before this one had, which is not the last one.
    fn watch_owner(&mut self, mutex: &Arc<KeyedMutex>) -> Option<Arc<KeyedMutex>> {
        let owner = self.rules.owner()?;

        if matches!(&self.watch, OwnerWatch::Owner(watch) if *watch.thread() == owner.thread) {
            return None;
        }

        let (idle, before) = match core::mem::replace(&mut self.watch, OwnerWatch::Idle(None)) {
            OwnerWatch::Idle(idle) => (idle, None),
            OwnerWatch::Owner(watch) => {
                let (idle, mutex) = watch.end();

                (Some(idle), Some(mutex))
            }
        };

        if let Some(idle) = idle {
            self.watch = OwnerWatch::Owner(idle.watch(owner.thread.clone(), mutex.clone()));
        }
        before
    }
}

/// A mutex that its owner hands over with a key.
#[pin_data]
pub(crate) struct KeyedMutex {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
    #[pin]
    state: SpinLock<State>,
    /// See [`super::retire`].
    #[pin]
    pub(super) retirement: Work<KeyedMutex>,
    /// Looks whether the owner has ended.
    #[pin]
    look: Work<KeyedMutex, 1>,
    /// Does the same from time to time while threads wait: the kernel announces the end of a
    /// thread that leads its process only when all threads of the process have ended.
    #[pin]
    look_again: DelayedWork<KeyedMutex, 2>,
}

impl_has_work! {
    impl HasWork<Self, 1> for KeyedMutex { self.look }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 2> for KeyedMutex { self.look_again }
}

/// An ownership that has not been returned to the caller yet. Dropping it passes the mutex on
/// unchanged.
pub(crate) struct Acquired {
    mutex: Option<Arc<KeyedMutex>>,
    fence: u64,
}

impl Acquired {
    /// The fence value of the last release.
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// Keeps the ownership: the caller knows of it.
    pub(crate) fn commit(mut self) {
        self.mutex = None;
    }
}

impl Drop for Acquired {
    fn drop(&mut self) {
        if let Some(mutex) = self.mutex.take() {
            mutex.pass_on();
        }
    }
}

impl KeyedMutex {
    /// A mutex without owner, whose first key is `key`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(header: impl PinInit<Header>, key: u64) -> Result<Arc<Self>, AllocError> {
        let state = State {
            rules: Rules::new(key, Queue::new(), StackList::new()),
            watch: OwnerWatch::Idle(Some(Idle::new()?)),
            changed: Stamp::NEVER,
            looks_later: false,
        };

        pin_arc(
            pin_init!(Self {
                header <- header,
                state <- new_spinlock!(state, "KeyedMutex::state"),
                retirement <- new_work!("KeyedMutex::retirement"),
                look <- new_work!("KeyedMutex::look"),
                look_again <- new_delayed_work!("KeyedMutex::look_again"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Acquires the mutex for the calling thread, through the handle of `open`, when it is free at
    /// `key` (RES-95, RES-96).
    ///
    /// TIMEOUT or ABANDONED; INVALID_PARAMETER if the handle is gone; [`DxgError::Interrupted`] on
    /// a signal, with nothing left behind. Context: a system call, no locks held. It takes no
    /// memory, unless many threads wait.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        open: Arc<OpenKeyedMutex>,
        key: u64,
        deadline: Deadline,
    ) -> DxgResult<Acquired> {
        let owner = Owner {
            thread: Thread::of_caller().map_err(DxgError::from_errno)?,
            open,
        };
        let mut state = self.state.lock();
        let attempt = self.attempt(&mut state, key, owner)?;
        let owner_ended = matches!(attempt, Attempt::Busy(_)) && state.owner_ended();

        drop(state);
        match attempt {
            Attempt::Acquired(fence) => Ok(self.acquired(fence)),
            Attempt::Abandoned(_) => Err(Status::ABANDONED.into()),
            Attempt::Busy(_) if owner_ended && self.abandon_if_owner_ended() => {
                Err(Status::ABANDONED.into())
            }
            Attempt::Busy(_) if deadline == Deadline::Now => Err(Status::TIMEOUT.into()),
            Attempt::Busy(owner) => self.wait(key, owner, deadline),
        }
    }

    /// Acquires for `owner`, if the mutex is free at `key`.
    fn attempt(
        self: &Arc<Self>,
        state: &mut State,
        key: u64,
        owner: Owner,
    ) -> DxgResult<Attempt<Owner>> {
        if owner.open.is_closed() {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let attempt = state.rules.acquire(key, owner);

        if matches!(attempt, Attempt::Acquired(_)) {
            state.changed = Stamp::of_caller();
            // Not the last reference: the caller has one.
            let _before = state.watch_owner(self);
        }
        Ok(attempt)
    }

    fn acquired(self: &Arc<Self>, fence: u64) -> Acquired {
        Acquired {
            mutex: Some(self.clone()),
            fence,
        }
    }

    /// Waits until the mutex is free at `key`.
    ///
    /// It sleeps on its stack, unless too many threads do already.
    fn wait(self: &Arc<Self>, key: u64, owner: Owner, deadline: Deadline) -> DxgResult<Acquired> {
        let on_stack = pin!(OnStack::<_, 1>::new(Sleeper::of_caller(owner.clone())));
        let on_stack = on_stack.as_ref();
        let place = |rules: &mut MutexRules| rules.queue_sleeper(key, on_stack.place(0)?);

        match self.queue(key, owner.clone(), place)? {
            Queued::Owner(acquired) => Ok(acquired),
            Queued::In(place) => self.sleep(&place, on_stack.what(), deadline),
            Queued::Nowhere => self.wait_in_node(key, owner, deadline),
        }
    }

    /// The same where too many threads sleep on their stacks.
    #[inline(never)]
    fn wait_in_node(
        self: &Arc<Self>,
        key: u64,
        owner: Owner,
        deadline: Deadline,
    ) -> DxgResult<Acquired> {
        let sleeper = Arc::new(Sleeper::of_caller(owner.clone()), GFP_KERNEL_ACCOUNT)?;
        let new_node = queue::new_node(sleeper.clone())?;
        let place = |rules: &mut MutexRules| Some(rules.queue(key, new_node));

        match self.queue(key, owner, place)? {
            Queued::Owner(acquired) => Ok(acquired),
            Queued::In(place) => self.sleep(&place, &sleeper, deadline),
            Queued::Nowhere => Err(Status::NO_MEMORY.into()),
        }
    }

    /// Queues the calling thread by `place`, unless the mutex is free by now.
    fn queue(
        self: &Arc<Self>,
        key: u64,
        owner: Owner,
        place: impl FnOnce(&mut MutexRules) -> Option<WaitKey>,
    ) -> DxgResult<Queued> {
        let mut state = self.state.lock();
        // The would-be owner is dropped after the lock.
        let _owner = match self.attempt(&mut state, key, owner)? {
            Attempt::Acquired(fence) => {
                drop(state);
                return Ok(Queued::Owner(self.acquired(fence)));
            }
            Attempt::Abandoned(_) => return Err(Status::ABANDONED.into()),
            Attempt::Busy(owner) => owner,
        };
        let Some(place) = place(&mut state.rules) else {
            drop(state);
            return Ok(Queued::Nowhere);
        };

        if !state.looks_later {
            self.look_later(&mut state);
        }

        // Under the lock, so that no wake-up is traced before its wait.
        trace::wait(self.header.id(), key, place.seq);
        drop(state);
        Ok(Queued::In(place))
    }

    /// Sleeps in a place of the queue until it has the mutex, which is abandoned, or the deadline.
    fn sleep(
        self: &Arc<Self>,
        place: &WaitKey,
        sleeper: &Sleeper,
        deadline: Deadline,
    ) -> DxgResult<Acquired> {
        // A restarted call would start over with the whole relative time-out. So such a sleep
        // ignores signals that do not kill; it is bounded. All other waits start over with the
        // same deadline, or without one.
        let signals = match deadline {
            Deadline::Monotonic(_) => Signals::Fatal,
            _ => Signals::All,
        };
        let early = sleep::until_nonzero(&sleeper.state, deadline, signals).err();

        if let Some(early) = early {
            let left = self.state.lock().rules.cancel(place);

            match (left, early) {
                (None, _) => {}
                (Some(_), Early::TimedOut) => return Err(Status::TIMEOUT.into()),
                (Some(_), Early::Interrupted) => return Err(DxgError::Interrupted),
            }
        }
        self.woken(sleeper)
    }

    /// Checks the owner a little later. LOCK: under `state` of a mutex that is not abandoned, so
    /// nothing is queued once [`Self::abandon`] has looked.
    fn look_later(self: &Arc<Self>, state: &mut State) {
        // It fails only if it is queued already.
        state.looks_later = work::worker().is_some_and(|worker| {
            let delay: Jiffies = msecs_to_jiffies(LOOK_MS);

            worker.enqueue_delayed::<_, 2>(self.clone(), delay).is_ok()
        });
    }

    /// The result for a thread that is no longer queued.
    fn woken(self: &Arc<Self>, sleeper: &Sleeper) -> DxgResult<Acquired> {
        // An abandonment takes all sleepers out first and wakes them later.
        if sleeper.state.load(Acquire) != MADE_OWNER {
            return Err(Status::ABANDONED.into());
        }

        // Passed on when it is dropped.
        let acquired = Acquired {
            mutex: Some(self.clone()),
            fence: sleeper.fence.load(Relaxed),
        };

        if sleep::is_killed() {
            return Err(DxgError::Interrupted);
        }
        if sleeper.owner.open.is_closed() {
            // The handle was destroyed during the wait. If that was after the hand-over it has
            // abandoned the mutex.
            return Err(Status::ABANDONED.into());
        }
        Ok(acquired)
    }

    /// Whether the calling thread owns the mutex, through any handle of the process of `open`
    /// (RES-100).
    pub(crate) fn is_owned_by_caller(&self, open: &OpenKeyedMutex) -> bool {
        self.state.lock().is_owned_by_caller(open)
    }

    /// Releases the mutex with a new key and fence value (RES-97); INVALID_PARAMETER if the
    /// calling thread does not own it.
    ///
    /// Context: no locks held. Takes no memory.
    pub(crate) fn release(
        self: &Arc<Self>,
        open: &OpenKeyedMutex,
        key: u64,
        fence: u64,
    ) -> DxgResult {
        let mut state = self.state.lock();
        let released = state
            .rules
            .release(|owner| owner.is_caller_beside(open), key, fence)
            .map_err(|NotOwner| Status::INVALID_PARAMETER)?;

        trace::signal(self.header.id(), key);
        self.hand_over(state, released);
        Ok(())
    }

    /// The same, and replaces the private data (RES-101): both or neither. ACCESS_DENIED if the
    /// handle may not write (RES-64) or the data is sealed; QUOTA_EXCEEDED over a limit.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn release_with_data(
        self: &Arc<Self>,
        open: &OpenKeyedMutex,
        key: u64,
        fence: u64,
        data: &Arc<Value>,
    ) -> DxgResult {
        if !open.may_write {
            return Err(Status::ACCESS_DENIED.into());
        }
        attachments::until_applied(|| {
            let change = self.header.attachments().prepare_blob(data)?;
            let mut state = self.state.lock();

            if !state.is_owned_by_caller(open) {
                return Err(Status::INVALID_PARAMETER.into());
            }
            // Before the release, so that the next owner sees the data.
            let news = match change.apply()? {
                Applied::Done(news) => news,
                Applied::Stale => return Ok(false),
            };
            let released = state.rules.release(|_| true, key, fence);

            trace::signal(self.header.id(), key);
            match released {
                Ok(released) => self.hand_over(state, released),
                // Not so: it has an owner.
                Err(NotOwner) => drop(state),
            }
            news.tell();
            Ok(true)
        })
    }

    /// Passes the mutex on unchanged: the calling thread owns it, unless it was abandoned
    /// meanwhile, and has not used it.
    fn pass_on(self: &Arc<Self>) {
        let mut state = self.state.lock();

        if let Ok(released) = state.rules.pass_on(|owner| owner.thread.is_caller()) {
            self.hand_over(state, released);
        }
    }

    /// Does what a release leaves to be done, and wakes exactly the new owner, if there is one.
    fn hand_over(
        self: &Arc<Self>,
        mut state: Guard<'_, State, SpinLockBackend>,
        released: Released<Owner, Taken<Node, ARef<Task>>>,
    ) {
        let before = state.watch_owner(self);

        state.changed = Stamp::of_caller();
        drop(state);
        drop((before, released.before));
        match released.next {
            Some(Taken::Node(node)) => sleep::wake(&node.to_key_value().1.task),
            Some(Taken::Sleeper(task)) => sleep::wake(&task),
            None => {}
        }
    }

    /// Called when the handle of `open` is destroyed. It acquires nothing more. If the mutex was
    /// acquired through it, the mutex is abandoned (RES-99).
    ///
    /// Context: no locks held.
    pub(super) fn close(&self, open: &Arc<OpenKeyedMutex>) {
        let _abandoned = self.abandon_if(|owner| {
            open.close();
            owner.is_some_and(|owner| Arc::ptr_eq(&owner.open, open))
        });
    }

    /// Abandons the mutex if its owner has ended. True if the mutex is abandoned.
    ///
    /// Context: no locks held.
    fn abandon_if_owner_ended(&self) -> bool {
        self.abandon_if(|owner| owner.is_some_and(|owner| owner.thread.is_dead()))
    }

    /// The last strong reference is gone.
    ///
    /// Context: may sleep, no locks held; not from work of this mutex.
    pub(crate) fn abandon(self: &Arc<Self>) {
        let _first = self.abandon_if(|_| true);
        let looks_later = self.state.lock().looks_later;

        if looks_later {
            // So that no timer is left behind.
            work::cancel::<_, 2>(self);
        }
    }

    /// Abandons the mutex, if `condition` holds for the owner: ends all waits. True if it did.
    fn abandon_if(&self, condition: impl FnOnce(Option<&Owner>) -> bool) -> bool {
        let mut state = self.state.lock();

        if !condition(state.rules.owner()) {
            return false;
        }

        let Some(mut abandoned) = state.rules.abandon(Queue::new()) else {
            return false;
        };
        let watch = core::mem::replace(&mut state.watch, OwnerWatch::Idle(None));

        drop(state);
        drop((watch, abandoned.before));
        for (number, (_, sleeper)) in abandoned.waiters.iter().enumerate() {
            if number % AT_ONCE == AT_ONCE - 1 {
                work::breathe();
            }
            sleeper.abandon();
            sleep::wake(&sleeper.task);
        }
        while let Some(task) = abandoned.woken.next_before(None) {
            sleep::wake(&task);
        }
        true
    }

    /// How many threads wait.
    pub(crate) fn waiting(&self) -> usize {
        // CAST: 32 bits fit a usize.
        self.state.lock().rules.waiting() as usize
    }

    /// The wait after the one in this place, or the first one.
    pub(crate) fn wait_after(&self, place: Option<&WaitKey>) -> Option<(WaitKey, Option<About>)> {
        let state = self.state.lock();
        let (place, queue, sleepers) = state.rules.after(place)?;
        let about = sleepers
            .look(&place, |sleeper| sleeper.about(&place))
            .or_else(|| Some(queue.get(&place)?.about(&place)));

        Some((place, about))
    }

    /// Prints the words of a handle into fdinfo.
    pub(crate) fn show_words(&self, m: &SeqFile) {
        let state = self.state.lock();
        let owner = state.rules.owner().map(|owner| owner.thread.clone());
        let (key, changed) = (state.rules.key(), state.changed);

        drop(state);
        seq_print!(m, " key={key}");
        if let Some(thread) = owner {
            seq_print!(m, " owner={}", thread.number_for_caller());
        }
        changed.print(m);
    }

    /// Prints the state into fdinfo.
    pub(crate) fn show(&self, m: &SeqFile) {
        let state = self.state.lock();
        let owner = state.rules.owner().map(|owner| owner.thread.clone());
        let (key, fence) = (state.rules.key(), state.rules.fence());
        let (waiting, abandoned) = (state.rules.waiting(), state.rules.is_abandoned());

        drop(state);
        seq_print!(m, "dxg-key:\t{}\n", key);
        seq_print!(m, "dxg-fence-value:\t{}\n", fence);
        seq_print!(
            m,
            "dxg-owner:\t{}\n",
            owner.map_or(0, |thread| thread.number_for_caller())
        );
        seq_print!(m, "dxg-waiters:\t{}\n", waiting);
        seq_print!(m, "dxg-abandoned:\t{}\n", u32::from(abandoned));
    }
}

impl ExitListener for KeyedMutex {
    fn may_have_ended(this: ArcBorrow<'_, Self>) {
        // It fails only if it is queued already and has not started.
        let _queued = work::worker()
            .is_some_and(|worker| worker.enqueue::<_, 1>(Arc::<Self>::from(this)).is_ok());
    }
}

impl WorkItem<2> for KeyedMutex {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _abandoned = this.abandon_if_owner_ended();
        let mut state = this.state.lock();

        // An abandoned mutex has no waiters.
        if state.rules.waiting() == 0 {
            state.looks_later = false;
        } else {
            this.look_later(&mut state);
        }
    }
}

impl WorkItem<1> for KeyedMutex {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _abandoned = this.abandon_if_owner_ended();
    }
}
