// SPDX-License-Identifier: GPL-2.0

//! Waiting on the CPU for fence values (FEN-14 to FEN-30).
//!
//! Every kind of wait has the same steps. Check whether the condition holds already, which takes
//! neither a lock nor memory. Allocate a waiter and one node for each element. Queue it on one
//! fence after the other. Then sleep, or return. A thread that sleeps for a few elements has all
//! that on its stack instead, see [`super::stack_wait`].

use super::{
    fence::{
        FenceWaiter,
        NewNode, //
    },
    interrupted_waits::{
        InterruptedWaits,
        SameCall, //
    },
    pending_waits::{
        Pending,
        PendingWaits, //
    },
    queue,
    stack_sleeper::StackWait,
    stack_wait::Sleeping,
    waiter::Waiter,
    wake::{
        SignalEvent,
        Wake,
        WakePollers,
        WakeThread, //
    }, //
};
use crate::dxgk::small_vec::InlineVec;
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        groups,
        timeout::Deadline,
        wait_set::{
            Mode,
            WaitEnd, //
        },
        waiters::EnqueueResult, //
    },
    sys::{
        array_vec::ArrayVec,
        file::eventfd::EventFd,
        sort::sort_pairs,
        stack_list::OnStack,
        task::sleep::{
            self,
            Early,
            Signals, //
        }, //
    }, //
};
use core::{
    pin::pin,
    slice, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

pub(crate) use super::element::Element;

/// Whether the condition holds now.
fn holds(mode: Mode, elements: &[Element]) -> bool {
    match mode {
        Mode::Any => elements.iter().any(Element::holds),
        Mode::All => elements.iter().all(Element::holds),
    }
}

/// The elements without those that others make redundant, or `None` if all are needed (FEN-17). If
/// all elements must be satisfied, the largest value of each fence decides; otherwise the
/// smallest.
///
/// So a wait has at most one node on each fence.
fn distinct(mode: Mode, elements: &[Element]) -> Result<Option<KVVec<Element>>, AllocError> {
    if elements.len() < 2 {
        return Ok(None);
    }

    let mut places = KVVec::with_capacity(elements.len(), GFP_KERNEL_ACCOUNT)?;

    for (place, element) in elements.iter().enumerate() {
        // CAST: a place in a list fits 64 bits.
        places.push(
            [element.fence.header.id(), place as u64],
            GFP_KERNEL_ACCOUNT,
        )?;
    }
    sort_pairs(&mut places);

    let kept = groups::firsts(&places).count();

    if kept == elements.len() {
        return Ok(None);
    }

    // CAST: it was a place in a list.
    let at = |place: u64| elements.get(place as usize);
    let rank = |place| {
        let value = at(place).map_or(0, |element| element.value);

        match mode {
            Mode::Any => value,
            Mode::All => !value,
        }
    };
    let mut distinct = KVVec::with_capacity(kept, GFP_KERNEL_ACCOUNT)?;

    for element in groups::best(&places, rank).filter_map(at) {
        distinct.push(element.clone(), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(Some(distinct))
}

/// A thread sleeps for so many elements without taking memory.
const ON_STACK: usize = 4;

/// [`distinct`] of a few elements, without taking memory; `None` if they are more.
fn distinct_of_few(mode: Mode, elements: &[Element]) -> Option<ArrayVec<&Element, ON_STACK>> {
    let mut few = ArrayVec::<&Element, ON_STACK>::new();

    for element in elements {
        let is_same = |other: &&mut &Element| Arc::ptr_eq(&other.fence, &element.fence);

        match few.as_mut_slice().iter_mut().find(is_same) {
            None => few.push(element).ok()?,
            Some(other) => {
                let is_needed = match mode {
                    Mode::Any => element.value < other.value,
                    Mode::All => element.value > other.value,
                };

                if is_needed {
                    *other = element;
                }
            }
        }
    }
    Some(few)
}

/// How many there are: bounded by the call, far below 2^32.
fn count(elements: &[Element]) -> DxgResult<u32> {
    u32::try_from(elements.len()).map_err(|_| Status::INVALID_PARAMETER.into())
}

/// The nodes of a waiter for so many elements, not queued yet.
fn new_nodes<W: Wake + 'static>(
    waiter: &Arc<Waiter<W>>,
    count: usize,
) -> Result<InlineVec<NewNode>, AllocError> {
    let mut new_nodes = InlineVec::<NewNode>::with_capacity(count)?;

    for _ in 0..count {
        new_nodes.push(queue::new_node(waiter.clone() as Arc<dyn FenceWaiter>)?);
    }
    Ok(new_nodes)
}

/// Queues `waiter` on every fence, until the wait has ended.
fn enqueue<'a, W: Wake>(
    waiter: &Arc<Waiter<W>>,
    elements: impl Iterator<Item = &'a Element>,
    mut new_nodes: InlineVec<NewNode>,
) {
    for Element { fence, value } in elements {
        let Some(new_node) = new_nodes.pop() else {
            break;
        };

        match fence.enqueue(*value, new_node, waiter.id) {
            EnqueueResult::Queued(key) => waiter.queued(fence.clone(), key),
            EnqueueResult::Satisfied(_) => {
                waiter.satisfied();
            }
            EnqueueResult::Orphaned(_) => waiter.orphaned(),
        }
        if waiter.set.outcome().is_some() {
            break;
        }
    }
    waiter.registered();
}

/// Queues `waiter` on every fence. All memory is there before the first fence is touched.
///
/// `last` is the last step that may fail.
fn register<W: Wake + 'static>(
    waiter: &Arc<Waiter<W>>,
    elements: &[Element],
    last: impl FnOnce() -> DxgResult,
) -> DxgResult {
    let new_nodes = new_nodes(waiter, elements.len())?;

    last()?;
    enqueue(waiter, elements.iter(), new_nodes);
    Ok(())
}

