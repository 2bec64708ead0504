// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the engine needs of `rust/platform.rs`, over the standard library.

use std::sync::atomic::{fence, Ordering};

/// So many places for things.
pub(crate) type Places<T, const N: usize> = Box<[Option<T>; N]>;

/// Places with nothing in them.
pub(crate) fn places<T, const N: usize>() -> Option<Places<T, N>> {
    Some(Box::new([const { None }; N]))
}

/// A full barrier among the threads.
pub(crate) fn full_fence() {
    fence(Ordering::SeqCst);
}
