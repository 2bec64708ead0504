// SPDX-License-Identifier: GPL-2.0

//! A keyed mutex: whoever releases it says for which key it is free (RES-91 to RES-102).
//!
//! Its private runtime data are the legacy blob of its store (RES-67), see [`Attachments`].
//! `Documentation/keyed-mutexes.md` describes states, ownership, hand-over and time-outs.
//!
//! [`Attachments`]: super::attached::Attachments
//!
//! LOCK: `state` is taken alone or with one bucket of [`MutexOwners`] inside. Threads are woken, and
//! nodes and references dropped, after it is released.

pub(crate) mod open;
pub(crate) mod owners;

use self::{
    open::OpenKeyedMutex,
    owners::{
        MutexOwners,
        Place,
        Watch, //
    }, //
};
use super::{
    object::Header,
    retire::AT_ONCE,
    sync::queue::{
        self,
        Queue, //
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
            ClaimMap,
            KeyedMutex as Rules,
            NotOwner,
            Released, //
        },
        timeout::Deadline,
        waiters::{
            WaitKey,
            WaitMap, //
        }, //
    },
    platform::Word32,
    sys::{
        task::{
            sleep::{
                self,
                Early,
                Signals, //
            },
            thread::Thread, //
        },
        trace,
        work, //
    }, //
};
use kernel::{
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
        SpinLock, //
    },
    task::Task,
    workqueue::Work, //
};

/// Who owns a mutex: a thread, through a handle.
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
    task: ARef<Task>,
    /// 0 while it waits; then one of the values below, stored before the thread is woken.
    state: Word32,
    /// The fence value, once granted.
    fence: Atomic<u64>,
}

/// [`Sleeper::state`]: it owns the mutex.
const GRANTED: u32 = 1;
/// [`Sleeper::state`]: the mutex is abandoned.
const ABANDONED: u32 = 2;

type Node = <Queue<Sleeper> as WaitMap>::Node;

impl ClaimMap for Queue<Sleeper> {
    type Owner = Owner;

    fn grant(&mut self, key: &WaitKey, fence: u64) -> Option<(Owner, Node)> {
        let sleeper = self.get(key)?;
        let owner = sleeper.owner.clone();

        sleeper.fence.store(fence, Relaxed);
        // ORDERING: release, for the fence value. Pairs with the acquire load in the sleep.
        sleeper.state.store(GRANTED, Release);
        Some((owner, self.take(key)?))
    }
}

/// What the lock protects.
struct State {
    rules: Rules<Queue<Sleeper>>,
    /// The place among the mutexes of the owner, while there is no owner.
    place: Option<Place>,
}

/// See the module.
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
}

/// An ownership that its caller does not know of yet. Dropping it passes the mutex on as it was.
pub(crate) struct Acquired {
    mutex: Option<Arc<KeyedMutex>>,
    fence: u64,
}

