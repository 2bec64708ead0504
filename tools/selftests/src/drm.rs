// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timelines of a DRM device (drm/drm.h), which any driver with that feature has.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::{clock_gettime, ClockId};

use crate::{Failure, TestResult};

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
struct Points {
    handles: u64,
    points: u64,
    count: u32,
    flags: u32,
}

/// `struct drm_syncobj_handle`.
#[derive(Default)]
#[repr(C)]
struct File {
    handle: u32,
    flags: u32,
    fd: i32,
    pad: u32,
    point: u64,
}

/// `struct drm_syncobj_timeline_wait`.
#[repr(C)]
struct Wait {
    handles: u64,
    points: u64,
    timeout: i64,
    count: u32,
    flags: u32,
    first: u32,
    pad: u32,
    deadline: u64,
}

const CAP_SYNCOBJ_TIMELINE: u64 = 0x14;

/// Makes the call with this number, whose argument is a `T`.
fn ioctl<T>(fd: BorrowedFd<'_>, number: u32, arg: &mut T) -> rustix::io::Result<()> {
    let code = 0xc000_6400 | ((size_of::<T>() as u32) << 16) | number;
    // SAFETY: only this file calls, with the arguments of these calls; their addresses are those of
    // live values.
    match unsafe { libc::ioctl(fd.as_raw_fd(), code.into(), &raw mut *arg) } {
        0 => Ok(()),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
    }
}

/// A DRM device that has timelines.
pub struct Drm(OwnedFd);

impl Drm {
    /// The first one. Skips the test where there is none.
    pub fn find() -> TestResult<Self> {
        let nodes = std::fs::read_dir("/dev/dri").into_iter().flatten();
        let mut paths: Vec<_> = nodes.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let open = |path| -> Option<Self> {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
            let mut cap = GetCap {
                capability: CAP_SYNCOBJ_TIMELINE,
                value: 0,
            };
            ioctl(fd.as_fd(), 0x0c, &mut cap).ok()?;
            (cap.value != 0).then_some(Self(fd))
        };
        let found = paths.iter().rev().find_map(open);
        found.ok_or_else(|| Failure::Skipped("no DRM device with timelines".into()))
    }

    /// A new timeline at point 0.
    pub fn timeline(&self) -> TestResult<Timeline<'_>> {
        let mut args = Create {
            handle: 0,
            flags: 0,
        };
        ioctl(self.as_fd(), 0xbf, &mut args)?;
        Ok(Timeline {
            drm: self,
            handle: args.handle,
        })
    }

    /// The timeline behind a file that [`Timeline::file`] made, of any device.
    pub fn open(&self, file: impl AsFd) -> TestResult<Timeline<'_>> {
        let mut args = File {
            fd: file.as_fd().as_raw_fd(),
            ..File::default()
        };
        ioctl(self.as_fd(), 0xc2, &mut args)?;
        Ok(Timeline {
            drm: self,
            handle: args.handle,
        })
    }
}

impl AsFd for Drm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timeline.
pub struct Timeline<'a> {
    drm: &'a Drm,
    /// Its number for the device.
    pub handle: u32,
}

impl Timeline<'_> {
    /// The device of which it has a handle.
    pub fn drm(&self) -> &Drm {
        self.drm
    }

    /// Signals a point.
    pub fn signal(&self, point: u64) -> TestResult {
        let mut args = Points {
            handles: (&raw const self.handle) as u64,
            points: (&raw const point) as u64,
            count: 1,
            flags: 0,
        };
        Ok(ioctl(self.drm.as_fd(), 0xcd, &mut args)?)
    }

    /// Whether a point is signalled, or is within this time. It may be one that nobody has
    /// submitted yet.
    pub fn wait(&self, point: u64, timeout: Duration) -> TestResult<bool> {
        const WAIT_FOR_SUBMIT: u32 = 2;
        let now = clock_gettime(ClockId::Monotonic);
        let end = Duration::try_from(now).unwrap_or_default() + timeout;
        let mut args = Wait {
            handles: (&raw const self.handle) as u64,
            points: (&raw const point) as u64,
            timeout: i64::try_from(end.as_nanos()).unwrap_or(i64::MAX),
            count: 1,
            flags: WAIT_FOR_SUBMIT,
            first: 0,
            pad: 0,
            deadline: 0,
        };
        match ioctl(self.drm.as_fd(), 0xca, &mut args) {
            Err(Errno::TIME) => Ok(false),
            done => Ok(done.map(|()| true)?),
        }
    }

    /// The timeline as a file, for other processes and devices.
    pub fn file(&self) -> TestResult<OwnedFd> {
        let mut args = File {
            handle: self.handle,
            ..File::default()
        };
        ioctl(self.drm.as_fd(), 0xc1, &mut args)?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(args.fd) })
    }

    /// Makes a sync file the next point.
    pub fn import(&self, file: impl AsFd, point: u64) -> TestResult {
        const SYNC_FILE_OF_A_POINT: u32 = 3;
        let mut args = File {
            handle: self.handle,
            flags: SYNC_FILE_OF_A_POINT,
            fd: file.as_fd().as_raw_fd(),
            pad: 0,
            point,
        };
        Ok(ioctl(self.drm.as_fd(), 0xc2, &mut args)?)
    }
}

impl Drop for Timeline<'_> {
    fn drop(&mut self) {
        let mut args = Create {
            handle: self.handle,
            flags: 0,
        };
        let _destroyed = ioctl(self.drm.as_fd(), 0xc0, &mut args);
    }
}
