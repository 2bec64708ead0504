// SPDX-License-Identifier: GPL-2.0

//! From an ioctl number to a handler and back to a result.
//!
//! A handler gets its argument struct as a copy, changes outputs in it and returns what it has
//! reserved. Order of every call: copy in once, check, reserve, copy out, commit. Checks before
//! the handler, each of which is ENOTTY: the number is known, the whole code fits, the caller is
//! the process that opened the file (abi.md section 1).

mod adapter;
mod allocation;
mod allocation_property;
mod allocation_use;
mod call;
mod commit;
mod device;
mod doorbell;
mod escape;
mod fence_file;
mod gpu_memory;
mod hw_queue;
mod info;
mod keyed_mutex;
mod name;
mod native_fence;
mod notice;
mod nt_fence;
mod object;
mod object_attributes;
mod offer;
mod on_file;
mod patched;
mod priority;
mod queued_sync;
mod queues;
mod refused;
mod resource;
mod result;
mod share;
mod statistics;
mod submit;
mod sync_file;
mod sync_object;
mod table;
mod target;
mod transport;
mod wait;
mod weak;

pub(crate) use on_file::{
    run_on_nt_handle,
    run_on_watch, //
};

use crate::{
    dxgk::{
        driver::Driver,
        process::Process, //
    },
    error::DxgResult,
    uapi::{
        DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU,
        DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU, //
    }, //
};
use call::Call;
use kernel::sync::Arc;
pub(crate) use refused::show as show_refusals;
use result::{
    not_ours,
    result_of,
    split, //
};

/// The `ioctl` operation of the device, for a file that `process` has opened.
pub(crate) fn run(driver: &Driver, process: &Arc<Process>, cmd: u32, arg: u64) -> isize {
    if !process.mappings.identity.is_caller() {
        return not_ours();
    }

    let (code, form) = split(cmd);
    let number = code & 0xff;
    let call = Call { driver, process };

    let outcome = match quickly(call, code, arg) {
        Some(outcome) => outcome,
        None => match table::find(number).filter(|entry| entry.code(number) == code) {
            Some(entry) => (entry.run)(call, arg),
            None => return refused::no_call(process, code),
        },
    };

    if let Err(why) = outcome {
        refused::record(process, number, why);
    }
    result_of(outcome, form)
}

/// The calls that clients make most, in their most frequent form. Each is served as its handler
/// would; `None` leaves it to that.
#[inline(always)]
fn quickly(call: Call<'_>, code: u32, arg: u64) -> Option<DxgResult> {
    match code {
        DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU => wait::signal_quickly(call, arg),
        DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU => wait::wait_quickly(call, arg),
        _ => None,
    }
}
