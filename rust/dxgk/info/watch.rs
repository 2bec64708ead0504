// SPDX-License-Identifier: GPL-2.0

//! Watches (RES-74): an eventfd that is signalled when the store of an object changes and when the
//! object retires. A watch lives as long as its file.
//!
//! LOCK: `seen` is a leaf; the eventfd is signalled after it is released.

use super::{
    store::charge,
    weak::{
        next_number,
        Event,
        EventListener,
        WeakTarget, //
    }, //
};
use crate::dxgk::{
    quota::account::{
        Accounts,
        Charge,
        Limit, //
    },
    stats::{
        Counted,
        NOTICES, //
    }, //
};
use crate::{
    error::DxgResult,
    sys::{
        alloc::pin_arc,
        file::eventfd::EventFd,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// Bit of [`Event::Destroy`].
pub(crate) const DESTROY: u32 = 1 << 0;
/// Bit of [`Event::Change`].
pub(crate) const CHANGE: u32 = 1 << 1;

/// What a watch has seen.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// Events since the last watch-state.
    pub(crate) events: u32,
    /// Generation at the last change.
    pub(crate) generation: u64,
}

/// The object behind the descriptor of a watch.
#[pin_data]
pub(crate) struct Watch<T> {
    weak_target: Counted<Arc<WeakTarget<T>>, NOTICES>,
    number: u64,
    event: EventFd,
    mask: u32,
    cookie: u64,
    #[pin]
    seen: SpinLock<Seen>,
    _charge: Charge,
}

impl<T: Unpin + Send + 'static> Watch<T> {
    /// Starts to watch the object behind `weak_target` for the events in `mask`, charged to the
    /// calling user. [`Watch::end`] ends the watch.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        accounts: &Arc<Accounts>,
        weak_target: Arc<WeakTarget<T>>,
        event: EventFd,
        mask: u32,
        cookie: u64,
    ) -> DxgResult<Arc<Self>> {
        let charge = charge(accounts, Limit::Watches, 1)?;
        let watch = pin_arc(
            pin_init!(Self {
                weak_target: Counted::new(weak_target),
                number: next_number(),
                event,
                mask,
                cookie,
                seen <- new_spinlock!(
                    Seen {
                        events: 0,
                        generation: 0,
                    },
                    "Watch::seen"
                ),
                _charge: charge,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        watch.weak_target.add(watch.number, watch.clone())?;
        Ok(watch)
    }

    /// The cookie that its user gave.
    pub(crate) fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The weak target of the object.
    pub(crate) fn weak_target(&self) -> &WeakTarget<T> {
        &self.weak_target
    }

    /// What was seen since the last call.
    pub(crate) fn take_seen(&self) -> Seen {
        let mut seen = self.seen.lock();
        let now = *seen;

        seen.events = 0;
        now
    }

    /// Undoes a [`Watch::take_seen`] whose result was not delivered.
    pub(crate) fn put_back(&self, events: u32) {
        self.seen.lock().events |= events;
    }

    /// Prints into fdinfo.
    pub(crate) fn show(&self, m: &SeqFile) {
        seq_print!(m, "dxg-type:\tDxgkWatch\n");
        self.weak_target.show_id(m);
        seq_print!(m, "dxg-events:\t{:#x}\n", self.mask);
        seq_print!(m, "dxg-cookie:\t{:#x}\n", self.cookie);
        seq_print!(m, "dxg-alive:\t{}\n", u32::from(self.events() == 0));
    }

    /// What wakes up polls.
    pub(crate) fn pollers(&self) -> &WaitQueue {
        self.weak_target.pollers()
    }

    /// Events of a poll.
    pub(crate) fn events(&self) -> u32 {
        self.weak_target.events()
    }

    /// Ends the watch: it gets no more events.
    pub(crate) fn end(&self) {
        self.weak_target.remove(self.number);
    }
}

impl<T: Send> EventListener for Watch<T> {
    /// Records the event and signals the eventfd, if the watch asked for it.
    fn tell(&self, event: Event) {
        let bit = match event {
            Event::Destroy => DESTROY,
            Event::Change(_) => CHANGE,
        };

        if self.mask & bit == 0 {
            return;
        }
        {
            let mut seen = self.seen.lock();

            seen.events |= bit;
            if let Event::Change(generation) = event {
                // Two changes may arrive in another order than they were made.
                seen.generation = seen.generation.max(generation);
            }
        }
        self.event.signal();
    }
}
