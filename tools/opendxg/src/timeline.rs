// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timelines of DRM drivers that signal fences, and fences that signal timelines.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::error::OrOs;
use crate::event::{wait_readable, EventFd, FencePoint};
use crate::ioctl::issue;
use crate::{Device, Error, Result, Status, SyncFile, SyncObject};

/// `struct drm_syncobj_eventfd` of drm/drm.h.
#[repr(C)]
struct Notify {
    handle: u32,
    flags: u32,
    point: u64,
    fd: i32,
    pad: u32,
}

/// `DRM_IOCTL_SYNCOBJ_EVENTFD`.
const SYNCOBJ_EVENTFD: u32 = 0xc000_64cf | ((size_of::<Notify>() as u32) << 16);

/// A point of a DRM timeline that will signal a fence. Dropping it before that gives it up.
///
/// The kernel does it without a thread of this process: DRM signals an eventfd, and the module the
/// fence ([`SyncObject::signal_on_event`]).
#[derive(Debug)]
#[must_use = "dropping it gives the signal up"]
pub struct TimelinePoint(EventFd);

impl TimelinePoint {
    /// Signals `fence` to `value` when point `point` of the timeline `syncobj` is signalled: at
    /// once if it is already. The point may be one that nobody has submitted yet.
    ///
    /// `syncobj` is a handle of the DRM file `drm`. The driver needs no part in this; kernels from
    /// 6.6 on can do it, others say `ENOTTY`. A fence whose value is above `value` by then is left
    /// as it is.
    pub fn signals(
        drm: BorrowedFd<'_>,
        syncobj: u32,
        point: u64,
        fence: &SyncObject,
        value: u64,
    ) -> Result<Self> {
        let event = EventFd::new()?;
        // First, so that nothing is missed. The end of the eventfd takes it back.
        fence.signal_on_event(value, &event, false)?;

        let mut notify = Notify {
            handle: syncobj,
            flags: 0,
            point,
            fd: event.as_fd().as_raw_fd(),
            pad: 0,
        };
        let arg = (&raw mut notify).cast();
        // SAFETY: the argument of this code, without addresses.
        unsafe { issue(drm, SYNCOBJ_EVENTFD, arg) }.or_os()?;
        Ok(Self(event))
    }

    /// Waits until the point is signalled; false after `timeout`. The fence is signalled then or a
    /// moment later.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        wait_readable(self.0.as_fd(), timeout)
    }
}

impl AsFd for TimelinePoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `struct drm_syncobj_handle` of drm/drm.h.
#[repr(C)]
struct Import {
    handle: u32,
    flags: u32,
    fd: i32,
    pad: u32,
    point: u64,
}

/// `DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE`.
const SYNCOBJ_FD_TO_HANDLE: u32 = 0xc000_64c2 | ((size_of::<Import>() as u32) << 16);

/// `DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE` and `_TIMELINE`.
const SYNC_FILE_AS_POINT: u32 = 1 | 2;

/// Makes a sync file the point of a timeline.
fn import(drm: BorrowedFd<'_>, syncobj: u32, point: u64, file: &SyncFile) -> Result<()> {
    let mut import = Import {
        handle: syncobj,
        flags: SYNC_FILE_AS_POINT,
        fd: file.as_raw_fd(),
        pad: 0,
        point,
    };
    let arg = (&raw mut import).cast();
    // SAFETY: the argument of this code, without addresses.
    unsafe { issue(drm, SYNCOBJ_FD_TO_HANDLE, arg) }.or_os()?;
    Ok(())
}

/// What became of a value that a DRM timeline is to follow.
#[derive(Debug)]
#[must_use = "a value that was not handed over has to be tried again"]
pub enum HandOver {
    /// The timeline has the point. The kernel signals it, whatever becomes of this process.
    Done,
    /// The kernel cannot promise the value yet. When this becomes readable, the fence has reached
    /// it: then the same call is `Done`.
    Later(FencePoint),
}

/// Timelines of DRM drivers that follow fences.
impl Device {
    /// Adds point `point` to the DRM timeline `syncobj`, a handle of the DRM file `drm`. It is
    /// signalled when `fence` reaches `value`, by the kernel. Whoever waits for the point may have
    /// begun before this call.
    ///
    /// Others wait for a point of a timeline as for any work of a driver, so it has to come. That
    /// is sure of a value that is there, and of one that a signal gives which is queued in a
    /// context or HW queue of this device, with nothing before it that somebody could delay. So
    /// call this right after queueing the signal. For other values, of CPUs and of engines that
    /// store by themselves, the answer is [`HandOver::Later`].
    ///
    /// The points of a timeline go up: call this in their order. The driver needs no part in it.
    pub fn signal_timeline(
        &self,
        fence: &SyncObject,
        value: u64,
        drm: BorrowedFd<'_>,
        syncobj: u32,
        point: u64,
    ) -> Result<HandOver> {
        match self.create_sync_file(fence, value) {
            Ok(file) => import(drm, syncobj, point, &file).map(|()| HandOver::Done),
            Err(Error::Status(Status::NOT_SUPPORTED)) => fence.point(value).map(HandOver::Later),
            Err(error) => Err(error),
        }
    }
}
