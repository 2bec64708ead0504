// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who is told of a signal of a cross-adapter fence (FEN-138, FEN-157, FEN-158, M21).

use crate::logic::propagation::Signaller::{self, Adapter, Unaware};

/// Three adapters, and whether they have native fences.
const ADAPTERS: [(u64, bool); 3] = [(7, true), (8, true), (9, false)];

fn told(from: Signaller) -> Vec<u64> {
    let others = ADAPTERS.iter();
    let others = others.filter(|(id, is_native)| !from.is_known_on(*id, *is_native));

    others.map(|(id, _)| *id).collect()
}

#[test]
fn fen_158_a_signal_is_told_to_the_two_others() {
    assert_eq!(told(Adapter(7)), [8, 9]);
    assert_eq!(told(Adapter(8)), [7, 9]);
    assert_eq!(told(Adapter(9)), [7, 8]);
    // It has the fence open no longer.
    assert_eq!(told(Adapter(6)), [7, 8, 9]);
}

/// The native fence of the same adapter does not know either.
#[test]
fn fen_157_a_store_that_no_native_fence_has_seen_is_told_to_all_of_them() {
    assert_eq!(told(Unaware(9)), [7, 8]);
    assert_eq!(told(Unaware(7)), [7, 8, 9]);
    assert_eq!([Adapter(7).adapter(), Unaware(9).adapter()], [7, 9]);
}
