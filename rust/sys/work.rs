// SPDX-License-Identifier: GPL-2.0

//! The module's own worker: a work queue for work that must not be done in a system call of another
//! process.
//!
//! [`Worker`] exists from the start of the module to its end, and what was queued runs before the
//! module goes. Any code may queue by [`worker`]. Queueing allocates nothing, because the items are
//! part of the objects.

use super::{
    alloc::pin_arc,
    ffi, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    container_of,
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
    time::Jiffies,
    workqueue::{
        HasDelayedWork,
        HasWork,
        Queue,
        Work,
        WorkItem, //
    }, //
};

/// The queue of the one [`Worker`], or null. INVARIANT: valid unless null; code of the module that
/// queues something runs only while the worker is there, which is made first and goes last.
static QUEUE: Atomic<*mut bindings::workqueue_struct> = Atomic::new(ptr::null_mut());

/// How many work queues of [`OrderedWorker`]s exist. The last work of one may drop the owner of its
/// worker, and so queue the end of the queue in the module's worker.
static ORDERED: Atomic<i32> = Atomic::new(0);

/// Owns the work queue. Dropping it finishes what is queued here and in [`OrderedWorker`]s.
///
/// Context of the drop: may sleep; the end of the module, when nothing else queues anything.
pub(crate) struct Worker(NonNull<bindings::workqueue_struct>);

// SAFETY: Work queues may be used from any thread.
unsafe impl Send for Worker {}
// SAFETY: As above.
unsafe impl Sync for Worker {}

impl Worker {
    /// Starts the worker, whose threads carry this name. To be called once.
    pub(crate) fn start(name: &CStr) -> Result<Self> {
        // SAFETY: The name is copied during the call.
        let queue = unsafe { ffi::dxg_workqueue(name.as_char_ptr()) };
        let queue = NonNull::new(queue).ok_or(ENOMEM)?;

        QUEUE.store(queue.as_ptr(), Release);
        Ok(Self(queue))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The work of other queues may queue something here, which a queue that drains refuses.
        // SAFETY: The counter is static, and changes by atomic operations only.
        unsafe { ffi::dxg_wait_for_zero(ORDERED.as_ptr().cast()) };
        // Queued work may queue more, so the queue must still be found here.
        // SAFETY: Owned, and nobody else queues anything any more.
        unsafe { bindings::drain_workqueue(self.0.as_ptr()) };
        QUEUE.store(ptr::null_mut(), Release);
        // SAFETY: As above, and nobody finds it any more.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}

/// The queue of the module's worker. Its work belongs to no process, may sleep, and shares a few
/// threads with all other work of the queue. So work that takes long calls [`breathe`].
///
/// `None` only before the start of the module and after its end.
pub(crate) fn worker() -> Option<&'static Queue> {
    let queue = QUEUE.load(Acquire);

    // SAFETY: By the invariant of `QUEUE` it is valid as long as the caller can run.
    (!queue.is_null()).then(|| unsafe { Queue::from_raw(queue) })
}

/// A work queue whose work runs in the order in which it was queued, one at a time.
pub(crate) struct OrderedWorker(Option<Arc<OrderedQueue>>);

/// The queue of an [`OrderedWorker`].
#[pin_data(PinnedDrop)]
struct OrderedQueue {
    queue: NonNull<bindings::workqueue_struct>,
    #[pin]
    ending: Work<OrderedQueue>,
}

// SAFETY: Work queues may be used from any thread.
unsafe impl Send for OrderedQueue {}
// SAFETY: As above.
unsafe impl Sync for OrderedQueue {}

impl_has_work! {
    impl HasWork<Self> for OrderedQueue { self.ending }
}

impl WorkItem for OrderedQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        drop(this);
    }
}

#[pinned_drop]
impl PinnedDrop for OrderedQueue {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Owned, and nobody queues anything any more, or waits in it for this. This counts
        // down what counted the queue when it was made; the module's worker, which drops this, is
        // there until its work has returned.
        unsafe {
            bindings::destroy_workqueue(self.queue.as_ptr());
            ffi::dxg_count_down(ORDERED.as_ptr().cast())
        }
    }
}