/// A wait that begins later, with all memory that it needs.
pub(in crate::dxgk) struct Registration<W: Wake> {
    waiter: Arc<Waiter<W>>,
    elements: InlineVec<Element>,
    new_nodes: InlineVec<NewNode>,
}

impl<W: Wake + 'static> Registration<W> {
    /// A wait for all of these, which tells `receiver`. Its elements are charged to the process of
    /// `waits`.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        waits: &Arc<PendingWaits>,
        elements: &[Element],
        receiver: impl PinInit<W>,
    ) -> DxgResult<Self> {
        let fewer = distinct(Mode::All, elements)?;
        let elements = fewer.as_deref().unwrap_or(elements);
        let pending = waits.reserve_sleeping(count(elements)?)?;
        let waiter = Waiter::new(Mode::All, elements.len(), receiver, pending)?;
        let new_nodes = new_nodes(&waiter, elements.len())?;
        let mut kept = InlineVec::with_capacity(elements.len())?;

        for element in elements {
            kept.push(element.clone());
        }
        Ok(Self {
            waiter,
            elements: kept,
            new_nodes,
        })
    }

    /// The wait.
    pub(in crate::dxgk) fn waiter(&self) -> &Arc<Waiter<W>> {
        &self.waiter
    }

    /// The first element.
    pub(in crate::dxgk) fn first(&self) -> Option<&Element> {
        self.elements.iter().next()
    }

    /// How many elements it has.
    pub(in crate::dxgk) fn elements(&self) -> usize {
        self.elements.iter().count()
    }

    /// Whether its condition holds now.
    pub(in crate::dxgk) fn holds(&self) -> bool {
        self.elements.iter().all(Element::holds)
    }

    /// Begins the wait, which may end at once.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn begin(self) {
        let Self {
            waiter,
            elements,
            new_nodes,
        } = self;

        enqueue(&waiter, elements.iter(), new_nodes);
    }
}

/// How a thread sleeps.
#[derive(Clone, Copy)]
struct Sleep<'a> {
    /// Keeps the wait while the thread runs a signal handler.
    interrupted: &'a InterruptedWaits,
    deadline: Deadline,
}

