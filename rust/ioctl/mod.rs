// SPDX-License-Identifier: GPL-2.0

//! From an ioctl number to a handler and back to a result.
//!
//! A handler gets its argument struct as a copy, changes outputs in it and says what is to be
//! published. Order of every call: copy in once, validate, act, copy out, publish. Checks before
//! the handler, each of which is ENOTTY: the number is known, the whole code fits, the caller is
//! the process that opened the file (abi.md section 1).

mod adapter;
mod allocation;
mod allocation_use;
mod device;
mod escape;
mod handles;
mod info;
mod keyed_mutex;
mod name;
mod object;
mod object_attributes;
mod on_file;
mod resource;
mod share;
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

use handles::Handles;
use target::Context;

use crate::{
    dxgk::{
        driver::Driver,
        handle::{
            open_allocation::Locked,
            Reserved, //
        },
        keyed_mutex::Acquired,
        process::Process,
        share::{
            global_table::Unpublished,
            NtHandle,
            Share, //
        },
        tables::Tables, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    file::device::OpenFile,
    logic::handle,
    sys::{
        file::object_file::{
            self,
            NotOurs,
            PendingFd, //
        },
        user::{
            self,
            Plain, //
        }, //
    },
    uapi::opendxg_exec, //
};
use core::mem::offset_of;
use kernel::{
    error::code,
    prelude::*,
    sync::Arc, //
};

/// Number of the ioctl that runs another one and returns its exact status.
const EXEC: u32 = 0x80;

/// What a handler knows about its call.
#[derive(Clone, Copy)]
struct Call<'a> {
    /// The module's driver object.
    driver: &'a Driver,
    /// The caller's process object.
    process: &'a Arc<Process>,
}

/// What becomes usable when the outputs have been copied out. Dropping it undoes it.
enum Publish<'a> {
    /// Nothing.
    Nothing,
    /// One local handle.
    Handle(Reserved<'a>),
    /// Several local handles.
    Handles(Handles<'a>),
    /// One local handle and a global handle for the same object.
    Named(Reserved<'a>, Unpublished),
    /// A file descriptor.
    Fd(PendingFd),
    /// A lock of an allocation.
    Locked(Locked),
    /// A file descriptor of a share that was there before.
    Existing(PendingFd),
    /// A file descriptor of a new share, and the name of the share.
    NamedFd(PendingFd, Arc<Share>),
    /// The ownership of a keyed mutex.
    Acquired(Acquired),
}

impl Publish<'_> {
    /// Publishes everything. The only failure there is is a status of the success class.
    fn commit(self, tables: &Tables) -> DxgResult {
        match self {
            Self::Nothing => {}
            Self::Handle(handle) => handle.publish(),
            Self::Handles(handles) => handles.publish(),
            Self::Named(handle, global) => {
                handle.publish();
                tables.globals.publish(global);
            }
            Self::Fd(fd) => fd.install(),
            Self::Locked(locked) => locked.keep(),
            Self::Existing(fd) => {
                fd.install();
                return Err(Status::OBJECT_NAME_EXISTS.into());
            }
            Self::NamedFd(fd, share) => {
                fd.install();
                if let Some(name) = share.name() {
                    tables.names.publish(name, &share);
                }
            }
            Self::Acquired(acquired) => acquired.keep(),
        }
        Ok(())
    }
}

/// Runs a handler that only reads its argument struct.
fn run_in<C: Context, T: Plain>(
    context: C,
    arg: u64,
    handler: impl FnOnce(C, &T) -> DxgResult,
) -> DxgResult {
    let args = user::read::<T>(arg)?;

    handler(context, &args)
}

/// Runs a handler whose outputs are not in its argument struct.
fn run_elsewhere<'a, C: Context, T: Plain>(
    context: C,
    arg: u64,
    handler: impl FnOnce(C, &T) -> DxgResult<Publish<'a>>,
) -> DxgResult {
    let args = user::read::<T>(arg)?;

    handler(context, &args)?.commit(context.tables())
}

/// Runs a handler that writes outputs into its argument struct.
fn run_out<'a, C: Context, T: Plain>(
    context: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T) -> DxgResult<Publish<'a>>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let publish = handler(context, &mut args)?;

    user::write(arg, &args)?;
    publish.commit(context.tables())
}

/// Runs a handler that writes outputs into its argument struct even if it fails, as its rules say.
fn run_report<'a, C: Context, T: Plain>(
    context: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T) -> DxgResult<Publish<'a>>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let outcome = handler(context, &mut args);

    user::write(arg, &args)?;
    outcome?.commit(context.tables())
}

