// SPDX-License-Identifier: GPL-2.0

//! A wait as fdinfo shows it.

use crate::{
    logic::wait_set::Mode,
    sys::task::stamp::{
        number_for_caller,
        Stamp, //
    }, //
};
use kernel::{
    seq_file::SeqFile,
    seq_print, //
};

/// What there is to say of one wait.
pub(crate) struct About {
    /// The same for all elements of the wait.
    pub(crate) id: u64,
    /// Whose it is, and when it began.
    pub(crate) begun: Stamp,
    /// What is told of its end.
    pub(crate) receiver: &'static str,
    /// Its thread, by the number in the initial namespace; 0 if none sleeps.
    pub(crate) thread: u32,
    /// When it ends, if it has several elements.
    pub(crate) mode: Mode,
}

impl About {
    /// Prints it as a wait for `value` of an object.
    pub(crate) fn print(&self, m: &SeqFile, object: u64, value: u64) {
        let (id, age, receiver) = (self.id, self.begun.age_ns(), self.receiver);
        let process = self.begun.process_for_caller();
        let mode = match self.mode {
            Mode::Any => "any",
            Mode::All => "all",
        };

        seq_print!(
            m,
            "dxg-wait:\t{object} value={value} pid={process} ago={age}"
        );
        seq_print!(m, " id={id} receiver={receiver} mode={mode}");
        if self.thread != 0 {
            seq_print!(m, " thread={}", number_for_caller(self.thread));
        }
        seq_print!(m, "\n");
    }
}