/// Sleeps until the condition holds. `call` identifies the call if a signal interrupts it, by what
/// was copied for `elements`: by then the caller's memory may hold something else.
///
/// INVALID_HANDLE if a fence has retired, so that the wait can never end;
/// [`DxgError::Interrupted`] on a signal. If the call will be restarted, the wait is kept, see
/// [`resume`]; otherwise nothing is left behind. Context: a system call, no locks held.
pub(crate) fn block(
    waits: &Arc<PendingWaits>,
    interrupted: &InterruptedWaits,
    mode: Mode,
    elements: &[Element],
    call: impl Fn() -> SameCall,
) -> DxgResult {
    if holds(mode, elements) {
        return Ok(());
    }

    let how = Sleep {
        interrupted,
        deadline: Deadline::Never,
    };

    if let [element] = elements {
        let pending = waits.reserve_sleeping(1)?;
        let pending = || Ok(pending);
        let ended = block_on_stack::<1>(how, mode, &[element], pending, &call);

        if let Some(result) = ended {
            return result;
        }
    } else if elements.len() <= ON_STACK {
        if let Some(few) = distinct_of_few(mode, elements) {
            // CAST: a few.
            let pending = waits.reserve_sleeping(few.len() as u32)?;
            let pending = || Ok(pending);
            let ended = match *few {
                [_] => block_on_stack::<1>(how, mode, &few, pending, &call),
                _ => block_on_stack::<ON_STACK>(how, mode, &few, pending, &call),
            };

            if let Some(result) = ended {
                return result;
            }
        }
    }

    let pending = |count| waits.reserve_sleeping(count);

    block_with_nodes(how, mode, elements, pending, call)
}

/// The same for one element that is not satisfied, until a deadline: then TIMEOUT. Only a wait that
/// takes memory is charged, by `pending`.
///
/// Context: as [`block`].
#[inline(never)]
pub(crate) fn block_until(
    interrupted: &InterruptedWaits,
    deadline: Deadline,
    element: &Element,
    pending: impl Fn() -> DxgResult<Pending>,
    call: impl Fn() -> SameCall,
) -> DxgResult {
    let how = Sleep {
        interrupted,
        deadline,
    };
    let ended = block_on_stack::<1>(how, Mode::All, &[element], &pending, &call);

    ended.unwrap_or_else(|| {
        block_with_nodes(
            how,
            Mode::All,
            slice::from_ref(element),
            |_| pending(),
            call,
        )
    })
}

/// The same for elements that the condition does not hold for.
#[inline(never)]
fn block_with_nodes(
    how: Sleep<'_>,
    mode: Mode,
    elements: &[Element],
    pending: impl FnOnce(u32) -> DxgResult<Pending>,
    call: impl FnOnce() -> SameCall,
) -> DxgResult {
    let fewer = distinct(mode, elements)?;
    let elements = fewer.as_deref().unwrap_or(elements);
    let pending = pending(count(elements)?)?;
    let waiter = Waiter::new(mode, elements.len(), WakeThread::of_caller(), pending)?;

    register(&waiter, elements, || Ok(()))?;
    sleep_on(how, &waiter, call)
}

/// The same for up to `N` elements of different fences, without taking memory. `None` if too many
/// threads sleep so for one of the fences.
#[inline(never)]
fn block_on_stack<const N: usize>(
    how: Sleep<'_>,
    mode: Mode,
    elements: &[&Element],
    pending: impl FnOnce() -> DxgResult<Pending>,
    call: &impl Fn() -> SameCall,
) -> Option<DxgResult> {
    // CAST: at most `N`.
    let wait = StackWait::of_caller(mode, elements.len() as u32);
    let wait = pin!(OnStack::<_, N>::new(wait));
    let wait = wait.as_ref();
    let set = &wait.what().set;
    let mut sleeping = Sleeping::new(wait, elements);

    if !sleeping.begin() {
        let outcome = sleeping.leave().filter(|end| *end != WaitEnd::Cancelled);

        return outcome.map(|outcome| result_of(Some(outcome), Ok(())));
    }

    let slept = sleep::until_nonzero(set.state(), how.deadline, Signals::All);

    if slept != Err(Early::Interrupted) || sleep::is_killed() || !sleep::call_restarts() {
        return Some(result_of(sleeping.leave(), slept));
    }
    Some(move_off_stack(how, mode, &sleeping, pending, call))
}