impl Acquired {
    /// The fence value of the last release.
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// The caller knows.
    pub(crate) fn keep(mut self) {
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
    pub(crate) fn new(header: impl PinInit<Header>, key: u64) -> Result<Arc<Self>> {
        let state = State {
            rules: Rules::new(key, Queue::new()),
            place: Some(Place::new()?),
        };

        Arc::pin_init(
            pin_init!(Self {
                header <- header,
                state <- new_spinlock!(state, "KeyedMutex::state"),
                retirement <- new_work!("KeyedMutex::retirement"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    fn owners(&self) -> &Arc<MutexOwners> {
        &self.header.tables.mutex_owners
    }

    /// Acquires the mutex for the calling thread, through the handle of `open`, when it is free at
    /// `key` (RES-95, RES-96).
    ///
    /// TIMEOUT or ABANDONED; INVALID_PARAMETER if the handle is gone; [`DxgError::Interrupted`] on a
    /// signal, with nothing left behind. Context: a system call, no locks held. Without contention
    /// it takes no memory.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        open: &Arc<OpenKeyedMutex>,
        key: u64,
        deadline: Deadline,
    ) -> DxgResult<Acquired> {
        let owner = Owner {
            thread: Thread::of_caller()?,
            open: open.clone(),
        };
        // Before it is owned, so that no end of the thread is missed.
        let watch = self.owners().watch()?;
        let attempt = self.attempt(&mut self.state.lock(), key, owner)?;

        match attempt {
            Attempt::Acquired(fence) => Ok(self.acquired(watch, fence)),
            Attempt::Abandoned(_) => Err(Status::ABANDONED.into()),
            Attempt::Busy(_) if deadline == Deadline::Now => Err(Status::TIMEOUT.into()),
            Attempt::Busy(owner) => self.wait(watch, key, owner, deadline),
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
            self.owned_by(state.place.take(), state);
        }
        Ok(attempt)
    }

    /// Enters the mutex in `place` among those of its owner, if it has one.
    fn owned_by(self: &Arc<Self>, place: Option<Place>, state: &mut State) {
        match (state.rules.owner(), place) {
            (Some(owner), Some(place)) => {
                self.owners()
                    .enter(place, self.clone(), owner.thread.clone());
            }
            (_, place) => state.place = place,
        }
    }

    fn acquired(self: &Arc<Self>, watch: Watch<'_>, fence: u64) -> Acquired {
        watch.keep();
        Acquired {
            mutex: Some(self.clone()),
            fence,
        }
    }

    /// Waits until the mutex is free at `key`.
    fn wait(
        self: &Arc<Self>,
        watch: Watch<'_>,
        key: u64,
        owner: Owner,
        deadline: Deadline,
    ) -> DxgResult<Acquired> {
        let sleeper = Arc::new(
            Sleeper {
                owner: owner.clone(),
                task: sleep::me(),
                state: Atomic::new(0),
                fence: Atomic::new(0),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let spare = queue::spare(&sleeper)?;
        let mut state = self.state.lock();

        // It may have become free meanwhile.
        match self.attempt(&mut state, key, owner)? {
            Attempt::Acquired(fence) => {
                drop(state);
                return Ok(self.acquired(watch, fence));
            }
            Attempt::Abandoned(_) => return Err(Status::ABANDONED.into()),
            Attempt::Busy(_) => {}
        }

        let place = state.rules.queue(key, spare);

        // Under the lock, so that no wake-up is traced before its wait.
        trace::wait(self.header.id(), key, place.seq);
        drop(state);
        // A hand-over comes with the watch of the owner before.
        drop(watch);

        // A relative time-out would start over if the call was restarted after a signal, so that
        // such a sleep ignores signals, as long as they do not kill: it ends soon enough. All
        // others start over with the same deadline, or without one.
        let signals = match deadline {
            Deadline::Monotonic(_) => Signals::Fatal,
            _ => Signals::All,
        };
        let early = sleep::until_nonzero(&sleeper.state, deadline, signals).err();

        if let Some(early) = early {
            let left = self.state.lock().rules.cancel(&place);

            match (left, early) {
                (None, _) => {}
                (Some(_), Early::TimedOut) => return Err(Status::TIMEOUT.into()),
                (Some(_), Early::Interrupted) => return Err(DxgError::Interrupted),
            }
        }
        self.woken(&sleeper)
    }

    /// What was decided about a thread that is not queued any more.
    fn woken(self: &Arc<Self>, sleeper: &Sleeper) -> DxgResult<Acquired> {
        // An abandonment takes all sleepers out first and tells them later.
        if sleeper.state.load(Acquire) != GRANTED {
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
        let state = self.state.lock();

        state
            .rules
            .owner()
            .is_some_and(|owner| owner.is_caller_beside(open))
    }

    /// Releases the mutex with a new key and fence value (RES-97); INVALID_PARAMETER if the calling
    /// thread does not own it.
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

    /// The calling thread owns the mutex, if it was not abandoned meanwhile, and has not used it.
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
        released: Released<Owner, Node>,
    ) {
        let place = self.owners().leave(self, &released.before.thread);

        self.owned_by(place, &mut state);
        drop(state);
        match released.next {
            Some(node) => sleep::wake(&node.to_key_value().1.task),
            None => self.owners().unwatch(),
        }
    }

    /// The handle of `open` is destroyed: it acquires nothing more, and if the mutex was acquired
    /// through it, it is abandoned (RES-99).
    ///
    /// Context: no locks held.
    pub(super) fn close(&self, open: &Arc<OpenKeyedMutex>) {
        self.abandon_if(|owner| {
            open.close();
            owner.is_some_and(|owner| Arc::ptr_eq(&owner.open, open))
        });
    }

    /// `thread` is gone.
    ///
    /// Context: no locks held.
    pub(super) fn owner_is_gone(&self, thread: &Thread) {
        self.abandon_if(|owner| owner.is_some_and(|owner| owner.thread == *thread));
    }

    /// The last strong reference is gone.
    ///
    /// Context: no locks held.
    pub(crate) fn abandon(&self) {
        self.abandon_if(|_| true);
    }

    /// Nobody will ever own the mutex again, if `condition` holds for the owner: ends all waits.
    fn abandon_if(&self, condition: impl FnOnce(Option<&Owner>) -> bool) {
        let mut state = self.state.lock();

        if !condition(state.rules.owner()) {
            return;
        }

        let Some(abandoned) = state.rules.abandon(Queue::new()) else {
            return;
        };
        let place = match &abandoned.before {
            Some(owner) => self.owners().leave(self, &owner.thread),
            None => state.place.take(),
        };

        drop(state);
        drop(place);
        if abandoned.before.is_some() {
            self.owners().unwatch();
        }
        for (number, (_, sleeper)) in abandoned.waiters.iter().enumerate() {
            if number % AT_ONCE == AT_ONCE - 1 {
                work::breathe();
            }
            sleeper.state.store(ABANDONED, Release);
            sleep::wake(&sleeper.task);
        }
    }

    /// How many threads wait.
    pub(crate) fn waiting(&self) -> usize {
        // CAST: 32 bits fit a usize.
        self.state.lock().rules.waiting() as usize
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
