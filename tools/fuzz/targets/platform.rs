// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the engine needs of `rust/platform.rs`, over the standard library.

use std::sync::atomic::{fence, Ordering};

/// Something in allocated memory.
pub(crate) type Boxed<T> = Box<T>;

/// An array of nothing.
pub(crate) fn none_array<T, const N: usize>() -> Option<Boxed<[Option<T>; N]>> {
    Some(Box::new([const { None }; N]))
}

/// A full barrier among the threads.
pub(crate) fn full_fence() {
    fence(Ordering::SeqCst);
}
