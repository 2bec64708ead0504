// SPDX-License-Identifier: GPL-2.0

//! The tracepoints of `trace.h` as safe functions. Ids only, never addresses.

use super::ffi;
use crate::logic::paging_log::{
    Action,
    Event, //
};
use core::ptr;
use kernel::{
    ffi::c_void,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// An object came into being.
pub(crate) fn create(object: u64, kind: u32) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_create(object, kind) }
}

/// An object is about to be freed.
pub(crate) fn destroy(object: u64, kind: u32) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_destroy(object, kind) }
}

/// A wait for `value` was queued on a fence.
pub(crate) fn wait(object: u64, value: u64, waiter: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_wait(object, value, waiter) }
}

/// `value` was stored into a fence.
pub(crate) fn signal(object: u64, value: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_signal(object, value) }
}

/// A wait ended and its waiter was woken.
pub(crate) fn wake(waiter: u64, outcome: u32) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_wake(waiter, outcome) }
}

/// Something was queued in a context or HW queue.
pub(crate) fn queue(queue: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_queue(queue) }
}

/// A submission of a queue went to the KMD.
pub(crate) fn run(queue: u64, number: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_run(queue, number) }
}

/// The KMD has told that everything up to a submission of a queue has completed.
pub(crate) fn complete(queue: u64, number: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_complete(queue, number) }
}

/// A queue waits for an object.
pub(crate) fn block(queue: u64, object: u64, value: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_block(queue, object, value) }
}

/// A queue goes on after a wait.
pub(crate) fn unblock(queue: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_unblock(queue) }
}

/// What a queue does with a fence. The numbers are those of entries of logs.
#[derive(Clone, Copy)]
pub(crate) enum FenceOperation {
    Signal = 0,
    Wait = 1,
}

/// Whether somebody wants to know what queues do with fences.
pub(crate) fn shows_fence_operations() -> bool {
    // SAFETY: May be called anywhere.
    unsafe { ffi::dxg_trace_fence_operations() }
}

/// A queue is about to get a wait for a fence or a signal of it.
pub(crate) fn fence_queued(queue: u64, fence: u64, value: u64, operation: FenceOperation) {
    // CAST: the discriminant is the number.
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_fence_queued(queue, fence, value, operation as u32) }
}

/// It was the turn of that.
pub(crate) fn fence_done(queue: u64, fence: u64, value: u64, operation: FenceOperation) {
    // CAST: the discriminant is the number.
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_fence_done(queue, fence, value, operation as u32) }
}

/// A queue has stopped for good, at a packet.
pub(crate) fn fault(queue: u64, packet: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_fault(queue, packet) }
}

/// An engine is about to be reset in which a queue hangs, or the whole adapter.
pub(crate) fn reset(adapter: u64, node: u32, queue: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_reset(adapter, node, queue) }
}

/// A signal of a cross-adapter fence is told to another adapter.
pub(crate) fn propagate(object: u64, value: u64, from: u64, to: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_propagate(object, value, from, to) }
}

/// An entry or a callback of a KMD, by the number of its variant.
pub(crate) fn kmd(entry: u32, object: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_kmd(entry, object) }
}

/// An engine has interrupted for a native fence, and named the fence or the queue, or neither.
pub(crate) fn native_interrupt(adapter: u64, fence: u64, queue: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_native_interrupt(adapter, fence, queue) }
}

/// An entry of the log of a queue.
pub(crate) struct LogEntry {
    /// By which queue.
    pub(crate) queue: u64,
    /// Of which native fence.
    pub(crate) fence: u64,
    /// What was stored or waited for.
    pub(crate) value: u64,
    /// `DXGK_NATIVE_FENCE_LOG_OPERATION`.
    pub(crate) operation: u32,
    /// When the wait was first tried, in nanoseconds of CLOCK_MONOTONIC; 0 for a signal.
    pub(crate) observed_ns: u64,
    /// When it was done, or 0.
    pub(crate) end_ns: u64,
}

/// A queue has done something with a native fence.
pub(crate) fn log_entry(entry: &LogEntry) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe {
        ffi::dxg_trace_log_entry(
            entry.queue,
            entry.fence,
            entry.value,
            entry.operation,
            entry.observed_ns,
            entry.end_ns,
        );
    }
}

/// So many entries of the log of a queue are lost.
pub(crate) fn log_lost(queue: u64, count: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_log_lost(queue, count) }
}

/// Whether somebody wants to know of the entries of logs.
pub(crate) fn are_logs_traced() -> bool {
    // SAFETY: May be called anywhere.
    unsafe { ffi::dxg_trace_logs_are_on() }
}

