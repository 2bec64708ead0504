// SPDX-License-Identifier: GPL-2.0

//! Text files that the kernel reads as a whole.
//!
//! The kernel gives a buffer. If it was too small, the kernel starts over with one twice the size.
//! So a long output stops when the buffer is full: all attempts together then cost no more than
//! twice the last one. It also stops when the reader is being killed.

use super::task::sleep;
use kernel::{
    bindings,
    seq_file::SeqFile, //
};

/// Whether more output can still reach the reader.
///
/// Context: a system call.
pub(crate) fn wants_more(m: &SeqFile) -> bool {
    let m = core::ptr::from_ref(m).cast::<bindings::seq_file>();
    // SAFETY: A `SeqFile` is a `struct seq_file`, which only this caller uses now. Full is full by
    // the kernel's own definition, see `seq_has_overflowed`.
    let full = unsafe { (*m).count == (*m).size };

    !full && !sleep::is_killed()
}
