// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timelines of DRM drivers that signal fences.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::error::OrOs;
use crate::event::{wait_readable, EventFd};
use crate::ioctl::issue;
use crate::{Result, SyncObject};

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
