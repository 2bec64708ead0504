// SPDX-License-Identifier: GPL-2.0

//! What a process reads of the operation log: the records that are about it, and those of the
//! paging process that were written for it (MEM-104).
//!
//! It has places of its own from the call that makes it until it is dropped, so that others do not
//! overwrite its records, and their number says nothing about others. Physical addresses of system
//! memory and threads of other processes are left out.

use super::paging_log::{
    OwnKey,
    PagingLog, //
};
use crate::{
    dxgk::{
        device::Device,
        process::Process,
        stats::next_id,
        sync::pending_waits::Pending, //
    },
    error::DxgResult,
    logic::paging_log::Record, //
};
use kernel::{
    fmt,
    prelude::*,
    str::CString,
    sync::Arc, //
};

/// The log, as one process reads it.
pub(crate) struct OwnPagingLog {
    log: Arc<PagingLog>,
    key: OwnKey,
    /// It counts as a wait for one value.
    _pending: Pending,
}

/// A record, behind the number of those that are lost before it.
struct Line {
    lost: u64,
    record: Record,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lost != 0 {
            writeln!(f, "log lost={}", self.lost)?;
        }
        self.record.show(f)
    }
}

impl OwnPagingLog {
    /// Takes the next record, as text; `None` if there is none now. EINVAL if that is longer than
    /// `room`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn take(&self, room: usize) -> Result<Option<CString>> {
        while let Some((seen, record)) = self.log.next_own(self.key) {
            let lost = record.number.saturating_sub(seen).saturating_sub(1);
            let text = CString::try_from_fmt(fmt!("{}", Line { lost, record }))?;

            if text.to_bytes().len() > room {
                return Err(EINVAL);
            }
            if self.log.take_own(self.key, seen, &record) {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// What was taken last did not reach the reader. It can be taken again.
    pub(crate) fn untake(&self) {
        self.log.untake_own(self.key);
    }
}

impl Drop for OwnPagingLog {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.log.remove_own(self.key);
    }
}

impl Process {
    /// What the process reads of the log of the adapter of a device. NOT_SUPPORTED if that has no
    /// GPU addresses.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn paging_log(&self, device: &Device) -> DxgResult<Arc<OwnPagingLog>> {
        device.space()?;

        let own = Arc::new(
            OwnPagingLog {
                log: device.adapter.memory.log.clone(),
                key: (device.process.id, next_id()),
                _pending: self.waits.reserve(1)?,
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        own.log.add_own(own.key)?;
        Ok(own)
    }
}