/// Runs a handler whose effect cannot be taken back: it is given a way to copy its answer out before
/// the effect, and has none if that fails (RES-3). After a failure the struct is written as its rules
/// say.
fn run_announced<'a, C: Context, T: Plain>(
    context: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T, &dyn Fn(&T) -> bool) -> DxgResult<Publish<'a>>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let outcome = handler(context, &mut args, &|answer| {
        user::write(arg, answer).is_ok()
    });

    if outcome.is_err() {
        user::write(arg, &args)?;
    }
    outcome?.commit(context.tables())
}

/// The `ioctl` operation of the device.
pub(crate) fn run(opened: &OpenFile, cmd: u32, arg: u64) -> isize {
    let number = cmd & 0xff;
    let Some(call) = call(opened) else {
        return not_ours();
    };

    if number == EXEC {
        return run_exec(cmd, arg, |number, size| {
            // CAST: usize has 64 bits wherever a size does not fit 32.
            let entry = table::find(number).filter(|entry| entry.size == size as usize)?;

            Some(move |arg| (entry.run)(call, arg))
        });
    }

    let Some(entry) = table::find(number).filter(|entry| entry.code(number) == cmd) else {
        return not_ours();
    };

    result_of((entry.run)(call, arg))
}

/// What a plain ioctl returns.
fn result_of(outcome: DxgResult) -> isize {
    match outcome {
        Ok(()) => 0,
        Err(DxgError::Status(status)) => status.ioctl_result(),
        Err(DxgError::Interrupted) => interrupted(),
    }
}

/// Refuses a call if a condition is true.
fn invalid_if(refused: bool) -> DxgResult {
    if refused {
        Err(Status::INVALID_PARAMETER.into())
    } else {
        Ok(())
    }
}

/// The addresses of the entries of an array in the caller's memory.
fn entries<T: Plain>(array: u64) -> impl Iterator<Item = u64> {
    // CAST: entries are small.
    let size = size_of::<T>() as u64;

    (0..).map(move |index: u64| array.wrapping_add(index.wrapping_mul(size)))
}

/// A limit of the user is a shortage to the D3DKMT calls (RES-105).
fn shortage<T>(outcome: DxgResult<T>) -> DxgResult<T> {
    outcome.map_err(|stop| match stop {
        DxgError::Status(Status::QUOTA_EXCEEDED) => Status::NO_MEMORY.into(),
        other => other,
    })
}

/// The NT handle in a slot of an argument struct.
fn nt_handle(slot: u64) -> DxgResult<Arc<NtHandle>> {
    let fd = handle::nt_fd(slot).ok_or(Status::INVALID_HANDLE)?;

    object_file::get::<NtHandle>(fd).map_err(|not_ours| {
        match not_ours {
            NotOurs::Closed => Status::INVALID_HANDLE,
            NotOurs::Mismatch => Status::OBJECT_TYPE_MISMATCH,
        }
        .into()
    })
}

/// The `exec` ioctl (abi.md section 3.2): 0 and an exact status, or an errno and nothing done. `find`
/// gives the call with a number and a size of arguments.
fn run_exec<R: FnOnce(u64) -> DxgResult>(
    cmd: u32,
    arg: u64,
    find: impl FnOnce(u32, u32) -> Option<R>,
) -> isize {
    if cmd != table::code(EXEC, size_of::<opendxg_exec>()) {
        return not_ours();
    }

    let Ok(exec) = user::read::<opendxg_exec>(arg) else {
        return Status::ACCESS_VIOLATION.ioctl_result();
    };

    if exec.reserved != 0 || exec.nr == EXEC {
        return Status::INVALID_PARAMETER.ioctl_result();
    }

    let Some(run) = find(exec.nr, exec.size) else {
        return not_ours();
    };

    // CAST: an offset is small.
    let place = arg.wrapping_add(offset_of!(opendxg_exec, ntstatus) as u64);

    // The status must have a place to go before anything happens.
    if user::write(place, &0).is_err() {
        return Status::ACCESS_VIOLATION.ioctl_result();
    }

    let status = match run(exec.arg) {
        Ok(()) => return 0,
        Err(DxgError::Status(status)) => status,
        Err(DxgError::Interrupted) => return interrupted(),
    };

    match user::write(place, &status.ntstatus()) {
        Ok(()) => 0,
        Err(_) => Status::ACCESS_VIOLATION.ioctl_result(),
    }
}

/// The context of a call, if the caller is the process that opened the file.
fn call(opened: &OpenFile) -> Option<Call<'_>> {
    opened
        .process
        .mappings
        .identity
        .is_caller()
        .then_some(Call {
            driver: &opened.driver,
            process: &opened.process,
        })
}

fn not_ours() -> isize {
    // CAST: an errno is a small number.
    code::ENOTTY.to_errno() as isize
}

fn interrupted() -> isize {
    // CAST: an errno is a small number.
    code::ERESTARTSYS.to_errno() as isize
}