/// A signal has interrupted this wait, and its call will be restarted: it goes on in memory that
/// outlives the call. Without memory it ends.
#[cold]
#[inline(never)]
fn move_off_stack<const N: usize>(
    how: Sleep<'_>,
    mode: Mode,
    sleeping: &Sleeping<'_, N>,
    pending: impl FnOnce() -> DxgResult<Pending>,
    call: &impl Fn() -> SameCall,
) -> DxgResult {
    let thread = WakeThread::of_caller();
    let (id, begun, count) = (sleeping.id(), sleeping.begun(), sleeping.elements());
    let new = pending().and_then(|pending| {
        let waiter = Waiter::with_id(id, begun, mode, count, thread, pending)?;

        Ok((new_nodes(&waiter, count)?, waiter))
    });
    let slept = Err(Early::Interrupted);
    let Ok((new_nodes, waiter)) = new else {
        return result_of(sleeping.leave(), slept);
    };
    let outcome = sleeping.move_to(&waiter, new_nodes);

    if outcome.is_none() && waiter.set.leave() && how.interrupted.keep(&waiter, call()).is_ok() {
        return Err(DxgError::Interrupted);
    }
    waiter.cancel();
    waiter.unlink();
    result_of(outcome.or_else(|| waiter.set.outcome()), slept)
}

/// Continues a wait of the calling thread that a signal interrupted, until its deadline. It has
/// missed nothing meanwhile (FEN-16, FEN-34).
///
/// Context: as [`block`].
pub(crate) fn resume(
    interrupted: &InterruptedWaits,
    deadline: Deadline,
    waiter: &Arc<Waiter<WakeThread>>,
    call: SameCall,
) -> DxgResult {
    let how = Sleep {
        interrupted,
        deadline,
    };

    waiter.set.come_back();
    sleep_on(how, waiter, || call)
}

/// Sleeps until the queued wait ends.
fn sleep_on(
    how: Sleep<'_>,
    waiter: &Arc<Waiter<WakeThread>>,
    call: impl FnOnce() -> SameCall,
) -> DxgResult {
    let slept = sleep::until_nonzero(waiter.set.state(), how.deadline, Signals::All);

    if let Err(early) = slept {
        if early == Early::Interrupted && may_be_kept(how.interrupted, waiter, call) {
            return Err(DxgError::Interrupted);
        }
        waiter.cancel();
    }
    waiter.unlink();
    result_of(waiter.set.outcome(), slept)
}

/// What a call returns whose wait and sleep have ended so.
fn result_of(outcome: Option<WaitEnd>, slept: Result<(), Early>) -> DxgResult {
    match (outcome, slept) {
        (Some(WaitEnd::Satisfied), _) => Ok(()),
        (Some(WaitEnd::Orphaned), _) => Err(Status::INVALID_HANDLE.into()),
        (_, Err(Early::TimedOut)) => Err(Status::TIMEOUT.into()),
        (Some(WaitEnd::Cancelled) | None, _) => Err(DxgError::Interrupted),
    }
}

/// Keeps an interrupted wait until its call is restarted, if that is expected and the wait has not
/// ended.
fn may_be_kept(
    interrupted: &InterruptedWaits,
    waiter: &Arc<Waiter<WakeThread>>,
    call: impl FnOnce() -> SameCall,
) -> bool {
    !sleep::is_killed()
        && sleep::call_restarts()
        && waiter.set.leave()
        && interrupted.keep(waiter, call()).is_ok()
}

/// Adds 1 to `event` as soon as the condition holds, before return if it does now (FEN-20).
///
/// Context: a system call, no locks held.
pub(crate) fn notify(
    waits: &Arc<PendingWaits>,
    mode: Mode,
    elements: &[Element],
    event: EventFd,
) -> DxgResult {
    if holds(mode, elements) {
        event.signal();
        return Ok(());
    }

    let fewer = distinct(mode, elements)?;
    let elements = fewer.as_deref().unwrap_or(elements);
    let pending = waits.reserve(count(elements)?)?;
    let waiter = Waiter::new(mode, elements.len(), SignalEvent::new(event), pending)?;

    register(&waiter, elements, || waits.list(waiter.id, waiter.clone()))
}

/// A waiter for those who poll a descriptor, which [`poll`] queues (FEN-168).
pub(crate) fn poller(waits: &Arc<PendingWaits>) -> DxgResult<Arc<Waiter<WakePollers>>> {
    let pending = waits.reserve(1)?;

    Ok(Waiter::new(Mode::All, 1, WakePollers::new(), pending)?)
}

/// Queues a [`poller`] for `element`.
///
/// Context: a system call, no locks held.
pub(crate) fn poll(poller: &Arc<Waiter<WakePollers>>, element: &Element) -> DxgResult {
    register(poller, slice::from_ref(element), || Ok(()))
}
