// SPDX-License-Identifier: GPL-2.0

//! What handlers are given: the call, its argument struct, and objects by their descriptors.
//!
//! Order of every call: copy in once, check, reserve, copy out, commit.

use super::commit::Commit;
use crate::{
    dxgk::{
        driver::Driver,
        object::Strong,
        process::Process,
        share::NtHandle, //
    },
    error::{
        DxgResult,
        Status, //
    },
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
    }, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What a handler knows about its call.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    /// The module's driver object.
    pub(super) driver: &'a Driver,
    /// The caller's process object.
    pub(super) process: &'a Arc<Process>,
}

impl Call<'_> {
    /// A reference to the object that a global handle names, if the caller may open it.
    pub(super) fn open_global(self, global: u32) -> DxgResult<Strong> {
        let strong = self.driver.tables.globals.open(global);

        strong.ok_or(Status::INVALID_PARAMETER.into())
    }
}

/// Where the argument struct of a call is, for handlers that copy their answer out themselves
/// because they cannot take the effect back (RES-3).
pub(super) struct Answer<T> {
    place: u64,
    _type: PhantomData<T>,
}

impl<T: Plain> Answer<T> {
    /// Copies the answer out.
    pub(super) fn write(&self, answer: &T) -> DxgResult {
        Ok(user::write(self.place, answer)?)
    }
}

/// Runs a handler that does not write into its argument struct.
pub(super) fn run_in<C, T: Plain, R: Commit>(
    receiver: C,
    arg: u64,
    handler: impl FnOnce(C, &T) -> DxgResult<R>,
) -> DxgResult {
    let args = user::read::<T>(arg)?;

    handler(receiver, &args)?.commit();
    Ok(())
}

/// Runs a handler that writes outputs into its argument struct.
pub(super) fn run_out<C, T: Plain, R: Commit>(
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
pub(super) fn run_report<C, T: Plain, R: Commit>(
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

/// Runs a handler that writes outputs into its argument struct and says with which status the call
/// ends: its effect may still be to come, or there is none and the outputs say why.
pub(super) fn run_status<C, T: Plain, R: Commit>(
    receiver: C,
    arg: u64,
    handler: impl FnOnce(C, &mut T) -> DxgResult<(R, Status)>,
) -> DxgResult {
    let mut args = user::read::<T>(arg)?;
    let (reserved, status) = handler(receiver, &mut args)?;

    user::write(arg, &args)?;
    reserved.commit();
    match status {
        Status::SUCCESS => Ok(()),
        other => Err(other.into()),
    }
}

/// Runs a handler that copies its answer out itself, between preparing its effect and committing
/// it. After a failure the struct is written as its rules say.
pub(super) fn run_answer<C, T: Plain, R: Commit>(
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

/// Refuses a call if a condition is true.
pub(super) fn invalid_if(refused: bool) -> DxgResult {
    if refused {
        Err(Status::INVALID_PARAMETER.into())
    } else {
        Ok(())
    }
}

/// The addresses of the entries of an array in the caller's memory.
pub(super) fn entries<T: Plain>(array: u64) -> impl Iterator<Item = u64> {
    // CAST: entries are small.
    let size = size_of::<T>() as u64;

    (0..).map(move |index: u64| array.wrapping_add(index.wrapping_mul(size)))
}

/// The object behind a descriptor in a slot of an argument struct.
pub(super) fn by_descriptor<T: ObjectFile>(slot: u64) -> DxgResult<Arc<T>> {
    let fd = handle::nt_fd(slot).ok_or(Status::INVALID_HANDLE)?;

    Ok(object_file::get(fd)?)
}

/// The NT handle in a slot of an argument struct.
pub(super) fn nt_handle(slot: u64) -> DxgResult<Arc<NtHandle>> {
    by_descriptor(slot)
}