impl OrderedWorker {
    /// Starts a worker whose threads carry this name.
    ///
    /// Context: may sleep.
    pub(crate) fn start(name: &CStr) -> Result<Self, AllocError> {
        // SAFETY: The name is copied during the call.
        let queue = unsafe { ffi::dxg_ordered_workqueue(name.as_char_ptr()) };
        let queue = NonNull::new(queue).ok_or(AllocError)?;
        let ordered = pin_arc(
            pin_init!(OrderedQueue {
                queue,
                ending <- new_work!("OrderedQueue::ending"),
            }),
            GFP_KERNEL,
        )
        .inspect_err(|_| {
            // SAFETY: Nobody else knows it.
            unsafe { bindings::destroy_workqueue(queue.as_ptr()) }
        })?;

        ORDERED.fetch_add(1, Relaxed);
        Ok(Self(Some(ordered)))
    }

    /// Queues the work of `item`, unless it is queued already. In any context.
    pub(crate) fn enqueue<T: WorkItem<Pointer = Arc<T>> + HasWork<T> + Send + Sync + 'static>(
        &self,
        item: Arc<T>,
    ) {
        if let Some(ordered) = &self.0 {
            // SAFETY: It is valid as long as `ordered` is.
            let queue = unsafe { Queue::from_raw(ordered.queue.as_ptr()) };
            // It fails only if it is queued already and has not started.
            let _queued = queue.enqueue::<_, 0>(item).is_ok();
        }
    }

    /// Queues the work of `item` after so many jiffies, unless it is queued already. In any
    /// context.
    pub(crate) fn enqueue_delayed<T, const ID: u64>(&self, item: Arc<T>, after: Jiffies)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
    {
        if let Some(ordered) = &self.0 {
            // SAFETY: It is valid as long as `ordered` is.
            let queue = unsafe { Queue::from_raw(ordered.queue.as_ptr()) };
            // It fails only if it is queued already and has not started.
            let _queued = queue.enqueue_delayed::<_, ID>(item, after).is_ok();
        }
    }

    /// Waits until everything has run that is queued now, for tests.
    ///
    /// Context: may sleep, no locks held; not from the work of this worker.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn flush(&self) {
        if let Some(ordered) = &self.0 {
            // SAFETY: It is valid as long as `ordered` is.
            unsafe { bindings::__flush_workqueue(ordered.queue.as_ptr()) }
        }
    }
}

impl Drop for OrderedWorker {
    /// What is queued runs before the worker ends. The module's worker waits for that, because this
    /// may be called by the work that drops the owner of the worker.
    fn drop(&mut self) {
        if let (Some(ordered), Some(worker)) = (self.0.take(), worker()) {
            // It was never queued before.
            let _queued = worker.enqueue::<_, 0>(ordered).is_ok();
        }
    }
}

/// Whether the caller is a worker of a workqueue, and so perhaps that of the module.
pub(crate) fn is_worker() -> bool {
    // SAFETY: The current task is valid, and only it changes this flag.
    let flags = unsafe { (*current!().as_ptr()).flags };

    flags & bindings::PF_WQ_WORKER != 0
}

/// Does the work of an item: in the module's worker if the caller is a worker itself, for which
/// others may wait, and now otherwise. The item is queued nowhere, and is given up once.
///
/// Context: may sleep, no locks held.
pub(crate) fn leave_to_worker<T>(item: Arc<T>)
where
    T: WorkItem<0, Pointer = Arc<T>> + HasWork<T, 0> + Send + Sync + 'static,
{
    match worker().filter(|_| is_worker()) {
        Some(worker) => {
            // It is queued once.
            let _queued = worker.enqueue::<_, 0>(item).is_ok();
        }
        None => T::run(item),
    }
}

/// Lets other tasks run. Called between the steps of work whose length users decide.
///
/// Context: may sleep, no spinlocks held.
pub(crate) fn breathe() {
    // SAFETY: May be called wherever sleeping is allowed.
    unsafe { ffi::dxg_cond_resched() }
}

/// Takes the delayed work of `this` off the queue, or waits until it has run. This does not start
/// it, so it may be called from other work of the worker.
///
/// Context: may sleep; not from the work itself.
pub(crate) fn cancel<T, const ID: u64>(this: &Arc<T>)
where
    T: HasDelayedWork<T, ID> + WorkItem<ID, Pointer = Arc<T>>,
{
    // SAFETY: The reference makes all pointers valid, and the work was initialised with the object.
    // It is the work of a `delayed_work`, as `T` says.
    let was_queued = unsafe {
        let work = Work::raw_get(T::raw_get_work(Arc::as_ptr(this).cast_mut()));

        bindings::cancel_delayed_work_sync(container_of!(work, bindings::delayed_work, work))
    };

    if was_queued {
        // SAFETY: Queueing turned a reference into this pointer, and the work that would turn it
        // back does not run.
        drop(unsafe { Arc::from_raw(Arc::as_ptr(this)) });
    }
}