/// The same; true before the first entry can be told.
pub(crate) fn logs_are_to_be_traced() -> bool {
    // SAFETY: May be called anywhere.
    unsafe { ffi::dxg_trace_logs_will_be_on() }
}

/// Who has to do something before somebody traces logs.
pub(crate) trait LogsTraced: Send + Sync + 'static {
    /// Somebody begins to.
    ///
    /// Context: may sleep; the locks of the tracer are held.
    fn logs_will_be_traced(&self);
}

/// Tells one who wants to know of that, until it is dropped. There is one at a time.
pub(crate) struct LogsListener<T: LogsTraced>(#[allow(dead_code)] Arc<T>);

impl<T: LogsTraced> LogsListener<T> {
    pub(crate) fn new(listener: Arc<T>) -> Self {
        let data = (&raw const *listener).cast_mut().cast();

        // SAFETY: What is behind `data` lives until the drop, which ends the calls before.
        unsafe { ffi::dxg_trace_listen_for_logs(Some(logs_begin::<T>), data) }
        Self(listener)
    }
}

impl<T: LogsTraced> Drop for LogsListener<T> {
    fn drop(&mut self) {
        // SAFETY: Nobody is called any more on return.
        unsafe { ffi::dxg_trace_listen_for_logs(None, ptr::null_mut()) }
    }
}

/// # Safety
///
/// `listener` points to a valid `T`.
unsafe extern "C" fn logs_begin<T: LogsTraced>(listener: *mut c_void) {
    // SAFETY: By the requirements of this function.
    unsafe { &*listener.cast::<T>() }.logs_will_be_traced();
}

/// How many operation logs are on, and how many events that [`paging`] tells.
pub(crate) fn paging_followers() -> &'static Atomic<i32> {
    // SAFETY: The counter is static, and everybody changes it by atomic operations only.
    unsafe { Atomic::from_ptr(&raw mut ffi::dxg_paging_followers.counter) }
}

/// Whether somebody follows what memory managers do.
pub(crate) fn paging_is_followed() -> bool {
    paging_followers().load(Relaxed) != 0
}

/// What the memory manager of an adapter has done.
pub(crate) fn paging(adapter: u64, event: Event, action: &Action) {
    let fields = ffi::dxg_paging_event {
        adapter,
        device: action.device,
        queue: action.queue,
        value: action.value,
        process: action.process,
        object: action.object,
        batch: action.batch,
        start: action.start,
        count: action.count,
        offset: action.offset,
        address: action.address,
        size: action.size,
        segment: action.segment,
        flags: action.flags,
        status: action.status,
        operation: action.operation.number(),
    };

    // SAFETY: The fields are copied, and it may be called anywhere.
    unsafe { ffi::dxg_trace_paging(number(event), &fields) }
}

/// Which tracepoint it is.
const fn number(event: Event) -> ffi::dxg_paging_event_number {
    match event {
        Event::MakeResident => ffi::dxg_paging_event_number_DXG_PAGING_MAKE_RESIDENT,
        Event::Evict => ffi::dxg_paging_event_number_DXG_PAGING_EVICT,
        Event::PageOpBuild => ffi::dxg_paging_event_number_DXG_PAGING_PAGE_OP_BUILD,
        Event::PageOpSubmit => ffi::dxg_paging_event_number_DXG_PAGING_PAGE_OP_SUBMIT,
        Event::PageOpDone => ffi::dxg_paging_event_number_DXG_PAGING_PAGE_OP_DONE,
        Event::PtUpdate => ffi::dxg_paging_event_number_DXG_PAGING_PT_UPDATE,
        Event::TlbFlush => ffi::dxg_paging_event_number_DXG_PAGING_TLB_FLUSH,
        Event::Move => ffi::dxg_paging_event_number_DXG_PAGING_MOVE,
        Event::Offer => ffi::dxg_paging_event_number_DXG_PAGING_OFFER,
        Event::Reclaim => ffi::dxg_paging_event_number_DXG_PAGING_RECLAIM,
        Event::Discard => ffi::dxg_paging_event_number_DXG_PAGING_DISCARD,
        Event::BudgetChange => ffi::dxg_paging_event_number_DXG_PAGING_BUDGET_CHANGE,
        Event::Trim => ffi::dxg_paging_event_number_DXG_PAGING_TRIM,
        Event::PageFault => ffi::dxg_paging_event_number_DXG_PAGING_PAGE_FAULT,
    }
}
