// SPDX-License-Identifier: GPL-2.0

//! Calls that are refused: the process remembers the last ones, and fdinfo shows them.

use super::{
    result::{
        self,
        not_ours, //
    },
    table, //
};
use crate::{
    dxgk::process::Process,
    error::DxgError,
    logic::refusals::{
        Answer,
        Refusal, //
    },
    sys::time, //
};
use kernel::{
    seq_file::SeqFile,
    seq_print, //
};

/// Remembers that a call of the process ends like this, if that is a failure.
#[cold]
#[inline(never)]
pub(super) fn record(process: &Process, number: u32, why: DxgError) {
    if let Some(status) = why.failure() {
        process.refusals.record(number, Answer::Status(status));
    }
}

/// There is no call with this code. Remembers that, if the code is one of ours.
#[cold]
#[inline(never)]
pub(super) fn no_call(process: &Process, code: u32) -> isize {
    if result::is_type(code) {
        process.refusals.record(code & 0xff, Answer::NoCall);
    }
    not_ours()
}

/// Prints the refused calls: how many nanoseconds ago, how often, the number, the name and the
/// answer.
pub(crate) fn show(process: &Process, m: &SeqFile) {
    // The clock is read last: no refusal is younger.
    let all = process.refusals.all();
    let now = time::now_ns();

    for Refusal {
        call,
        answer,
        times,
        last_ns,
    } in all.into_iter().flatten()
    {
        let (ago, name) = (now.saturating_sub(last_ns), table::name(call));

        seq_print!(m, "dxg-refusal:\t{ago} times={times} call={call:#04x}");
        seq_print!(m, " name={}", name.unwrap_or("-"));
        match answer {
            Answer::Status(status) => seq_print!(m, " status={status:#010x}\n"),
            Answer::NoCall => seq_print!(m, " status=-\n"),
        }
    }
}
