// SPDX-License-Identifier: GPL-2.0

//! D3DKMTUpdateAllocationProperty (memory.md section 1).

use super::{
    call::{
        invalid_if,
        Answer,
        Call, //
    },
    gpu_memory::status_of, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::allocation_properties::Update,
    uapi::*, //
};

/// D3DKMTUpdateAllocationProperty (0x38): changes where an allocation may be, and how it lies
/// (MEM-8). It affects other users, so it needs the right to write.
///
/// The answer is written before the change, which cannot be taken back.
pub(super) fn update(
    call: Call<'_>,
    args: &mut D3DDDI_UPDATEALLOCPROPERTY,
    answer: Answer<D3DDDI_UPDATEALLOCPROPERTY>,
) -> DxgResult {
    let update = Update {
        mask: args.PropertyMaskValue,
        supported: args.SupportedSegmentSet,
        preference: args.PreferredSegment,
        flags: args.Flags,
    };

    update.check()?;

    let queue = call.process.handles.paging_queue(args.hPagingQueue)?;
    let found = call.process.handles.allocation(args.hAllocation)?;
    let opened = found.what.opened()?;

    invalid_if(found.device != queue.device)?;
    queue.what.check_properties(&update)?;
    if !opened.write {
        return Err(Status::ACCESS_DENIED.into());
    }

    let before = args.PagingFenceValue;

    args.PagingFenceValue = queue.what.done()?;
    answer.write(args)?;
    if let Err(error) = queue.what.update_properties(opened, &update) {
        args.PagingFenceValue = before;
        return Err(error);
    }
    match status_of(args.PagingFenceValue) {
        Status::SUCCESS => Ok(()),
        pending => Err(pending.into()),
    }
}
