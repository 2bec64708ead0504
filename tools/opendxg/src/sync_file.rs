// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync files: what programs and drivers of Linux wait for.

use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::calls::{self, call};
use crate::device::{Context, Device};
use crate::event::wait_readable;
use crate::fence::MonitoredFence;
use crate::handle::{adopt_checked, slot};
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// A descriptor that becomes readable, once and for good, when the work behind it is done or will
/// not be done any more. Drivers of every kind make sync files and wait for them; by
/// `From<OwnedFd>` one of another driver becomes this.
///
/// It does not keep a fence alive.
#[derive(Debug)]
pub struct SyncFile(OwnedFd);

impl SyncFile {
    /// Whether it has signalled, with or without an error.
    pub fn is_signalled(&self) -> Result<bool> {
        self.wait(Some(Duration::ZERO))
    }

    /// Waits until it signals; false after `timeout`.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        wait_readable(self.as_fd(), timeout)
    }
}

impl From<OwnedFd> for SyncFile {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<SyncFile> for OwnedFd {
    fn from(file: SyncFile) -> Self {
        file.0
    }
}

impl AsFd for SyncFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for SyncFile {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Sync files.
impl Device {
    /// A sync file that signals when `fence` has reached `value`. The value must be there, or a
    /// signal that gives it must be queued in a context or HW queue of this device, with nothing
    /// before it that somebody could delay: otherwise NOT_SUPPORTED.
    pub fn create_sync_file(&self, fence: &SyncObject, value: u64) -> Result<SyncFile> {
        let mut arg = D3DKMT_CREATESYNCFILE::zeroed();
        (arg.hDevice, arg.hMonitoredFence) = (self.handle().0, fence.handle().0);
        arg.FenceValue = value;
        call(self.node(), &mut arg)?;
        let fd = i32::try_from(arg.hSyncFile).map_err(|_| Error::Protocol("no descriptor"))?;
        adopt_checked(fd).map(SyncFile)
    }

    /// Opens the fence behind a sync file that [`Device::create_sync_file`] made, in this process
    /// or in another one, to wait for it. Also tells the value that the file stands for.
    pub fn open_sync_file(&self, file: impl AsFd) -> Result<(MonitoredFence, u64)> {
        let mut arg = d3dkmt_opensyncobjectfromsyncfile::zeroed();
        (arg.sync_file_handle, arg.device) = (slot(file.as_fd()), self.handle().0);
        let value = calls::open_from_sync_file(self.node(), &mut arg)?;
        let owned = Owned::new(self.node(), arg.syncobj, Kind::SyncObject);
        let object = SyncObject::new(owned, Some(self.clone()), None);
        match value {
            Some(value) => Ok((
                MonitoredFence::new(object, value, arg.fence_value_gpu_va),
                arg.fence_value,
            )),
            // Closed again by dropping it.
            None => Err(Error::Status(Status::OBJECT_TYPE_MISMATCH)),
        }
    }
}

impl Context {
    /// Holds back what is submitted later until a sync file of any driver has signalled. The file
    /// may be closed.
    pub fn wait_sync_file(&self, file: impl AsFd) -> Result<()> {
        let mut arg = d3dkmt_waitsyncfile::zeroed();
        (arg.sync_file_handle, arg.context) = (slot(file.as_fd()), self.handle().0);
        call(self.device().node(), &mut arg).map(|_| ())
    }
}
