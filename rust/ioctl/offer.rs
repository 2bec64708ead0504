// SPDX-License-Identifier: GPL-2.0

//! Memory that clients can go without for a while (memory.md section 4).

use super::{
    call::{
        invalid_if,
        Answer,
        Call, //
    },
    commit::Commit,
    gpu_memory::status_of,
    statistics::process, //
};
use crate::{
    dxgk::vidmm::offered::{
        self,
        Named,
        ReclaimedList, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        offer_rules::{
            self,
            Reclaimed,
            Request, //
        },
        paging_rules::MAX_LISTED, //
    },
    sys::user,
    uapi::*, //
};
use kernel::prelude::*;

/// The allocations that a call on a device names, by the handles of resources or their own. Others
/// would lose their bytes, so the handles need the right to write.
fn named(call: Call<'_>, device: u32, list: offer_rules::Named) -> DxgResult<Named> {
    use offer_rules::Named::*;

    let table = &call.process.handles;
    let (Resources(place, count) | Allocations(place, count)) = list;
    let mut locals = KVVec::from_elem(0u32, count, GFP_KERNEL_ACCOUNT)?;
    let mut named = Named::with_capacity(count)?;

    user::read_slice(place, &mut locals)?;
    for local in &locals {
        let chosen = match list {
            Resources(..) => table.allocations_of_resource(device, *local)?,
            Allocations(..) => table.allocations_of_list(device, &[*local])?,
        };

        chosen.check_may_write()?;
        for allocation in &chosen.allocations {
            named.push(&allocation.memory)?;
        }
        named.end_element()?;
        // CAST: 32 bits fit a usize.
        invalid_if(named.len() > MAX_LISTED as usize)?;
    }
    Ok(named)
}

/// D3DKMTOfferAllocations (0x27): the bytes may be dropped, when the work is done that is queued
/// (MEM-29).
pub(super) fn offer(call: Call<'_>, args: &D3DKMT_OFFERALLOCATIONS) -> DxgResult {
    let request = Request::new(args.Priority, args.Flags)?;
    let list = offer_rules::Named::new(args.pResources, args.HandleList, args.NumAllocations)?;
    let device = call.process.handles.running_device(args.hDevice)?;

    offered::offer(&device, named(call, args.hDevice, list)?, &request)
}

/// The results of a call, as its array has them.
fn codes(list: &ReclaimedList, code: fn(Reclaimed) -> u32) -> DxgResult<KVVec<u32>> {
    let mut codes = KVVec::new();

    for result in list.results() {
        codes.push(code(result), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(codes)
}

/// D3DKMTReclaimAllocations2 (0x2c): the caller needs them again, and is told what has become of
/// them (MEM-31).
pub(super) fn reclaim2(
    call: Call<'_>,
    args: &mut D3DKMT_RECLAIMALLOCATIONS2,
) -> DxgResult<(impl Commit, Status)> {
    let list = offer_rules::Named::new(args.pResources, args.HandleList, args.NumAllocations)?;
    let results = args.results();

    invalid_if(results == 0)?;

    let queue = call.process.handles.paging_queue(args.hPagingQueue)?;
    let device = queue.device.ok_or(Status::INVALID_PARAMETER)?;
    let reclaimed = ReclaimedList::by_queue(&queue.what, named(call, device, list)?)?;

    user::write_slice(results, &codes(&reclaimed, Reclaimed::code)?)?;
    args.PagingFenceValue = reclaimed.value;

    let status = status_of(reclaimed.value);

    Ok((reclaimed, status))
}

/// D3DKMTReclaimAllocations (0xcb): the same without a paging queue. It waits for what has to be
/// done, and tells only whether bytes were dropped.
pub(super) fn reclaim(call: Call<'_>, args: &D3DKMT_RECLAIMALLOCATIONS) -> DxgResult<impl Commit> {
    let list = offer_rules::Named::new(args.pResources, args.HandleList, args.NumAllocations)?;
    let device = call.process.handles.running_device(args.hDevice)?;
    let reclaimed = ReclaimedList::at_once(&device, named(call, args.hDevice, list)?)?;

    if args.pDiscarded != 0 {
        let is_discarded = |result| u32::from(result == Reclaimed::Discarded);

        user::write_slice(args.pDiscarded, &codes(&reclaimed, is_discarded)?)?;
    }
    Ok(reclaimed)
}

/// D3DKMTQueryProcessOfferInfo (0xcc): how much system memory a process could go without (MEM-33).
/// One that does not have the device open has offered nothing.
pub(super) fn query_process(call: Call<'_>, args: &mut D3DKMT_QUERYPROCESSOFFERINFO) -> DxgResult {
    offer_rules::check_size(args.cbSize, size_of::<D3DKMT_QUERYPROCESSOFFERINFO>())?;

    let process = process(call, args.hProcess)?;
    let (bytes, changes) = process.map_or((0, 0), |process| process.gpu_processes.offered.bytes());

    args.DecommittableBytes = bytes;
    args.DecommitUniqueness = changes;
    Ok(())
}

/// D3DKMTTrimProcessCommitment (0xcd): has a process go without system memory that it has offered
/// (MEM-33).
///
/// That cannot be taken back, so the answer is written before to see whether it can be.
pub(super) fn trim_process(
    call: Call<'_>,
    args: &mut D3DKMT_TRIMPROCESSCOMMITMENT,
    answer: Answer<D3DKMT_TRIMPROCESSCOMMITMENT>,
) -> DxgResult {
    let whole = size_of::<D3DKMT_TRIMPROCESSCOMMITMENT>();
    let only_discarded = offer_rules::check_trim(args.cbSize, whole, args.Flags)?;
    let process = process(call, args.hProcess)?;

    answer.write(args)?;
    args.NumBytesDecommitted = process.map_or(0, |process| {
        process
            .gpu_processes
            .offered
            .decommit(args.DecommitRequested, only_discarded)
    });
    answer.write(args)
}
