// SPDX-License-Identifier: GPL-2.0

//! Waiting on the CPU for fence values (FEN-14 to FEN-30).
//!
//! Every way of waiting has the same steps: look whether the condition holds already, which takes
//! neither lock nor memory; allocate a waiter and one node for each element; queue it on one fence
//! after the other; then sleep, or return.

use super::{
    fence_point::FencePoint,
    few::Few,
    monitored_fence::{
        MonitoredFence,
        Spare, //
    },
    pending_waits::PendingWaits,
    queue,
    waiter::{
        Notify,
        Waiter, //
    }, //
};
use crate::{
    logic::{
        timeout::Deadline,
        wait_set::{
            Mode,
            Outcome as End, //
        }, //
    },
    sys::{
        eventfd::EventFd,
        sleep::{
            self,
            Signals, //
        }, //
    },
    uapi::status::{
        Outcome,
        Status,
        Stop, //
    }, //
};
use core::slice;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// One (object, value) of a wait.
pub(crate) struct Element {
    /// The fence.
    pub(crate) fence: Arc<MonitoredFence>,
    /// The value to be reached.
    pub(crate) value: u64,
}

impl Element {
    /// Whether the value is there now.
    fn holds(&self) -> bool {
        self.fence.satisfies(self.value)
    }
}

/// Whether the condition holds now.
fn holds(mode: Mode, elements: &[Element]) -> bool {
    match mode {
        Mode::Any => elements.iter().any(Element::holds),
        Mode::All => elements.iter().all(Element::holds),
    }
}

/// Queues `waiter` on every fence. All memory is there before the first fence is touched.
///
/// `last` is the last step that may fail.
fn register(waiter: &Arc<Waiter>, elements: &[Element], last: impl FnOnce() -> Result) -> Result {
    let mut spares = Few::<Spare>::with_capacity(elements.len())?;

    for _ in 0..elements.len() {
        spares.push(queue::spare(waiter)?);
    }
    last()?;
    for element in elements.iter() {
        let Some(spare) = spares.pop() else { break };

        if !element.fence.enqueue(waiter, element.value, spare) {
            break;
        }
    }
    waiter.registered();
    Ok(())
}

/// Sleeps until the condition holds.
///
/// INVALID_HANDLE if nobody is left who could signal; [`Stop::Interrupted`] on a signal, with no
/// waiter left behind. Context: a system call, no locks held.
pub(crate) fn block(mode: Mode, elements: &[Element]) -> Outcome {
    if holds(mode, elements) {
        return Ok(());
    }

    let waiter = Waiter::new(mode, elements.len(), Notify::Thread(sleep::me()), None)?;

    register(&waiter, elements, || Ok(()))?;

    let slept = sleep::until_nonzero(waiter.set.state(), Deadline::Never, Signals::All);

    if slept.is_err() {
        waiter.cancel();
    }
    waiter.unlink();
    match waiter.set.outcome() {
        Some(End::Satisfied) => Ok(()),
        Some(End::Orphaned) => Err(Status::INVALID_HANDLE.into()),
        Some(End::Cancelled) | None => Err(Stop::Interrupted),
    }
}

/// Adds 1 to `event` as soon as the condition holds, before return if it does now (FEN-20).
///
/// Context: a system call, no locks held.
pub(crate) fn notify(
    waits: &Arc<PendingWaits>,
    mode: Mode,
    elements: &[Element],
    event: EventFd,
) -> Outcome {
    if holds(mode, elements) {
        event.signal();
        return Ok(());
    }

    let pending = waits.admit()?;
    let waiter = Waiter::new(mode, elements.len(), Notify::Event(event), Some(pending))?;

    register(&waiter, elements, || waits.list(&waiter))?;
    Ok(())
}

/// A descriptor that becomes readable when `element` is satisfied (FEN-168).
///
/// Context: a system call, no locks held.
pub(crate) fn point(waits: &Arc<PendingWaits>, element: Element) -> Outcome<Arc<FencePoint>> {
    let pending = waits.admit()?;
    let waiter = Waiter::new(Mode::All, 1, Notify::Pollers, Some(pending))?;
    let point = FencePoint::new(waiter.clone(), &element)?;

    register(&waiter, slice::from_ref(&element), || Ok(()))?;
    Ok(point)
}
