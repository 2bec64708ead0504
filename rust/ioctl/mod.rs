// SPDX-License-Identifier: GPL-2.0

//! From an ioctl number to a handler and back to a result.
//!
//! A handler gets its argument struct as a copy, changes outputs in it and returns what it has
//! reserved. Order of every call: copy in once, check, reserve, copy out, commit. Checks before
//! the handler, each of which is ENOTTY: the number is known, the whole code fits, the caller is
//! the process that opened the file (abi.md section 1).

mod adapter;
mod allocation;
mod allocation_use;
mod commit;
mod device;
mod escape;
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

use commit::Commit;

use crate::{
    dxgk::{
        driver::Driver,
        object::Strong,
        process::Process,
        share::NtHandle, //
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
            ObjectFile, //
        },
        user::{
            self,
            Plain, //
        }, //
    },
    uapi::opendxg_exec, //
};
use core::{
    marker::PhantomData,
    mem::offset_of, //
};
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

impl Call<'_> {
    /// A reference to the object that a global handle names, if the caller may open it.
    fn open_global(self, global: u32) -> DxgResult<Strong> {
        let strong = self.driver.tables.globals.open(global);

        strong.ok_or(Status::INVALID_PARAMETER.into())
    }
}

/// Where the argument struct of a call is, for handlers that copy their answer out themselves
/// because they cannot take the effect back (RES-3).
struct Answer<T> {
    place: u64,
    _type: PhantomData<T>,
}

impl<T: Plain> Answer<T> {
    /// Copies the answer out.
    fn write(&self, answer: &T) -> DxgResult {
        Ok(user::write(self.place, answer)?)
    }
}

/// Runs a handler that does not write into its argument struct.
fn run_in<C, T: Plain, R: Commit>(
    receiver: C,
    arg: u64,
    handler: impl FnOnce(C, &T) -> DxgResult<R>,
) -> DxgResult {
    let args = user::read::<T>(arg)?;

    handler(receiver, &args)?.commit();
    Ok(())
}

/// Runs a handler that writes outputs into its argument struct.
fn run_out<C, T: Plain, R: Commit>(
    receiver: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T) -> DxgResult<R>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let reserved = handler(receiver, &mut args)?;

    user::write(arg, &args)?;
    reserved.commit();
    Ok(())
}

/// Runs a handler that writes outputs into its argument struct even if it fails, as its rules say.
fn run_report<C, T: Plain, R: Commit>(
    receiver: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T) -> DxgResult<R>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let result = handler(receiver, &mut args);

    user::write(arg, &args)?;
    result?.commit();
    Ok(())
}

/// Runs a handler that copies its answer out itself, between preparing its effect and committing
/// it. After a failure the struct is written as its rules say.
fn run_answer<C, T: Plain, R: Commit>(
    receiver: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T, Answer<T>) -> DxgResult<R>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let answer = Answer {
        place: arg,
        _type: PhantomData,
    };
    let result = handler(receiver, &mut args, answer);

    if result.is_err() {
        user::write(arg, &args)?;
    }
    result?.commit();
    Ok(())
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

/// The object behind a descriptor in a slot of an argument struct.
fn by_descriptor<T: ObjectFile>(slot: u64) -> DxgResult<Arc<T>> {
    let fd = handle::nt_fd(slot).ok_or(Status::INVALID_HANDLE)?;

    Ok(object_file::get(fd)?)
}

/// The NT handle in a slot of an argument struct.
fn nt_handle(slot: u64) -> DxgResult<Arc<NtHandle>> {
    by_descriptor(slot)
}

/// The `exec` ioctl (abi.md section 3.2): 0 and an exact status, or an errno and nothing done.
/// `find` gives the call with a number and a size of arguments.
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

    // The status must be writable before anything happens.
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
