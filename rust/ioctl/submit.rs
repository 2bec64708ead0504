// SPDX-License-Identifier: GPL-2.0

//! Submissions.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    queues::{
        QueueKind,
        Queues, //
    }, //
};
use crate::{
    dxgk::sched::{
        item,
        new_item::NewItem, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::submit_rules::{
        self,
        bits,
        Commands, //
    },
    sys::user,
    uapi::*, //
};

/// INVALID_PARAMETER unless all of these are allocations of the caller.
fn check_primaries(call: Call<'_>, primaries: &[u32]) -> DxgResult {
    for local in primaries {
        call.process.handles.allocation(*local)?;
    }
    Ok(())
}

/// Refuses history buffers, the only list left that names memory by physical address:
/// NOT_SUPPORTED, because no KMD writes them. INVALID_PARAMETER for one that is no allocation of
/// the caller. One that is not accessed physically is GRAPHICS_INVALID_ALLOCATION_USAGE, and puts
/// the device in error (MEM-94).
fn refuse_history(call: Call<'_>, queues: &Queues, args: &D3DKMT_SUBMITCOMMAND) -> DxgResult {
    let mut locals = [0; submit_rules::MAX_HISTORY_BUFFERS as usize];
    // CAST: at most 64.
    let locals = locals
        .get_mut(..args.NumHistoryBuffers as usize)
        .unwrap_or_default();
    let mut is_misused = false;

    user::read_slice(args.HistoryBufferArray, locals)?;
    for local in locals.iter() {
        let opened = call.process.handles.allocation(*local)?.what;

        is_misused |= !opened.allocation.memory.is_accessed_physically();
    }
    queues.check()?;
    if is_misused {
        queues.first()?.device.misused();
        return Err(Status::GRAPHICS_INVALID_ALLOCATION_USAGE.into());
    }
    Err(Status::NOT_SUPPORTED.into())
}

/// Looks at private driver data: they are opaque, and no KMD asks for them, but they have to be
/// readable.
fn check_private_data(address: u64, size: u32) -> DxgResult {
    // CAST: 32 bits fit a usize.
    let _opaque = user::read_bytes(address, size as usize)?;

    Ok(())
}

/// D3DKMTSubmitCommand (0x0f): commands for one or more contexts of packets, which run them once
/// each (GPU-6).
pub(super) fn submit(call: Call<'_>, args: &D3DKMT_SUBMITCOMMAND) -> DxgResult {
    let commands = Commands {
        address: args.Commands,
        length: args.CommandLength,
        private_data: args.PrivateDriverDataSize,
        primaries: args.NumPrimaries,
    };

    submit_rules::check_submit(args.Flags, args.BroadcastContextCount)?;
    commands.check()?;
    submit_rules::check_history(args.NumHistoryBuffers, args.HistoryBufferArray)?;
    check_private_data(args.pPrivateDriverData, args.PrivateDriverDataSize)?;

    // CAST: at most 64, and at most 16.
    let contexts = args
        .BroadcastContext
        .get(..args.BroadcastContextCount as usize)
        .unwrap_or_default();
    let primaries = args
        .WrittenPrimaries
        .get(..args.NumPrimaries as usize)
        .unwrap_or_default();
    let queues = Queues::of(call, QueueKind::Contexts, contexts)?;

    check_primaries(call, primaries)?;
    if args.NumHistoryBuffers != 0 {
        return refuse_history(call, &queues, args);
    }
    if args.Flags & bits::NULL_RENDERING != 0 {
        // Nothing is executed, so that there is nothing to queue.
        return queues.check();
    }
    queues.push(|queue| {
        NewItem::commands(
            queue,
            call.process,
            item::Commands {
                address: commands.address,
                length: commands.length,
                progress: None,
            },
        )
    })
}

/// D3DKMTSubmitCommandToHwQueue (0x34): commands for a HW queue, whose progress fence shows a value
/// when they have retired (GPU-8, FEN-126).
pub(super) fn submit_to_hw_queue(
    call: Call<'_>,
    args: &D3DKMT_SUBMITCOMMANDTOHWQUEUE,
) -> DxgResult {
    let commands = Commands {
        address: args.CommandBuffer,
        length: args.CommandLength,
        private_data: args.PrivateDriverDataSize,
        primaries: args.NumPrimaries,
    };

    commands.check()?;
    invalid_if(args.NumPrimaries != 0 && args.WrittenPrimaries == 0)?;
    check_private_data(args.pPrivateDriverData, args.PrivateDriverDataSize)?;

    let queues = Queues::of(call, QueueKind::HwQueues, &[args.hHwQueue])?;
    let mut primaries = [0; submit_rules::MAX_PRIMARIES as usize];
    // CAST: at most 16.
    let primaries = primaries
        .get_mut(..args.NumPrimaries as usize)
        .unwrap_or_default();

    user::read_slice(args.WrittenPrimaries, primaries)?;
    check_primaries(call, primaries)?;
    queues.push(|queue| {
        NewItem::commands(
            queue,
            call.process,
            item::Commands {
                address: commands.address,
                length: commands.length,
                progress: Some(args.HwQueueProgressFenceId),
            },
        )
    })
}
