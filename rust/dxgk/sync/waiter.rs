// SPDX-License-Identifier: GPL-2.0

//! One CPU wait: what its end wakes, and where it is queued.
//!
//! A waiter is queued on each of its fences by a node that refers to it, and it refers to each of
//! these fences (FEN-27). The end of the wait breaks the circle: the second of registration and
//! ending takes the remaining nodes out (see `logic::wait_set`).
//!
//! LOCK: `links` is a leaf. Waiters are woken with no lock of the module held (FEN-90).

use super::{
    about::About,
    fence::{
        Fence,
        FenceWaiter, //
    },
    pending_waits::{
        ListedWait,
        Pending, //
    },
    queue::Knows,
    stack_sleeper::number,
    wake::Wake, //
};
use crate::dxgk::{
    small_vec::InlineVec,
    stats::next_id, //
};
use crate::{
    logic::{
        wait_set::{
            Mode,
            WaitEnd,
            WaitSet, //
        },
        waiters::WaitKey, //
    },
    sys::{
        alloc::pin_arc,
        task::stamp::Stamp,
        trace, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// A node of this waiter in a fence.
struct QueuedOn {
    fence: Arc<Fence>,
    key: WaitKey,
}

/// What is dropped when the wait has ended.
struct Links {
    queued: InlineVec<QueuedOn>,
    pending: Option<Pending>,
}

/// A CPU wait, which ends in a `W`.
#[pin_data]
pub(crate) struct Waiter<W: Wake> {
    /// Never used for another waiter.
    pub(crate) id: u64,
    /// By whom, and when.
    begun: Stamp,
    /// The any-or-all state.
    pub(crate) set: WaitSet,
    /// Who is told.
    #[pin]
    pub(crate) receiver: W,
    #[pin]
    links: SpinLock<Links>,
}

impl<W: Wake> Waiter<W> {
    /// A waiter for `count` elements. All memory that its registration needs is taken here.
    pub(crate) fn new(
        mode: Mode,
        count: usize,
        receiver: impl PinInit<W>,
        pending: Pending,
    ) -> Result<Arc<Self>, AllocError> {
        Self::with_id(
            next_id(),
            Stamp::of_caller(),
            mode,
            count,
            receiver,
            pending,
        )
    }

    /// The same for a wait that has begun already, and has an id.
    pub(super) fn with_id(
        id: u64,
        begun: Stamp,
        mode: Mode,
        count: usize,
        receiver: impl PinInit<W>,
        pending: Pending,
    ) -> Result<Arc<Self>, AllocError> {
        let links = Links {
            queued: InlineVec::with_capacity(count)?,
            pending: Some(pending),
        };
        // CAST: the number of elements is bounded by the call, far below 2^32.
        let elements = u32::try_from(count).map_err(|_| AllocError)?;

        pin_arc(
            pin_init!(Self {
                id,
                begun,
                set: WaitSet::new(mode, elements),
                receiver <- receiver,
                links <- new_spinlock!(links, "Waiter::links"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Remembers that this waiter is queued on `fence` under `key`.
    pub(in crate::dxgk) fn queued(&self, fence: Arc<Fence>, key: WaitKey) {
        // The room was reserved in `new`, for one link per element.
        self.links.lock().queued.push(QueuedOn { fence, key });
    }

    /// The owner gives up; nobody is told.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn cancel(&self) {
        if self.set.cancel() {
            trace::wake(self.id, number(WaitEnd::Cancelled));
            self.settle();
        }
    }

    /// Called once by the thread that ended the wait: state first, then the wake-up.
    fn ended(&self) {
        if let Some(outcome) = self.set.outcome() {
            trace::wake(self.id, number(outcome));
        }
        self.receiver.wake(&self.set);
        self.settle();
    }

    /// Goes on for a wait that had so many elements of which something is known, see
    /// [`WaitSet::go_on_for`].
    pub(super) fn go_on_for(&self, other: &WaitSet, told: u32) {
        if self.set.go_on_for(other, told) {
            self.ended();
        }
    }

    /// Called once when every element is queued or the wait has ended on the way.
    pub(in crate::dxgk) fn registered(&self) {
        self.settle();
    }

    /// The second of registration and ending takes the remaining nodes out, unless the receiver
    /// does.
    fn settle(&self) {
        if !W::UNLINKS && self.set.pass_through() {
            self.unlink();
        }
    }

    /// Takes this waiter out of every fence and out of the list of its process.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn unlink(&self) {
        let links = core::mem::replace(
            &mut *self.links.lock(),
            Links {
                queued: InlineVec::new(),
                pending: None,
            },
        );

        // If all elements were satisfied, their signals have taken the nodes out.
        if !self.set.all_satisfied() {
            for link in links.queued.iter() {
                drop(link.fence.cancel(&link.key));
            }
        }
        if let Some(pending) = links.pending {
            self.receiver.unlinked(self.id, &pending.waits);
        }
    }
}

impl<W: Wake> ListedWait for Waiter<W> {
    fn cancel(&self) {
        Self::cancel(self);
    }
}

impl<W: Wake> Knows for Waiter<W> {}

impl<W: Wake> FenceWaiter for Waiter<W> {
    fn satisfied(&self) -> bool {
        let is_last = self.set.satisfy();

        if is_last {
            self.ended();
        }
        is_last
    }

    fn orphaned(&self) {
        if self.set.orphan() {
            self.ended();
        }
    }

    fn about(&self) -> Option<About> {
        Some(About {
            id: self.id,
            begun: self.begun,
            receiver: W::NAME,
            thread: self.receiver.thread(),
            mode: self.set.mode(),
        })
    }
}
