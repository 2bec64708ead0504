// SPDX-License-Identifier: GPL-2.0

//! The changes of a fence, one after the other (FEN-176).
//!
//! A stream knows the value that was read last. It is queued on its fence while CurrentValue is
//! that value, and no longer: the first change takes it out and wakes who polls or reads. Whoever
//! looks at the stream next, and finds that nothing has changed after all, queues it again. So
//! changes that nobody looks at cost a signal nothing.
//!
//! It is queued by a node that refers to it, and it refers to the fence. Its release breaks the
//! circle, and so does the end of the fence.
//!
//! LOCK: the fence lock is taken inside `state`. Nobody is woken under either.

use super::{
    about::About,
    fence::{
        Fence,
        FenceWaiter, //
    },
    pending_waits::{
        Pending,
        PendingWaits, //
    },
    queue::{
        self,
        Knows, //
    }, //
};
use crate::dxgk::stats::next_id;
use crate::{
    error::DxgResult,
    logic::{
        wait_set::Mode,
        waiters::{
            ChangeResult,
            WaitKey, //
        }, //
    },
    sys::{
        alloc::pin_arc,
        task::{
            credentials::Credentials,
            stamp::Stamp, //
        },
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// A stream of the values of one fence.
#[pin_data]
pub(crate) struct FenceStream {
    /// Never used for another waiter.
    id: u64,
    /// By whom, and when.
    begun: Stamp,
    /// The id of the fence.
    pub(crate) object: u64,
    /// The creator of the fence.
    pub(crate) creator: Credentials,
    #[pin]
    state: SpinLock<State>,
    /// The value that it knows while it is queued. Stored under `state` while it is not; read under
    /// the fence lock while it is, which orders the two.
    known: Atomic<u64>,
    /// How often its fence has told it that something changed, modulo 2^32.
    told: Atomic<u32>,
    /// Those who poll, and those who sleep in a read.
    #[pin]
    pub(crate) queue: WaitQueue,
    /// It counts as a wait for one value.
    _pending: Pending,
}

struct State {
    /// `None` when the fence was seen retired.
    fence: Option<Arc<Fence>>,
    /// What was read last; `None` if it did not reach the reader.
    last: Option<u64>,
    /// Where it is in the queue of the fence, or was.
    queued: Option<WaitKey>,
}

/// What there is to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// This value, which is another than the last one.
    Value(u64),
    /// Nothing yet. The next change wakes those who wait.
    Nothing,
    /// Nothing, and never again: the fence has retired.
    Ended,
}

impl FenceStream {
    /// A stream of `fence` for one who knows the value `last`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        waits: &Arc<PendingWaits>,
        fence: Arc<Fence>,
        last: u64,
    ) -> DxgResult<Arc<Self>> {
        let pending = waits.reserve(1)?;

        Ok(pin_arc(
            pin_init!(Self {
                id: next_id(),
                begun: Stamp::of_caller(),
                object: fence.header.id(),
                creator: fence.header.creator,
                state <- new_spinlock!(
                    State {
                        fence: Some(fence),
                        last: Some(last),
                        queued: None,
                    },
                    "FenceStream::state"
                ),
                known: Atomic::new(last),
                told: Atomic::new(0),
                queue <- WaitQueue::new(),
                _pending: pending,
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What was read last, if that reached its reader.
    pub(crate) fn last(&self) -> Option<u64> {
        self.state.lock().last
    }

    /// What a read would return.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn peek(self: &Arc<Self>) -> Result<Next, AllocError> {
        self.look(false)
    }

    /// Reads. What is returned as [`Next::Value`] is the last value from then on.
    ///
    /// Context: as [`FenceStream::peek`].
    pub(crate) fn take(self: &Arc<Self>) -> Result<Next, AllocError> {
        self.look(true)
    }

    /// What was read did not reach the reader. It can be read again.
    ///
    /// Context: as [`FenceStream::peek`].
    pub(crate) fn untake(&self) {
        self.state.lock().last = None;
        self.tell();
    }

    /// How often it was told of a change, for [`FenceStream::sleep`].
    pub(crate) fn told(&self) -> u32 {
        self.told.load(Acquire)
    }

    /// Sleeps until it was told of a change that `told` does not include. False if a signal came.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn sleep(&self, told: u32) -> bool {
        self.queue.wait_while_equal(&self.told, told)
    }

    fn look(self: &Arc<Self>, takes: bool) -> Result<Next, AllocError> {
        let mut new_node = None;

        loop {
            // What is dropped after the lock is declared before it.
            let gone;
            let mut state = self.state.lock();
            let Some(fence) = state.fence.clone() else {
                return Ok(Next::Ended);
            };
            let value = fence.value();
            let is_new = state.last != Some(value);

            if is_new && !takes {
                return Ok(Next::Value(value));
            }
            if let Some(key) = state.queued {
                if is_new {
                    // It waits for a change from another value.
                    let node = fence.cancel(&key);

                    state.queued = None;
                    drop(state);
                    drop(node);
                    continue;
                }
                if fence.has_queued(&key) {
                    return Ok(Next::Nothing);
                }
            }

            let Some(node) = new_node.take() else {
                drop(state);
                new_node = Some(queue::new_node(self.clone() as Arc<dyn FenceWaiter>)?);
                continue;
            };

            self.known.store(value, Relaxed);
            match fence.enqueue_change(value, node, self.id) {
                ChangeResult::Queued(key) => {
                    state.queued = Some(key);
                    state.last = Some(value);
                    drop(state);
                    fence.look_for_changes();
                }
                ChangeResult::Orphaned(node) => {
                    gone = (node, state.fence.take());
                    state.last = Some(value);
                    drop(state);
                    drop(gone);
                    if !is_new {
                        return Ok(Next::Ended);
                    }
                }
                ChangeResult::Changed(node) => {
                    new_node = Some(node);
                    continue;
                }
                ChangeResult::Stale(node) => {
                    drop(state);
                    new_node = Some(node);
                    fence.sample();
                    continue;
                }
            }
            return Ok(if is_new {
                Next::Value(value)
            } else {
                Next::Nothing
            });
        }
    }

    /// The descriptor is gone.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn end(&self) {
        let (fence, queued) = {
            let mut state = self.state.lock();

            (state.fence.take(), state.queued.take())
        };

        if let (Some(fence), Some(key)) = (fence, queued) {
            drop(fence.cancel(&key));
        }
    }

    fn tell(&self) {
        self.told.fetch_add(1, Full);
        self.queue.wake();
    }
}

impl Knows for FenceStream {
    fn known(&self) -> u64 {
        self.known.load(Relaxed)
    }
}

impl FenceWaiter for FenceStream {
    fn satisfied(&self) -> bool {
        self.tell();
        true
    }

    fn orphaned(&self) {
        let fence = {
            let mut state = self.state.lock();
            let is_read = match &state.fence {
                Some(fence) => state.last == Some(fence.value()),
                None => true,
            };

            // What was not read yet still can be.
            is_read.then(|| state.fence.take()).flatten()
        };

        drop(fence);
        self.tell();
    }

    fn about(&self) -> Option<About> {
        Some(About {
            id: self.id,
            begun: self.begun,
            receiver: "stream",
            thread: 0,
            mode: Mode::All,
        })
    }
}
