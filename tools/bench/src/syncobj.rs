// SPDX-License-Identifier: MIT OR Apache-2.0
//! The competitor drm_syncobj, as timelines, and for sync files without points (drm/drm.h).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Result;

use crate::ioctl::{ioctl, iowr};

#[repr(C)]
struct GetCap {
    capability: u64,
    value: u64,
}

#[repr(C)]
struct Create {
    handle: u32,
    flags: u32,
}

#[repr(C)]
struct Exported {
    handle: u32,
    flags: u32,
    fd: i32,
    pad: u32,
}

#[repr(C)]
struct Points {
    handles: u64,
    points: u64,
    count: u32,
    flags: u32,
}

#[repr(C)]
struct Wait {
    handles: u64,
    points: u64,
    timeout_nsec: i64,
    count: u32,
    flags: u32,
    first_signaled: u32,
    pad: u32,
    deadline_nsec: u64,
}

#[repr(C)]
struct Notify {
    handle: u32,
    flags: u32,
    point: u64,
    fd: i32,
    pad: u32,
}

const GET_CAP: u32 = iowr::<GetCap>(b'd', 0x0c);
const CREATE: u32 = iowr::<Create>(b'd', 0xbf);
const DESTROY: u32 = iowr::<Create>(b'd', 0xc0);
const HANDLE_TO_FD: u32 = iowr::<Exported>(b'd', 0xc1);
const FD_TO_HANDLE: u32 = iowr::<Exported>(b'd', 0xc2);
const TIMELINE_WAIT: u32 = iowr::<Wait>(b'd', 0xca);
const QUERY: u32 = iowr::<Points>(b'd', 0xcb);
const TIMELINE_SIGNAL: u32 = iowr::<Points>(b'd', 0xcd);
const EVENTFD: u32 = iowr::<Notify>(b'd', 0xcf);

const CAP_SYNCOBJ_TIMELINE: u64 = 0x14;
const WAIT_FOR_SUBMIT: u32 = 2;
/// In an export or an import: of the fence, and not of the object.
const SYNC_FILE: u32 = 1;

/// A DRM device that offers timelines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Drm(Arc<OwnedFd>);

impl Drm {
    /// The first device that offers timelines, with its path.
    pub fn find() -> Option<(Self, String)> {
        let entries = std::fs::read_dir("/dev/dri").ok()?;
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<_> = paths.collect();
        paths.sort();
        paths.reverse(); // Render nodes first.
        paths.into_iter().find_map(|path| {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let fd = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
            let mut cap = GetCap {
                capability: CAP_SYNCOBJ_TIMELINE,
                value: 0,
            };
            // SAFETY: the argument of this code, without addresses.
            unsafe { ioctl(&fd, GET_CAP, &mut cap) }.ok()?;
            (cap.value != 0).then(|| (Self(Arc::new(fd)), path.display().to_string()))
        })
    }

    /// Makes a timeline at point 0.
    pub fn timeline(&self) -> Result<Timeline> {
        let mut args = Create {
            handle: 0,
            flags: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(self, CREATE, &mut args) }?;
        Ok(self.adopt(args.handle))
    }

    /// Makes one without points that has signalled.
    pub fn signalled(&self) -> Result<Timeline> {
        const CREATE_SIGNALED: u32 = 1;
        let mut args = Create {
            handle: 0,
            flags: CREATE_SIGNALED,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(self, CREATE, &mut args) }?;
        Ok(self.adopt(args.handle))
    }

    /// Opens a timeline that another process has exported.
    pub fn import(&self, fd: impl AsFd) -> Result<Timeline> {
        let mut args = Exported {
            handle: 0,
            flags: 0,
            fd: fd.as_fd().as_raw_fd(),
            pad: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(self, FD_TO_HANDLE, &mut args) }?;
        Ok(self.adopt(args.handle))
    }

    fn adopt(&self, handle: u32) -> Timeline {
        Timeline {
            drm: self.clone(),
            handle,
        }
    }
}

impl AsFd for Drm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timeline syncobj.
#[derive(Debug)]
pub struct Timeline {
    drm: Drm,
    handle: u32,
}

impl Timeline {
    /// A descriptor by which another process can open it.
    pub fn export(&self) -> Result<OwnedFd> {
        let mut args = Exported {
            handle: self.handle,
            flags: 0,
            fd: -1,
            pad: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.drm, HANDLE_TO_FD, &mut args) }?;
        // SAFETY: the call returned a new descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(args.fd) })
    }

    /// A sync file of the fence of one without points.
    pub fn export_sync_file(&self) -> Result<OwnedFd> {
        let mut args = Exported {
            handle: self.handle,
            flags: SYNC_FILE,
            fd: -1,
            pad: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.drm, HANDLE_TO_FD, &mut args) }?;
        // SAFETY: the call returned a new descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(args.fd) })
    }

    /// Makes the fence of a sync file that of one without points.
    pub fn import_sync_file(&self, file: impl AsFd) -> Result<()> {
        let mut args = Exported {
            handle: self.handle,
            flags: SYNC_FILE,
            fd: file.as_fd().as_raw_fd(),
            pad: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.drm, FD_TO_HANDLE, &mut args) }?;
        Ok(())
    }

    /// Signals a point.
    pub fn signal(&self, point: u64) -> Result<()> {
        let mut args = Points {
            handles: (&raw const self.handle) as u64,
            points: (&raw const point) as u64,
            count: 1,
            flags: 0,
        };
        // SAFETY: the argument of this code; both addresses hold `count` live entries.
        unsafe { ioctl(&self.drm, TIMELINE_SIGNAL, &mut args) }?;
        Ok(())
    }

    /// The last point that is signalled.
    pub fn query(&self) -> Result<u64> {
        let mut point = 0u64;
        let mut args = Points {
            handles: (&raw const self.handle) as u64,
            points: (&raw mut point) as u64,
            count: 1,
            flags: 0,
        };
        // SAFETY: the argument of this code; both addresses hold `count` live entries.
        unsafe { ioctl(&self.drm, QUERY, &mut args) }?;
        // SAFETY: live; the call wrote it where the compiler does not look.
        Ok(unsafe { (&raw const point).read_volatile() })
    }

    /// Waits for a point.
    pub fn wait(&self, point: u64) -> Result<()> {
        let mut args = Wait {
            handles: (&raw const self.handle) as u64,
            points: (&raw const point) as u64,
            timeout_nsec: i64::MAX,
            count: 1,
            flags: WAIT_FOR_SUBMIT,
            first_signaled: 0,
            pad: 0,
            deadline_nsec: 0,
        };
        // SAFETY: the argument of this code; both addresses hold `count` live entries.
        unsafe { ioctl(&self.drm, TIMELINE_WAIT, &mut args) }?;
        Ok(())
    }

    /// Has an eventfd signalled at a point.
    pub fn notify(&self, point: u64, event: impl AsFd) -> Result<()> {
        let mut args = Notify {
            handle: self.handle,
            flags: 0,
            point,
            fd: event.as_fd().as_raw_fd(),
            pad: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.drm, EVENTFD, &mut args) }?;
        Ok(())
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        let mut args = Create {
            handle: self.handle,
            flags: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        let destroyed = unsafe { ioctl(&self.drm, DESTROY, &mut args) };
        assert!(destroyed.is_ok(), "drm_syncobj destroy: {destroyed:?}");
    }
}
