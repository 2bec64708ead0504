// SPDX-License-Identifier: GPL-2.0

//! Files of text that the kernel asks for as a whole.
//!
//! The kernel gives a buffer, and when that was too small, starts over with one twice the size. So
//! whoever prints much stops when the buffer is full: all the attempts together then cost no more
//! than twice the last one. And whoever is being killed does not read on.

use super::task::sleep;
use kernel::{
    bindings,
    seq_file::SeqFile, //
};

/// Whether what is printed now can still reach a reader.
///
/// Context: a system call.
pub(crate) fn wants_more(m: &SeqFile) -> bool {
    let m = core::ptr::from_ref(m).cast::<bindings::seq_file>();
    // SAFETY: A `SeqFile` is a `struct seq_file`, which nobody else uses meanwhile. Full is full by
    // the kernel's own definition, see `seq_has_overflowed`.
    let full = unsafe { (*m).count == (*m).size };

    !full && !sleep::is_killed()
}
