// SPDX-License-Identifier: GPL-2.0

//! A monitored fence: a 64-bit value that processes read in their own memory, CPU waits on it, and
//! CPU signals (fences.md section 2).
//!
//! LOCK: `waiters` is the fence lock. It is never held together with the lock of another fence.
//! Waiters are woken and nodes freed after it is released. CurrentValue is stored only under it; it
//! is read at any time without it.

use super::{
    fence_storage::FenceStorage,
    queue::{
        self,
        Queue, //
    },
    waiter::Waiter, //
};
use crate::dxgk::{
    object::Header,
    retire::AT_ONCE, //
};
use crate::{
    logic::{
        fence_value,
        waiters::{
            Admission,
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
        trace,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// A node that is not queued yet, and the waiter it will hold.
pub(crate) type Spare = queue::Spare<Waiter>;

/// Wakes the waiters that a signal has taken out of the fence. No locks held.
fn release(due: &Queue<Waiter>) {
    for (_, waiter) in due.iter() {
        waiter.satisfied();
    }
}

/// A monitored fence.
#[pin_data]
pub(crate) struct Fence {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
    /// CurrentValue.
    pub(crate) storage: FenceStorage,
    #[pin]
    waiters: SpinLock<Waiters<Queue<Waiter>>>,
    /// See [`super::retire`].
    #[pin]
    pub(in crate::dxgk) retirement: Work<Fence>,
    /// What signals leave to the worker.
    #[pin]
    backlog: Work<Fence, 1>,
}

impl_has_work! {
    impl HasWork<Self, 1> for Fence { self.backlog }
}

impl WorkItem<1> for Fence {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.catch_up();
    }
}

impl Fence {
    /// A fence whose value lives in `storage`.
    pub(crate) fn new(
        header: impl PinInit<Header>,
        storage: FenceStorage,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                header <- header,
                storage,
                waiters <- new_spinlock!(Waiters::new(Queue::new()), "Fence::waiters"),
                retirement <- new_work!("Fence::retirement"),
                backlog <- new_work!("Fence::backlog"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// CurrentValue now, with acquire ordering.
    pub(crate) fn value(&self) -> u64 {
        load_acquire(self.storage.word())
    }

    /// How many waits are queued.
    pub(crate) fn waiting(&self) -> usize {
        // CAST: 32 bits fit a usize.
        self.waiters.lock().queued() as usize
    }

    /// Whether a wait for `value` would be satisfied now.
    pub(crate) fn satisfies(&self, value: u64) -> bool {
        fence_value::satisfies(self.value(), value)
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
        let mut waiters = self.waiters.lock();
        let sweep = waiters.signal(self.storage.word(), value, allow_rewind)?;

        // Under the lock, so that no wake-up is traced before its signal.
        trace::signal(self.header.id(), value);

        let Some(sweep) = sweep else {
            return Ok(());
        };
        let mut due = Queue::new();
        let mut rest = waiters.sweep(sweep, &mut due);

        drop(waiters);
        release(&due);

        let mut batches = 1;

        while let Some(mut sweep) = rest {
            if batches >= BATCHES {
                match self.defer(sweep) {
                    None => break,
                    Some(own) => sweep = own,
                }
            }

            let mut due = Queue::new();

            rest = self.waiters.lock().sweep(sweep, &mut due);
            release(&due);
            batches += 1;
        }
        Ok(())
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
            let _queued = worker.enqueue::<_, 1>(self.clone()).is_ok();
        }
        own
    }

    /// The worker's part of signals.
    fn catch_up(&self) {
        loop {
            let mut due = Queue::new();
            let more = self.waiters.lock().catch_up(&mut due);

            release(&due);
            if !more {
                return;
            }
            work::breathe();
        }
    }

    /// Queues `waiter` for `value`, or satisfies the element at once if the value is reached.
    ///
    /// Returns false if the wait has ended already and needs no more elements.
    pub(in crate::dxgk) fn enqueue(
        self: &Arc<Self>,
        waiter: &Waiter,
        value: u64,
        spare: Spare,
    ) -> bool {
        let admission = {
            let mut waiters = self.waiters.lock();
            let admission = waiters.enqueue(self.storage.word(), value, spare);

            if matches!(admission, Admission::Queued(_)) {
                // Under the lock, so that no signal that ends the wait is traced before it.
                trace::wait(self.header.id(), value, waiter.id);
            }
            admission
        };

        match admission {
            Admission::Queued(key) => waiter.queued(self.clone(), key),
            Admission::Satisfied(_) => waiter.satisfied(),
            Admission::Orphaned(_) => waiter.orphaned(),
        }
        waiter.set.outcome().is_none()
    }

    /// Takes a waiter out, if it is still queued.
    pub(in crate::dxgk) fn cancel(&self, key: &WaitKey) {
        let node = self.waiters.lock().cancel(key);

        drop(node);
    }

    /// Orphans the waits: no signal can come any more (FEN-28). Only if they are few enough to do
    /// it at once; true if so.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn orphan_at_once(&self) -> bool {
        let mut waiters = self.waiters.lock();

        // CAST: 32 bits fit a usize.
        if waiters.queued() as usize > AT_ONCE {
            return false;
        }

        let orphans = waiters.orphan(Queue::new());

        drop(waiters);
        self.tell_orphans(orphans);
        true
    }

    /// Orphans all waits.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn orphan(&self) {
        let orphans = self.waiters.lock().orphan(Queue::new());

        self.tell_orphans(orphans);
    }

    fn tell_orphans(&self, (orphans, left): (Queue<Waiter>, Option<Sweep>)) {
        for (number, (key, waiter)) in orphans.iter().enumerate() {
            if number % AT_ONCE == AT_ONCE - 1 {
                work::breathe();
            }
            // A signal that releases many waiters may not have reached this one yet.
            if self.satisfies(key.value) || left.is_some_and(|left| left.releases(key)) {
                waiter.satisfied();
            } else {
                waiter.orphaned();
            }
        }
    }
}

/// The kernel's tree behind the rules that the host tests check with another map. Run by every load
/// of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_monitored_fence)]
mod tests {
    use super::*;
    use crate::{
        dxgk::sync::waiter::Notify,
        logic::wait_set::Mode,
        platform::Word64,
        sys::task::sleep, //
    };

    fn spare() -> Result<Spare> {
        let waiter = Waiter::new(Mode::Any, 1, Notify::Thread(sleep::me()), None)?;

        queue::spare(&waiter)
    }

    fn enqueue(waiters: &mut Waiters<Queue<Waiter>>, word: &Word64, value: u64) -> Result<WaitKey> {
        match waiters.enqueue(word, value, spare()?) {
            Admission::Queued(key) => Ok(key),
            Admission::Satisfied(_) | Admission::Orphaned(_) => Err(EINVAL),
        }
    }

    fn values(due: &Queue<Waiter>) -> Result<KVec<u64>> {
        let mut values = KVec::new();

        for (key, _) in due.iter() {
            values.push(key.value, GFP_KERNEL)?;
        }
        Ok(values)
    }

    /// FEN-23, FEN-30: exactly the waiters for at most the value, in order.
    #[test]
    fn a_signal_takes_the_waiters_it_satisfies() -> Result {
        let word = Word64::new(0);
        let mut waiters = Waiters::new(Queue::new());
        let mut due = Queue::new();

        for value in [7, 3, u64::MAX, 5, 3, 1] {
            enqueue(&mut waiters, &word, value)?;
        }
        assert_eq!(waiters.monitored(), 0);
        let sweep = waiters.signal(&word, 5, false).map_err(|_| EINVAL)?;

        assert!(waiters.sweep(sweep.ok_or(EINVAL)?, &mut due).is_none());
        assert_eq!(values(&due)?.as_slice(), &[1, 3, 3, 5]);
        assert_eq!(waiters.monitored(), 6);
        Ok(())
    }

    /// FEN-32.
    #[test]
    fn a_refused_rewind_takes_nobody() -> Result {
        let word = Word64::new(9);
        let mut waiters = Waiters::new(Queue::new());

        enqueue(&mut waiters, &word, 10)?;
        assert!(waiters.signal(&word, 8, false).is_err());
        assert_eq!(load_acquire(&word), 9);
        assert_eq!(waiters.monitored(), 9);
        Ok(())
    }

    /// FEN-85.
    #[test]
    fn a_waiter_leaves_once() -> Result {
        let word = Word64::new(0);
        let mut waiters = Waiters::new(Queue::new());
        let key = enqueue(&mut waiters, &word, 4)?;
        let other = enqueue(&mut waiters, &word, 4)?;

        assert!(waiters.cancel(&key).is_some());
        assert!(waiters.cancel(&key).is_none());
        assert!(waiters.cancel(&other).is_some());
        assert_eq!(waiters.monitored(), u64::MAX);
        Ok(())
    }
}
