// SPDX-License-Identifier: GPL-2.0

//! The tracepoints of `trace.h` as safe functions. Ids only, never addresses.

use super::ffi;

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

/// An entry or a callback of a KMD, by the number of its variant.
pub(crate) fn kmd(entry: u32, object: u64) {
    // SAFETY: Takes plain numbers and may be called anywhere.
    unsafe { ffi::dxg_trace_kmd(entry, object) }
}
