// SPDX-License-Identifier: GPL-2.0

//! The fence of an NT handle, on its descriptor: any process that has that may signal it and wait
//! for it, without opening the device.

use super::{
    call::invalid_if,
    target::OnHandle, //
};
use crate::{
    dxgk::{
        object::Object,
        share::NtHandle,
        sync::{
            cpu_wait::{
                self,
                Element, //
            },
            fence::Fence,
            interrupted_waits::SameCall,
            pending_waits::{
                Pending,
                PendingWaits, //
            }, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        digest::Digest,
        timeout,
        wait_rules::ElementCheck, //
    },
    sys::task::{
        sleep,
        stamp::Stamp, //
    },
    uapi::*, //
};
use kernel::sync::Arc;

/// The fence. `may` says whether the handle has the right that the call needs. As for a local
/// handle, the type comes before that (FEN-53).
#[inline(always)]
fn fence_of(handle: &NtHandle, may: bool) -> DxgResult<&Arc<Fence>> {
    let fence = match handle.object() {
        Object::Fence(fence) if !fence.is_intra_gpu() => Some(fence),
        _ => None,
    };
    let mut check = ElementCheck::default();

    check.see(fence.is_some(), may);
    check.result()?;
    fence.ok_or(Status::INVALID_PARAMETER.into())
}

/// DXG_IOCTL_SIGNAL_NT (0xbb) on an NT handle: stores a value in the fence (FEN-31 to FEN-38).
#[inline(always)]
pub(super) fn signal(OnHandle(handle): OnHandle<'_>, args: &opendxg_signal_nt) -> DxgResult {
    invalid_if(args.flags & !OPENDXG_SIGNAL_ALLOW_REWIND != 0 || args.reserved != 0)?;

    let allow_rewind = args.flags != 0;
    let fence = fence_of(handle, handle.rights().signal)?;

    if fence.signal_alone(Stamp::of_caller(), args.value, allow_rewind)? {
        return Ok(());
    }
    signal_others(fence, args.value, allow_rewind)
}

/// The same for a fence that has waiters to release, or that other adapters have.
#[inline(never)]
fn signal_others(fence: &Arc<Fence>, value: u64, allow_rewind: bool) -> DxgResult {
    Ok(fence.signal(value, allow_rewind)?)
}

/// DXG_IOCTL_WAIT_NT (0xbc) on an NT handle: waits for a value of the fence until a deadline
/// (FEN-14, FEN-19, FEN-30, FEN-34).
#[inline(always)]
pub(super) fn wait(OnHandle(handle): OnHandle<'_>, args: &opendxg_wait_nt) -> DxgResult {
    invalid_if(args.flags & !OPENDXG_WAIT_REALTIME != 0 || args.reserved != 0)?;

    let fence = fence_of(handle, handle.rights().wait)?;

    if handle.interrupted.is_empty() && fence.satisfies(args.value) {
        return Ok(());
    }
    wait_for(handle, fence, args)
}

/// The same for a wait that may be one that a signal has interrupted.
#[inline(never)]
fn wait_for(handle: &NtHandle, fence: &Arc<Fence>, args: &opendxg_wait_nt) -> DxgResult {
    let interrupted = &handle.interrupted;
    let deadline = timeout::at_ns(args.deadline, args.flags & OPENDXG_WAIT_REALTIME != 0);
    let call = || SameCall {
        site: sleep::call_site(),
        digest: [args.value, args.deadline, args.flags.into()]
            .into_iter()
            .fold(Digest::new(), Digest::with)
            .get(),
    };

    if !interrupted.is_empty() {
        let call = call();

        if let Some(waiter) = interrupted.take(Some(call)) {
            return cpu_wait::resume(interrupted, deadline, &waiter, call);
        }
    }
    if fence.satisfies(args.value) {
        return Ok(());
    }

    let element = Element {
        fence: fence.clone(),
        value: args.value,
    };

    cpu_wait::block_until(interrupted, deadline, &element, || charge(fence), call)
}

/// Charges a wait for a fence to the user of the calling task, who need not have the device open.
fn charge(fence: &Fence) -> DxgResult<Pending> {
    let account = fence.header.accounts().of_caller()?;
    let waits = PendingWaits::new(account).map_err(DxgError::from_errno)?;

    waits.reserve_sleeping(1)
}

/// DXG_IOCTL_VALUE_NT (0xbd) on an NT handle: CurrentValue, which everybody who has the handle may
/// see.
pub(super) fn value(OnHandle(handle): OnHandle<'_>, args: &mut opendxg_value_nt) -> DxgResult {
    args.value = fence_of(handle, true)?.value();
    Ok(())
}
