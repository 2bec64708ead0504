// SPDX-License-Identifier: GPL-2.0

//! Telling processes about memory (memory.md section 5).

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    ddi::caps::Luid,
    error::DxgResult,
    logic::{
        handle,
        notice_rules::Kind, //
    },
    sys::file::object_file::PendingFd,
    uapi::*, //
};

/// DXG_IOCTL_MEMORY_NOTICE (0xc0): a descriptor that tells when memory should be given up, or what
/// the budget is (MEM-38); or one that the operation log is read from (MEM-104). The adapter of the
/// device may be named, too.
pub(super) fn create(call: Call<'_>, args: &mut opendxg_memory_notice) -> DxgResult<impl Commit> {
    invalid_if(args.reserved != 0)?;

    let kind = match args.kind {
        OPENDXG_NOTICE_PAGING_LOG => None,
        kind => Some(Kind::new(kind)?),
    };
    let device = call.process.handles.running_device(args.device)?;
    let luid = Luid {
        low: args.adapter_luid_low,
        high: args.adapter_luid_high,
    };
    let any = Luid { low: 0, high: 0 };

    invalid_if(luid != any && luid != device.adapter.luid)?;

    let fd = match kind {
        Some(kind) => {
            let notice = call.process.memory_notice(&device.adapter, kind)?;

            PendingFd::new(notice, handle::LAST_FD, true)
        }
        None => PendingFd::new(call.process.paging_log(&device)?, handle::LAST_FD, true),
    }?;

    // CAST: below 2^30.
    args.fd = fd.fd() as i32;
    Ok(fd)
}
