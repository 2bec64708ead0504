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
mod open_resource;
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
    error::{
        DxgError,
        DxgResult, //
    },
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
#[inline(always)]
pub(crate) fn run(driver: &Driver, process: &Arc<Process>, cmd: u32, arg: u64) -> isize {
    let call = Call { driver, process };

    // What clients call most need not be looked for.
    match split(cmd).0 {
        DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU => {
            run_quickly(call, cmd, arg, wait::signal_quickly)
        }
        DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU => {
            run_quickly(call, cmd, arg, wait::wait_quickly)
        }
        _ => run_any(call, cmd, arg),
    }
}

/// Serves a call in its most frequent form as its handler would; `None` leaves it to that, and has
/// had no effect.
#[inline(never)]
fn run_quickly(
    call: Call<'_>,
    cmd: u32,
    arg: u64,
    serve: impl FnOnce(Call<'_>, u64) -> Option<DxgResult>,
) -> isize {
    if !call.process.mappings.identity.is_caller() {
        return not_ours();
    }
    match serve(call, arg) {
        Some(Ok(())) => 0,
        Some(Err(why)) => refuse(call, cmd, why),
        None => run_any(call, cmd, arg),
    }
}

#[inline(never)]
fn run_any(call: Call<'_>, cmd: u32, arg: u64) -> isize {
    if !call.process.mappings.identity.is_caller() {
        return not_ours();
    }

    let (code, _) = split(cmd);
    let number = code & 0xff;
    let Some(entry) = table::find(number).filter(|entry| entry.code(number) == code) else {
        return refused::no_call(call.process, code);
    };

    match (entry.run)(call, arg) {
        Ok(()) => 0,
        Err(why) => refuse(call, cmd, why),
    }
}

/// What a refused call returns.
#[cold]
#[inline(never)]
fn refuse(call: Call<'_>, cmd: u32, why: DxgError) -> isize {
    let (code, form) = split(cmd);

    refused::record(call.process, code & 0xff, why);
    result_of(Err(why), form)
}
