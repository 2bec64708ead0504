// SPDX-License-Identifier: GPL-2.0

//! Priorities of contexts.

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::submit_rules::{
        self,
        FREE_PRIORITY, //
    },
    sys::task::credentials::Credentials,
    uapi::*, //
};

/// D3DKMTSetContextSchedulingPriority (0x30): among all contexts. ACCESS_DENIED for what would put
/// others back, without CAP_SYS_NICE.
pub(super) fn set(call: Call<'_>, args: &D3DKMT_SETCONTEXTSCHEDULINGPRIORITY) -> DxgResult {
    let context = call.process.handles.context(args.hContext)?;
    let priority = submit_rules::priority(args.Priority)?;

    if priority > FREE_PRIORITY && !Credentials::may_raise_priority() {
        return Err(Status::ACCESS_DENIED.into());
    }
    context.set_priority(args.Priority, priority)
}

/// D3DKMTGetContextSchedulingPriority (0x22): what was set, or 0.
pub(super) fn get(call: Call<'_>, args: &mut D3DKMT_GETCONTEXTSCHEDULINGPRIORITY) -> DxgResult {
    args.Priority = call.process.handles.context(args.hContext)?.priority();
    Ok(())
}

/// D3DKMTSetContextInProcessSchedulingPriority (0x2f): among those of the process. A KMD has no use
/// for it yet.
pub(super) fn set_in_process(
    call: Call<'_>,
    args: &D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY,
) -> DxgResult {
    let context = call.process.handles.context(args.hContext)?;

    invalid_if(submit_rules::check_in_process_priority(args.Priority).is_err())?;
    context.set_in_process_priority(args.Priority);
    Ok(())
}

/// D3DKMTGetContextInProcessSchedulingPriority (0x21): what was set, or 0.
pub(super) fn get_in_process(
    call: Call<'_>,
    args: &mut D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY,
) -> DxgResult {
    let context = call.process.handles.context(args.hContext)?;

    args.Priority = context.in_process_priority();
    Ok(())
}
