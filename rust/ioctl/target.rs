// SPDX-License-Identifier: GPL-2.0

//! The object of a call that can be made on the device with a handle, and on an NT handle itself.

use super::call::{
    invalid_if,
    nt_handle,
    Call, //
};
use crate::{
    dxgk::{
        object::{
            Header,
            Object,
            Strong, //
        },
        share::NtHandle, //
    },
    error::{
        DxgResult,
        Status, //
    },
    uapi::*, //
};

/// An object, kept for the time of a call, and the access that the caller's handle gives.
pub(super) struct Target {
    strong: Strong,
    access: u32,
}

impl Target {
    /// By a local or NT handle of the caller.
    pub(super) fn of(call: Call<'_>, handle: u64, handle_type: u32) -> DxgResult<Self> {
        match handle_type {
            OPENDXG_HANDLE_LOCAL => {
                let local = u32::try_from(handle).map_err(|_| Status::INVALID_PARAMETER)?;
                let found = call.process.handles.shareable(local)?;

                Ok(Self {
                    strong: found.strong,
                    access: found.access,
                })
            }
            OPENDXG_HANDLE_NT => Self::of_file(&*nt_handle(handle)?),
            _ => Err(Status::INVALID_PARAMETER.into()),
        }
    }

    /// By an NT handle: its first object.
    pub(super) fn of_file(handle: &NtHandle) -> DxgResult<Self> {
        Ok(Self {
            strong: handle.strong()?,
            access: handle.access(),
        })
    }

    /// What the call works on.
    pub(super) fn object(&self) -> &Object {
        self.strong.object()
    }

    /// What it has in common with others.
    pub(super) fn header(&self) -> &Header {
        self.object().header()
    }

    /// The access that the caller's handle gives.
    pub(super) fn access(&self) -> u32 {
        self.access
    }

    /// ACCESS_DENIED unless the handle may write (RES-64).
    fn check_writable(&self) -> DxgResult {
        if self.access & self.object().access_type().write() == 0 {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(())
    }
}

/// What a call is made on: the device or an NT handle.
pub(super) trait Receiver: Copy {
    /// The object of the handle in the call's arguments.
    fn target(self, handle: u64, handle_type: u32) -> DxgResult<Target>;

    /// The same, if the handle may write (RES-64).
    fn writable_target(self, handle: u64, handle_type: u32) -> DxgResult<Target> {
        let target = self.target(handle, handle_type)?;

        target.check_writable()?;
        Ok(target)
    }
}

impl Receiver for Call<'_> {
    fn target(self, handle: u64, handle_type: u32) -> DxgResult<Target> {
        Target::of(self, handle, handle_type)
    }
}

/// A call on an NT handle itself: by any process, which need not have the device open.
#[derive(Clone, Copy)]
pub(super) struct OnHandle<'a>(pub(super) &'a NtHandle);

impl OnHandle<'_> {
    /// Checks that the arguments name the handle that the call is made on.
    pub(super) fn check(self, handle: u64, handle_type: u32) -> DxgResult {
        invalid_if(handle != 0 || handle_type != OPENDXG_HANDLE_SELF)
    }
}

impl Receiver for OnHandle<'_> {
    fn target(self, handle: u64, handle_type: u32) -> DxgResult<Target> {
        self.check(handle, handle_type)?;
        Target::of_file(self.0)
    }
}
