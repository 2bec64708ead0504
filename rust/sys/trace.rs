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
